"""Operations whose printer upstream wrote by hand: one rule each, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ir import Block, Function, Operation, Region, Successor, Value
from .operation_reader import OperationReader
from .type_reader import PLAIN_TYPES
from .types import FunctionType, Type

Rule = Callable[[OperationReader], Operation]

_Argument = tuple[str, Type, int]


def _attributes(parser: OperationReader) -> dict[str, Any]:
    return parser.reader.dictionary(parser) if parser.items[parser.i] == "{" else {}


def _attributes_with_keyword(parser: OperationReader) -> dict[str, Any]:
    return parser.reader.dictionary(parser) if parser.accept("attributes") else {}


def function(parser: OperationReader) -> Function:
    """``tt.func`` after its name."""
    visibility = ""
    if parser.items[parser.i] in ("public", "private", "nested"):
        visibility = parser.items[parser.i]
        parser.i += 1
    name = parser.symbol()
    arguments: list[_Argument] = []
    inputs: list[Type] = []
    argument_attributes: list[dict[str, Any]] = []
    locations: list[tuple[str, int] | None] = []
    parser.expect("(")
    while not parser.accept(")"):
        if inputs:
            parser.expect(",")
        if parser.items[parser.i][0] == "%":
            if len(arguments) != len(inputs):
                parser.fail("expected a type: the arguments before have no names")
            arguments.append(parser.argument())
            inputs.append(arguments[-1][1])
        else:
            if arguments:
                parser.fail("expected an argument name (%name)")
            inputs.append(parser.reader.type(parser))
        argument_attributes.append(_attributes(parser))
        locations.append(parser.location())
    results: list[Type] = []
    result_attributes: list[dict[str, Any]] = []
    if parser.accept("->"):
        if parser.accept("("):
            while not parser.accept(")"):
                if results:
                    parser.expect(",")
                results.append(parser.reader.type(parser))
                result_attributes.append(_attributes(parser))
        else:
            results.append(parser.reader.type(parser))
    attributes = _attributes_with_keyword(parser)
    if any(result_attributes):
        attributes["res_attrs"] = tuple(result_attributes)
    body = None
    if parser.items[parser.i] == "{":
        if len(arguments) != len(inputs):
            parser.fail("expected no body: the arguments have no names")
        body = parser.region(arguments, isolated=True)
        for argument, where in zip(body.entry.arguments, locations, strict=True):
            parser.located(argument, where)
    made = Function(
        name, FunctionType(tuple(inputs), tuple(results)), argument_attributes, attributes, visibility, body
    )
    parser.located(made, parser.location())
    return made


def constant(parser: OperationReader) -> Operation:
    """``arith.constant``."""
    at = parser.i
    attributes = _attributes(parser)
    value, type_ = parser.reader.typed_attribute(parser)
    if type_ is None and isinstance(value, (int, float)):
        type_ = PLAIN_TYPES["i64" if isinstance(value, int) else "f64"]
    if type_ is None or isinstance(value, str):
        parser.error("expected a number, true, false or dense<…>", at)
    attributes["value"] = value
    return Operation.make("arith.constant", [], [type_], attributes, ())


def select(parser: OperationReader) -> Operation:
    """``arith.select``."""
    operands = [parser.use()]
    for _ in range(2):
        parser.expect(",")
        operands.append(parser.use())
    attributes = _attributes(parser)
    parser.expect(":")
    at = parser.i
    types = parser.reader.types(parser)
    if len(types) > 2:
        parser.error("expected one or two types", at)
    condition = types[0] if len(types) == 2 else PLAIN_TYPES["i1"]
    for operand, type_ in zip(operands, (condition, types[-1], types[-1]), strict=True):
        parser.bind(operand, type_, at)
    return Operation.make("arith.select", operands, [types[-1]], attributes, (1, 1, 1))


def _carried(parser: OperationReader) -> tuple[list[tuple[str, int]], list[Value]]:
    """``(%argument = %initial, …)``: names with their tokens, and values."""
    names: list[tuple[str, int]] = []
    values: list[Value] = []
    parser.expect("(")
    while not parser.accept(")"):
        if names:
            parser.expect(",")
        at = parser.i
        names.append((parser.argument_name(), at))
        parser.expect("=")
        values.append(parser.use())
    return names, values


def _bind_all(parser: OperationReader, values: list[Value], types: list[Type], at: int) -> None:
    if len(values) != len(types):
        parser.error(f"{len(values)} values, but {len(types)} types", at)
    for value, type_ in zip(values, types, strict=True):
        parser.bind(value, type_, at)


def loop(parser: OperationReader) -> Operation:
    """``scf.for``."""
    attributes: dict[str, Any] = {}
    if parser.accept("unsigned"):
        attributes["unsignedCmp"] = None
    induction_at = parser.i
    induction = parser.argument_name()
    bounds: list[Value] = []
    for keyword in ("=", "to", "step"):
        parser.expect(keyword)
        bounds.append(parser.use())
    names: list[tuple[str, int]] = []
    initial: list[Value] = []
    types: list[Type] = []
    if parser.accept("iter_args"):
        names, initial = _carried(parser)
        parser.expect("->")
        at = parser.i
        types = parser.reader.types_in_parentheses(parser)
        _bind_all(parser, initial, types, at)
    at = parser.i
    type_ = parser.reader.type(parser) if parser.accept(":") else PLAIN_TYPES["index"]
    _bind_all(parser, bounds, [type_] * 3, at)
    arguments = [(induction, type_, induction_at)]
    arguments += [(name, carried, where) for (name, where), carried in zip(names, types, strict=True)]
    region = parser.region(arguments, implicit="scf.yield")
    attributes |= _attributes(parser)
    return Operation.make("scf.for", bounds + initial, types, attributes, (1, 1, 1, len(initial)), [region])


def branches(parser: OperationReader) -> Operation:
    """``scf.if``."""
    at = parser.i
    condition = parser.use()
    parser.bind(condition, PLAIN_TYPES["i1"], at)
    types = parser.reader.result_types(parser) if parser.accept("->") else []
    regions = [parser.region(implicit="scf.yield")]
    regions.append(parser.region(implicit="scf.yield") if parser.accept("else") else Region())
    if types and not regions[1].blocks:
        parser.fail("expected 'else': this scf.if has results")
    return Operation.make("scf.if", [condition], types, _attributes(parser), (1,), regions)


def while_loop(parser: OperationReader) -> Operation:
    """``scf.while``."""
    names, initial = _carried(parser) if parser.items[parser.i] == "(" else ([], [])
    parser.expect(":")
    at = parser.i
    type_ = parser.reader.function_type(parser)
    _bind_all(parser, initial, list(type_.inputs), at)
    arguments = [(name, carried, where) for (name, where), carried in zip(names, type_.inputs, strict=True)]
    before = parser.region(arguments)
    parser.expect("do")
    after = parser.region(implicit="scf.yield")
    attributes = _attributes_with_keyword(parser)
    return Operation.make("scf.while", initial, list(type_.results), attributes, (len(initial),), [before, after])


def _target(parser: OperationReader) -> Successor:
    """``^label`` or ``^label(%value, … : type, …)``."""
    block = parser.successor()
    values: list[Value] = []
    if parser.accept("("):
        values = parser.uses()
        parser.expect(":")
        at = parser.i
        _bind_all(parser, values, parser.reader.types(parser), at)
        parser.expect(")")
    return Successor(block, values)


def branch(parser: OperationReader) -> Operation:
    """``cf.br``."""
    target = _target(parser)
    attributes = _attributes(parser)
    return Operation.make("cf.br", list(target.arguments), [], attributes, (len(target.arguments),), [], [target])


def conditional_branch(parser: OperationReader) -> Operation:
    """``cf.cond_br``."""
    at = parser.i
    condition = parser.use()
    parser.bind(condition, PLAIN_TYPES["i1"], at)
    attributes: dict[str, Any] = {}
    if parser.accept("weights"):
        parser.expect("(")
        attributes["branch_weights"] = parser.reader.attribute(parser)
        parser.expect(")")
    parser.expect(",")
    true = _target(parser)
    parser.expect(",")
    false = _target(parser)
    attributes |= _attributes(parser)
    return Operation.make(
        "cf.cond_br",
        [condition, *true.arguments, *false.arguments],
        [],
        attributes,
        (1, len(true.arguments), len(false.arguments)),
        [],
        [true, false],
    )


def switch(parser: OperationReader) -> Operation:
    """``%flag : type, [ default: ^a, 42: ^b, … ]``: ``case_values`` in the order of the successors after the first."""
    flag = parser.use()
    parser.expect(":")
    at = parser.i
    parser.bind(flag, parser.reader.type(parser), at)
    parser.expect(",")
    parser.expect("[")
    parser.expect("default")
    parser.expect(":")
    targets = [_target(parser)]
    values: list[int] = []
    while parser.accept(","):
        values.append(parser.integer())
        parser.expect(":")
        targets.append(_target(parser))
    parser.expect("]")
    attributes = _attributes(parser)
    attributes["case_values"] = tuple(values)
    passed = [value for target in targets for value in target.arguments]
    default = len(targets[0].arguments)
    return Operation.make(
        "cf.switch", [flag, *passed], [], attributes, (1, default, len(passed) - default), [], targets
    )


def poison(parser: OperationReader) -> Operation:
    """``ub.poison``."""
    attributes: dict[str, Any] = {}
    if parser.accept("<"):
        attributes["value"] = parser.reader.attribute(parser)
        parser.expect(">")
    attributes |= _attributes(parser)
    parser.expect(":")
    return Operation.make("ub.poison", [], [parser.reader.type(parser)], attributes, ())


def warp_specialize(parser: OperationReader) -> Operation:
    """The default region, and a region that holds one ``ttg.warp_specialize.partitions`` with the captured values."""
    parser.expect("(")
    captures = parser.uses()
    parser.expect(")")
    attributes = _attributes_with_keyword(parser)
    parser.expect("default")
    default = parser.region()
    partitions: list[Region] = []
    warps: list[int] = []
    start = parser.i
    while parser.items[parser.i] == f"partition{len(partitions)}":
        parser.i += 1
        arguments: list[_Argument] = []
        parser.expect("(")
        while not parser.accept(")"):
            if arguments:
                parser.expect(",")
            arguments.append(parser.argument())
            parser.location()
        parser.expect("num_warps")
        parser.expect("(")
        warps.append(parser.integer())
        parser.expect(")")
        partitions.append(parser.region(arguments, isolated=True))
    parser.expect(":")
    at = parser.i
    type_ = parser.reader.function_type(parser)
    _bind_all(parser, captures, list(type_.inputs), at)
    for partition in partitions:
        if [argument.type for argument in partition.entry.arguments] != list(type_.inputs):
            parser.error("the arguments of each partition must have the types of the captured values", start)
    holder = Block()
    inner = Operation.make("ttg.warp_specialize.partitions", captures, [], {}, (len(captures),), partitions)
    inner.block = holder
    holder.operations.append(inner)
    region = Region([holder])
    holder.parent = region
    attributes["partitionNumWarps"] = tuple(warps)
    return Operation.make("ttg.warp_specialize", [], list(type_.results), attributes, (), [default, region])
