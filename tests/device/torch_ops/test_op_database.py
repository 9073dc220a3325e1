"""docs/torch-operations.md says what torch's own database of operators gives on the device."""

from __future__ import annotations

import datetime

import pytest
import torch

from docs.generate_torch_operations import PAGE, TORCH, page, read, refused, written

from . import op_database
from .op_database import NOT_DEFINED, ON_CPU, ON_DEVICE, PARTLY, REFUSED

_A_DAY = 6
_ALL = sorted(op_database.entries())
#: Another torch has other operators.
_OF_THE_PAGE = torch.__version__.startswith(f"{TORCH}.")
_NAMES = _ALL if _OF_THE_PAGE else sorted(set(_ALL) & set(read()))
#: Others each day, so that all are run in time.
_TODAY = [_NAMES[(datetime.date.today().toordinal() * _A_DAY + i) * 97 % len(_NAMES)] for i in range(_A_DAY)]
#: From the best to the worst.
_ORDER = (NOT_DEFINED, ON_DEVICE, PARTLY, ON_CPU, REFUSED)


@pytest.mark.skipif(not _OF_THE_PAGE, reason=f"the page is of torch {TORCH}")
def test_the_page_has_a_row_for_every_operator_and_no_wrong_result() -> None:
    rows = read()
    assert sorted(rows) == _NAMES
    assert all(cell in _ORDER for cells, _ in rows.values() for cell in cells.values())
    text = page(rows, refused(), written())
    assert PAGE.read_text(encoding="utf-8") == text, "run python -m docs.generate_torch_operations --only"


@pytest.mark.parametrize("name", _TODAY)
def test_an_operator_does_no_worse_than_the_page_says(name: str) -> None:
    cells, _ = read()[name]
    for family in ("float32", "int64"):
        outcome = op_database.run(op_database.entries()[name], family)
        assert not outcome.problems
        assert _ORDER.index(outcome.summary) <= _ORDER.index(cells[family]), (family, outcome)
