"""Accesses checked against the tensors that were passed: the compile option ``check_bounds``.

For each argument that an access may reach, the launcher says in the report buffer (docs/abi.md) how many bytes of its
tensor lie before the argument's address, and how many it spans. An element outside of that is not accessed: a load
reads a zero in the report buffer instead, and a store goes to a spare place there, so that neither needs a branch; an
atomic operation is masked off. The buffer counts such elements and holds the place of the first.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from ..abi.report_buffer import BEFORE, DISTANCE, FIRST_OUTSIDE_AT, OUTSIDE, ROW, ROWS_AT, SPAN, bounds_bytes
from ..analysis.pointer_roots import accesses, pointer_roots
from ..layouts.elements import bits_in_memory, element_type
from ..spirv import opcodes as op
from ..spirv.opcodes import BuiltIn, Capability_, MemoryAccess, Scope, Semantics, StorageClass
from ..ttgir.ir import Function, Location, Operation, Value
from ..ttgir.types import PointerType, TensorType, Type

if TYPE_CHECKING:
    from .context import Context


class Bounds:
    """What the accesses of one kernel are checked against. ``arguments``: the numbers of the arguments with a row.

    ``unchecked`` counts operations: those through pointers that come from memory or from integers are not checked.
    """

    def __init__(self, kernel: Function) -> None:
        assert kernel.body is not None
        self._values = kernel.body.entry.arguments
        self._roots = pointer_roots(kernel)
        reached = [self._roots.get(operation.operands[0], ()) for operation in accesses(kernel)]
        self.unchecked = sum(not numbers for numbers in reached)
        self.arguments = sorted({number for numbers in reached for number in numbers})
        self._rows = {number: row for row, number in enumerate(self.arguments)}
        #: Argument → (address of its tensor's first byte, bytes from there to its end).
        self._ranges: dict[int, tuple[int, int]] = {}

    @property
    def bytes(self) -> int:
        """What the report buffer holds for it between its header and its records."""
        return bounds_bytes(len(self.arguments))

    def covers(self, pointer: Value) -> bool:
        """Whether accesses through ``pointer`` are checked."""
        return bool(self._roots.get(pointer))

    def read(self, ctx: Context) -> None:
        """Reads the rows, in the entry block, where they dominate every use. The launcher is told what they are of."""
        f = ctx.f
        ctx.reports.message("bounds", Location(), arguments=self.arguments, unchecked=self.unchecked)
        for number, row in self._rows.items():
            before, span = (
                f.load(ctx.module.int(64), _wide(ctx, ROWS_AT + row * ROW.size + column), 0, 8)
                for column in (BEFORE, SPAN)
            )
            self._ranges[number] = f.sub(ctx.scalar(self._values[number]), before), span

    def check(self, ctx: Context, operation: Operation, addresses: list[int], masks: list[int]) -> list[int]:
        """Reports the elements that ``masks`` enable outside of their tensors. Gives a boolean an address: whether it
        is inside; nothing where the pointer's origin is not known."""
        pointer = operation.operands[0]
        numbers = self._roots.get(pointer)
        if not numbers:
            return []
        f, type_ = ctx.f, element_type(pointer.type)
        assert isinstance(type_, PointerType)
        size = bits_in_memory(type_.pointee) // 8
        inside = [
            reduce(f.logical_or, [self._inside(ctx, number, address, size) for number in numbers])
            for address in addresses
        ]
        registers = _one_an_element(ctx, pointer.type)
        outside = [
            (f.logical_and(masks[register], f.logical_not(inside[register])), addresses[register])
            for register in registers
        ]
        message = ctx.reports.message(
            "access",
            operation.location,
            callers=_callers(operation.location),
            bytes=size,
            access=operation.name.removeprefix("tt."),
            rows=[self._rows[number] for number in numbers],
        )
        found = f.logical_and(ctx.owner(pointer.type), reduce(f.logical_or, [outer for outer, _ in outside]))
        f.if_(found, lambda: self._report(ctx, message, numbers, outside))
        return inside

    def divert(self, ctx: Context, addresses: list[int], inside: list[int], place: int) -> list[int]:
        """The addresses, and byte ``place`` of the report buffer (ZERO_AT or SPARE_AT) where they are not inside."""
        f = ctx.f
        elsewhere = f.add(ctx.reports.address, ctx.module.uint(place, 64))
        return [f.select(within, address, elsewhere) for address, within in zip(addresses, inside, strict=True)]

    def _inside(self, ctx: Context, number: int, address: int, size: int) -> int:
        """Whether ``size`` bytes at ``address`` lie in the tensor of argument ``number``."""
        f, module = ctx.f, ctx.module
        start, span = self._ranges[number]
        last = module.uint(size - 1, 64)
        starts = f.select(f.compare(op.UGreaterThan, span, last), f.sub(span, last), module.uint(0, 64))
        return f.compare(op.ULessThan, f.sub(address, start), starts)

    def _report(
        self, ctx: Context, message: int, numbers: tuple[int, ...], outside: list[tuple[int, int]]
    ) -> list[int]:
        """Counts the elements, of which there is one; the first of the launch leaves its place."""
        f, module = ctx.f, ctx.module
        module.capability(Capability_.VulkanMemoryModelDeviceScope)
        one, zero = module.uint(1), module.uint(0)
        count = reduce(f.add, [f.select(outer, one, zero) for outer, _ in outside])
        earlier = f.effect(
            op.AtomicIAdd,
            module.u32,
            _word(ctx, 4 * OUTSIDE),
            module.uint(Scope.Device),
            module.uint(Semantics.Relaxed),
            count,
        )

        def describe() -> list[int]:
            address = outside[-1][1]
            for outer, candidate in reversed(outside[:-1]):
                address = f.select(outer, candidate, address)
            program = [ctx.workgroup_built_in(BuiltIn.WorkgroupId, "workgroup_id", axis) for axis in range(3)]
            for place, word in enumerate((module.uint(message + 1), *program)):
                f.store(_word(ctx, FIRST_OUTSIDE_AT + 4 * place), word, MemoryAccess.NonPrivatePointer, 4)
            for number in numbers:
                f.store(
                    _wide(ctx, ROWS_AT + self._rows[number] * ROW.size + DISTANCE),
                    f.sub(address, ctx.scalar(self._values[number])),
                    MemoryAccess.NonPrivatePointer,
                    8,
                )
            return []

        f.if_(f.compare(op.IEqual, earlier, zero), describe)
        return []


def _callers(location: Location) -> list[str]:
    """Where the function of ``location`` was called, and so on up to the kernel."""
    caller = location.caller
    return [f"{caller.file}:{caller.line}", *_callers(caller)] if caller else []


def _at(ctx: Context, offset: int, type_id: int) -> int:
    address = ctx.f.add(ctx.reports.address, ctx.module.uint(offset, 64))
    return ctx.f.emit(op.ConvertUToPtr, ctx.module.pointer(StorageClass.PhysicalStorageBuffer, type_id), address)


def _word(ctx: Context, offset: int) -> int:
    """A pointer to 32 bits of the report buffer."""
    return _at(ctx, offset, ctx.module.u32)


def _wide(ctx: Context, offset: int) -> int:
    """A pointer to 64 bits of the report buffer."""
    return _at(ctx, offset, ctx.module.int(64))


def _one_an_element(ctx: Context, type_: Type) -> list[int]:
    """The first register of each of an invocation's elements."""
    if not isinstance(type_, TensorType):
        return [0]
    first: dict[int, int] = {}
    for register, place in enumerate(ctx.layout(type_).images("register")):
        first.setdefault(place, register)
    return list(first.values())
