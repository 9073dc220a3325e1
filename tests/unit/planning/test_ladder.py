"""What is tried where shared memory does not suffice."""

from __future__ import annotations

from triton.backends.spirv.planning.ladder import MATRIX_PIECES, PIECES, SHARES, Attempt, attempts, sliced


def test_subgroups_are_halved_down_to_those_asked_for() -> None:
    smaller = [Attempt(16, pieces=pieces) for pieces in PIECES]
    tight = [Attempt(16, moved, pieces=pieces, tight=True) for pieces in (0, *PIECES) for moved in (True, False)]
    halved = [Attempt(count, moved) for count in (16, 8, 4) for moved in (True, False)]
    assert list(attempts(16, 4)) == [*halved, *smaller, *tight]
    assert list(attempts(16, 4, dots=False)) == halved
    assert list(attempts(4, 4))[:3] == [Attempt(4, True), Attempt(4, False), Attempt(4, pieces=2)]


def test_matrix_units_come_first() -> None:
    padded, plain = Attempt(4, False, True, True), Attempt(4, False, True)
    smaller = [Attempt(4, False, True, pieces=pieces) for pieces in MATRIX_PIECES]
    assert list(attempts(4, 4, 4, True))[:4] == [padded, plain, *smaller, Attempt(4)]
    assert list(attempts(4, 4, 4))[:3] == [plain, *smaller, Attempt(4)]


def test_slices_are_tried_with_the_same_layouts() -> None:
    whole = Attempt(8)
    parts = [Attempt(8, share=share) for share in SHARES]
    assert list(sliced(whole, True)) == [whole, *parts]
    assert list(sliced(whole, False)) == [whole]
    on_units = Attempt(8, False, True)
    assert list(sliced(on_units, True)) == [on_units]
    assert [one.layouts for one in parts] == [whole] * len(parts)
