"""A module's instructions in order, each with how deep it is nested and where in the user's source it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..spirv import opcodes as op
from ..spirv.debug_reading import InlinedCalls
from ..spirv.decode import DecodedInstruction
from ..spirv.disassemble import disassembled


@dataclass(frozen=True)
class Placed:
    """An instruction with its disassembly. ``depth``: the selections and loops that it is in. ``frames``: (file, line)
    of where it comes from, then of where that was called, and so on; none where that is not known."""

    entry: DecodedInstruction
    text: str
    depth: int
    frames: tuple[tuple[str, int], ...]


def placed(instructions: list[DecodedInstruction]) -> Iterator[Placed]:
    """All but those that only say where others come from."""
    files = {entry.result: str(entry.operands[0].value) for entry in instructions if entry.opcode == op.String}
    calls = InlinedCalls(instructions)
    merges: list[int] = []
    frames: tuple[tuple[str, int], ...] = ()
    callers: list[tuple[str, int]] = []
    for entry, text in zip(instructions, disassembled(instructions), strict=True):
        if entry.opcode == op.Line:
            frames = ((files.get(int(entry.operands[0].value), "?"), int(entry.operands[1].value)), *callers)
        elif calls.describes(entry):
            found = calls.callers(entry)
            callers = callers if found is None else found
        elif entry.opcode == op.NoLine:
            frames = ()
        else:
            if entry.opcode == op.Label:
                frames, callers = (), []
                if merges and merges[-1] == entry.result:
                    merges.pop()
            yield Placed(entry, text, len(merges), frames)
            if entry.opcode in (op.SelectionMerge, op.LoopMerge):
                merges.append(int(entry.operands[0].value))
