"""Accesses checked against the tensors that were passed: the compile option ``check_bounds``.

For each argument that an access may reach, the launcher says in the report buffer (docs/internals/abi.md) how many
bytes of its tensor lie before the argument's address, and how many it spans. An element outside of that is not
accessed: a load reads a zero in the report buffer instead, and a store goes to a spare place there, so that neither
needs a branch; an atomic operation is masked off. The buffer counts such elements and holds the place of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ..abi.report_buffer import BEFORE, DISTANCE, FIRST_OUTSIDE_AT, OUTSIDE, ROW, ROWS_AT, SPAN
from ..analysis.pointer_roots import Roots, accessed, accesses
from ..layouts.element_sizes import bits_in_memory
from ..spirv import opcodes as op
from ..spirv.opcodes import MemoryAccess
from ..ttgir.ir import UNKNOWN, Function, Location, Operation
from ..ttgir.types import PointerType, TensorType, Type, element_type
from .emitter import Emitter
from .index_arithmetic import owns
from .reports import Reports, write_words


class Bounds:
    """What the accesses of one kernel are checked against. ``roots``: pointer → the arguments that it may have come
    from (planning/pointers.py). ``address``: of an argument, by its number.

    The message counts the operations whose pointers come from memory or from integers, which are not checked.
    """

    def __init__(
        self, emitter: Emitter, reports: Reports, kernel: Function, roots: Roots, address: Callable[[int], int]
    ) -> None:
        """Reads the rows, in the entry block, where they dominate every use."""
        self._reports, self._roots, f = reports, roots, emitter.f
        reached = [roots.get(accessed(operation), ()) for operation in accesses(kernel)]
        numbers = sorted({number for numbers in reached for number in numbers})
        self._rows = {number: row for row, number in enumerate(numbers)}
        self._addresses = {number: address(number) for number in numbers}
        #: Argument → (address of its tensor's first byte, bytes from there to its end).
        self._ranges: dict[int, tuple[int, int]] = {}
        reports.message("bounds", UNKNOWN, arguments=numbers, unchecked=reached.count(()))
        for number, row in self._rows.items():
            before, span = (
                f.load(emitter.module.int(64), self._wide(emitter, ROWS_AT + row * ROW.size + column), 0, 8)
                for column in (BEFORE, SPAN)
            )
            self._ranges[number] = f.sub(self._addresses[number], before), span

    def check(self, emitter: Emitter, operation: Operation, addresses: list[int], masks: list[int]) -> list[int]:
        """Reports the elements that ``masks`` enable outside of their tensors. Gives a boolean an address: whether it
        is inside; nothing where the pointer's origin is not known."""
        pointer = accessed(operation)
        numbers = self._roots.get(pointer)
        if not numbers:
            return []
        f, type_ = emitter.f, element_type(pointer.type)
        assert isinstance(type_, PointerType)
        size = bits_in_memory(type_.pointee) // 8
        inside = [
            reduce(f.logical_or, [self._inside(emitter, number, address, size) for number in numbers])
            for address in addresses
        ]
        registers = _one_an_element(emitter, pointer.type)
        outside = [
            (f.logical_and(masks[register], f.logical_not(inside[register])), addresses[register])
            for register in registers
        ]
        message = self._reports.message(
            "access",
            operation.location,
            callers=callers(operation.location),
            bytes=size,
            access=operation.name.removeprefix("tt."),
            rows=[self._rows[number] for number in numbers],
        )
        found = f.logical_and(owns(emitter, pointer.type), reduce(f.logical_or, [outer for outer, _ in outside]))
        f.if_(found, lambda: self._report(emitter, message, numbers, outside))
        return inside

    def divert(self, emitter: Emitter, addresses: list[int], inside: list[int], place: int) -> list[int]:
        """The addresses, and byte ``place`` of the report buffer (ZERO_AT or SPARE_AT) where they are not inside."""
        f = emitter.f
        elsewhere = f.add(self._reports.address, emitter.module.uint(place, 64))
        return [f.select(within, address, elsewhere) for address, within in zip(addresses, inside, strict=True)]

    def _inside(self, emitter: Emitter, number: int, address: int, size: int) -> int:
        """Whether ``size`` bytes at ``address`` lie in the tensor of argument ``number``."""
        f, module = emitter.f, emitter.module
        start, span = self._ranges[number]
        last = module.uint(size - 1, 64)
        starts = f.select(f.compare(op.UGreaterThan, span, last), f.sub(span, last), module.uint(0, 64))
        return f.compare(op.ULessThan, f.sub(address, start), starts)

    def _report(
        self, emitter: Emitter, message: int, numbers: tuple[int, ...], outside: list[tuple[int, int]]
    ) -> list[int]:
        """Counts the elements (here one); the first of the launch leaves its place."""
        f, module = emitter.f, emitter.module
        one, zero = module.uint(1), module.uint(0)
        count = reduce(f.add, [f.select(outer, one, zero) for outer, _ in outside])
        earlier = self._reports.count(emitter, 4 * OUTSIDE, count)

        def describe() -> list[int]:
            address = outside[-1][1]
            for outer, candidate in reversed(outside[:-1]):
                address = f.select(outer, candidate, address)
            program = emitter.program_ids()
            write_words(emitter, self._reports.address, FIRST_OUTSIDE_AT, (module.uint(message + 1), *program))
            for number in numbers:
                pointer = self._wide(emitter, ROWS_AT + self._rows[number] * ROW.size + DISTANCE)
                f.store(pointer, f.sub(address, self._addresses[number]), MemoryAccess.NonPrivatePointer, 8)
            return []

        f.if_(f.compare(op.IEqual, earlier, zero), describe)
        return []

    def _wide(self, emitter: Emitter, offset: int) -> int:
        """A pointer to 64 bits of the report buffer."""
        return emitter.integer_at(self._reports.address, offset, 64)


def callers(location: Location) -> list[str]:
    """Where the function of ``location`` was called, and so on up to the kernel."""
    caller = location.caller
    return [f"{caller.file}:{caller.line}", *callers(caller)] if caller else []


def _one_an_element(emitter: Emitter, type_: Type) -> list[int]:
    """The first register of each of an invocation's elements."""
    if not isinstance(type_, TensorType):
        return [0]
    first: dict[int, int] = {}
    for register, place in enumerate(emitter.layout(type_).images("register")):
        first.setdefault(place, register)
    return list(first.values())
