"""docs/internals/torch-operations.tsv says what torch's own database of operators gives on the device."""

import random
import sys

import pytest
import torch

from docs import generate_torch_operations
from docs.generate_torch_operations import DATA, PAGE, TORCH, data, page, read, refused, written

from . import op_database
from .op_database import NOT_DEFINED, ON_CPU, ON_DEVICE, PARTLY, REFUSED

_ALL = sorted(op_database.entries())
#: Another torch has other operators.
_OF_THE_PAGE = torch.__version__.startswith(f"{TORCH}.")
_NAMES = _ALL if _OF_THE_PAGE else sorted(set(_ALL) & set(read()))
#: All are run each week.
_SOME = random.Random(0).sample(_NAMES, 2)
#: From the best to the worst.
_ORDER = (NOT_DEFINED, ON_DEVICE, PARTLY, ON_CPU, REFUSED)


@pytest.mark.skipif(not _OF_THE_PAGE, reason=f"the page is of torch {TORCH}")
def test_the_page_has_a_row_for_every_operator_and_no_wrong_result() -> None:
    rows = read()
    assert sorted(rows) == _NAMES
    assert all(cell in _ORDER for cells, _ in rows.values() for cell in cells.values())
    text = page(rows, refused(), written())
    assert PAGE.read_text(encoding="utf-8") == text, "run python -m docs.generate_torch_operations --only"
    assert DATA.read_text(encoding="utf-8") == data(rows)


@pytest.mark.parametrize("compiled", [False, True], ids=["as it is", "compiled"])
@pytest.mark.parametrize("name", _SOME)
def test_an_operator_does_no_worse_than_the_page_says(
    name: str, compiled: bool, request: pytest.FixtureRequest
) -> None:
    if compiled:
        request.getfixturevalue("compiled")
    cells, _ = read()[name]
    for family in ("float32", "int64"):
        outcome = op_database.run(op_database.entries()[name], family)
        assert not outcome.problems
        assert _ORDER.index(outcome.summary) <= _ORDER.index(cells[family]), (family, outcome)


@pytest.mark.skipif(not _OF_THE_PAGE, reason=f"the page is of torch {TORCH}")
@pytest.mark.parametrize(
    ("worse", "outcome", "status", "said"),
    [
        ({}, None, 0, ["0 rows are not as in docs/internals/torch-operations.tsv"]),
        ({"float32": ON_CPU}, None, 1, ["neg: the page has | `neg` | device |", "1 rows are not"]),
        ({}, "another value", 1, ["wrong: neg, float32: another value", "0 rows are not"]),
    ],
    ids=["current", "changed", "wrong"],
)
def test_a_check_fails_where_a_row_has_changed_or_a_value_is_wrong(
    worse: dict[str, str],
    outcome: str | None,
    status: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And leaves the page as it is."""
    before = PAGE.read_text(encoding="utf-8")
    cells, text = read()["neg"]

    def run(op: object, family: str) -> op_database.Outcome:
        kind = worse.get(family, cells[family])
        counts = {} if kind == NOT_DEFINED else {kind: 1}
        return op_database.Outcome(counts, problems=[outcome] if outcome and family == "float32" else [])

    monkeypatch.setattr(op_database, "run", run)
    monkeypatch.setattr(sys, "argv", ["generate_torch_operations", "--check", "--only", "neg"])
    assert text == ""
    assert generate_torch_operations.main() == status
    printed = capsys.readouterr().out
    assert all(line in printed for line in said)
    assert PAGE.read_text(encoding="utf-8") == before


def test_a_check_counts_what_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(op_database, "errors", lambda op: iter([""]))
    monkeypatch.setattr(sys, "argv", ["generate_torch_operations", "--check", "--only", "--refused"])
    assert generate_torch_operations.main() == 1
    assert f"Of {len(_ALL)} calls" in capsys.readouterr().out
