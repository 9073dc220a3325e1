"""Values that live across barriers: floats are anchored, integers are computed again."""

from __future__ import annotations

from triton.backends.spirv.coroutines.anchors import anchor_across_barriers
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.encode import Instruction
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.module import ModuleBuilder


def function(anchored: bool) -> tuple[FunctionBuilder, ModuleBuilder, int]:
    """A function with an input, which is a volatile load from the address 64."""
    module = ModuleBuilder()
    f = FunctionBuilder(module, module.void)
    f.rewrite = anchor_across_barriers if anchored else None
    pointer = f.emit(op.ConvertUToPtr, module.pointer(5349, module.u32), module.uint(64, 64))
    return f, module, f.load(module.u32, pointer, 0, 4)


def sum_of(f: FunctionBuilder, module: ModuleBuilder, value: int) -> int:
    """A float that is computed from ``value``, as its bits."""
    number = f.bitcast(value, module.float(32))
    return f.emit(op.FAdd, module.float(32), number, number)


def barrier(f: FunctionBuilder, module: ModuleBuilder) -> None:
    f.do(op.ControlBarrier, module.uint(2), module.uint(2), module.uint(0))


def store(f: FunctionBuilder, module: ModuleBuilder, value: int) -> None:
    f.store(f.emit(op.ConvertUToPtr, module.pointer(5349, module.u32), module.uint(128, 64)), value, 0, 4)


def shuffles(body: list[Instruction]) -> list[Instruction]:
    return [instruction for instruction in body if instruction[0] == op.GroupNonUniformShuffleXor]


def test_a_sum_that_is_used_behind_a_barrier_is_exchanged_twice() -> None:
    f, module, value = function(True)
    total = sum_of(f, module, value)
    barrier(f, module)
    store(f, module, total)
    f.return_()
    body = f.finish()
    there, back = shuffles(body)
    assert there[4] == total and back[4] == there[2]
    assert next(instruction for instruction in body if instruction[0] == op.Store)[4] == back[2]


def test_nothing_changes_before_the_barrier_nor_for_loads() -> None:
    f, module, value = function(True)
    store(f, module, f.add(value, module.uint(1)))
    barrier(f, module)
    store(f, module, value)
    f.return_()
    assert not shuffles(f.finish())


def test_a_loop_with_a_barrier_is_behind_a_barrier_of_its_own() -> None:
    f, module, value = function(True)
    total = sum_of(f, module, value)

    def body(carried: list[int]) -> list[int]:
        store(f, module, total)
        barrier(f, module)
        return [f.add(carried[0], module.uint(1))]

    f.loop([module.uint(0)], lambda carried: f.compare(op.ULessThan, carried[0], module.uint(4)), body)
    f.return_()
    assert len(shuffles(f.finish())) == 2


def test_literals_are_not_taken_for_values() -> None:
    f, module, value = function(True)
    total = f.add(value, module.uint(1))
    pair = f.emit(op.CompositeConstruct, module.vector(module.u32, 2), value, value)
    barrier(f, module)
    part = f.effect(op.CompositeExtract, module.u32, pair, total)  # an index that equals an id
    store(f, module, f.add(part, total))
    f.return_()
    body = f.finish()
    extract = next(instruction for instruction in body if instruction[0] == op.CompositeExtract)
    assert extract[4] == total


def test_other_drivers_get_no_anchors() -> None:
    f, module, value = function(False)
    total = sum_of(f, module, value)
    barrier(f, module)
    store(f, module, total)
    f.return_()
    assert not shuffles(f.finish())


def adds(body: list[Instruction]) -> list[Instruction]:
    return [instruction for instruction in body if instruction[0] == op.IAdd]


def test_an_integer_is_computed_again_once_behind_each_barrier() -> None:
    f, module, value = function(True)
    total = f.add(value, value)
    double = f.add(total, total)
    for _ in range(2):
        barrier(f, module)
        store(f, module, total)
        store(f, module, double)
        store(f, module, total)
    f.return_()
    body = f.finish()
    first, again, second, again_second = adds(body)  # those before the barriers are used by nothing any more
    assert first[3:] == second[3:] and set(again[3:]) == {first[2]} and set(again_second[3:]) == {second[2]}
    assert not shuffles(body) and body.index(first) > next(
        n for n, one in enumerate(body) if one[0] == op.ControlBarrier
    )
    used = [instruction[4] for instruction in body if instruction[0] == op.Store]
    assert used == [first[2], again[2], first[2], second[2], again_second[2], second[2]]


def test_what_a_branch_repeats_is_not_used_behind_it() -> None:
    f, module, value = function(True)
    total = f.add(value, module.uint(1))
    condition = f.compare(op.ULessThan, value, module.uint(7))
    barrier(f, module)

    def branch() -> list[int]:
        store(f, module, total)
        return []

    f.if_(condition, branch, branch)
    store(f, module, total)
    f.return_()
    body = f.finish()
    assert len(adds(body)) == 3 and len({instruction[2] for instruction in adds(body)}) == 3
    merge = next(place for place, one in enumerate(body) if one[0] == op.SelectionMerge)
    assert body[merge + 1][0] == op.BranchConditional and body[merge - 1][0] == op.ULessThan


def test_of_a_long_chain_only_the_end_is_repeated() -> None:
    f, module, value = function(True)
    total = value
    for number in range(40):
        total = f.xor(f.add(total, module.uint(number + 1)), value)
    barrier(f, module)
    store(f, module, total)
    f.return_()
    body = f.finish()
    behind = body[next(n for n, one in enumerate(body) if one[0] == op.ControlBarrier) :]
    assert 0 < len(adds(behind)) <= 4 and len(shuffles(body)) == 2


def test_what_took_something_repeated_is_repeated_from_the_original() -> None:
    f, module, value = function(True)
    total = f.add(value, value)
    barrier(f, module)
    double = f.add(total, total)
    store(f, module, double)
    barrier(f, module)
    store(f, module, double)
    f.return_()
    body = f.finish()
    total, double, total_again, double_again = adds(body)  # each behind a barrier of its own
    assert set(double[3:]) == {total[2]} and set(double_again[3:]) == {total_again[2]}
    assert not shuffles(body)


def test_nothing_is_left_of_what_is_used_behind_a_later_barrier_only() -> None:
    f, module, value = function(True)
    total = f.add(value, module.uint(1))
    barrier(f, module)
    double = f.add(total, total)
    barrier(f, module)
    store(f, module, double)
    f.return_()
    body = f.finish()
    barriers = [place for place, one in enumerate(body) if one[0] == op.ControlBarrier]
    assert len(adds(body)) == 2 and adds(body) == adds(body[barriers[1] :])
