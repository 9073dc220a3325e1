"""Assembly formats: the rows of the operation table, compiled to steps that read an operation.

The language of the formats is that of notation.py. Types that a format leaves out follow from the op's type equations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from . import readers
from .declared import REQUIRED, Declared
from .enums import ENUMS
from .ir import Operation, Value
from .notation import Directive, Element, Literal, Variable, parse_format
from .operation_reader import OperationReader
from .readers import ATTRIBUTES, State, Step
from .type_reader import PLAIN_TYPES
from .types import TensorType, Type, element_type

#: Attribute kinds other than the enums.
_PLAIN_KINDS = frozenset({"any", "str", "int", "symbol", "flags", "unit"})

_SIGNATURE = re.compile(r"(\w+)([?*]?)")
_ATTRIBUTE = re.compile(r"(\w+)(\?)?(?::(\w+))?(?:=(\w+))?")
_EQUATION = re.compile(r"(\w+)=(?:(\w+)\((\w+)\)|(\w+))")

_DEFAULTS: dict[str, Any] = {"false": False, "true": True, "0": 0, "1": 1}
CONSTANT_TYPES: dict[str, Type] = {"token": PLAIN_TYPES["!ttg.async.token"], "i32": PLAIN_TYPES["i32"]}
_TYPE_FUNCTIONS: dict[str, Callable[[OperationReader, Type], Type | None]] = {
    "": lambda parser, type_: type_,
    "i1": lambda parser, type_: parser.reader.i1_like(type_),
    "pointee": lambda parser, type_: parser.reader.pointee_like(type_),
    "element": lambda parser, type_: element_type(type_) if isinstance(type_, TensorType) else None,
}


def declared_attributes(text: str) -> Declared:
    """The attributes that a row lists, in the language of ``Format``."""
    flags: set[str] = set()
    values: dict[str, Any] = {}
    for name, optional, kind, default in _ATTRIBUTE.findall(text):
        if kind == "unit":
            flags.add(name)
        else:
            values[name] = _DEFAULTS.get(default, default) if default else None if optional else REQUIRED
    return Declared(frozenset(flags), values)


class Format:
    """One op's row of the table, and the reader compiled from it on first use.

    ``signature`` is ``operand … -> result …`` with ``?`` after an optional and ``*`` after a variadic one.
    ``attributes`` lists ``name``, ``name?`` (may be absent), each with ``:kind`` (an enum, or flags, int, str, symbol,
    unit) and ``=default``. ``types`` is ``same`` (all operand and result types equal) or equations such as
    ``result=pointee(ptr)``, each a type that follows from another. ``stripped`` gives, by operand or result, the name
    that ``type($x)`` leaves out of its type (where the .td file allows no other type there).
    """

    __slots__ = (
        "_compiled",
        "_elements",
        "attributes",
        "defaults",
        "enums",
        "equations",
        "name",
        "operands",
        "required",
        "results",
        "segments",
        "stripped",
        "text",
    )

    def __init__(
        self,
        name: str,
        signature: str,
        text: str,
        attributes: str = "",
        types: str = "",
        stripped: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.text = text
        self.stripped = stripped or {}
        before, _, after = signature.partition("->")
        self.operands = [match.groups() for match in _SIGNATURE.finditer(before)]
        self.results = [match.groups() for match in _SIGNATURE.finditer(after)]
        self.attributes: dict[str, str] = {}
        self.defaults: dict[str, Any] = {}
        self.required: list[str] = []
        self.enums: list[str] = []
        for match in _ATTRIBUTE.finditer(attributes):
            attribute, optional, kind, default = match.groups()
            kind = kind or "any"
            assert kind in _PLAIN_KINDS or kind in ENUMS, (name, kind)
            self.attributes[attribute] = kind
            if kind in ENUMS or kind == "flags":
                self.enums.append(attribute)
            if default is not None:
                self.defaults[attribute] = _DEFAULTS.get(default, default)
            elif not optional and kind != "unit":
                self.required.append(attribute)
        self.equations = types
        fixed = all(not suffix for _, suffix in self.operands)
        self.segments = (1,) * len(self.operands) if fixed else None
        self._elements: tuple[Element, ...] | None = None
        self._compiled: tuple[list[Step], list[Step]] | None = None

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements of ``text``."""
        if self._elements is None:
            self._elements = parse_format(self.text)
        return self._elements

    def read(self, parser: OperationReader) -> Operation:
        """Read what follows the op's name."""
        if self._compiled is None:
            self._compiled = self.compile()
        start = parser.i - 1
        state = State(len(self.operands), len(self.results))
        steps, equations = self._compiled
        for step in steps:
            step(parser, state)
        for step in equations:
            step(parser, state)
        return self._finish(parser, state, start)

    def _finish(self, parser: OperationReader, state: State, start: int) -> Operation:
        attributes = self.complete(parser, state.attributes, start)
        groups = state.groups
        segments = self.segments
        operands: list[Value] = []
        for group in groups:
            operands += group
        if segments is None:
            segments = tuple([len(group) for group in groups])
        elif len(operands) != len(segments):
            parser.error(f"'{self.name}' has {len(segments)} operands, but {len(operands)} are given", start)
        types: list[Type] = []
        for (result, suffix), given in zip(self.results, state.results, strict=True):
            if given is None:
                if suffix:
                    continue
                parser.error(f"the type of result '{result}' of '{self.name}' is not given", start)
            types += given
        return Operation.make(self.name, operands, types, attributes, segments)

    def complete(self, parser: OperationReader, attributes: dict[str, Any], start: int) -> dict[str, Any]:
        """Enums as keywords, defaults filled in; fails where an attribute is missing."""
        for name in self.enums:
            if name in attributes:
                kind = self.attributes[name]
                if kind == "flags":
                    if attributes[name] in (("none",), ()):
                        del attributes[name]
                    continue
                attributes[name] = readers.as_keyword(parser, kind, attributes[name], f"{self.name}: {name}", start)
        for name in self.required:
            if name not in attributes:
                parser.error(f"'{self.name}' needs the attribute '{name}'", start)
        for name, value in self.defaults.items():
            attributes.setdefault(name, value)
        return attributes

    def split(self, count: int) -> tuple[int, ...] | None:
        """The lengths of the operand groups when ``count`` operands are given and no lengths are; None if open."""
        fixed = sum(1 for _, suffix in self.operands if not suffix)
        free = [suffix for _, suffix in self.operands if suffix]
        if not free:
            return self.segments if count == fixed else None
        rest = count - fixed
        if rest < 0:
            return None
        if len(free) == 1 and (free[0] == "*" or rest <= 1):
            return tuple(rest if suffix else 1 for _, suffix in self.operands)
        if rest % len(free) == 0 and (rest // len(free) <= 1 or "?" not in free):
            return tuple(rest // len(free) if suffix else 1 for _, suffix in self.operands)
        return None

    def results_of(self, types: list[Type]) -> list[list[Type]] | None:
        """``types`` spread over the results; None if the counts do not fit."""
        spread: list[list[Type]] = []
        rest = len(types) - sum(1 for _, suffix in self.results if not suffix)
        at = 0
        for _, suffix in self.results:
            length = rest if suffix else 1
            spread.append(types[at : at + length])
            at += length
        return spread if rest >= 0 and at == len(types) else None

    def values(self, operation: Operation, name: str) -> Sequence[Value]:
        """The operands or the one result that the signature calls ``name``."""
        is_operand = self._operand(name) >= 0
        return operation.operand_group(name) if is_operand else [operation.results[self._result(name)]]

    # Compilation

    def compile(self) -> tuple[list[Step], list[Step]]:
        """The steps that read the format, and those that check and derive types."""
        spelled: list[str] = []
        return self._sequence(self.elements, spelled), self._type_steps(spelled)

    def _sequence(self, elements: tuple[Element, ...], spelled: list[str]) -> list[Step]:
        steps: list[Step] = []
        for element in elements:
            if isinstance(element, Literal):
                if element.text:
                    steps.append(readers.literal(element.text))
            elif isinstance(element, Variable):
                steps.append(self._variable(element.name))
            elif isinstance(element, Directive):
                steps.append(self._directive(element.word, element.arguments, spelled))
            else:
                steps.append(self._optional(element.elements[0], self._sequence(element.elements, spelled)))
        return steps

    def _operand(self, name: str) -> int:
        return next((k for k, (operand, _) in enumerate(self.operands) if operand == name), -1)

    def _result(self, name: str) -> int:
        return next((k for k, (result, _) in enumerate(self.results) if result == name), -1)

    def _variable(self, name: str) -> Step:
        index = self._operand(name)
        if index >= 0:
            return readers.one_operand(index) if self.operands[index][1] != "*" else readers.operand_list(index)
        kind = self.attributes[name]
        return ATTRIBUTES[kind](name) if kind in ATTRIBUTES else readers.enum(name, kind)

    def _optional(self, first: Element, steps: list[Step]) -> Step:
        if isinstance(first, Literal):
            return readers.when(lambda item: item == first.text, steps)
        assert isinstance(first, Variable), self.name
        if self._operand(first.name) >= 0:
            return readers.when(lambda item: item[0] == "%", steps)
        keywords = ENUMS[self.attributes[first.name]]
        return readers.when(lambda item: item in keywords, steps)

    def _directive(self, word: str, arguments: tuple[str, ...], spelled: list[str]) -> Step:
        if word == "attr-dict":
            return readers.attr_dict
        if word == "operands":
            return self._all_operands()
        if word.startswith("custom<"):
            return readers.offsets(arguments[0])
        if word == "functional-type":
            spelled += [name for name, _ in self.operands] + [name for name, _ in self.results]
            return self._functional_type()
        if arguments == ("operands",):
            spelled += [name for name, _ in self.operands]
            return readers.all_types
        name = arguments[0]
        spelled.append(name)
        index = self._operand(name)
        if word == "type" and name in self.stripped:
            return readers.stripped_type(index, self._result(name), self.stripped[name])
        if index >= 0:
            return readers.operand_types(index)
        index = self._result(name)
        return readers.result_types(index) if self.results[index][1] else readers.result_type(index)

    def _all_operands(self) -> Step:
        assert len(self.operands) == 1, self.name
        return readers.operand_list(0)

    def _functional_type(self) -> Step:
        def step(parser: OperationReader, state: State) -> None:
            start = parser.i
            inputs = parser.reader.types_in_parentheses(parser)
            readers.check_all(parser, state, inputs, start)
            parser.expect("->")
            start = parser.i
            spread = self.results_of(parser.reader.result_types(parser))
            if spread is None:
                parser.error(f"'{self.name}' has another number of results", start)
            state.results[:] = spread

        return step

    def type_equations(self, first: str) -> list[tuple[str, str, str]]:
        """(target, function, source) for each operand or result whose type follows from another's, or is ``source``
        itself. ``first``: whose type all have where all have the same."""
        if self.equations == "same":
            names = [name for name, _ in (*self.operands, *self.results)]
            return [(name, "", first) for name in names if name != first]
        return [
            (target, function or "", source or plain)
            for target, function, source, plain in _EQUATION.findall(self.equations)
        ]

    def _type_steps(self, spelled: list[str]) -> list[Step]:
        return [self._equation(*equation) for equation in self.type_equations(spelled[0] if spelled else "")]

    def _equation(self, target: str, function: str, source: str) -> Step:
        derive = _TYPE_FUNCTIONS[function]
        constant = CONSTANT_TYPES.get(source)
        source_operand, source_result = self._operand(source), self._result(source)
        operand, result = self._operand(target), self._result(target)
        assert constant or source_operand >= 0 or source_result >= 0, (self.name, source)
        assert operand >= 0 or result >= 0, (self.name, target)

        def step(parser: OperationReader, state: State) -> None:
            if operand >= 0 and not state.groups[operand]:
                return
            known: Type | None = constant
            if source_operand >= 0:
                known = state.groups[source_operand][0].type if state.groups[source_operand] else None
            elif known is None:
                given = state.results[source_result]
                known = given[0] if given else None
            expected = derive(parser, known) if known is not None else None
            if expected is None:
                parser.error(
                    f"'{self.name}': the type of '{target}' does not follow from the type of '{source}' ({known})",
                    parser.i - 1,
                )
            if operand >= 0:
                for value in state.groups[operand]:
                    if value.type is not expected:
                        parser.bind(value, expected, parser.i - 1)
            else:
                given = state.results[result]
                if given is None:
                    state.results[result] = [expected]
                elif given[0] is not expected:
                    parser.error(
                        f"'{self.name}': result '{target}' must have type {expected}, not {given[0]}", parser.i - 1
                    )

        return step
