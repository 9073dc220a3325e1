"""Every link of a page to a file of the repository leads to that file, and to that heading."""

from __future__ import annotations

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


def test_every_page_is_in_the_index_or_in_internals() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= set(_LINK.findall(index))


def test_a_wrong_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title, `code`\n[a](#a-title-code) [b](page.md#nowhere) [c](none.md) [d](https://example.org)\n"
    )
    assert wrong_links(page) == ["page.md#nowhere", "none.md"]
