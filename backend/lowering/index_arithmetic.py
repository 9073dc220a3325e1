"""Emitting linear layouts: index arithmetic over GF(2) as few shifts, masks and additions as possible."""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts.gf2 import span_values
from ..layouts.linear import LinearLayout
from ..spirv import opcodes as op
from ..spirv.function import FunctionBuilder
from ..ttgir.types import TensorType, Type
from .emitter import Emitter


def runs(bases: Sequence[int]) -> list[tuple[int, int, int]]:
    """Bits of the input grouped: (first bit, number of bits, basis of the first), where each basis of a group is
    twice the one before. Bits whose basis is zero are left out."""
    groups: list[tuple[int, int, int]] = []
    for bit, basis in enumerate(bases):
        if not basis:
            continue
        if groups:
            first, count, start = groups[-1]
            # A run is a shift only while its bases are single bits that do not overlap.
            if bit == first + count and basis == start << count and start & (start - 1) == 0:
                groups[-1] = (first, count + 1, start)
                continue
        groups.append((bit, 1, basis))
    return groups


def image(bases: Sequence[int]) -> int:
    """The bits that any combination of ``bases`` can set."""
    mask = 0
    for basis in bases:
        mask |= basis
    return mask


def combine(f: FunctionBuilder, a: int, a_mask: int, b: int, b_mask: int) -> int:
    """``a ^ b`` for values whose set bits lie in the masks: an addition where the masks do not meet, because drivers
    fold additions into addresses. Of a constant ``b`` what may meet bits of ``a`` goes first: values that differ in the
    rest share it."""
    shared = a_mask & b_mask
    if not shared:
        return f.add(a, b)
    constant = f.module.constants.get(b)
    if constant is None:
        return f.xor(a, b)
    own = int(constant) & ~shared
    return f.add(f.xor(a, f.constant_like(b, int(constant) & shared)), f.constant_like(b, own))


def apply_bases(f: FunctionBuilder, value: int, bases: Sequence[int]) -> int:
    """XOR of ``bases[i]`` over the set bits i of ``value``, which must be below 2^len(bases)."""
    module = f.module
    total = module.uint(0)
    mask = 0
    for first, count, basis in runs(bases):
        bits = f.shr(value, first)
        if first + count < len(bases):
            bits = f.and_(bits, module.uint((1 << count) - 1))
        term = f.mul(bits, module.uint(basis))
        term_mask = ((1 << count) - 1) * basis if basis & (basis - 1) == 0 else basis
        total = combine(f, total, mask, term, term_mask)
        mask |= term_mask
    return total


def thread_part(emitter: Emitter, layout: LinearLayout, dimension: int) -> tuple[int, int]:
    """What lane and warp contribute to coordinate ``dimension``: its id, and the mask of bits it may set."""
    lane_bases = [basis[dimension] for basis in layout.bases["lane"]]
    warp_bases = [basis[dimension] for basis in layout.bases["warp"]]
    lane = apply_bases(emitter.f, emitter.lane, lane_bases)
    warp = apply_bases(emitter.f, emitter.warp, warp_bases)
    lane_mask, warp_mask = image(lane_bases), image(warp_bases)
    return combine(emitter.f, lane, lane_mask, warp, warp_mask), lane_mask | warp_mask


def coordinates(emitter: Emitter, layout: LinearLayout, dimension: int, wanted: int = -1) -> list[int]:
    """The id of coordinate ``dimension`` of each register's element; 0 for a register whose bit of ``wanted`` is 0."""
    f = emitter.f
    thread, mask = thread_part(emitter, layout, dimension)
    return [
        combine(f, thread, mask, f.module.uint(value), value) if wanted >> register & 1 else 0
        for register, value in enumerate(span_values([basis[dimension] for basis in layout.bases["register"]]))
    ]


def unique_owner(emitter: Emitter, layout: LinearLayout) -> int:
    """A boolean id, true in exactly one invocation for each element: lane and warp bits that move nothing are zero."""
    free = {
        name: sum(1 << bit for bit, basis in enumerate(layout.inputs[name]) if not basis) for name in ("lane", "warp")
    }
    return not_duplicate(emitter, free["lane"], free["warp"])


def owns(emitter: Emitter, type_: Type) -> int:
    """A boolean id, true in one invocation for each element of a tensor, or in one for a scalar: where a store is to
    happen once."""
    if isinstance(type_, TensorType):
        return unique_owner(emitter, emitter.layout(type_))
    f, zero = emitter.f, emitter.module.uint(0)
    return f.logical_and(f.compare(op.IEqual, emitter.lane, zero), f.compare(op.IEqual, emitter.warp, zero))


def not_duplicate(emitter: Emitter, duplicate_lanes: int, duplicate_warps: int) -> int:
    """A boolean id: false where the lane number meets ``duplicate_lanes`` or the warp number ``duplicate_warps``."""
    f, module = emitter.f, emitter.module
    owner = module.boolean(True)
    for mask, value in ((duplicate_lanes, emitter.lane), (duplicate_warps, emitter.warp)):
        if mask:
            owner = f.logical_and(owner, f.compare(op.IEqual, f.and_(value, module.uint(mask)), module.uint(0)))
    return owner
