"""Each assumption of docs/assumptions.md names a test, and the test is there."""

import ast
import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/assumptions.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| **")]


def test_there_are_rows() -> None:
    assert len(ROWS) >= 10 and len(ROWS) == PAGE.count("\n| **")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[`*|]", "", row).strip()[:40])
def test_the_test_of_an_assumption_is_there(row: str) -> None:
    """A function, or a section of a text file of tests/lowering/test_text.py."""
    found = re.fullmatch(r"`(tests/[\w/]+\.(?:py|ttgir))::(.+)`", row.split(" | ")[-1].removesuffix(" |"))
    assert found is not None, row
    text = (ROOT / found[1]).read_text(encoding="utf-8")
    if found[1].endswith(".py"):
        assert found[2] in {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    else:
        assert f"// {found[2]}\n" in text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[`*|]", "", row).strip()[:40])
def test_a_row_is_whole(row: str) -> None:
    """The assumption, what is seen where it does not hold, what to do, and the test."""
    cells = row.strip("|").split(" | ")
    assert len(cells) == 4 and all(cell.strip() for cell in cells)
