"""What is tried where shared memory does not suffice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from triton.backends.spirv.planning.ladder import MATRIX_PIECES, PIECES, Attempt, attempts, first_that_fits


def test_subgroups_are_halved_down_to_those_asked_for() -> None:
    smaller = [Attempt(16, pieces=pieces) for pieces in PIECES]
    halved = [Attempt(count, moved) for count in (16, 8, 4) for moved in (True, False)]
    assert list(attempts(16, 4)) == [*halved, *smaller]
    assert list(attempts(4, 4))[:3] == [Attempt(4, True), Attempt(4, False), Attempt(4, pieces=2)]


def test_matrix_units_come_first() -> None:
    padded, plain = Attempt(4, False, True, True), Attempt(4, False, True)
    smaller = [Attempt(4, False, True, pieces=pieces) for pieces in MATRIX_PIECES]
    assert list(attempts(4, 4, True, True))[:4] == [padded, plain, *smaller, Attempt(4)]
    assert list(attempts(4, 4, True))[:3] == [plain, *smaller, Attempt(4)]


def test_nothing_is_made_after_what_fits() -> None:
    made: list[int] = []

    def candidates() -> Iterator[int]:
        for size in (5, 3, 2):
            made.append(size)
            yield size

    assert first_that_fits(candidates(), lambda size: size <= 3) == 3
    assert made == [5, 3]


def test_the_last_is_taken_where_nothing_fits() -> None:
    assert first_that_fits([5, 3, 2], lambda size: size < 0) == 2
    with pytest.raises(AssertionError, match="nothing to try"):
        first_that_fits([], bool)
