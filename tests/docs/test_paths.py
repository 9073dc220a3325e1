"""Every file and folder that the pages about the code name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "CONTRIBUTING.md",
    "docs/internals/architecture.md",
    "docs/internals/analysis.md",
    "docs/internals/matrix-units.md",
    "docs/internals/abi.md",
)
#: What a reader is to make, or what tools make, is not there.
MADE = {"build/upstream", "build/fuzz/", "build/upstream/"}

_QUOTED = re.compile(r"`([\w./*-]+(?:\.py|\.cpp|\.h|\.json|\.md|/))`")


def named(page: str) -> set[str]:
    """The files and folders in backquotes."""
    return set(_QUOTED.findall((ROOT / page).read_text(encoding="utf-8"))) - MADE


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    """By its path from the root, backend/ or docs/, or by its name alone."""
    tree = {path.relative_to(ROOT).as_posix() for top in ("backend", "tests") for path in (ROOT / top).rglob("*")}
    missing = set()
    for name in named(page):
        path = name.rstrip("/")
        found = any(next((ROOT / base).glob(path), None) for base in ("", "backend", "docs"))
        if not found and not any(other.endswith(f"/{path}") for other in tree):
            missing.add(name)
    assert missing == set()
