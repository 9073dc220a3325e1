"""Small steps that passes over the IR are made of. They keep ``Value.uses`` and ``Operation.block`` right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..ttgir.ir import UNKNOWN, Block, Location, Operation, Region, Value
from ..ttgir.type_reader import PLAIN_TYPES
from ..ttgir.types import Type


def append(
    block: Block,
    name: str,
    operands: Sequence[Value] = (),
    types: Sequence[Type] = (),
    attributes: dict[str, Any] | None = None,
    regions: Sequence[Region] = (),
    *,
    segments: tuple[int, ...] | None = None,
    location: Location = UNKNOWN,
) -> Operation:
    """Adds an operation at the end of ``block``; ``types`` are its results'."""
    made = Operation(
        name,
        list(operands),
        [],
        attributes or {},
        list(regions),
        [],
        (len(operands),) if segments is None else segments,
        location,
        block,
    )
    made.results = [Value(type_, made, index) for index, type_ in enumerate(types)]
    for value in operands:
        value.uses.append(made)
    for region in regions:
        region.parent = made
    block.operations.append(made)
    return made


def insert(
    block: Block,
    place: int,
    name: str,
    operands: Sequence[Value],
    types: Sequence[Type],
    attributes: dict[str, Any] | None = None,
    *,
    like: Operation,
    segments: tuple[int, ...] | None = None,
) -> Operation:
    """Adds an operation as number ``place`` of ``block``, at the source location of ``like``."""
    made = Operation(
        name,
        list(operands),
        [],
        attributes or {},
        segments=(1,) * len(operands) if segments is None else segments,
        location=like.location,
        block=block,
    )
    made.results = [Value(type_, made, index) for index, type_ in enumerate(types)]
    for value in operands:
        value.uses.append(made)
    block.operations.insert(place, made)
    return made


def copied_region(source: Region, known: dict[Value, Value] | None = None) -> Region:
    """A copy of ``source`` and all in it. ``known``: values → those that stand for them in the copy; it is added to."""
    known = {} if known is None else known
    region = Region()
    for block in source.blocks:
        copy = Block(block.label, parent=region)
        for argument in block.arguments:
            value = known[argument] = Value(argument.type, copy, argument.index, location=argument.location)
            copy.arguments.append(value)
        region.blocks.append(copy)
        for operation in block.operations:
            made = append(
                copy,
                operation.name,
                [known.get(operand, operand) for operand in operation.operands],
                [result.type for result in operation.results],
                dict(operation.attributes),
                [copied_region(inner, known) for inner in operation.regions],
                segments=operation.segments,
                location=operation.location,
            )
            known.update(zip(operation.results, made.results, strict=True))
    return region


def integer(block: Block, value: int, type_: Type = PLAIN_TYPES["i32"]) -> Value:
    """An integer constant at the end of ``block``."""
    return append(block, "arith.constant", types=[type_], attributes={"value": value}).result


def move(operations: Iterable[Operation], block: Block) -> None:
    """Puts operations that were taken out of their block at the end of ``block``."""
    for operation in operations:
        operation.block = block
        block.operations.append(operation)


def drop_uses(operation: Operation) -> None:
    """Forgets that ``operation``, which goes away, uses its operands."""
    for value in operation.operands:
        value.uses.remove(operation)


def replace_in(user: Operation, old: Value, new: Value) -> None:
    """Makes one user of ``old`` use ``new`` among its operands."""
    user.operands[:] = [new if operand is old else operand for operand in user.operands]
    new.uses += [user] * old.uses.count(user)
    old.uses[:] = [other for other in old.uses if other is not user]


def replace_uses(old: Value, new: Value) -> None:
    """Makes every user of ``old`` use ``new``."""
    for user in old.uses:
        user.operands[:] = [new if operand is old else operand for operand in user.operands]
        for successor in user.successors:
            successor.arguments[:] = [new if operand is old else operand for operand in successor.arguments]
    new.uses += old.uses
    old.uses.clear()
