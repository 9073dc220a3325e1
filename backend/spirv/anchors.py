"""Keeps values that live across a barrier from being computed again behind it.

Mesa's CPU driver makes a coroutine of a compute shader that has barriers. LLVM's coroutine pass does not save a value
that lives across one where it can compute it again (arithmetic, comparisons, selections, conversions), up to four
instructions deep for every use, before anything is simplified: 16 values over 16 barriers take 9 s to compile instead
of 0.6 s. It does save the result of a shuffle. So such values are exchanged with the neighbouring invocation and back:
two shuffles by constants, which LLVM later cancels.
"""

from __future__ import annotations

from . import opcodes as op
from .encode import Instruction
from .grammar import id_places, ids_of_each
from .module import ModuleBuilder
from .opcodes import Capability_, Scope
from .repeating import repeat_behind_barriers
from .stretches import Stretches

#: Opcodes whose results LLVM would compute again.
REPEATABLE = frozenset(range(op.ConvertFToU, op.BitCount + 1)) - {
    op.ConvertUToPtr,
    op.UMulExtended,
    op.SMulExtended,
} | {op.ExtInst}

_SCALARS = frozenset({"bool", "int", "float"})


def anchor_across_barriers(module: ModuleBuilder, body: list[Instruction]) -> list[Instruction]:
    """``body``, the instructions of a function, with each such value anchored where it is defined and the anchor used
    behind barriers."""
    stretches = Stretches(module, body)
    if stretches.count == 1:
        return body
    body, changed = repeat_behind_barriers(module, body, stretches)
    if changed:
        stretches = Stretches(module, body)
    crossing, far = _crossing(module, body, stretches.of)
    if not crossing:
        return body
    module.capability(Capability_.GroupNonUniformShuffle)
    anchors: dict[int, tuple[int, int]] = {}  # value → (its anchor, the stretch in which both are)
    result: list[Instruction] = []
    done = 0
    for place in sorted({*crossing.values(), *far}):
        result += body[done : place + 1]
        instruction, stretch, done = body[place], stretches.of[place], place + 1
        for at in id_places(instruction):
            known = anchors.get(instruction[at])
            if known is not None and known[1] != stretch:
                instruction[at] = known[0]
        if crossing.get(instruction[2]) == place:
            anchors[instruction[2]] = (_anchor(module, result, instruction[2]), stretch)
    result += body[done:]
    return result


def _crossing(module: ModuleBuilder, body: list[Instruction], of: list[int]) -> tuple[dict[int, int], list[int]]:
    """The scalars that LLVM would compute again, defined outside of selections, that another stretch uses, with the
    places where they are defined; and the places of those uses. ``of``: the stretch of each instruction."""
    scalars = {type_id for type_id, (kind, _) in module.kinds.items() if kind in _SCALARS}
    defined: dict[int, int] = {}
    places: dict[int, int] = {}
    crossing: dict[int, int] = {}
    far: list[int] = []
    merges: list[int] = []
    for place, (instruction, operands, stretch) in enumerate(zip(body, ids_of_each(body), of, strict=True)):
        opcode = instruction[0]
        if opcode == op.SelectionMerge:
            merges.append(instruction[3])
        elif opcode == op.Label and merges and merges[-1] == instruction[2]:
            merges.pop()
        elif opcode in REPEATABLE and not merges and instruction[1] in scalars:
            defined[instruction[2]] = stretch
            places[instruction[2]] = place
        elif opcode == op.Phi:
            continue
        for value in operands:
            if defined.get(value, stretch) != stretch:
                crossing[value] = places[value]
                far.append(place)
    return crossing, far


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
