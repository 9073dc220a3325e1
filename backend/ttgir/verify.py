"""Checks that need the whole function or module: what a terminator passes on must be what its receiver takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .ir import Function, Module, Operation, Value
from .lexer import Tokens
from .operations import End, definition_of
from .types import Type


def _types(values: Sequence[Value]) -> list[Type]:
    return [value.type for value in values]


def _compare(what: str, given: list[Type], needed: Sequence[Type]) -> Iterator[str]:
    if given != list(needed):
        yield f"{what}: given ({', '.join(map(str, given))}), needed ({', '.join(map(str, needed))})"


def check_terminators(text: Tokens, function: Function, terminators: Sequence[tuple[Operation, int]]) -> None:
    """Fail where one of a function's ``terminators``, each with its token in ``text``, does not fit its receiver."""
    for op, at in terminators:
        for fault in end_faults(op, function):
            text.error(fault, at)


def end_faults(op: Operation, function: Function) -> Iterator[str]:
    """In what the terminator ``op`` of a block of ``function`` does not fit its receiver."""
    for successor in op.successors:
        yield from _compare(
            f"arguments of block {successor.block.label}",
            _types(successor.arguments),
            _types(successor.block.arguments),
        )
    if definition_of(op).end is not End.LEAVE:
        return
    owner = op.holder
    if owner is None:
        if op.name != "tt.return":
            yield f"'{op.name}' cannot end a function; 'tt.return' does"
        yield from _compare(f"results of @{function.name}", _types(op.operands), function.type.results)
        return
    if op.name not in (definition_of(owner).ended_by or (op.name,)):
        yield f"'{op.name}' cannot end a region of '{owner.name}'"
    if op.name == definition_of(owner).yielded_by:
        yield from _compare(f"results of '{owner.name}'", _types(op.operands), _types(owner.results))
    elif op.name == "scf.condition":
        yield from _compare("results of 'scf.while'", _types(op.operands[1:]), _types(owner.results))
        after = owner.regions[1].blocks
        yield from _compare(
            "arguments of the second region of 'scf.while'",
            _types(after[0].arguments) if after else [],
            _types(owner.results),
        )
    elif owner.name == "scf.while":
        yield from _compare("values carried by 'scf.while'", _types(op.operands), _types(owner.operands))


def check_calls(text: Tokens, module: Module, calls: Sequence[tuple[Operation, int]]) -> None:
    """Fail where one of the ``calls`` (``tt.call`` with its token) names no function, or one of another type."""
    for op, at in calls:
        for fault in call_faults(op, module):
            text.error(fault, at)


def call_faults(op: Operation, module: Module) -> Iterator[str]:
    """In what a ``tt.call`` does not fit the function of ``module`` that it names."""
    callee = module.functions.get(op.attributes["callee"])
    if callee is None:
        yield f"function @{op.attributes['callee']} is not defined"
        return
    yield from _compare(f"arguments of @{callee.name}", _types(op.operands), callee.type.inputs)
    yield from _compare(f"results of @{callee.name}", _types(op.results), callee.type.results)
