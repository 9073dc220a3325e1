"""What a workgroup finds out of tensors of f32 that may be multiplied as f16 (transforms/gpu/halves.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ..planning.memory_pools import VECTOR, first_element
from ..planning.plans import Vote
from ..spirv import opcodes as op
from ..spirv.opcodes import Capability_, Scope
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType
from .emitter import Emitter
from .lowering import Lowering
from .registry import lowers
from .scratch import take
from .shuffle import shuffle_xor

WORD = IntegerType(32)
#: In bits of an f32: all but the sign, an infinity, and 1.
_MAGNITUDE, _INFINITY, _ONE = 0x7FFFFFFF, 0x7F800000, 0x3F800000
#: The smallest normal number of f16, and the first one that is rounded to its infinity, as bits of f32.
_NORMAL, _OVERFLOW = 0x38800000, 0x477FF000


def _beyond(emitter: Emitter, value: int, scale: int) -> int:
    """A boolean id: whether an f32 times a power of two (``scale``, its bits), rounded to f16, is something else than
    it is in tf32: neither zero, nor rounded to a normal number."""
    f, uint = emitter.f, emitter.module.uint
    low = f.sub(uint(_NORMAL + _ONE), scale)
    magnitude = _magnitude(emitter, value)
    outside = f.compare(op.UGreaterThanEqual, f.sub(magnitude, low), uint(_OVERFLOW - _NORMAL))
    return f.logical_and(outside, f.compare(op.INotEqual, magnitude, uint(0)))


def _magnitude(emitter: Emitter, value: int) -> int:
    return emitter.f.and_(emitter.f.bitcast(value, emitter.module.u32), emitter.module.uint(_MAGNITUDE))


@lowers("spirv.beyond_halves")
def _vote(ctx: Lowering, operation: Operation) -> None:
    """``tile, scale, …``: whether any element of a tile is beyond."""
    f, module = ctx.f, ctx.module
    pairs = zip(operation.operands[::2], operation.operands[1::2], strict=True)
    found = [
        _beyond(ctx, register, ctx.scalar(scale))
        for tile, scale in pairs
        for register in dict.fromkeys(ctx.registers(tile))
    ]
    module.capability(Capability_.GroupNonUniformVote)
    mine = f.emit(op.GroupNonUniformAny, module.bool, module.uint(Scope.Subgroup), reduce(f.logical_or, found))
    word = _of_workgroup(ctx, operation, f.select(mine, module.uint(1), module.uint(0)), f.or_)
    ctx.define(operation.result, [f.compare(op.INotEqual, word, module.uint(0))])


@lowers("spirv.greatest")
def _greatest(ctx: Lowering, operation: Operation) -> None:
    """The bits of the greatest magnitude of a finite element, 0 if there is none."""
    f, module = ctx.f, ctx.module

    def greater(a: int, b: int) -> int:
        return f.select(f.compare(op.ULessThan, a, b), b, a)

    def finite(value: int) -> int:
        magnitude = _magnitude(ctx, value)
        return f.select(f.compare(op.ULessThan, magnitude, module.uint(_INFINITY)), magnitude, module.uint(0))

    found = reduce(greater, (finite(value) for value in dict.fromkeys(ctx.registers(operation["src"]))))
    for bit in range(ctx.subgroup_size.bit_length() - 1):
        found = greater(found, shuffle_xor(ctx, found, 1 << bit))
    ctx.define(operation.result, [_of_workgroup(ctx, operation, found, greater)])


def _of_workgroup(ctx: Lowering, operation: Operation, word: int, combine: Callable[[int, int], int]) -> int:
    """What the words of all subgroups, each of which is the same in its lanes, combine to. Each subgroup leaves its
    own in shared memory, and all read them behind a barrier."""
    f, module, shared, plan = ctx.f, ctx.module, ctx.shared, ctx.plan_of(operation, Vote)
    if not plan.scratch:
        return word
    start, warps = take(ctx, plan.scratch[0]), ctx.num_warps
    first, end = first_element(start, 4), start + 4 * warps

    def store() -> list[int]:
        shared.store(ctx, WORD, f.add(ctx.warp, module.uint(first)), [word], end, start)
        return []

    f.if_(f.compare(op.IEqual, ctx.lane, module.uint(0)), store)
    ctx.barrier()
    count = min(VECTOR, warps, shared.width_limit(WORD))
    return reduce(
        combine,
        (
            each
            for place in range(0, warps, count)
            for each in shared.load(ctx, WORD, module.uint((first + place) // count), count, end, start)
        ),
    )
