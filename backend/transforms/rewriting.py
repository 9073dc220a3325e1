"""Building operations at one place of a block. The operations that are there change by their own methods
(``Operation.erase``, ``Value.replace_uses``, …), which keep uses right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..ttgir.encodings import Encoding
from ..ttgir.ir import UNKNOWN, Block, DenseAttr, Location, Module, Operation, Region, Value
from ..ttgir.operations import OPERATIONS, WORST
from ..ttgir.type_reader import PLAIN_TYPES
from ..ttgir.types import TensorType, Type


class Rewriter:
    """Puts operations into ``block``: right before the operation ``place``, or at the end. What it makes has
    ``location``, where nothing else is said."""

    def __init__(self, block: Block, place: Operation | None = None, location: Location = UNKNOWN) -> None:
        self._block, self._place, self._location = block, place, location

    @classmethod
    def before(cls, operation: Operation) -> Rewriter:
        """One that puts operations right before ``operation``, with its location."""
        assert operation.block is not None
        return cls(operation.block, operation, operation.location)

    @classmethod
    def after(cls, operation: Operation) -> Rewriter:
        """One that puts operations behind ``operation`` in the order in which they come, with its location."""
        assert operation.block is not None
        operations = operation.block.operations
        place = operations.index(operation) + 1
        return cls(operation.block, operations[place] if place < len(operations) else None, operation.location)

    @classmethod
    def behind(cls, value: Value) -> Rewriter:
        """One that puts operations right behind the definition of ``value``, with its location."""
        if isinstance(value.owner, Operation):
            return cls.after(value.owner)
        return cls(value.owner, next(iter(value.owner.operations), None), value.location)

    def follows(self, value: Value) -> bool:
        """Whether ``value`` is defined before this place, as far as this block knows: values of other blocks are."""
        if not isinstance(value.owner, Operation) or value.owner.block is not self._block or self._place is None:
            return True
        return self._block.operations.index(value.owner) < self._block.operations.index(self._place)

    def make(
        self,
        name: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attributes: dict[str, Any] | None = None,
        regions: Iterable[Region] = (),
        *,
        segments: tuple[int, ...] | None = None,
        location: Location | None = None,
    ) -> Operation:
        """A new operation; ``types`` are its results'. ``segments``: of its operands, where their number leaves open
        which of them there are."""
        if segments is None:
            syntax = OPERATIONS.get(name, WORST).syntax
            segments = (1,) * len(operands) if syntax is None else syntax.split(len(operands))
        assert segments is not None, f"{name} has several groups of operands"
        location = self._location if location is None else location
        made = Operation.make(name, operands, types, attributes or {}, segments, regions, (), location)
        self.insert([made])
        return made

    def integer(self, value: int, type_: Type = PLAIN_TYPES["i32"]) -> Value:
        """An integer constant."""
        return self.make("arith.constant", types=[type_], attributes={"value": value}).result

    def loop(
        self, bounds: Sequence[Value], initial: Sequence[Value], attributes: dict[str, Any] | None = None
    ) -> tuple[Operation, Block]:
        """An ``scf.for`` from the first of the ``bounds`` to the second by the third, and its body, still empty. The
        body's arguments are the counter and what is carried, first the ``initial`` values."""
        body = Block()
        for index, value in enumerate((bounds[0], *initial)):
            body.arguments.append(Value(value.type, body, index))
        types = [value.type for value in initial]
        return self.make("scf.for", [*bounds, *initial], types, attributes, [region_of(body)]), body

    def copy(
        self,
        operation: Operation,
        known: dict[Value, Value] | None = None,
        *,
        operands: Sequence[Value] | None = None,
        types: Sequence[Type] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Operation:
        """A copy of ``operation`` and all inside it, at its own location. ``known``: values → those that stand for them
        in the copy; results are added to it. ``operands``, ``types`` and ``attributes``: others than its own."""
        made = self._copied(operation, {} if known is None else known, operands, types, attributes)
        self.insert([made])
        return made

    def _copied(
        self,
        operation: Operation,
        known: dict[Value, Value],
        operands: Sequence[Value] | None = None,
        types: Sequence[Type] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Operation:
        if operands is None:
            operands = [known.get(operand, operand) for operand in operation.operands]
        made = Operation.make(
            operation.name,
            operands,
            [result.type for result in operation.results] if types is None else types,
            self.attributes_of(operation) if attributes is None else attributes,
            operation.segments,
            [self.copy_region(region, known) for region in operation.regions],
            location=self.location_of(operation),
        )
        for old, new in zip(operation.results, made.results, strict=True):
            known[old], new.name = new, old.name
        return made

    def copy_region(self, source: Region, known: dict[Value, Value] | None = None) -> Region:
        """A copy of ``source`` and all in it, in no operation yet."""
        known = {} if known is None else known
        region = Region()
        for block in source.blocks:
            copied = Block(block.label, parent=region)
            for argument in block.arguments:
                value = Value(argument.type, copied, argument.index, argument.name, location=argument.location)
                known[argument] = value
                copied.arguments.append(value)
            region.blocks.append(copied)
            for operation in block.operations:
                copied.append(self._copied(operation, known))
        return region

    def at_end(self, block: Block) -> Rewriter:
        """One like this at the end of ``block``."""
        return Rewriter(block, None, self._location)

    def attributes_of(self, source: Operation) -> dict[str, Any]:
        """The attributes of a copy."""
        return dict(source.attributes)

    def location_of(self, source: Operation) -> Location:
        """The location of a copy."""
        return source.location

    def insert(self, operations: Sequence[Operation]) -> None:
        """Puts operations here that are in no block."""
        there = self._block.operations
        place = len(there) if self._place is None else there.index(self._place)
        there[place:place] = operations
        for operation in operations:
            operation.block = self._block

    def move(self, operation: Operation) -> None:
        """Puts an operation of any block here."""
        assert operation.block is not None and operation is not self._place
        operation.block.operations.remove(operation)
        self.insert([operation])


def region_of(block: Block) -> Region:
    """A region of ``block`` alone."""
    block.parent = Region([block])
    return block.parent


def encode_again(module: Module, meant: Callable[[Encoding], Encoding | None]) -> None:
    """Gives the tensors of ``module`` the encodings that ``meant`` gives for their own."""

    def again(type_: Type) -> Type:
        if not isinstance(type_, TensorType) or type_.encoding is None:
            return type_
        return replace(type_, encoding=meant(type_.encoding))

    for value in module.values():
        value.type = again(value.type)
    for function in module.functions.values():
        inputs, results = (tuple(map(again, types)) for types in (function.type.inputs, function.type.results))
        function.type = replace(function.type, inputs=inputs, results=results)
    for operation in module.walk():
        operation.attributes |= {
            name: replace(attribute, type=again(attribute.type))
            for name, attribute in operation.attributes.items()
            if isinstance(attribute, DenseAttr)
        }


def erase_unused(operations: Collection[Operation]) -> None:
    """Takes out the ``operations`` that have results which nothing uses, users first."""
    left, pending = set(operations), list(operations)
    while pending:
        operation = pending.pop()
        if operation in left and not any(result.uses for result in operation.results):
            values = (value for one in operation.walk() for value in one.operands)
            pending += [value.owner for value in values if isinstance(value.owner, Operation)]
            left.remove(operation)
            operation.erase()


def carry(loop: Operation, first: Value, following: Value | None = None) -> Value:
    """A new value that ``loop`` carries, ``first`` to begin with: its body's argument. ``following``: what a round
    hands on; None: the argument itself."""
    body = loop.regions[0].entry
    argument = Value(first.type, body, len(body.arguments))
    body.arguments.append(argument)
    loop.add_operand(first)
    body.terminator.add_operand(following or argument)
    loop.results.append(Value(first.type, loop, len(loop.results)))
    return argument
