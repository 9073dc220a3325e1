"""Moving values between the lanes of a subgroup, whatever their type.

Narrow values travel in a 32-bit word and 64-bit ones in two, so that shaderSubgroupExtendedTypes is not needed.
"""

from __future__ import annotations

from collections.abc import Callable

from ..spirv import opcodes as op
from ..spirv.opcodes import Capability_, Scope
from .emitter import Emitter


def _through_words(emitter: Emitter, value: int, move: Callable[[int, int], int]) -> int:
    """``move(words, type of words)`` applied to ``value`` as one or two 32-bit words."""
    f, module = emitter.f, emitter.module
    type_id = f.type_of(value)
    kind, width = module.kinds[type_id]
    if kind == "bool":
        word = f.select(value, module.uint(1), module.uint(0))
        return f.compare(op.INotEqual, move(word, module.u32), module.uint(0))
    if width == 32:
        return move(value, type_id)
    if width == 64:
        pair = module.vector(module.u32, 2)
        return f.bitcast(move(f.bitcast(value, pair), pair), type_id)
    bits = f.zero_extend(f.bitcast(value, module.int(width)), 32)
    return f.bitcast(f.zero_extend(move(bits, module.u32), width), type_id)


def shuffle_xor(emitter: Emitter, value: int, mask: int) -> int:
    """The value of the lane whose number differs in the bits of ``mask``."""
    f, module = emitter.f, emitter.module
    module.capability(Capability_.GroupNonUniformShuffle)
    scope, other = module.uint(Scope.Subgroup), module.uint(mask)
    return _through_words(
        emitter, value, lambda words, type_id: f.emit(op.GroupNonUniformShuffleXor, type_id, scope, words, other)
    )


def of_lane(emitter: Emitter, value: int, lane: int) -> int:
    """The value of one lane, by its number, in all lanes. It stays what it is where all have the same."""
    f, module = emitter.f, emitter.module
    if value in module.constants:
        return value
    module.capability(Capability_.GroupNonUniformBallot)
    scope, number = module.uint(Scope.Subgroup), module.uint(lane)
    return f.emit(op.GroupNonUniformBroadcast, f.type_of(value), scope, value, number)


def shuffle(emitter: Emitter, value: int, lane: int) -> int:
    """The value of lane ``lane`` (an id)."""
    f, module = emitter.f, emitter.module
    module.capability(Capability_.GroupNonUniformShuffle)
    scope = module.uint(Scope.Subgroup)
    return _through_words(
        emitter, value, lambda words, type_id: f.emit(op.GroupNonUniformShuffle, type_id, scope, words, lane)
    )
