"""Keeps values that live across a barrier from being computed again behind it.

Mesa's CPU driver makes a coroutine of a compute shader that has barriers. LLVM's coroutine pass does not save a value
that lives across one where it can compute it again (arithmetic, comparisons, selections, conversions), up to four
instructions deep for every use, before anything is simplified: 16 values over 16 barriers take 9 s to compile instead
of 0.6 s. It does save the result of a shuffle. So such values are exchanged with the neighbouring invocation and back:
two shuffles by constants, which LLVM later cancels.
"""

from __future__ import annotations

from bisect import bisect_left

from . import opcodes as op
from .encode import Instruction
from .grammar import id_places
from .module import ModuleBuilder
from .opcodes import Capability_, Scope
from .repeating import repeat_behind_barriers

#: Opcodes whose results LLVM would compute again.
REPEATABLE = frozenset(range(op.ConvertFToU, op.BitCount + 1)) - {
    op.ConvertUToPtr,
    op.UMulExtended,
    op.SMulExtended,
} | {op.ExtInst}

_SCALARS = frozenset({"bool", "int", "float"})
_NO_SCALAR = ("", 0)


def anchor_across_barriers(module: ModuleBuilder, body: list[Instruction]) -> list[Instruction]:
    """``body``, the instructions of a function, with each such value anchored where it is defined and the anchor used
    behind barriers."""
    regions = _regions(module, body)
    if regions[-1] == 0:
        return body
    body, changed = repeat_behind_barriers(module, body, regions)
    if changed:
        regions = _regions(module, body)
    crossing = _crossing(module, body, regions)
    if not crossing:
        return body
    module.capability(Capability_.GroupNonUniformShuffle)
    anchors: dict[int, tuple[int, int]] = {}  # value → (its anchor, the region in which both are)
    result: list[Instruction] = []
    for instruction, region in zip(body, regions, strict=True):
        if instruction[0] != op.Phi and not anchors.keys().isdisjoint(instruction[3:]):  # literals may meet them, too
            for place in id_places(instruction):
                known = anchors.get(instruction[place])
                if known is not None and known[1] != region:
                    instruction[place] = known[0]
        result.append(instruction)
        if instruction[2] in crossing:
            anchors[instruction[2]] = (_anchor(module, result, instruction[2]), region)
    return result


def _regions(module: ModuleBuilder, body: list[Instruction]) -> list[int]:
    """For each instruction the number of barriers before it, where entering and leaving a loop that has barriers
    counts as one. Subgroup barriers, for which no coroutine is suspended, do not count."""
    barriers = [
        place
        for place, instruction in enumerate(body)
        if instruction[0] == op.ControlBarrier and module.constants.get(instruction[1]) != Scope.Subgroup
    ]
    waits = frozenset(barriers)
    labels = {instruction[2]: place for place, instruction in enumerate(body) if instruction[0] == op.Label}
    ends: set[int] = set()
    region = 0
    regions = []
    for place, instruction in enumerate(body):
        if instruction[0] == op.Label and instruction[2] in ends:
            region += 1
        regions.append(region)
        if place in waits:
            region += 1
        elif instruction[0] == op.LoopMerge:
            inside = bisect_left(barriers, place)
            if inside < len(barriers) and barriers[inside] < labels[instruction[3]]:
                region += 1
                ends.add(instruction[3])
    return regions


def _crossing(module: ModuleBuilder, body: list[Instruction], regions: list[int]) -> set[int]:
    """Scalars that LLVM would compute again, defined outside of selections, that another region uses."""
    defined: dict[int, int] = {}
    crossing: set[int] = set()
    merges: list[int] = []
    for instruction, region in zip(body, regions, strict=True):
        opcode = instruction[0]
        if opcode == op.SelectionMerge:
            merges.append(instruction[3])
        elif opcode == op.Label and merges and merges[-1] == instruction[2]:
            merges.pop()
        elif opcode in REPEATABLE and not merges and module.kinds.get(instruction[1], _NO_SCALAR)[0] in _SCALARS:
            defined[instruction[2]] = region
        if opcode == op.Phi:
            continue
        for place in id_places(instruction):
            word = instruction[place]
            if defined.get(word, region) != region:
                crossing.add(word)
    return crossing


def _anchor(module: ModuleBuilder, body: list[Instruction], value: int) -> int:
    """Appends the anchor of ``value`` to ``body``; narrow values travel in a word, 64-bit ones in two."""
    type_id = module.type_of[value]
    kind, width = module.kinds[type_id]
    scope, one, zero = module.uint(Scope.Subgroup), module.uint(1), module.uint(0)

    def emit(opcode: int, result_type: int, *operands: int) -> int:
        result = module.id()
        body.append([opcode, result_type, result, *operands])
        module.type_of[result] = result_type
        return result

    def exchanged(word: int, word_type: int) -> int:
        there = emit(op.GroupNonUniformShuffleXor, word_type, scope, word, one)
        return emit(op.GroupNonUniformShuffleXor, word_type, scope, there, one)

    if kind == "bool":
        word = exchanged(emit(op.Select, module.u32, value, one, zero), module.u32)
        return emit(op.INotEqual, type_id, word, zero)
    if width == 32:
        return exchanged(value, type_id)
    if width == 64:
        pair = module.vector(module.u32, 2)
        return emit(op.Bitcast, type_id, exchanged(emit(op.Bitcast, pair, value), pair))
    bits_type = module.int(width)
    bits = value if kind == "int" else emit(op.Bitcast, bits_type, value)
    narrow = emit(op.UConvert, bits_type, exchanged(emit(op.UConvert, module.u32, bits), module.u32))
    return narrow if kind == "int" else emit(op.Bitcast, type_id, narrow)
