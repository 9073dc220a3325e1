"""Keeps values that live across a barrier from being computed again behind it.

Mesa's CPU driver makes a coroutine of a compute shader that has barriers. LLVM's coroutine pass does not save a value
that lives across one where it can compute it again (arithmetic, comparisons, selections, conversions), up to four
instructions deep for every use, before anything is simplified: 16 values over 16 barriers take 9 s to compile instead
of 0.6 s. It does save the result of a shuffle. So such values are exchanged with the neighbouring invocation and back:
two shuffles by constants, which LLVM later cancels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..spirv import opcodes as op
from ..spirv.encode import Instruction
from ..spirv.grammar import id_places, ids
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import Capability_, Scope
from .repeating import Values, repeat_behind_barriers
from .stretches import Stretches

#: Opcodes whose results LLVM would compute again.
REPEATABLE = frozenset(range(op.ConvertFToU, op.BitCount + 1)) - {
    op.ConvertUToPtr,
    op.UMulExtended,
    op.SMulExtended,
} | {op.ExtInst}

_SCALARS = frozenset({"bool", "int", "float"})


def anchor_across_barriers(
    module: ModuleBuilder, body: list[Instruction], operands: list[Sequence[int]]
) -> list[Instruction]:
    """``body``, the instructions of a function without any that nothing uses, with each such value anchored where it is
    defined and the anchor used behind barriers; what may be repeated there is (repeating.py). ``operands``: the ids
    among the operands of each."""
    stretches = Stretches(module, body)
    if stretches.count == 1:
        return body
    known = Values(module, body, operands, stretches.of, REPEATABLE, _SCALARS)
    if not known.far:
        return body
    repeated = repeat_behind_barriers(module, body, stretches, known)
    home, gone = known.home, repeated.gone
    late = [(instruction, stretch) for instruction, stretch in repeated.late if instruction[2] not in gone]
    crossing = {
        value
        for instruction, stretch in late
        for value in ids(instruction)
        if value in known.anchored and home[value] != stretch
    }
    if crossing:
        module.capability(Capability_.GroupNonUniformShuffle)
    anchors: dict[int, int] = {}
    result: list[Instruction] = []
    for instruction in repeated.body:
        value = instruction[2]
        if value in crossing:
            result.append(instruction)
            anchors[value] = _anchor(module, result, value)
        elif value not in gone:
            result.append(instruction)
    for instruction, stretch in late:
        for at in id_places(instruction):
            value = instruction[at]
            if value in anchors and home[value] != stretch:
                instruction[at] = anchors[value]
    return result


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
