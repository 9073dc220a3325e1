"""What a module says of the user's source: the place of each instruction, the names of Python variables on ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..spirv.function import FunctionBuilder
from ..spirv.source_lines import Place
from ..ttgir.ir import Location, Operation


def place_of(location: Location) -> Place | None:
    """The innermost frame: the line in the function that was called, not that of the call."""
    return Place(location.file, location.line, location.column) if location.file else None


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
    """Names the ids that hold a Python variable, after it: ``x``, or ``x.0``, ``x.1``, … of a tensor's registers."""
    if f.lines is None or not location.name:
        return
    for number, register in enumerate(registers):
        if register not in f.module.constants:
            f.module.name(register, f"{location.name}.{number}" if len(registers) > 1 else location.name)
