"""Every link of a page to a file of the repository leads to that file, and to that heading."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

_PAGES = (*PAGES, "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ +(.*)$", without_code, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def wrong_links(path: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = []
    for link in _LINK.findall(text):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        there = target.exists() and (not anchor or anchor in anchors(target.read_text(encoding="utf-8")))
        if not there:
            found.append(link)
    return found


@pytest.mark.parametrize("page", _PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert wrong_links(ROOT / page) == []


_DOORS = ("Write a kernel", "Use torch", "Ship kernels", "Port a backend")


def _sections() -> dict[str, list[str]]:
    """The pages of each section of the index, by their paths in docs/."""
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    parts = [part.partition("\n") for part in index.split("\n## ")[1:]]
    return {title: [one for one in _LINK.findall(text) if not one.startswith("..")] for title, _, text in parts}


def test_the_index_has_four_doors_and_every_page_once() -> None:
    sections, docs = _sections(), ROOT / "docs"
    assert list(sections) == [*_DOORS, "Reference", "Generated", "Internal"]
    assert all(1 <= len(sections[door]) <= 3 for door in _DOORS)
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - {"index.md"}
    assert sorted(page for section in sections.values() for page in section) == sorted(pages)


def test_a_page_says_where_it_belongs() -> None:
    """The section of the index stands below the title. Generated pages have a row of CONTRIBUTING's table instead."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Generated pages")[2]
    for title, pages in _sections().items():
        anchor = title.lower().replace(" ", "-")
        for page in pages:
            third = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()[2]
            if title == "Generated":
                assert page.rpartition("/")[2] in table.partition("\n## ")[0]
            else:
                assert re.fullmatch(rf"\*\[{title}\]\((\.\./)?index\.md#{anchor}\)\*", third), page


def test_the_listing_of_patches_is_whole() -> None:
    """What `tools rebase --report` says of each patch, in their order."""
    page = (ROOT / "docs/internals/rebasing.md").read_text(encoding="utf-8")
    listing = page.partition("**This queue on")[2].partition("\n```\n")[2].partition("\n```\n")[0]
    listed = re.findall(r"^(\S+\.patch) +(?:moved|conflict)$", listing, re.MULTILINE)
    series = (ROOT / "patches/series").read_text(encoding="utf-8").split()
    assert listed == series


def test_a_wrong_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title, `code`\n[a](#a-title-code) [b](page.md#nowhere) [c](none.md) [d](https://example.org)\n"
    )
    assert wrong_links(page) == ["page.md#nowhere", "none.md"]
