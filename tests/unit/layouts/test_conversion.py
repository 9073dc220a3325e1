"""Conversion plans, simulated over every register, lane and warp."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.layouts.conversion import Identity, Moves, RegisterPermutation, plan_conversion
from triton.backends.spirv.layouts.distributed import distributed_layout
from triton.backends.spirv.layouts.gf2 import parity
from triton.backends.spirv.layouts.linear import LinearLayout
from triton.backends.spirv.layouts.shuffles import Exchange, SubgroupShuffle
from triton.backends.spirv.layouts.through_shared import ConversionError, ThroughShared
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, SliceEncoding

from .strategies import arbitrary_layouts, blocked_encodings, shapes

Registers = dict[tuple[int, int], list[int]]  #: (lane, warp) -> the element that each register holds


def contents(layout: LinearLayout) -> Registers:
    """The elements that ``layout`` asks for."""
    registers = layout.images("register")
    return {
        (lane, warp): [register ^ lane_part ^ warp_part for register in registers]
        for lane, lane_part in enumerate(layout.images("lane"))
        for warp, warp_part in enumerate(layout.images("warp"))
    }


def exchange(registers: list[int], exchanges: Sequence[Exchange], lane: int, warp: int) -> list[int]:
    for step in exchanges:
        if parity(lane & step.lane_mask) ^ parity(warp & step.warp_mask):
            registers = [registers[index ^ step.register_xor] for index in range(len(registers))]
    return registers


def simulate(plan: Moves, before: Registers, source: LinearLayout, result: LinearLayout) -> Registers:
    """What every lane holds after ``plan``. Fails where a plan reads what was never stored."""
    match plan:
        case Identity():
            return before
        case RegisterPermutation():
            return {thread: [held[register] for register in plan.sources] for thread, held in before.items()}
        case SubgroupShuffle():
            offered = {thread: exchange(held, plan.before, *thread) for thread, held in before.items()}
            after = {}
            for lane, warp in before:
                origin = plan.lane_source.apply_flat(lane=lane, warp=warp)
                if plan.local:
                    assert origin == lane
                values = [offered[origin ^ shuffle.lane_xor, warp][shuffle.register] for shuffle in plan.shuffles]
                registers = exchange([values[index] for index in plan.values], plan.after, lane, warp)
                after[lane, warp] = registers[: plan.results]
            return after
        case ThroughShared():
            loaded: dict[tuple[int, int], dict[int, int]] = {thread: {} for thread in before}
            for number, step in enumerate(plan.rounds):
                memory: dict[int, int] = {}
                for (lane, warp), held in before.items():
                    if lane & plan.duplicate_lanes or warp & plan.duplicate_warps:
                        continue
                    turn = plan.turn.apply_flat(lane=lane, warp=warp)
                    for vector in (v for whose, vectors in plan.stores(number) if whose == turn for v in vectors):
                        assert len(vector) == plan.store_width
                        start = plan.store.apply_flat(register=vector[0], lane=lane, warp=warp)
                        assert start % plan.store_width == 0 and start + len(vector) <= plan.size
                        for part, register in enumerate(vector):
                            assert plan.store.apply_flat(register=register, lane=lane, warp=warp) == start + part
                            assert start + part not in memory, "two lanes store one element"
                            memory[start + part] = held[register]
                for (lane, warp), registers_loaded in loaded.items():
                    for vector in step.loads:
                        assert len(vector) == plan.load_width
                        start = plan.load.apply_flat(register=vector[0], lane=lane, warp=warp)
                        assert start % plan.load_width == 0
                        for part, register in enumerate(vector):
                            assert plan.load.apply_flat(register=register, lane=lane, warp=warp) == start + part
                            registers_loaded[register] = memory[start + part]
            return {thread: [found[register] for register in plan.results] for thread, found in loaded.items()}
    raise AssertionError(plan)


def check(source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int) -> Moves:
    plan = plan_conversion(source, result, element_bytes, scratch_bytes)
    assert simulate(plan, contents(source), source, result) == contents(result), plan
    if isinstance(plan, ThroughShared):
        assert plan.size * element_bytes <= scratch_bytes
        assert max(plan.store_width, plan.load_width) * element_bytes <= max(16, element_bytes)
    return plan


def bank_conflicts(layout: LinearLayout, vectors: Sequence[tuple[int, ...]], width: int, element_bytes: int) -> int:
    """The largest number of different words of one bank in one of the steps that serve an access of a subgroup."""
    words = max(width * element_bytes // 4, 1)
    lanes = layout.input_size("lane")
    at_once = max(lanes // words, 1)
    worst = 1
    for vector in vectors:
        for first in range(0, lanes, at_once):
            banks: dict[int, set[int]] = {}
            for lane in range(first, first + at_once):
                start = layout.apply_flat(register=vector[0], lane=lane) * element_bytes // 4
                for word in range(start, start + words):
                    banks.setdefault(word % 32, set()).add(word)
            worst = max(worst, *map(len, banks.values()))
    return worst


@settings(max_examples=300)
@given(st.data(), st.integers(0, 7), st.integers(0, 3), st.integers(0, 2), st.sampled_from([1, 2, 4, 8]))
def test_arbitrary_layouts(data: st.DataObject, bits: int, lanes: int, warps: int, element_bytes: int) -> None:
    source = data.draw(arbitrary_layouts(bits, lanes, warps))
    result = data.draw(arbitrary_layouts(bits, lanes, warps))
    check(source, result, element_bytes, element_bytes << bits)


@settings(max_examples=300)
@given(st.data(), st.integers(1, 3), st.integers(0, 4), st.integers(0, 3), st.sampled_from([1, 2, 4, 8]))
def test_blocked_to_blocked_with_little_memory(
    data: st.DataObject, rank: int, lanes: int, warps: int, element_bytes: int
) -> None:
    """Scratch of every size: a right plan, in two rounds for half of the memory, or a refusal where not each invocation
    has an element's place."""
    shape = data.draw(shapes(rank, rank, 4))
    source, result = (distributed_layout(data.draw(blocked_encodings(rank, lanes, warps)), shape) for _ in range(2))
    whole = source.size * element_bytes
    plan = check(source, result, element_bytes, whole)
    least = whole
    while least >= 1:
        least //= 2
        try:
            smaller = check(source, result, element_bytes, least)
        except ConversionError as error:
            assert isinstance(plan, ThroughShared) and f"owns {least} bytes" in str(error)
            assert least < element_bytes << lanes + warps
            break
        if isinstance(smaller, ThroughShared):
            assert isinstance(plan, ThroughShared)
            assert len(smaller.rounds) * smaller.size == source.size


@settings(max_examples=150)
@given(st.data(), st.integers(0, 4), st.integers(0, 3))
def test_slices_hold_duplicates(data: st.DataObject, lanes: int, warps: int) -> None:
    (extent,) = data.draw(shapes(1, 1))
    layouts = [
        distributed_layout(
            SliceEncoding(data.draw(st.integers(0, 1)), data.draw(blocked_encodings(2, lanes, warps))), (extent,)
        )
        for _ in range(2)
    ]
    check(*layouts, 4, 4 * extent)


def blocked(*sizes: tuple[int, ...], order: tuple[int, ...] = (1, 0)) -> BlockedEncoding:
    return BlockedEncoding(*sizes, order)


@pytest.mark.parametrize("element_bytes", [2, 4, 8])
@pytest.mark.parametrize("repeats", [1, 4])
def test_transposition_is_wide_and_free_of_conflicts(element_bytes: int, repeats: int) -> None:
    """Each lane holds 16 bytes of a row, then of a column; with repeats, further registers are common to both."""
    per_lane = 16 // element_bytes
    extent = 16 * repeats
    rows = distributed_layout(blocked((1, per_lane), (4, 8), (4, 1)), (extent, per_lane * 8 * repeats))
    turned = blocked((per_lane, 1), (16 // per_lane, 2 * per_lane), (1, 4), order=(0, 1))
    columns = distributed_layout(turned, rows.shape)
    plan = check(rows, columns, element_bytes, rows.size * element_bytes)
    assert isinstance(plan, ThroughShared)
    assert max(plan.store_width, plan.load_width) == per_lane
    if repeats > 1:
        assert plan.store_width == plan.load_width == per_lane
    assert bank_conflicts(plan.store, plan.rounds[0].stores, plan.store_width, element_bytes) == 1
    assert bank_conflicts(plan.load, plan.rounds[0].loads, plan.load_width, element_bytes) == 1


@pytest.mark.parametrize(("element_bytes", "rounds"), [(4, 2), (8, 4)])
def test_warps_take_turns_where_there_is_too_little_memory(element_bytes: int, rounds: int) -> None:
    """Transpositions of 64 and 128 KiB in 48: registers of the result and warps of the source say which round."""
    source = distributed_layout(blocked((1, 4), (1, 32), (4, 1)), (128, 128))
    result = distributed_layout(blocked((4, 1), (32, 1), (1, 4), order=(0, 1)), (128, 128))
    plan = check(source, result, element_bytes, 49152)
    assert isinstance(plan, ThroughShared) and len(plan.rounds) == rounds
    assert plan.takes_turns and not any(plan.turn.inputs["lane"])


@pytest.mark.parametrize("element_bytes", [1, 4, 8])
def test_lanes_take_turns_where_warps_do_not_suffice(element_bytes: int) -> None:
    """Warps hold rows on both sides, so that two bits of registers and one of the source's lanes say which round."""
    source = distributed_layout(blocked((1, 4), (1, 32), (4, 1)), (128, 128))
    inputs = {"register": [1 << bit for bit in range(7)], "lane": [512 << bit for bit in range(5)], "warp": [256, 128]}
    plan = check(source, LinearLayout.from_flat(inputs, source.shape), element_bytes, 128 * 16 * element_bytes)
    assert isinstance(plan, ThroughShared) and len(plan.rounds) == 8
    assert plan.takes_turns and any(plan.turn.inputs["lane"])


def test_common_registers_are_moved_as_vectors() -> None:
    source = distributed_layout(blocked((1, 4), (4, 8), (4, 1)), (64, 64))
    result = distributed_layout(blocked((1, 4), (16, 2), (1, 4)), (64, 64))
    plan = check(source, result, 4, 64 * 64 * 4)
    assert isinstance(plan, ThroughShared)
    assert (plan.store_width, plan.load_width, len(plan.rounds)) == (4, 4, 1)
    assert bank_conflicts(plan.store, plan.rounds[0].stores, 4, 4) == 1
    assert bank_conflicts(plan.load, plan.rounds[0].loads, 4, 4) == 1


def test_kinds_of_plan() -> None:
    one = distributed_layout(blocked((1, 4), (4, 8), (4, 1)), (64, 64))
    assert plan_conversion(one, one, 4) == Identity()
    turned = LinearLayout.from_flat({**one.inputs, "register": one.inputs["register"][::-1]}, one.shape)
    renamed = plan_conversion(one, turned, 4)
    assert isinstance(renamed, RegisterPermutation) and sorted(renamed.sources) == list(range(len(renamed.sources)))
    lanes = LinearLayout.from_flat({**one.inputs, "lane": one.inputs["lane"][::-1]}, one.shape)
    moved = plan_conversion(one, lanes, 4)
    assert isinstance(moved, SubgroupShuffle) and not moved.before and not moved.after and not moved.local
    with pytest.raises(ConversionError, match="owns 0 bytes"):
        plan_conversion(one, LinearLayout.from_flat({**one.inputs, "warp": one.inputs["warp"][::-1]}, one.shape), 4)


def test_registers_and_lanes_swap_with_one_shuffle_each() -> None:
    """Eight lanes, eight registers, transposed: eight shuffles, and three exchanges on either side."""
    source = LinearLayout.from_flat({"register": [1, 2, 4], "lane": [8, 16, 32], "warp": []}, (64,))
    result = LinearLayout.from_flat({"register": [8, 16, 32], "lane": [1, 2, 4], "warp": []}, (64,))
    plan = check(source, result, 4, 0)
    assert isinstance(plan, SubgroupShuffle)
    assert (len(plan.shuffles), len(plan.before), len(plan.after)) == (8, 3, 3)


def test_copies_in_other_lanes_are_selected_without_a_shuffle() -> None:
    """Every lane holds both elements and keeps one."""
    source = LinearLayout.from_flat({"register": [1], "lane": [0], "warp": []}, (2,))
    result = LinearLayout.from_flat({"register": [], "lane": [1], "warp": []}, (2,))
    plan = check(source, result, 4, 0)
    assert isinstance(plan, SubgroupShuffle) and plan.local
    assert all(shuffle.lane_xor == 0 for shuffle in plan.shuffles)


def test_layouts_of_different_tensors_are_refused() -> None:
    one = LinearLayout.from_flat({"register": [], "lane": [], "warp": []}, (1,))
    two = LinearLayout.from_flat({"register": [1], "lane": [], "warp": []}, (2,))
    with pytest.raises(ValueError, match="same tensor"):
        plan_conversion(one, two, 4)
    with pytest.raises(ValueError, match="lanes and warps"):
        plan_conversion(two, LinearLayout.from_flat({"register": [], "lane": [1], "warp": []}, (2,)), 4)
