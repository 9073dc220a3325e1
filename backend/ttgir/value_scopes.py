"""The values of MLIR text by their names: which are in scope, and which are used before their definition is read."""

from __future__ import annotations

from typing import Any

from .ir import Block, Operation, Value
from .lexer import Tokens
from .types import Type

#: The type of a value that is used before its definition has been read.
_UNKNOWN_TYPE: Any = None


class ValueScope:
    """The names and labels of one region. ``forward`` holds values that were used before their definition was read,
    with the token of the first use; ``hidden`` the outer names where the region is isolated from above."""

    __slots__ = ("blocks", "forward", "hidden", "names", "uses_of_labels")

    def __init__(self, hidden: dict[str, Value] | None) -> None:
        self.names: list[str] = []
        self.forward: dict[str, tuple[Value, int]] = {}
        self.blocks: dict[str, Block] = {}
        self.uses_of_labels: dict[str, int] = {}
        self.hidden = hidden


class ValueReader(Tokens):
    """A cursor over tokens that knows the values in scope: ``values``, by name."""

    __slots__ = ("_scope", "values")

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source)
        self.values: dict[str, Value] = {}
        self._scope = ValueScope(None)

    def use(self) -> Value:
        """The value that the next token names."""
        item = self.items[self.i]
        value = self.values.get(item)
        if value is None:
            value = self._forward(item)
        self.i += 1
        return value

    def uses(self) -> list[Value]:
        """The values that come next, commas between; none where no value comes next."""
        if self.items[self.i][0] != "%":
            return []
        found = [self.use()]
        while self.items[self.i] == "," and self.items[self.i + 1][0] == "%":
            self.i += 1
            found.append(self.use())
        return found

    def _forward(self, name: str) -> Value:
        """A stand-in for a value that is defined later, in a block further down."""
        if name[0] != "%" or len(name) < 2:
            self.fail("expected a value (%name)")
        known = self._scope.forward.get(name)
        if known is None:
            known = self._scope.forward[name] = (Value(_UNKNOWN_TYPE, _UNKNOWN_TYPE, 0, name[1:]), self.i)
        return known[0]

    def bind(self, value: Value, type_: Type, at: int) -> None:
        """State that ``value`` has ``type_``; fails at token ``at`` where it has another."""
        if value.type is None:
            value.type = type_
        elif value.type is not type_:
            self.error(f"value %{value.name} has type {_spelled(value.type)}, but {_spelled(type_)} is needed here", at)

    def define(self, name: str, type_: Type, owner: Operation | Block, index: int, at: int) -> Value:
        """The value ``name`` (with its ``%``), defined by ``owner``."""
        scope = self._scope
        if name in self.values:
            self.error(f"value {name} is defined twice", at)
        if scope.forward and name in scope.forward:
            value, used = scope.forward.pop(name)
            self.bind(value, type_, at)
            block = owner.block if isinstance(owner, Operation) else owner
            if block is not None and any(map(block.holds, value.uses)):
                self.error(f"value {name} is used before it is defined", used)
            value.owner, value.index = owner, index
        else:
            value = Value(type_, owner, index, name[1:])
        self.values[name] = value
        scope.names.append(name)
        return value

    def _close(self, scope: ValueScope, outer: ValueScope) -> None:
        """Leave ``scope``: forget its names, hand undefined ones to ``outer``."""
        self._scope = outer
        if scope.hidden is not None:
            for name, (_, at) in scope.forward.items():
                self.error(f"value {name} is not defined", at)
            self.values = scope.hidden
            return
        values = self.values
        for name in scope.names:
            del values[name]
        for name, (value, at) in scope.forward.items():
            known = outer.forward.get(name)
            if known is None:
                outer.forward[name] = (value, at)
            else:
                self._merge(value, known[0], at)

    def _merge(self, value: Value, into: Value, at: int) -> None:
        """``value`` and ``into`` stand for the same later definition: replace the first by the second."""
        if value.type is not None:
            self.bind(into, value.type, at)
        value.replace_uses(into)


def _spelled(type_: Type) -> str:
    encoding = getattr(type_, "encoding", None)
    return f"{type_} with encoding {encoding}" if encoding is not None else str(type_)
