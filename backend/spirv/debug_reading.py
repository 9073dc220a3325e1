"""Inlined calls as a module's debug information tells them (debug_scopes.py), for what shows modules."""

from __future__ import annotations

from collections.abc import Iterable

from . import opcodes as op
from .debug_scopes import DEBUG_INFO, FUNCTION, INLINED_AT, NO_SCOPE, SCOPE, SOURCE
from .decode import DecodedInstruction


class InlinedCalls:
    """Where the instructions of a module were called from."""

    def __init__(self, instructions: Iterable[DecodedInstruction]) -> None:
        self._sets: set[int] = set()
        #: Result → (number in the set, operands), of what is declared outside functions.
        self._known: dict[int, tuple[int, list[int]]] = {}
        self._constants: dict[int, int] = {}
        self._strings: dict[int, str] = {}
        for entry in instructions:
            if entry.opcode == op.ExtInstImport and entry.operands[0].value == DEBUG_INFO:
                self._sets.add(entry.result)
            elif entry.opcode == op.String:
                self._strings[entry.result] = str(entry.operands[0].value)
            elif entry.opcode == op.Constant and isinstance(entry.operands[0].value, int):
                self._constants[entry.result] = entry.operands[0].value
            elif self.describes(entry):
                number, *operands = (int(operand.value) for operand in entry.operands[1:])
                if number in (FUNCTION, INLINED_AT, SOURCE):
                    self._known[entry.result] = number, operands

    def describes(self, entry: DecodedInstruction) -> bool:
        """Whether an instruction is debug information."""
        return entry.opcode == op.ExtInst and int(entry.operands[0].value) in self._sets

    def callers(self, entry: DecodedInstruction) -> list[tuple[str, int]] | None:
        """(file, line) of each call that what follows is in, the innermost first; None where ``entry`` changes none."""
        number, *operands = (int(operand.value) for operand in entry.operands[1:])
        if number == NO_SCOPE:
            return []
        if number != SCOPE:
            return None
        found = []
        inlined = operands[1] if len(operands) > 1 else 0
        while inlined in self._known:
            line, scope, *outer = self._known[inlined][1]
            found.append((self._file(scope), self._constants.get(line, 0)))
            inlined = outer[0] if outer else 0
        return found

    def _file(self, scope: int) -> str:
        source = self._known.get(scope, (0, [0, 0, 0]))[1][2]
        name = self._known.get(source, (0, [0]))[1][0]
        return self._strings.get(name, "?")
