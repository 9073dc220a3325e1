"""Which schedules there are, and which is expected to be faster."""

from dataclasses import replace

import pytest
from triton.backends.spirv.driver_quirks import OTHER
from triton.backends.spirv.planning.cost import CUTS, KernelFacts, candidates
from triton.backends.spirv.transforms.schedule import Schedule


def schedules(facts: KernelFacts) -> list[Schedule]:
    found = candidates(facts)
    times = [one.expected for one in found]
    assert times[0] == 1.0 and times == sorted(times)
    assert len({one.schedule for one in found}) == len(found)
    return [one.schedule for one in found]


def test_without_dots_only_the_subgroups_can_be_fewer() -> None:
    assert schedules(KernelFacts(16, 4, 2, dots=False)) == [Schedule(count) for count in (16, 8, 4)]


def test_dots_are_cut_before_subgroups_are_halved() -> None:
    found = schedules(KernelFacts(16, 4, 2))
    assert found[:2] == [Schedule(16), Schedule(16, in_rounds=True)]
    assert [one for one in found if one.pieces and not one.in_rounds] == [Schedule(16, pieces=one) for one in CUTS[1:]]
    assert found.index(Schedule(16, pieces=8)) < found.index(Schedule(8))
    assert found[-1] == Schedule(4) and all(one.moved_loads or one.in_rounds for one in found)


def test_rounds_come_late_where_a_driver_takes_long_for_them() -> None:
    """A kernel that the driver is expected to run far longer in rounds has fewer subgroups first."""
    found = schedules(KernelFacts(16, 4, 2, driver=replace(OTHER, rounds_cost=20.0)))
    assert found.index(Schedule(4)) < found.index(Schedule(16, in_rounds=True))


@pytest.mark.parametrize("padded", [True, False])
def test_matrix_units_come_first(padded: bool) -> None:
    units = Schedule(4, False, True)
    whole = Schedule(4, False, True, padded)
    found = schedules(KernelFacts(8, 4, 2, 4, padded))
    assert found[:3] == [whole, replace(whole, held=True), replace(whole, pieces=2)]
    assert found.index(units) < found.index(Schedule(8)) == len([one for one in found if one.matrices])
