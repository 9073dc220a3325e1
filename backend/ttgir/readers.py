"""The steps of an operation's reader (formats.py): each reads a part of its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .enums import ENUMS
from .ir import Value
from .operation_reader import OperationReader
from .types import Type

Step = Callable[[OperationReader, "State"], None]

#: Enums whose attributes are numbers, and enums of which several values may hold.
_NUMERIC = frozenset({"ProgramIDDim"})
_BIT_ENUMS = frozenset({"AddrSpace"})


class State:
    """What has been read of one operation: operands by group, types by result, attributes."""

    __slots__ = ("attributes", "groups", "results")

    def __init__(self, groups: int, results: int) -> None:
        self.groups: list[list[Value]] = [[] for _ in range(groups)]
        self.results: list[list[Type] | None] = [None] * results
        self.attributes: dict[str, Any] = {}


def as_keyword(parser: OperationReader, kind: str, value: Any, what: str, start: int) -> Any:
    """An enum attribute, given as keyword or number, as its keyword (for an enum of numbers, as its number)."""
    enum = ENUMS[kind]
    if isinstance(value, str):
        if value in enum or (kind in _BIT_ENUMS and all(part in enum for part in value.split("|"))):
            return value
    elif isinstance(value, int) and not isinstance(value, bool):
        if kind in _NUMERIC and value in enum.values():
            return value
        for keyword, number in enum.items():
            if number == value:
                return keyword
        bits = [keyword for keyword, number in enum.items() if number and number & value == number]
        if kind in _BIT_ENUMS and bits and sum(enum[bit] for bit in bits) == value:
            return "|".join(bits)
    parser.error(f"{what} is {value!r}, not one of {', '.join(enum)}", start)


def literal(word: str) -> Step:
    """Punctuation or a keyword, as it is."""

    def step(parser: OperationReader, state: State) -> None:
        if parser.items[parser.i] != word:
            parser.fail(f"expected '{word}'")
        parser.i += 1

    return step


def one_operand(index: int) -> Step:
    """The operand of a group that has one."""

    def step(parser: OperationReader, state: State) -> None:
        state.groups[index] = [parser.use()]

    return step


def operand_list(index: int) -> Step:
    """All operands of a variadic group."""

    def step(parser: OperationReader, state: State) -> None:
        state.groups[index] = parser.uses()

    return step


def attr_dict(parser: OperationReader, state: State) -> None:
    """``{name = value, …}``, where it is there."""
    if parser.items[parser.i] == "{":
        at = parser.i
        for name, value in parser.reader.dictionary(parser).items():
            if name in state.attributes:
                parser.error(f"attribute '{name}' is given twice", at)
            state.attributes[name] = value


def when(test: Callable[[str], bool], steps: list[Step]) -> Step:
    """``steps`` where the next token passes the test; else nothing."""

    def step(parser: OperationReader, state: State) -> None:
        if test(parser.items[parser.i]):
            for inner in steps:
                inner(parser, state)

    return step


def operand_types(index: int) -> Step:
    """The types of a group's operands."""

    def step(parser: OperationReader, state: State) -> None:
        first = True
        for value in state.groups[index]:
            if not first:
                parser.expect(",")
            first = False
            at = parser.i
            type_ = parser.reader.type(parser)
            if value.type is not type_:
                parser.bind(value, type_, at)

    return step


def stripped_type(operand: int, result: int, head: str) -> Step:
    """A type without the ``head`` that the format leaves out, of an operand or, where that is negative, of a result."""

    def step(parser: OperationReader, state: State) -> None:
        at = parser.i
        type_ = parser.reader.stripped_type(parser, head)
        if operand < 0:
            state.results[result] = [type_]
        else:
            parser.bind(state.groups[operand][0], type_, at)

    return step


def result_type(index: int) -> Step:
    """The type of a result that is always there."""

    def step(parser: OperationReader, state: State) -> None:
        state.results[index] = [parser.reader.type(parser)]

    return step


def result_types(index: int) -> Step:
    """The types of a variadic result."""

    def step(parser: OperationReader, state: State) -> None:
        state.results[index] = parser.reader.types(parser)

    return step


def check_all(parser: OperationReader, state: State, types: list[Type], start: int) -> None:
    """Give all operands these types; fails where there are more or fewer, or one has another type."""
    values = [value for group in state.groups for value in group]
    if len(values) != len(types):
        parser.error(f"{len(values)} operands, but {len(types)} operand types", start)
    for value, type_ in zip(values, types, strict=True):
        if value.type is not type_:
            parser.bind(value, type_, start)


def all_types(parser: OperationReader, state: State) -> None:
    """The types of all operands."""
    start = parser.i
    check_all(parser, state, parser.reader.types(parser), start)


def offsets(name: str) -> Step:
    """``0, 8``: integers, the brackets around them being literals."""

    def step(parser: OperationReader, state: State) -> None:
        offsets: list[int] = []
        if parser.items[parser.i] != "]":
            offsets.append(parser.integer())
            while parser.accept(","):
                offsets.append(parser.integer())
        state.attributes[name] = tuple(offsets)

    return step


def enum(name: str, kind: str) -> Step:
    """A keyword of the enum ``kind``."""
    enum = ENUMS[kind]
    numeric = kind in _NUMERIC

    def step(parser: OperationReader, state: State) -> None:
        item = parser.items[parser.i]
        if item not in enum:
            parser.fail(f"expected one of {', '.join(enum)}")
        parser.i += 1
        state.attributes[name] = enum[item] if numeric else item

    return step


def _bit_enum(name: str) -> Step:
    def step(parser: OperationReader, state: State) -> None:
        parts: list[str] = []
        while True:
            item = parser.items[parser.i]
            if item not in ENUMS["AddrSpace"]:
                parser.fail(f"expected one of {', '.join(ENUMS['AddrSpace'])}")
            parts.append(item)
            parser.i += 1
            if not parser.accept("|"):
                break
        state.attributes[name] = "|".join(parts)

    return step


def _flags(name: str) -> Step:
    """``<nsw, nuw>`` as a tuple of keywords."""

    def step(parser: OperationReader, state: State) -> None:
        parser.expect("<")
        flags = [parser.name("a flag")]
        while parser.accept(","):
            flags.append(parser.name("a flag"))
        parser.expect(">")
        state.attributes[name] = tuple(flags)

    return step


def _unit(name: str) -> Step:
    def step(parser: OperationReader, state: State) -> None:
        state.attributes[name] = None

    return step


def _any(name: str) -> Step:
    def step(parser: OperationReader, state: State) -> None:
        state.attributes[name] = parser.reader.attribute(parser)

    return step


def _string(name: str) -> Step:
    def step(parser: OperationReader, state: State) -> None:
        state.attributes[name] = parser.string()

    return step


def _integer(name: str) -> Step:
    def step(parser: OperationReader, state: State) -> None:
        state.attributes[name] = parser.integer()

    return step


def _symbol(name: str) -> Step:
    def step(parser: OperationReader, state: State) -> None:
        state.attributes[name] = parser.symbol()

    return step


#: Attribute kind → the step that reads an attribute of it; other kinds are enums.
ATTRIBUTES: dict[str, Callable[[str], Step]] = {
    "any": _any,
    "str": _string,
    "int": _integer,
    "symbol": _symbol,
    "flags": _flags,
    "unit": _unit,
    "AddrSpace": _bit_enum,
}
