"""How much a launch moves and computes, estimated from TTGIR, the values of its arguments, and its grid.

Loads and stores count whole tensors, masked elements included, and know nothing of caches. What depends on the program
is that of the program in the middle of the grid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..layouts.element_sizes import bytes_in_memory
from ..ttgir.ir import Block, Function, Operation, Value
from ..ttgir.operations import definition_of
from ..ttgir.types import FloatType, TensorType, Type, element_type
from .axis_info import constant_folding
from .axis_info.info import wrapped
from .pointer_roots import Roots


@dataclass(frozen=True)
class Work:
    """``moved``: bytes of device memory that are read and written. ``operations``: of floating-point numbers, a
    multiply-add counting two. ``parts``: the bytes by the numbers of the arguments that they may be of, none where that
    is not known, and whether they are written."""

    moved: int = 0
    operations: int = 0
    parts: Mapping[tuple[tuple[int, ...], bool], int] = field(default_factory=dict, compare=False)

    def __add__(self, other: Work) -> Work:
        parts = Counter(self.parts)
        parts.update(other.parts)
        return Work(self.moved + other.moved, self.operations + other.operations, parts)

    def times(self, count: int) -> Work:
        """This work ``count`` times."""
        parts = {part: bytes_ * count for part, bytes_ in self.parts.items()}
        return Work(self.moved * count, self.operations * count, parts)

    def distinct(self, sizes: Sequence[int]) -> int:
        """The most bytes that can be other ones: of arguments of so many bytes, each read once and written once."""
        return sum(
            min(bytes_, sum(sizes[number] for number in numbers)) if numbers else bytes_
            for (numbers, _), bytes_ in self.parts.items()
        )


class Unknown(Exception):
    """How often something runs depends on data."""


def launch_work(
    kernel: Function, arguments: Sequence[object], grid: Sequence[int], roots: Roots | None = None
) -> Work | None:
    """The work of a launch. ``arguments``: the values of the kernel's arguments, of which whole numbers count.
    ``roots``: which arguments its pointers come from (pointer_roots()), for Work.parts.

    None if a loop runs as often as data say.
    """
    assert kernel.body is not None
    if len(arguments) != len(kernel.body.entry.arguments):
        return None
    sizes = [*grid, 1, 1, 1][:3]
    scalars = _Scalars(dict(zip(kernel.body.entry.arguments, arguments, strict=True)), sizes, roots or {})
    try:
        return _of_block(kernel.body.entry, scalars).times(math.prod(sizes))
    except Unknown:
        return None


_EXTENSIONS = frozenset({"arith.extsi", "arith.extui", "arith.index_cast", "arith.index_castui"})


class _Scalars:
    """Values of whole numbers, as far as arguments, constants and the grid say them."""

    def __init__(self, arguments: Mapping[Value, object], grid: Sequence[int], roots: Roots) -> None:
        self._known: dict[Value, int | None] = {
            value: int(number) if isinstance(number, int) else None for value, number in arguments.items()
        }
        self._grid = grid
        #: Which arguments pointers come from.
        self.roots = roots

    def number(self, value: Value) -> int | None:
        """The value; None if it is not known."""
        if value not in self._known:
            owner = value.owner
            self._known[value] = self._result(owner) if isinstance(owner, Operation) else None
        return self._known[value]

    def _result(self, operation: Operation) -> int | None:
        name = operation.name
        if name == "arith.constant":
            constant = operation.attribute("value")
            return int(constant) if isinstance(constant, int) else None
        if name in ("tt.get_program_id", "tt.get_num_programs"):
            size = self._grid[_AXES.get(str(operation.attribute("axis")), 0)]
            return size if name == "tt.get_num_programs" else size // 2
        if operation.regions or not operation.operands:
            return None
        numbers = [self.number(operand) for operand in operation.operands]
        if name == "arith.select":
            return None if numbers[0] is None else numbers[1 if numbers[0] else 2]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return None
        found: int | None = None
        if name == "arith.cmpi":
            found = constant_folding.compare(operation, *known)
        elif name in _EXTENSIONS:
            found = constant_folding.extend(operation, *known)
        elif name == "arith.trunci":
            found = known[0]
        elif len(known) == 2:
            found = constant_folding.binary(operation, *known)
        return None if found is None else wrapped(found, operation.result.type)


_AXES = {"x": 0, "y": 1, "z": 2, "0": 0, "1": 1, "2": 2}


def _of_block(block: Block, scalars: _Scalars) -> Work:
    total = Work()
    for operation in block.operations:
        total += _of_operation(operation, scalars)
    return total


def _of_operation(operation: Operation, scalars: _Scalars) -> Work:
    if operation.regions:
        return _of_regions(operation, scalars)
    row = definition_of(operation)
    if row.moves is None:
        raise Unknown
    if row.moves and row.syntax is not None:
        arguments, parts = scalars.roots.get(operation["ptr"], ()), Counter[tuple[tuple[int, ...], bool]]()
        for name in row.moves:
            written = name in ("val", "value")
            parts[arguments, written] += sum(_bytes(value.type) for value in row.syntax.values(operation, name))
        return Work(moved=parts.total(), parts=parts)
    if callable(row.counts):
        return Work(operations=row.counts(operation))
    if row.counts and operation.results and isinstance(element_type(operation.results[0].type), FloatType):
        return Work(operations=row.counts * _size(operation.results[0].type))
    return Work()


def _of_regions(operation: Operation, scalars: _Scalars) -> Work:
    inner = [sum((_of_block(block, scalars) for block in region.blocks), Work()) for region in operation.regions]
    if operation.name == "scf.for":
        lower, upper, step = (scalars.number(value) for value in operation.operands[:3])
        if inner[0] == Work():
            return inner[0]
        if lower is None or upper is None or not step:
            raise Unknown
        return inner[0].times(max(0, -(-(upper - lower) // step)))
    if operation.name == "scf.if":
        condition = scalars.number(operation["condition"])
        if condition is None:
            return max(inner, key=lambda work: (work.moved, work.operations), default=Work())
        return inner[0] if condition else inner[1] if len(inner) > 1 else Work()
    if operation.name in ("tt.reduce", "tt.scan"):
        return inner[0].times(_size(operation.operand_group("srcs")[0].type))
    if any(work != Work() for work in inner):
        raise Unknown
    return Work()


def _size(type_: Type) -> int:
    return type_.size if isinstance(type_, TensorType) else 1


def _bytes(type_: Type) -> int:
    return _size(type_) * bytes_in_memory(element_type(type_))
