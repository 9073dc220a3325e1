"""Checks that need the whole function or module: what a terminator passes on must be what its receiver takes."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Function, Module, Operation, Value
from .lexer import Tokens
from .traits import End, traits
from .types import Type


def _types(values: Sequence[Value]) -> list[Type]:
    return [value.type for value in values]


def _compare(text: Tokens, what: str, given: list[Type], needed: Sequence[Type], at: int) -> None:
    if given != list(needed):
        text.error(f"{what}: given ({', '.join(map(str, given))}), needed ({', '.join(map(str, needed))})", at)


def check_terminators(text: Tokens, function: Function, terminators: Sequence[tuple[Operation, int]]) -> None:
    """Fail where one of a function's ``terminators``, each with its token in ``text``, does not fit its receiver."""
    for op, at in terminators:
        for successor in op.successors:
            _compare(
                text,
                f"arguments of block {successor.block.label}",
                _types(successor.arguments),
                _types(successor.block.arguments),
                at,
            )
        if traits(op).end is not End.LEAVE:
            continue
        assert op.block is not None and op.block.parent is not None
        owner = op.block.parent.parent
        if owner is None:
            if op.name != "tt.return":
                text.error(f"'{op.name}' cannot end a function; 'tt.return' does", at)
            _compare(text, f"results of @{function.name}", _types(op.operands), function.type.results, at)
            continue
        if op.name not in (traits(owner).ended_by or (op.name,)):
            text.error(f"'{op.name}' cannot end a region of '{owner.name}'", at)
        if op.name == traits(owner).yielded_by:
            _compare(text, f"results of '{owner.name}'", _types(op.operands), _types(owner.results), at)
        elif op.name == "scf.condition":
            _compare(text, "results of 'scf.while'", _types(op.operands[1:]), _types(owner.results), at)
            after = owner.regions[1].blocks
            _compare(
                text,
                "arguments of the second region of 'scf.while'",
                _types(after[0].arguments) if after else [],
                _types(owner.results),
                at,
            )
        elif owner.name == "scf.while":
            _compare(text, "values carried by 'scf.while'", _types(op.operands), _types(owner.operands), at)


def check_calls(text: Tokens, module: Module, calls: Sequence[tuple[Operation, int]]) -> None:
    """Fail where one of the ``calls`` (``tt.call`` with its token) names no function, or one of another type."""
    for op, at in calls:
        callee = module.functions.get(op.attributes["callee"])
        if callee is None:
            text.error(f"function @{op.attributes['callee']} is not defined", at)
        _compare(text, f"arguments of @{callee.name}", _types(op.operands), callee.type.inputs, at)
        _compare(text, f"results of @{callee.name}", _types(op.results), callee.type.results, at)
