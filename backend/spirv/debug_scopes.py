"""Functions of the user's source, and calls that were inlined: NonSemantic.Shader.DebugInfo.100.

Its instructions mean nothing to what is computed; Vulkan 1.3 takes them (VK_KHR_shader_non_semantic_info). Numbers and
operands are as in the specification "SPIR-V Non-semantic Shader DebugInfo Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import opcodes as op
from .encode import Instruction
from .module import ModuleBuilder

DEBUG_INFO = "NonSemantic.Shader.DebugInfo.100"

COMPILATION_UNIT, TYPE_FUNCTION, FUNCTION = 1, 8, 20
SCOPE, NO_SCOPE, INLINED_AT, SOURCE = 23, 24, 25, 35
FUNCTION_DEFINITION, SOURCE_CONTINUED, LINE, NO_LINE = 101, 102, 103, 104

#: Of the instruction set, of DWARF, and of a language that has no number.
_VERSION, _DWARF, _UNKNOWN_LANGUAGE = 100, 4, 0
_PUBLIC, _DEFINITION = 3, 8
#: Characters of a source in one OpString; an instruction has at most 65,535 words.
_PIECE = 60_000


class SourceScope(NamedTuple):
    """A function of the user's: its name, and where it begins."""

    name: str
    file: str
    line: int


class SourcePlace(NamedTuple):
    """A place in the user's source, counted from 1: the function that it is in, and the place that this was called from
    where the call was inlined."""

    file: str
    line: int
    column: int
    scope: SourceScope | None = None
    caller: SourcePlace | None = None

    def common(self, other: SourcePlace) -> SourcePlace | None:
        """What two places have in common: the line without callers that differ; None for different lines."""
        if self[:4] != other[:4]:
            return None
        if self.caller is None or other.caller is None:
            return self._replace(caller=None)
        return self._replace(caller=self.caller.common(other.caller))


class DebugScopes:
    """Emits the debug instructions of one function. ``text``: the text of a source file, "" where it is not there."""

    def __init__(self, module: ModuleBuilder, text: Callable[[str], str]) -> None:
        self._module = module
        self._text = text
        self._sources: dict[str, int] = {}
        self._units: dict[str, int] = {}

    def definition(self, scope: SourceScope, function: int) -> Instruction:
        """What says that ``function`` is the user's function ``scope``."""
        return self._here(FUNCTION_DEFINITION, self._function(scope), function)

    def enter(self, place: SourcePlace | None, last: SourcePlace | None) -> list[Instruction]:
        """What goes before an instruction of ``place`` where the one before it was of ``last``."""
        if place is None:
            return [self._here(NO_LINE)] + ([self._here(NO_SCOPE)] if last is not None and last.scope else [])
        found = []
        if place.scope is not None and (last is None or (place.scope, place.caller) != (last.scope, last.caller)):
            found.append(self._here(SCOPE, self._function(place.scope), *self._inlined(place.caller)))
        line, column = self._module.uint(place.line), self._module.uint(place.column)
        found.append(self._here(LINE, self._source(place.file), line, line, column, column))
        return found

    def _here(self, number: int, *operands: int) -> Instruction:
        module = self._module
        return [op.ExtInst, module.void, module.id(), module.import_set(DEBUG_INFO), number, *operands]

    def _declared(self, number: int, *operands: int) -> int:
        return self._module.describe(DEBUG_INFO, number, *operands)

    def _source(self, file: str) -> int:
        known = self._sources.get(file)
        if known is None:
            module, text = self._module, self._text(file)
            pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
            first = [module.string(pieces[0])] if pieces else []
            known = self._sources[file] = self._declared(SOURCE, module.string(file), *first)
            for piece in pieces[1:]:
                module.describe(DEBUG_INFO, SOURCE_CONTINUED, module.string(piece), once=False)
            self._units[file] = self._declared(
                COMPILATION_UNIT, module.uint(_VERSION), module.uint(_DWARF), known, module.uint(_UNKNOWN_LANGUAGE)
            )
        return known

    def _function(self, scope: SourceScope) -> int:
        module, source = self._module, self._source(scope.file)
        kind = self._declared(TYPE_FUNCTION, module.uint(_PUBLIC), module.void)
        name, line = module.string(scope.name), module.uint(scope.line)
        column, unit = module.uint(1), self._units[scope.file]
        return self._declared(
            FUNCTION, name, kind, source, line, column, unit, name, module.uint(_DEFINITION), line
        )  # fmt: skip

    def _inlined(self, caller: SourcePlace | None) -> tuple[int, ...]:
        if caller is None or caller.scope is None:
            return ()
        scope, outer = self._function(caller.scope), self._inlined(caller.caller)
        return (self._declared(INLINED_AT, self._module.uint(caller.line), scope, *outer),)
