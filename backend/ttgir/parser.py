"""The reader: MLIR text of TTIR or TTGIR to an ir.Module."""

from __future__ import annotations

from typing import Any, NoReturn

from .custom import function
from .generic_form import generic
from .ir import UNKNOWN, Block, Function, Location, Module, Operation, Region
from .lexer import END, TTGIRSyntaxError
from .locations import Locations
from .operation_reader import OperationReader
from .operations import OPERATIONS, End, definition_of
from .types import Type
from .value_scopes import ValueScope
from .verify import check_calls, check_terminators

__all__ = ["Parser", "TTGIRSyntaxError", "parse_module"]

#: The most results that one operation may have.
_MAX_RESULTS = 4096


def parse_module(text: str, source: str = "<ttgir>") -> Module:
    """The module that ``text`` is, as printed by MLIR with or without locations.

    ``source`` names the text in errors. Raises TTGIRSyntaxError if the text is not a whole, well-formed module of
    known operations.
    """
    parser = Parser(text, source)
    try:
        return parser.module()
    except RecursionError:
        parser.i = min(parser.i, len(parser.items) - 1)
        depth_exceeded(parser)


def depth_exceeded(parser: Parser) -> NoReturn:
    """Fail because brackets or regions nest too deeply."""
    parser.error("brackets or regions are nested too deeply")


class Parser(OperationReader):
    """A cursor over the tokens of a module, with the names in scope."""

    __slots__ = ("_calls", "_locations", "_terminators")

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source)
        self._locations = Locations(self)
        self._terminators: list[tuple[Operation, int]] = []
        self._calls: list[tuple[Operation, int]] = []

    # Module level

    def module(self) -> Module:
        """The whole text: aliases and one module."""
        found: Module | None = None
        while self.items[self.i] != END or self.i != len(self.items) - 1:
            item = self.items[self.i]
            if item[0] in "#!" and self.items[self.i + 1] == "=":
                self._alias(item)
            elif item == "module" and found is None:
                self.i += 1
                found = self._module_body()
            else:
                self.fail(
                    "expected 'module' or an alias definition"
                    if found is None
                    else "expected an alias definition or the end of the text"
                )
        if found is None:
            self.fail("expected 'module'")
        check_calls(self, found, self._calls)
        for owner, text, index in self._located:
            owner.location = self._locations.resolve(text, index)
        found.aliases = self.reader.aliases
        found.location_aliases = {name: text for name, (text, _) in self._locations.definitions.items()}
        return found

    def _alias(self, name: str) -> None:
        if name in self.reader.aliases or name in self._locations.definitions:
            self.error(f"alias {name} is defined twice")
        self.i += 2
        item = self.items[self.i]
        if item[:4] == "loc(":
            self._locations.definitions[name] = (item, self.i)
            self.i += 1
        elif name[0] == "!":
            self.reader.aliases[name] = self.reader.type(self)
        else:
            self.reader.aliases[name] = self.reader.attribute(self)

    def _module_body(self) -> Module:
        name = self.symbol() if self.items[self.i][0] == "@" else ""
        attributes: dict[str, Any] = {}
        if self.accept("attributes"):
            attributes = self.reader.dictionary(self)
        self.expect("{")
        functions: dict[str, Function] = {}
        while not self.accept("}"):
            item = self.items[self.i]
            if item != "tt.func":
                self.fail("expected 'tt.func' or '}'")
            at = self.i
            self.i += 1
            self._terminators.clear()
            read = function(self)
            check_terminators(self, read, self._terminators)
            if read.name in functions:
                self.error(f"function @{read.name} is defined twice", at)
            functions[read.name] = read
        module = Module(attributes, functions, name)
        self.located(module, self.location())
        return module

    # Operations

    def operation(self, block: Block) -> Operation:
        """Read the operation that comes next into ``block``."""
        items = self.items
        start = self.i
        names: list[tuple[str, int, int]] = []
        if items[start][0] == "%":
            while True:
                at = self.i
                item = items[at]
                if item[0] != "%" or "#" in item or len(item) < 2:
                    self.fail("expected a result name (%name)")
                self.i += 1
                if self.accept(":"):
                    count = self.integer()
                    if not 0 < count <= _MAX_RESULTS:
                        self.error(f"{count} is not a number of results", self.i - 1)
                    names.append((item, count, at))
                else:
                    names.append((item, 0, at))
                if items[self.i] != ",":
                    break
                self.i += 1
            self.expect("=")
        start = self.i
        name = items[start]
        self.i += 1
        if name[0] == '"':
            op = generic(self, start)
        else:
            row = OPERATIONS.get(name)
            if row is None or row.read is None:
                self._unknown(name, start)
            op = row.read(self)
        op.block = block
        if items[self.i][:4] == "loc(":
            self._located.append((op, items[self.i], self.i))
            self.i += 1
        block.operations.append(op)
        if names:
            self._name_results(op, names, start)
        if definition_of(op).end is not End.NOT:
            self._terminators.append((op, start))
            if items[self.i] != "}" and items[self.i][0] != "^":
                self.fail(f"expected '}}' or a block label after the terminator '{op.name}'")
        elif op.name == "tt.call":
            self._calls.append((op, start))
        return op

    def _unknown(self, name: str, at: int) -> NoReturn:
        if not (name[0].isalpha() or name[0] == "_"):
            self.fail("expected an operation", at)
        if name in OPERATIONS:
            self.error(f"operation '{name}' is only read in its generic form, \"{name}\"(…)", at)
        if "." not in name:
            self.fail("expected an operation", at)
        try:
            self.error(f"unknown operation '{name}'", at)
        except TTGIRSyntaxError as error:
            error.unknown = name, self._location_after(at)
            raise

    def _location_after(self, at: int) -> Location:
        """The first location behind a token. What it names may be defined at the end of the text."""
        for index in range(at, len(self.items) - 2):
            name, is_, definition = self.items[index : index + 3]
            if name[0] == "#" and is_ == "=" and definition[:4] == "loc(":
                self._locations.definitions[name] = (definition, index + 2)
        found = next((index for index in range(at, len(self.items)) if self.items[index][:4] == "loc("), None)
        return UNKNOWN if found is None else self._locations.resolve(self.items[found], found)

    def _name_results(self, op: Operation, names: list[tuple[str, int, int]], start: int) -> None:
        results = op.results
        named = sum(count or 1 for _, count, _ in names)
        if named != len(results):
            self.error(f"'{op.name}' has {len(results)} results, but {named} are named", start)
        index = 0
        for name, count, at in names:
            if not count:
                results[index] = self.define(name, results[index].type, op, index, at)
                index += 1
                continue
            for k in range(count):
                results[index] = self.define(f"{name}#{k}", results[index].type, op, index, at)
                index += 1
            if name in self.values:
                self.error(f"value {name} is defined twice", at)
            self.values[name] = results[index - count]
            self._scope.names.append(name)

    # Regions and blocks

    def region(
        self, arguments: list[tuple[str, Type, int]] | None = None, *, isolated: bool = False, implicit: str = ""
    ) -> Region:
        """``{ … }``. ``arguments`` (name, type, token): of the entry block; ``implicit`` is the terminator
        that is left out if it has no operands; ``isolated`` hides the names outside."""
        outer = self._scope
        scope = self._scope = ValueScope(self.values if isolated else None)
        if isolated:
            self.values = {}
        self.expect("{")
        region = Region()
        items = self.items
        block: Block | None = None
        if arguments is not None or implicit or (items[self.i] != "}" and items[self.i][0] != "^"):
            if not (arguments is None and items[self.i][0] == "^"):
                block = Block("", [], [], region)
                region.blocks.append(block)
                for index, (name, type_, at) in enumerate(arguments or ()):
                    block.arguments.append(self.define(name, type_, block, index, at))
        while items[self.i] != "}":
            if items[self.i][0] == "^":
                if block is not None:
                    self._check_end(block)
                block = self._label(region)
                continue
            if block is None:
                self.fail("expected a block label or '}'")
            self.operation(block)
        if block is not None:
            ended = bool(block.operations) and definition_of(block.operations[-1]).end is not End.NOT
            if implicit and not ended:
                end = Operation.make(implicit, [], [], {}, (0,))
                end.block = block
                block.operations.append(end)
                self._terminators.append((end, self.i))
            self._check_end(block)
        self.i += 1
        for label, at in scope.uses_of_labels.items():
            self.error(f"block {label} is not defined", at)
        self._close(scope, outer)
        return region

    def _check_end(self, block: Block) -> None:
        """A block must end in a terminator; of an operation that the table does not know that is taken on trust."""
        last = block.operations[-1] if block.operations else None
        if last is None or (definition_of(last).end is End.NOT and last.name in OPERATIONS):
            self.fail("expected a terminator at the end of the block")

    def _label(self, region: Region) -> Block:
        """``^name(%argument: type, …):``."""
        at = self.i
        label = self.items[at]
        scope = self._scope
        known = label in scope.blocks
        if known and label not in scope.uses_of_labels:
            self.error(f"block {label} is defined twice")
        block = self.successor()
        scope.uses_of_labels.pop(label, None)
        block.parent = region
        region.blocks.append(block)
        if self.accept("("):
            while not self.accept(")"):
                if block.arguments:
                    self.expect(",")
                name, type_, at = self.argument()
                block.arguments.append(self.define(name, type_, block, len(block.arguments), at))
                self.located(block.arguments[-1], self.location())
        self.expect(":")
        return block
