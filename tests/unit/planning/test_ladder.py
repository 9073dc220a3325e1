"""What is tried where shared memory does not suffice."""

from __future__ import annotations

from triton.backends.spirv.planning.ladder import MATRIX_PIECES, PIECES, SHARES, schedules, sliced
from triton.backends.spirv.transforms.schedule import Schedule


def test_subgroups_are_halved_down_to_those_asked_for() -> None:
    smaller = [Schedule(16, pieces=pieces) for pieces in PIECES]
    tight = [Schedule(16, moved, pieces=pieces, tight=True) for pieces in (0, *PIECES) for moved in (True, False)]
    halved = [Schedule(count, moved) for count in (16, 8, 4) for moved in (True, False)]
    assert list(schedules(16, 4, 2)) == [*halved, *smaller, *tight]
    assert list(schedules(16, 4, 2, dots=False)) == halved
    assert list(schedules(4, 4, 2))[:3] == [Schedule(4, True), Schedule(4, False), Schedule(4, pieces=2)]


def test_matrix_units_come_first() -> None:
    padded, plain = Schedule(4, False, True, True), Schedule(4, False, True)
    smaller = [Schedule(4, False, True, pieces=pieces) for pieces in MATRIX_PIECES]
    assert list(schedules(4, 4, 2, 4, True))[:4] == [padded, plain, *smaller, Schedule(4)]
    assert list(schedules(4, 4, 2, 4))[:3] == [plain, *smaller, Schedule(4)]


def test_slices_are_tried_with_the_same_layouts() -> None:
    whole = Schedule(8)
    parts = [Schedule(8, share=share) for share in SHARES]
    assert list(sliced(whole, True)) == [whole, *parts]
    assert list(sliced(whole, False)) == [whole]
    on_units = Schedule(8, False, True)
    assert list(sliced(on_units, True)) == [on_units]
    assert [one.layouts for one in parts] == [whole] * len(parts)
