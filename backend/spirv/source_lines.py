"""Which line of the user's source each instruction comes from: OpLine and OpNoLine (SPIR-V specification, 3.52.2), and
with them functions and inlined calls (debug_scopes.py).

Only the debug build of a module has them; instructions and their ids are the same without.
"""

from __future__ import annotations

from collections.abc import Callable

from . import opcodes as op
from .debug_scopes import DebugScopes, SourcePlace, SourceScope
from .encode import Instruction
from .module import ModuleBuilder

#: Instructions that stand where nothing may be put before them (2.4, 2.16.1), or that no line of a user's means.
_WITHOUT = frozenset({op.Phi, op.Label, op.LoopMerge, op.SelectionMerge, op.Branch, op.BranchConditional, op.Return})


class SourceLines:
    """Notes places while a function is built. ``current`` is that of the instructions that are emitted next.

    ``scope``: the user's function that it is made of. ``text``: the text of a source file, "" where it is not there.
    """

    def __init__(self, scope: SourceScope | None = None, text: Callable[[str], str] = lambda file: "") -> None:
        self.current: SourcePlace | None = None
        self._scope, self._text = scope, text
        self._places: dict[int, SourcePlace | None] = {}

    def note(self, instruction: Instruction) -> None:
        """``instruction``, the newest of the body, comes from the current place."""
        if self.current is not None and instruction[0] not in _WITHOUT:
            self._places[self._key(instruction)] = self.current

    def reuse(self, result: int) -> None:
        """The current place uses the value of an instruction that was emitted before. One that two lines share belongs
        to neither; one that two calls of a line share, to the line alone."""
        before = self._places.get(result, self.current)
        if before != self.current:
            shared = before.common(self.current) if before is not None and self.current is not None else None
            self._places[result] = shared

    @staticmethod
    def _key(instruction: Instruction) -> int:
        # Instructions without a result are told apart by identity; the body keeps them.
        return instruction[2] or -id(instruction)

    def inserted(self, module: ModuleBuilder, function: list[Instruction]) -> list[Instruction]:
        """A finished function with a line before each instruction whose place is not that of the one before it. It
        makes ids: all others of the module have been made, so that those are the same without lines."""
        start = next(place for place, one in enumerate(function) if one[0] == op.Label) + 1
        while function[start][0] == op.Variable:
            start += 1
        result = function[:start]
        last: SourcePlace | None = None
        debug = DebugScopes(module, self._text)
        if self._scope is not None:
            result.append(debug.definition(self._scope, function[0][2]))
        for instruction in function[start:]:
            if instruction[0] == op.Label:
                last = None  # the end of a block ends a line, too
            elif instruction[0] not in _WITHOUT:
                place = self._places.get(self._key(instruction))
                if place != last:
                    result += debug.enter(place, last)
                    result.append(_line(module, place))
                    last = place
            result.append(instruction)
        return result


def _line(module: ModuleBuilder, place: SourcePlace | None) -> Instruction:
    if place is None:
        return [op.NoLine, 0, 0]
    return [op.Line, 0, 0, module.string(place.file), place.line, place.column]
