"""Operations whose printer upstream wrote by hand, printed: what custom.py reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from .ir import Block, DenseAttr, Operation, Region, Successor, Value
from .spelling import Spelling, location, number
from .types import IndexType


class Printing(Protocol):
    """What the rules use of the printer."""

    spelling: Spelling

    def name(self, value: Value) -> str:
        """``%name``, or ``%name#1`` for one of several results."""

    def values(self, values: Iterable[Value]) -> str:
        """Names with commas between."""

    def label(self, block: Block) -> str:
        """``^bb1``."""

    def region(self, region: Region, depth: int, *, label: bool, implicit: str = "") -> str:
        """``{ … }``. ``label``: the first block's arguments are printed too; ``implicit`` is the terminator that is
        left out if it has no operands."""


#: The text after the operation's name, given the depth of its line.
Rule = Callable[[Printing, Operation, int], str]


def _others(printer: Printing, operation: Operation, *known: str, keyword: bool = False) -> str:
    """The attributes other than the ``known`` ones, with the space before them."""
    shown = {name: value for name, value in operation.attributes.items() if name not in known}
    return f" {'attributes ' if keyword else ''}{printer.spelling.dictionary(shown)}" if shown else ""


def constant(printer: Printing, operation: Operation, _: int) -> str:
    """``arith.constant``."""
    value = operation.attributes["value"]
    if isinstance(value, DenseAttr):
        text = printer.spelling.attribute(value)
    else:
        text = number(value)
        text += "" if isinstance(value, bool) else f" : {printer.spelling.type(operation.result.type)}"
    before = _others(printer, operation, "value").lstrip()
    return f"{before} {text}" if before else text


def select(printer: Printing, operation: Operation, _: int) -> str:
    """``arith.select``."""
    condition, chosen = (printer.spelling.type(operand.type) for operand in operation.operands[:2])
    types = chosen if condition == "i1" else f"{condition}, {chosen}"
    return f"{printer.values(operation.operands)}{_others(printer, operation)} : {types}"


def _carried(printer: Printing, arguments: Sequence[Value], initial: Sequence[Value]) -> str:
    pairs = zip(arguments, initial, strict=True)
    return ", ".join(f"{printer.name(argument)} = {printer.name(value)}" for argument, value in pairs)


def loop(printer: Printing, operation: Operation, depth: int) -> str:
    """``scf.for``."""
    lower, upper, step, *initial = operation.operands
    induction, *carried = operation.regions[0].entry.arguments
    text = "unsigned " if "unsignedCmp" in operation.attributes else ""
    text += f"{printer.name(induction)} = {printer.name(lower)} to {printer.name(upper)} step {printer.name(step)}"
    if initial:
        types = printer.spelling.types(value.type for value in initial)
        text += f" iter_args({_carried(printer, carried, initial)}) -> ({types})"
    if not isinstance(lower.type, IndexType):
        text += f" : {printer.spelling.type(lower.type)}"
    body = printer.region(operation.regions[0], depth, label=False, implicit="scf.yield")
    return f"{text} {body}{_others(printer, operation, 'unsignedCmp')}"


def branches(printer: Printing, operation: Operation, depth: int) -> str:
    """``scf.if``."""
    text = printer.name(operation.operands[0])
    if operation.results:
        text += f" -> ({printer.spelling.types(result.type for result in operation.results)})"
    for keyword, region in zip((" ", " else "), operation.regions, strict=True):
        if region.blocks:
            text += keyword + printer.region(region, depth, label=False, implicit="scf.yield")
    return text + _others(printer, operation)


def while_loop(printer: Printing, operation: Operation, depth: int) -> str:
    """``scf.while``."""
    before, after = operation.regions
    carried = _carried(printer, before.entry.arguments, operation.operands)
    types = [[value.type for value in values] for values in (operation.operands, operation.results)]
    text = f"({carried}) : " if carried else ": "
    text += f"{printer.spelling.function_type(*types)} {printer.region(before, depth, label=False)}"
    text += f" do {printer.region(after, depth, label=True)}"
    return text + _others(printer, operation, keyword=True)


def _target(printer: Printing, successor: Successor) -> str:
    if not successor.arguments:
        return printer.label(successor.block)
    types = printer.spelling.types(value.type for value in successor.arguments)
    return f"{printer.label(successor.block)}({printer.values(successor.arguments)} : {types})"


def branch(printer: Printing, operation: Operation, _: int) -> str:
    """``cf.br``."""
    return _target(printer, operation.successors[0]) + _others(printer, operation)


def conditional_branch(printer: Printing, operation: Operation, _: int) -> str:
    """``cf.cond_br``."""
    weights = operation.attributes.get("branch_weights")
    shown = "" if weights is None else f" weights([{', '.join(map(number, weights))}])"
    targets = ", ".join(_target(printer, successor) for successor in operation.successors)
    return f"{printer.name(operation.operands[0])}{shown}, {targets}{_others(printer, operation, 'branch_weights')}"


def switch(printer: Printing, operation: Operation, _: int) -> str:
    """``cf.switch``."""
    flag = operation.operands[0]
    labels = ["default", *map(str, operation.attributes["case_values"])]
    cases = ", ".join(
        f"{label}: {_target(printer, successor)}" for label, successor in zip(labels, operation.successors, strict=True)
    )
    known = "case_values", "case_operand_segments"
    return (
        f"{printer.name(flag)} : {printer.spelling.type(flag.type)}, [ {cases} ]{_others(printer, operation, *known)}"
    )


def poison(printer: Printing, operation: Operation, _: int) -> str:
    """``ub.poison``."""
    value = operation.attributes.get("value", _NOTHING)
    shown = "" if value is _NOTHING else f"<{printer.spelling.attribute(value)}>"
    text = f"{shown}{_others(printer, operation, 'value')} : {printer.spelling.type(operation.result.type)}"
    return text.lstrip()


def warp_specialize(printer: Printing, operation: Operation, depth: int) -> str:
    """``ttg.warp_specialize``."""
    default, holder = operation.regions
    inner = holder.entry.operations[0]
    text = f"({printer.values(inner.operands)}){_others(printer, operation, 'partitionNumWarps', keyword=True)}"
    indent = "\n" + "  " * depth
    text += f"{indent}default {printer.region(default, depth, label=False)}"
    warps: tuple[Any, ...] = operation.attributes["partitionNumWarps"]
    for index, (region, count) in enumerate(zip(inner.regions, warps, strict=True)):
        arguments = ", ".join(
            f"{printer.name(argument)}: {printer.spelling.type(argument.type)} {location(argument.location)}"
            for argument in region.entry.arguments
        )
        body = printer.region(region, depth, label=False)
        text += f"{indent}partition{index}({arguments}) num_warps({count}) {body}"
    types = [[value.type for value in values] for values in (inner.operands, operation.results)]
    return f"{text} : {printer.spelling.function_type(*types)}"


_NOTHING = object()
