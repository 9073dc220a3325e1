"""What the readers of operations (custom.py, generic_form.py, the steps of formats.py) use of the parser."""

from __future__ import annotations

from .attributes import AttributeReader
from .ir import Block, Function, Module, Operation, Region, Value
from .types import Type
from .value_scopes import ValueReader


class OperationReader(ValueReader):
    """A cursor over the tokens of a module, with the names in scope. Who reads an operation's regions, and so other
    operations by the table of all, is the parser."""

    __slots__ = ("_located", "reader")

    reader: AttributeReader

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source)
        self.reader = AttributeReader()
        self._located: list[tuple[Operation | Function | Module | Value, str, int]] = []

    def region(
        self, arguments: list[tuple[str, Type, int]] | None = None, *, isolated: bool = False, implicit: str = ""
    ) -> Region:
        """``{ … }``. ``arguments`` (name, type, token): of the entry block; ``implicit`` is the terminator
        that is left out if it has no operands; ``isolated`` hides the names outside."""
        raise NotImplementedError

    def successor(self) -> Block:
        """The block that the next token names."""
        label = self.items[self.i]
        if label[0] != "^" or len(label) < 2:
            self.fail("expected a block label (^name)")
        scope = self._scope
        block = scope.blocks.get(label)
        if block is None:
            block = scope.blocks[label] = Block(label)
            scope.uses_of_labels[label] = self.i
        self.i += 1
        return block

    def argument(self) -> tuple[str, Type, int]:
        """``%name: type``, with the token of the name."""
        at = self.i
        name = self.argument_name()
        self.expect(":")
        return name, self.reader.type(self), at

    def argument_name(self) -> str:
        """The next token as the name of a block argument."""
        name = self.items[self.i]
        if name[0] != "%" or "#" in name or len(name) < 2:
            self.fail("expected an argument name (%name)")
        self.i += 1
        return name

    def location(self) -> tuple[str, int] | None:
        """A trailing ``loc(…)``: its token and the token's index, for ``located``."""
        item = self.items[self.i]
        if item[:4] != "loc(":
            return None
        self.i += 1
        return item, self.i - 1

    def located(self, owner: Operation | Function | Module | Value, where: tuple[str, int] | None) -> None:
        """Give ``owner`` the location ``where`` once every alias has been read."""
        if where is not None:
            self._located.append((owner, *where))
