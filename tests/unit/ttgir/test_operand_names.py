"""Rules ask operations for the operands, attributes and flags that their rows declare: each rule of a table beside each
operation that it is for, also where no test reaches the line."""

import ast
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.ttgir.declared import GROUPS, NOTHING, OF_ANY, OWN
from triton.backends.spirv.ttgir.operations import OPERATIONS

from tests.unit.test_import_graph import files_of

_ROOMS = ("backend.analysis.", "backend.lowering.", "backend.planning.", "backend.transforms.")
_WAYS = ("operand_group", "optional", "attribute", "flag")


@functools.cache
def _rules() -> dict[Callable[..., Any], set[str]]:
    """Each function in a table of the rooms whose keys are names of operations, and the operations that it is for."""
    rules: dict[Any, set[str]] = {}
    for module in (one for one in files_of("backend") if one.startswith(_ROOMS)):
        found = importlib.import_module(module.replace("backend", "triton.backends.spirv", 1))
        for table in (one for one in vars(found).values() if isinstance(one, Mapping)):
            for name in table.keys() & OPERATIONS:
                rule = getattr(table[name], "func", table[name])  # of a partial
                if inspect.isfunction(rule):
                    rules.setdefault(rule, set()).add(name)
    return rules


@functools.cache
def _definitions(file: str) -> dict[tuple[str, int], ast.FunctionDef | ast.Lambda]:
    """The functions of a file, by name and first line."""
    found = {}
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            lines = [node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]
            found[getattr(node, "name", "<lambda>"), min(lines)] = node
    return found


def _asked(rule: Any, operation: str = "operation") -> Iterator[tuple[str, str]]:
    """How a rule, and the functions that it gives its operation to, ask for what by which name. What looks at the
    operation's own name may ask some of its operations alone, and so may what stands behind a condition."""
    node = _definitions(rule.__code__.co_filename).get((rule.__name__, rule.__code__.co_firstlineno))
    parts = [*ast.walk(node)] if node is not None else []
    looks = any(isinstance(part, ast.Attribute) and ast.unparse(part) == f"{operation}.name" for part in parts)
    conditional = {
        part for one in parts if isinstance(one, ast.IfExp) for part in (*ast.walk(one.body), *ast.walk(one.orelse))
    }
    for part in [] if looks else parts:
        match None if part in conditional else part:
            case ast.Subscript(value=ast.Name(id=of), slice=ast.Constant(value=str(name))) if of == operation:
                yield "operand_group", name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=way), args=[ast.Constant(value=name), *_]):
                if of == operation and way in _WAYS:
                    yield way, name
            case ast.Call(func=ast.Name(id=called), args=arguments):
                function = rule.__globals__.get(called)
                if inspect.isfunction(function) and function is not rule:
                    parameters = function.__code__.co_varnames
                    for parameter, argument in zip(parameters, arguments, strict=False):
                        if isinstance(argument, ast.Name) and argument.id == operation:
                            yield from _asked(function, parameter)


def _unknown(rule: Any, operation: str) -> list[tuple[str, str]]:
    own, groups = OWN.get(operation, NOTHING), GROUPS.get(operation, ())
    known = {
        "operand_group": groups,
        "optional": groups,
        "attribute": own.values.keys() | OF_ANY.values.keys(),
        "flag": own.flags | OF_ANY.flags,
    }
    return [(way, name) for way, name in _asked(rule) if name not in known[way]]


def test_rules_ask_for_what_rows_declare() -> None:
    assert len(_rules()) > 250 and sum(1 for rule in _rules() for _ in _asked(rule)) > 150
    wrong = {(rule.__qualname__, name): _unknown(rule, name) for rule, names in _rules().items() for name in names}
    assert not {where: names for where, names in wrong.items() if names}


@pytest.mark.parametrize(
    "rule", [lambda operation: operation["source"], lambda operation: _first(1, operation)], ids=["itself", "passed on"]
)
def test_a_wrong_name_is_found(rule: Any) -> None:
    assert _unknown(rule, "tt.splat") == [("operand_group", "source")]


def _first(number: int, asked: Any) -> Any:
    return asked["source"], number
