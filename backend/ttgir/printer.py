"""The printer: an ir.Module to MLIR text, by the table that the reader uses (operations/).

Upstream reads the text as the module that it is. It is not upstream's own print letter by letter: values have other
names, and attributes at their default may be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .attribute_values import DenseArray
from .encodings import Encoding
from .enums import ENUMS
from .formats import Format
from .ir import Block, Function, Module, Operation, Region, Value
from .notation import Directive, Element, Group, Literal, Variable
from .operations import definition_of
from .spelling import Spelling, location, quoted, symbol
from .type_reader import PLAIN_TYPES
from .types import Type

_IDENTIFIER = re.compile(r"[A-Za-z_$.][\w$.-]*", re.ASCII)
_OPENING, _CLOSING = ("(", "["), (")", "]", ",", "[")
_INDENT = "  "


def print_module(module: Module) -> str:
    """The text of a module, with every location."""
    return Printer(module).text()


class Printer:
    """Prints one module: lines, and the names of values and blocks in the function that is being printed."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self.spelling = Spelling(module.aliases)
        self._lines: list[str] = []
        self._names: dict[Value, str] = {}
        self._labels: dict[Block, str] = {}
        self._used: set[str] = set()

    def text(self) -> str:
        """All of it."""
        module, spelling = self._module, self.spelling
        for name, value in module.aliases.items():
            whole = spelling.type(value) if name[0] == "!" else _whole(spelling, value)
            self._lines.append(f"{name} = {whole}")
        self._lines += [f"{name} = {text}" for name, text in module.location_aliases.items()]
        name = f" {symbol(module.name)}" if module.name else ""
        attributes = f" attributes {spelling.dictionary(module.attributes)}" if module.attributes else ""
        self._lines.append(f"module{name}{attributes} {{")
        for function in module.functions.values():
            self._function(function)
        self._lines.append(f"}} {location(module.location)}")
        return "\n".join(self._lines) + "\n"

    # -- functions, regions, blocks ------------------------------------------------------------------------------
    def _function(self, function: Function) -> None:
        self._names, self._labels, self._used = {}, {}, set()
        spelling = self.spelling
        attributes = dict(function.attributes)
        result_attributes = attributes.pop("res_attrs", ())
        arguments = function.body.entry.arguments if function.body is not None else [None] * len(function.type.inputs)
        inputs = [
            (f"{self.name(argument)}: " if argument else "")
            + spelling.type(type_)
            + (f" {spelling.dictionary(own)}" if own else "")
            + (f" {location(argument.location)}" if argument else "")
            for argument, type_, own in zip(arguments, function.type.inputs, function.argument_attributes, strict=True)
        ]
        results = [spelling.type(type_) for type_ in function.type.results]
        results = [
            f"{result} {spelling.dictionary(own)}" if own else result
            for result, own in zip(results, result_attributes or [{}] * len(results), strict=True)
        ]
        shown = results[0] if len(results) == 1 and not result_attributes else f"({', '.join(results)})"
        visibility = f"{function.visibility} " if function.visibility else ""
        line = f"{_INDENT}tt.func {visibility}{symbol(function.name)}({', '.join(inputs)})"
        line += f" -> {shown}" if results else ""
        line += f" attributes {spelling.dictionary(attributes)}" if attributes else ""
        if function.body is not None:
            line += f" {self.region(function.body, 1, label=False)}"
        self._lines.append(f"{line} {location(function.location)}")

    def region(self, region: Region, depth: int, *, label: bool, implicit: str = "") -> str:
        """``{ … }``. ``label``: the first block's arguments are printed too; ``implicit`` is the terminator that is
        left out if it has no operands."""
        lines: list[str] = []
        for number, block in enumerate(region.blocks):
            if number or (label and block.arguments):
                lines.append(f"{_INDENT * depth}{self._block(block)}")
            for operation in block.operations:
                if operation.name != implicit or operation.operands:
                    lines.append(_INDENT * (depth + 1) + self.operation(operation, depth + 1))
        return "\n".join(["{", *lines, f"{_INDENT * depth}}}"])

    def _block(self, block: Block) -> str:
        arguments = ", ".join(
            f"{self.name(argument)}: {self.spelling.type(argument.type)} {location(argument.location)}"
            for argument in block.arguments
        )
        return f"{self.label(block)}({arguments}):" if arguments else f"{self.label(block)}:"

    def label(self, block: Block) -> str:
        """``^bb1``."""
        found = self._labels.get(block)
        if found is None:
            found = self._labels[block] = f"^bb{len(self._labels)}"
        return found

    # -- values --------------------------------------------------------------------------------------------------
    def name(self, value: Value) -> str:
        """``%name``, or ``%name#1`` for one of several results."""
        found = self._names.get(value)
        if found is None:
            owner = value.owner
            several = owner.results if isinstance(owner, Operation) else []
            if len(several) > 1:
                base = self._unused(several[0].name.partition("#")[0])
                for number, result in enumerate(several):
                    self._names[result] = f"%{base}#{number}"
                found = self._names[value]
            else:
                found = self._names[value] = "%" + self._unused(value.name)
        return found

    def _unused(self, wanted: str) -> str:
        stem = f"{wanted}_" if _IDENTIFIER.fullmatch(wanted) else ""
        number = len(self._used)
        name = wanted if stem or wanted.isdigit() else str(number)
        while name in self._used:
            name, number = f"{stem}{number}", number + 1
        self._used.add(name)
        return name

    def values(self, values: Iterable[Value]) -> str:
        """Names with commas between."""
        return ", ".join(map(self.name, values))

    # -- operations ----------------------------------------------------------------------------------------------
    def operation(self, operation: Operation, depth: int) -> str:
        """An operation with its results, regions and location."""
        results = operation.results
        before = ""
        if len(results) == 1:
            before = f"{self.name(results[0])} = "
        elif results:
            before = f"{self.name(results[0]).partition('#')[0]}:{len(results)} = "
        return f"{before}{self._body(operation, depth).rstrip()} {location(operation.location)}"

    def _body(self, operation: Operation, depth: int) -> str:
        known = definition_of(operation)
        if known.write is not None:
            return f"{operation.name} {known.write(self, operation, depth)}"
        row = known.syntax
        if row is None or not row.text or operation.regions:
            return self._generic(operation, row, depth)
        parts: list[str] = []
        self._elements(row.elements, row, operation, parts)
        return f"{operation.name} {_joined(parts)}"

    def _generic(self, operation: Operation, row: Format | None, depth: int) -> str:
        """MLIR's form of any operation: ``"name"(operands) <{properties}> ({regions}) {attributes} : type``."""
        assert not operation.successors, operation.name
        inherent = row.attributes if row is not None else {}
        properties = {
            name: _inherent(row, name, value)
            for name, value in operation.attributes.items()
            if row and name in inherent
        }
        if row is not None and len([suffix for _, suffix in row.operands if suffix]) > 1:
            properties["operandSegmentSizes"] = _dense(operation.segments)
        others = {name: value for name, value in operation.attributes.items() if name not in inherent}
        parts = [f"{quoted(operation.name)}({self.values(operation.operands)})"]
        if properties:
            parts.append(f"<{self.spelling.dictionary(properties)}>")
        if operation.regions:
            regions = [self.region(region, depth, label=True) for region in operation.regions]
            parts.append(f"({', '.join(regions)})")
        if others:
            parts.append(self.spelling.dictionary(others))
        types = [operand.type for operand in operation.operands], [result.type for result in operation.results]
        return f"{' '.join(parts)} : {self.spelling.function_type(*types)}"

    # -- the elements of a format --------------------------------------------------------------------------------
    def _elements(self, elements: tuple[Element, ...], row: Format, operation: Operation, parts: list[str]) -> None:
        for element in elements:
            if isinstance(element, Literal):
                parts.append(element.text)
            elif isinstance(element, Variable):
                parts.append(self._variable(element.name, row, operation))
            elif isinstance(element, Directive):
                parts.append(self._directive(element, row, operation))
            elif self._present(element, row, operation):
                self._elements(element.elements, row, operation, parts)

    @staticmethod
    def _present(group: Group, row: Format, operation: Operation) -> bool:
        if any(name == group.anchor for name, _ in row.operands):
            return bool(operation.operand_group(group.anchor))
        if any(name == group.anchor for name, _ in row.results):
            return bool(operation.results)
        attributes = operation.attributes
        return group.anchor in attributes and attributes[group.anchor] != row.defaults.get(group.anchor, _NOTHING)

    def _group(self, name: str, row: Format, operation: Operation) -> list[Value]:
        if any(operand == name for operand, _ in row.operands):
            return operation.operand_group(name)
        for index, (result, suffix) in enumerate(row.results):
            if result == name:
                return operation.results[index:] if suffix else operation.results[index : index + 1]
        raise AssertionError((row.name, name))

    def _variable(self, name: str, row: Format, operation: Operation) -> str:
        kind = row.attributes.get(name)
        if kind is None:
            return self.values(self._group(name, row, operation))
        value = operation.attributes[name]
        if kind in ENUMS:
            return value if isinstance(value, str) else _keyword(kind, value)
        return _ATTRIBUTES[kind](self.spelling, value)

    def _directive(self, directive: Directive, row: Format, operation: Operation) -> str:
        word, names, spelling = directive.word, directive.arguments, self.spelling
        if word == "attr-dict":
            named = _NAMED.get(row.name)
            if named is None:
                named = _NAMED[row.name] = _named(row.elements)
            shown = {
                name: _inherent(row, name, value)
                for name, value in operation.attributes.items()
                if name not in named and value != row.defaults.get(name, _NOTHING)
            }
            return spelling.dictionary(shown) if shown else ""
        if word == "operands":
            return self.values(operation.operands)
        if word.startswith("custom<"):
            return ", ".join(map(str, operation.attributes[names[0]]))
        if word == "functional-type":
            operands = operation.operands if names[0] == "operands" else self._group(names[0], row, operation)
            return spelling.function_type(_types(operands), _types(operation.results))
        if names == ("operands",):
            return spelling.types(_types(operation.operands))
        text = spelling.types(_types(self._group(names[0], row, operation)))
        head = row.stripped.get(names[0], "") if word == "type" else ""
        return text.removeprefix(head)


_NOTHING = object()

#: Operation → the attributes that its format prints outside of ``attr-dict``.
_NAMED: dict[str, set[str]] = {}

#: Attribute kind → how a variable of it is printed; enums are keywords.
_ATTRIBUTES: dict[str, Any] = {
    "any": lambda spelling, value: spelling.attribute(value),
    "str": lambda spelling, value: quoted(value),
    "int": lambda spelling, value: str(value),
    "symbol": lambda spelling, value: symbol(value),
    "flags": lambda spelling, value: f"<{', '.join(value)}>",
    "unit": lambda spelling, value: "",
}


def _keyword(kind: str, value: int) -> str:
    return next(keyword for keyword, number in ENUMS[kind].items() if number == value)


def _inherent(row: Format | None, name: str, value: Any) -> Any:
    """An attribute as the dictionary of an operation holds it: an enum's number."""
    kind = row.attributes.get(name, "") if row is not None else ""
    return ENUMS[kind][value] if kind in ENUMS and isinstance(value, str) else value


def _named(elements: tuple[Element, ...]) -> set[str]:
    """What a format prints outside of ``attr-dict``."""
    found: set[str] = set()
    for element in elements:
        if isinstance(element, Variable):
            found.add(element.name)
        elif isinstance(element, Group):
            found |= _named(element.elements)
        elif isinstance(element, Directive) and element.word.startswith("custom<"):
            found |= set(element.arguments)
    return found


def _dense(values: Iterable[int]) -> DenseArray:
    made = DenseArray(values)
    made.element = PLAIN_TYPES["i32"]
    return made


def _whole(spelling: Spelling, value: Any) -> str:
    return spelling.whole_encoding(value) if isinstance(value, Encoding) else spelling.attribute(value)


def _types(values: Iterable[Value]) -> list[Type]:
    return [value.type for value in values]


def _joined(parts: list[str]) -> str:
    """Words with spaces between, but none inside of brackets and before commas."""
    text = ""
    for part in parts:
        if not part:
            continue
        close = not text or text.endswith(_OPENING) or part.startswith(_CLOSING)
        text += part if close else f" {part}"
    return text
