"""Scan plans, simulated over every register, lane and warp with a combination that is not commutative."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.linear import LinearLayout, unflatten
from triton.backends.spirv.layouts.scan_plans import (
    AcrossLanes,
    AcrossRegisters,
    AcrossWarps,
    ScanError,
    ScanPlan,
    plan_scan,
    simple_layout,
)
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, SliceEncoding

from .strategies import arbitrary_layouts, blocked_encodings, shapes
from .test_conversion import contents

Line = tuple[int, ...]  #: the elements that a value is the combination of, in the order in which they were combined


@dataclass
class Thread:
    """What one lane holds: for each group the value of each register, and the total of each block."""

    values: list[list[Line]]
    totals: list[list[Line]]


def prepend(thread: Thread, group: int, block: int, earlier: Line) -> None:
    line = thread.values[group]
    size = len(line) // len(thread.totals[group])
    for place in range(block * size, (block + 1) * size):
        line[place] = earlier + line[place]


def simulate(plan: ScanPlan, layout: LinearLayout) -> dict[tuple[int, int], list[Line]]:
    """What each lane holds in each result register."""
    threads = {}
    for thread, held in contents(layout).items():
        values = [[(held[register],) for register in group] for group in plan.groups]
        threads[thread] = Thread(values, [list(line) for line in values])
    for step in plan.steps:
        before = {thread: [list(line) for line in state.totals] for thread, state in threads.items()}
        if isinstance(step, AcrossRegisters):
            for thread, state in threads.items():
                for group, blocks in enumerate(before[thread]):
                    count = 1 << step.bits
                    for block in range(len(blocks)):
                        start = block // count * count
                        prepend(state, group, block, sum(blocks[start:block], ()))
                    state.totals[group] = [
                        sum(blocks[start : start + count], ()) for start in range(0, len(blocks), count)
                    ]
            continue
        neighbours = lanes_joined(step, plan.reverse) if isinstance(step, AcrossLanes) else None
        memory = stored(step, before) if isinstance(step, AcrossWarps) else {}
        for (lane, warp), state in threads.items():
            number = 0
            for group, blocks in enumerate(before[lane, warp]):
                for block in range(len(blocks)):
                    if neighbours is not None:
                        assert isinstance(step, AcrossLanes)
                        order = neighbours(lane)
                        parts = [before[other, warp][group][block] for other in order]
                        own = order.index(lane)
                    else:
                        assert isinstance(step, AcrossWarps)
                        parts = [
                            memory[step.load.apply_flat(part=part, register=number, lane=lane, warp=warp)]
                            for part in range(1 << len(step.masks))
                        ]
                        own = sum(bool(warp & mask) << index for index, mask in enumerate(step.masks))
                        assert parts[own] == blocks[block]
                        if plan.reverse:
                            parts.reverse()
                            own = len(parts) - 1 - own
                    prepend(state, group, block, sum(parts[:own], ()))
                    state.totals[group][block] = sum(parts, ())
                    number += 1
    return {thread: [state.values[group][place] for group, place in plan.results] for thread, state in threads.items()}


def lanes_joined(step: AcrossLanes, reverse: bool):
    def order(lane: int) -> list[int]:
        found = []
        for number in range(1 << len(step.masks)):
            mask = sum(bit for index, bit in enumerate(step.masks) if number >> index & 1)
            found.append(lane & ~step.mask | mask)
        return found[::-1] if reverse else found

    return order


def stored(step: AcrossWarps, before: dict[tuple[int, int], list[list[Line]]]) -> dict[int, Line]:
    memory: dict[int, Line] = {}
    for (lane, warp), groups in before.items():
        if lane & step.duplicate_lanes or warp & step.duplicate_warps:
            continue
        for number, total in enumerate(total for blocks in groups for total in blocks):
            offset = step.store.apply_flat(register=number, lane=lane, warp=warp)
            assert offset < step.size and offset not in memory, "two lanes store one total"
            memory[offset] = total
            first = number - number % step.width
            assert offset == step.store.apply_flat(register=first, lane=lane, warp=warp) + number - first
            assert (offset - number + first) % step.width == 0, "a vector begins at a multiple of its length"
    return memory


def check(layout: LinearLayout, axis: int, reverse: bool) -> ScanPlan:
    plan = plan_scan(layout, axis, reverse, (4,))

    def line(index: int) -> Line:
        point = list(unflatten(index, layout.shape))
        stride = 1
        for extent in layout.shape[axis + 1 :]:
            stride *= extent
        place, first = point[axis], index - point[axis] * stride
        order = range(layout.shape[axis] - 1, place - 1, -1) if reverse else range(place + 1)
        return tuple(first + step * stride for step in order)

    expected = {thread: [line(element) for element in held] for thread, held in contents(layout).items()}
    assert simulate(plan, layout) == expected, plan
    return plan


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_blocked(data: st.DataObject, rank: int, lanes: int, warps: int, reverse: bool) -> None:
    shape = data.draw(shapes(rank, rank, 5 if rank < 3 else 3))
    layout = distributed_layout(data.draw(blocked_encodings(rank, lanes, warps)), shape)
    for axis in range(rank):
        check(layout, axis, reverse)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(0, 4), st.integers(0, 2), st.booleans())
def test_slices(data: st.DataObject, lanes: int, warps: int, reverse: bool) -> None:
    """Layouts with copies, in which bits of lanes and warps move nothing."""
    encoding = SliceEncoding(data.draw(st.integers(0, 2)), data.draw(blocked_encodings(3, lanes, warps)))
    check(distributed_layout(encoding, data.draw(shapes(2, 2, 4))), data.draw(st.integers(0, 1)), reverse)


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(0, 3), st.integers(0, 2), st.integers(0, 6), st.booleans())
def test_arbitrary_layouts_are_right_or_have_a_simple_one(
    data: st.DataObject, bits: int, lanes: int, warps: int, split: int, reverse: bool
) -> None:
    rows = min(split, bits)
    layout = data.draw(arbitrary_layouts(bits, lanes, warps)).reshape((1 << rows, 1 << bits - rows))
    for axis in (0, 1):
        try:
            check(layout, axis, reverse)
        except ScanError:
            simple = simple_layout(layout)
            assert [simple.input_size(name) for name in ("lane", "warp")] == [1 << lanes, 1 << warps]
            check(simple, axis, reverse)


def test_a_line_over_everything() -> None:
    """1024 elements, 4 warps of 32 lanes, 4 registers at a time: registers, lanes, warps, and the tile twice."""
    plan = check(distributed_layout(BlockedEncoding((4,), (32,), (4,), (0,)), (1024,)), 0, False)
    registers, lanes, warps, tiles = plan.steps
    assert isinstance(registers, AcrossRegisters) and registers.bits == 2
    assert isinstance(lanes, AcrossLanes) and lanes.mask == 31
    assert isinstance(warps, AcrossWarps) and warps.mask == 3 and warps.size == 8
    assert warps.width == 2
    assert isinstance(tiles, AcrossRegisters) and tiles.bits == 1
    assert plan.groups == (tuple(range(8)),)


def test_columns_need_no_exchange_where_a_lane_holds_them() -> None:
    plan = check(distributed_layout(BlockedEncoding((8, 1), (1, 32), (1, 4), (0, 1)), (8, 128)), 0, True)
    assert plan.steps == (AcrossRegisters(3),)
    assert plan.groups == (tuple(reversed(range(8))),)


def test_refusals() -> None:
    layout = LinearLayout.from_flat({"register": [], "lane": [2, 1], "warp": []}, (4,))
    with pytest.raises(ScanError, match="out of order"):
        plan_scan(layout, 0, False, (4,))
    with pytest.raises(ScanError, match="dimension 1"):
        plan_scan(layout, 1, False, (4,))
