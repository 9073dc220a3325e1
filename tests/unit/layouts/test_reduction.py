"""Reduction plans, simulated over every register, lane and warp; and the vector widths of accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.linear import LinearLayout, unflatten
from triton.backends.spirv.layouts.reduction import ReductionError, ReductionPlan, extents_in_order, plan_reduction
from triton.backends.spirv.planning.cross_lane import lowest_extent
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, DotOperandEncoding, SliceEncoding

from .strategies import arbitrary_layouts, blocked_encodings, shapes
from .test_conversion import contents

Held = dict[tuple[int, int], list[Any]]  #: by lane and warp: each register's value


@dataclass(frozen=True)
class Row:
    """Elements in the order in which they were combined: the digits of a number, modulo a prime."""

    number: int
    unit: int

    def __add__(self, later: Row) -> Row:
        return Row((self.number * later.unit + later.number) % PRIME, self.unit * later.unit % PRIME)


PRIME, BASE = (1 << 61) - 1, 1_000_003


def simulate(plan: ReductionPlan, held: Held) -> Held:
    """What each lane holds in each result register."""
    values = {
        thread: [reduce(add, [registers[r] for r in group]) for group in plan.groups]
        for thread, registers in held.items()
    }
    for mask in plan.lane_masks:
        values = {
            (lane, warp): [mine + theirs for mine, theirs in zip(rows, values[lane ^ mask, warp], strict=True)]
            for (lane, warp), rows in values.items()
        }
    if first := plan.first_lane:
        values = {
            (lane, warp): [
                values[first.apply_flat(register=group, lane=lane, warp=warp), warp][group]
                for group in range(len(rows))
            ]
            for (lane, warp), rows in values.items()
        }
    across = plan.across_warps
    if across:
        totals: dict[tuple[int, int], dict[int, Any]] = {thread: {} for thread in values}
        for groups in across.rounds:
            assert len(groups) % across.width == 0
            memory: dict[int, Any] = {}
            for (lane, warp), rows in values.items():
                if lane & across.duplicate_lanes or warp & across.duplicate_warps:
                    continue
                check_vectors(across.store, groups, across.width, lane, warp)
                check_vectors(across.load, groups, across.width, lane, warp)
                for group in groups:
                    offset = across.store.apply_flat(register=group, lane=lane, warp=warp)
                    assert offset < across.size and offset not in memory, "two lanes store one partial result"
                    memory[offset] = rows[group]
            for (lane, warp), total in totals.items():
                for group in groups:
                    total[group] = reduce(
                        add,
                        (
                            memory[across.load.apply_flat(partial=partial, register=group, lane=lane, warp=warp)]
                            for partial in range(across.partials)
                        ),
                    )
        values = {thread: [total[group] for group in range(len(plan.groups))] for thread, total in totals.items()}
    return {thread: [rows[group] for group in plan.results] for thread, rows in values.items()}


def check_vectors(offsets: LinearLayout, groups: tuple[int, ...], width: int, lane: int, warp: int) -> None:
    """Each ``width`` groups lie at consecutive offsets from a multiple of ``width`` on."""
    places = [offsets.apply_flat(register=group, lane=lane, warp=warp) for group in groups]
    for first in range(0, len(places), width):
        assert places[first] % width == 0
        assert places[first : first + width] == list(range(places[first], places[first] + width))


def alone(layout: LinearLayout, element: Callable[[int], Any]) -> Held:
    """Each element in its registers."""
    return {thread: [element(index) for index in registers] for thread, registers in contents(layout).items()}


def lines(layout: LinearLayout, axis: int, element: Callable[[int], Any]) -> dict[int, Any]:
    """The combination of the elements along ``axis``, by their place along the other dimensions."""
    found: dict[int, Any] = {}
    others = LinearLayout.identity("index", layout.size).reshape(layout.shape).drop_dim(axis)
    for index in range(layout.size):
        place = others.apply_flat(index=index)
        found[place] = found[place] + element(index) if place in found else element(index)
    return found


def check_order(layout: LinearLayout, axis: int, element_bytes: tuple[int, ...]) -> None:
    """Every lane combines the elements along ``axis`` once each and in their order."""
    digits = [Row(index + 1, BASE) for index in range(layout.size)]
    rows, part = alone(layout, digits.__getitem__), layout
    for extent in extents_in_order(layout, axis):
        lowest = lowest_extent(part, axis, extent)
        plan = plan_reduction(*lowest, element_bytes, part.size * sum(element_bytes), agreed=True)
        rows, part = simulate(plan, rows), plan.result
    wanted = lines(layout, axis, digits.__getitem__)
    assert rows == {thread: [wanted[point] for point in points] for thread, points in contents(part).items()}
    agreed = plan_reduction(layout, axis, element_bytes, layout.size * sum(element_bytes), agreed=True)
    found: dict[int, Row] = {}
    for thread, held in simulate(agreed, alone(layout, digits.__getitem__)).items():
        for point, row in zip(contents(agreed.result)[thread], held, strict=True):
            assert found.setdefault(point, row) == row, "two lanes have combined one line in different orders"


def check(layout: LinearLayout, axis: int, element_bytes: tuple[int, ...], scratch_bytes: int) -> ReductionPlan:
    plan = plan_reduction(layout, axis, element_bytes, scratch_bytes)
    wanted = lines(layout, axis, lambda index: Counter([index]))
    expected = {thread: [wanted[point] for point in points] for thread, points in contents(plan.result).items()}
    assert simulate(plan, alone(layout, lambda index: Counter([index]))) == expected, plan
    for group in plan.groups:
        along = [unflatten(layout.images("register")[register], layout.shape)[axis] for register in group]
        assert along == sorted(along)
    if plan.across_warps:
        assert plan.across_warps.size * sum(element_bytes) <= scratch_bytes
    return plan


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(0, 4), st.integers(0, 3), st.sampled_from([(4,), (2,), (4, 8)]))
def test_blocked_with_much_and_little_memory(
    data: st.DataObject, rank: int, lanes: int, warps: int, element_bytes: tuple[int, ...]
) -> None:
    shape = data.draw(shapes(rank, rank, 4))
    layout = distributed_layout(data.draw(blocked_encodings(rank, lanes, warps)), shape)
    axis = data.draw(st.integers(0, rank - 1))
    scratch = layout.size * sum(element_bytes)
    plan = check(layout, axis, element_bytes, scratch)
    check_order(layout, axis, element_bytes)
    while plan.across_warps and scratch:
        scratch //= 2
        try:
            plan = check(layout, axis, element_bytes, scratch)
        except ReductionError as error:
            assert f"owns {scratch} bytes" in str(error)
            break


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(0, 3), st.integers(0, 2))
def test_slices_and_dot_operands(data: st.DataObject, lanes: int, warps: int) -> None:
    """Layouts with copies: each element is combined once."""
    shape = data.draw(shapes(2, 2, 4))
    inner = DotOperandEncoding(data.draw(st.integers(0, 1)), data.draw(blocked_encodings(2, lanes, warps)))
    outer = SliceEncoding(data.draw(st.integers(0, 2)), data.draw(blocked_encodings(3, lanes, warps)))
    for encoding in (inner, outer):
        layout = distributed_layout(encoding, shape)
        plan = check(layout, data.draw(st.integers(0, 1)), (4,), 4 * layout.size)
        assert plan.result.rank == 1
        check_order(layout, 0, (4,))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(0, 3), st.integers(0, 2), st.integers(0, 6))
def test_arbitrary_layouts_are_right_or_refused(
    data: st.DataObject, bits: int, lanes: int, warps: int, split: int
) -> None:
    rows = min(split, bits)
    layout = data.draw(arbitrary_layouts(bits, lanes, warps)).reshape((1 << rows, 1 << bits - rows))
    for axis in (0, 1):
        try:
            check(layout, axis, (4,), 4 << bits)
            check_order(layout, axis, (4,))
        except ReductionError as error:
            assert "convert the layout" in str(error)


def test_the_result_is_numbered_as_its_slice_encoding() -> None:
    parent = BlockedEncoding((2, 4), (4, 8), (2, 2), (1, 0))
    for axis, shape in ((0, (64, 128)), (1, (64, 128))):
        plan = check(distributed_layout(parent, shape), axis, (4,), 1 << 16)
        assert plan.result == distributed_layout(SliceEncoding(axis, parent), (shape[1 - axis],))


def test_softmax_row() -> None:
    """1024 elements, 4 warps of 32 lanes, 4 registers at a time: registers, five exchanges, four partial results."""
    plan = check(distributed_layout(BlockedEncoding((4,), (32,), (4,), (0,)), (1024,)), 0, (4,), 16)
    assert plan.groups == (tuple(range(8)),)
    assert sorted(plan.lane_masks) == [1, 2, 4, 8, 16]
    assert plan.across_warps is not None
    assert (plan.across_warps.partials, plan.across_warps.size, plan.results) == (4, 4, (0,))
    assert (plan.across_warps.duplicate_lanes, plan.across_warps.duplicate_warps) == (31, 0)


def test_refusals() -> None:
    layout = distributed_layout(BlockedEncoding((1,), (32,), (4,), (0,)), (128,))
    with pytest.raises(ReductionError, match="owns 12 bytes"):
        plan_reduction(layout, 0, (4,), 12)
    with pytest.raises(ReductionError, match="dimension 1"):
        plan_reduction(layout, 1, (4,), 16)


@pytest.mark.parametrize(("element_bytes", "width"), [((4,), 4), ((2,), 8), ((4, 8), 2)])
def test_registers_that_are_stored_together(element_bytes: tuple[int, ...], width: int) -> None:
    """The lanes lie along the other dimension, so the vector is of registers further along it."""
    layout = distributed_layout(BlockedEncoding((1, 4), (1, 8), (4, 1), (1, 0)), (4, 256))
    across = check(layout, 0, element_bytes, layout.size * sum(element_bytes)).across_warps
    assert across is not None and across.width == width and len(across.rounds) == 1
