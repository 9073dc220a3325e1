"""What a module says about the user's source: the place of each instruction, the names of Python variables on ids."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from ..spirv.debug_scopes import SourcePlace, SourceScope
from ..spirv.function import FunctionBuilder
from ..spirv.source_lines import SourceLines
from ..ttgir.ir import Function, Location, Operation


def source_lines(kernel: Function) -> SourceLines:
    """For the function that ``kernel`` becomes."""
    where = kernel.location
    return SourceLines(SourceScope(kernel.name, where.file, max(1, where.line)) if where.file else None, _text)


def _text(file: str) -> str:
    return "".join(linecache.getlines(file))


@lru_cache(maxsize=4096)
def place_of(location: Location) -> SourcePlace | None:
    """The line in the function that was called, with the calls that led there."""
    if not location.file:
        return None
    caller = place_of(location.caller) if location.caller is not None else None
    return SourcePlace(location.file, location.line, location.column, _scope(location.file, location.line), caller)


def _scope(file: str, line: int) -> SourceScope:
    """The innermost function of a Python file that a line is in; its module, where none is known."""
    inside = [scope for scope in _functions(file) if scope[0] <= line <= scope[1]]
    start, _, name = max(inside, default=(1, 1, "<module>"))
    return SourceScope(name, file, start)


@lru_cache(maxsize=64)
def _functions(file: str) -> tuple[tuple[int, int, str], ...]:
    """(first line, last line, name) of each function of a Python file; none where it cannot be read."""
    try:
        tree = ast.parse(_text(file))
    except (SyntaxError, ValueError):
        return ()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return tuple((node.lineno, node.end_lineno or node.lineno, node.name) for node in functions)


@contextmanager
def located(f: FunctionBuilder, operation: Operation) -> Iterator[None]:
    """What is emitted inside comes from the place of ``operation``; operations in its regions have their own."""
    lines = f.lines
    if lines is None:
        yield
        return
    outer, lines.current = lines.current, place_of(operation.location)
    try:
        yield
    finally:
        lines.current = outer


def name_registers(f: FunctionBuilder, location: Location, registers: Sequence[int]) -> None:
    """Names the ids that hold a Python variable, after it: ``x``, or ``x.0``, ``x.1``, … of a tensor's registers. Those
    that nothing reads have none."""
    if f.lines is None or not location.name:
        return
    for number, register in enumerate(registers):
        if register > 0 and register not in f.module.constants:
            f.module.name_variable(register, f"{location.name}.{number}" if len(registers) > 1 else location.name)
