"""Tensors in arrays of the invocation's own, which loops over strips read and write (transforms/strip_loops.py)."""

from __future__ import annotations

from ..layouts.strips import array_places
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Operation, Value
from .lowering import Lowering, RegisterArray
from .registry import lowers


def _made(ctx: Lowering, operation: Operation, type_id: int) -> RegisterArray:
    type_ = operation.result.tensor
    places = array_places(type_, int(operation.attributes["dim"]))
    array = RegisterArray(ctx.f.variable(ctx.module.array(type_id, len(places))), type_id, places)
    ctx[operation.result] = array
    return array


def _element(ctx: Lowering, array: RegisterArray, place: int) -> int:
    return ctx.f.access(ctx.module.pointer(StorageClass.Function, array.type_id), array.variable, place)


def _array(ctx: Lowering, value: Value) -> RegisterArray:
    array = ctx[value]
    assert isinstance(array, RegisterArray)
    return array


@lowers("spirv.array")
def _new(ctx: Lowering, operation: Operation) -> None:
    _made(ctx, operation, ctx.type_id(operation.result.type))


@lowers("spirv.spill")
def _spill(ctx: Lowering, operation: Operation) -> None:
    registers = ctx.registers(operation.operands[0])
    array = _made(ctx, operation, ctx.f.type_of(registers[0]))
    for place, register in zip(array.places, registers, strict=True):
        ctx.f.store(_element(ctx, array, ctx.module.uint(place)), register)


def _strip_places(ctx: Lowering, operation: Operation, array: RegisterArray, counter: Value) -> list[int]:
    """Where the registers of the strip that begins at element ``counter`` are in the array."""
    f, whole = ctx.f, operation.operands[0].tensor
    strips = int(operation.attributes["strips"])
    length = whole.shape[int(operation.attributes["dim"])] // strips
    size = len(array.places) // strips
    number = f.shr(ctx.scalar(counter), length.bit_length() - 1)
    first = f.shl(number, size.bit_length() - 1)
    # The strip at the first element has the places below ``size``, in the order of its registers.
    return [f.add(first, ctx.module.uint(place)) for place in array.places if place < size]


@lowers("spirv.strip")
def _strip(ctx: Lowering, operation: Operation) -> None:
    array = _array(ctx, operation.operands[0])
    places = _strip_places(ctx, operation, array, operation.operands[1])
    ctx.define(operation.result, [ctx.f.load(array.type_id, _element(ctx, array, place)) for place in places])


@lowers("spirv.put")
def _put(ctx: Lowering, operation: Operation) -> None:
    array = _array(ctx, operation.operands[0])
    places = _strip_places(ctx, operation, array, operation.operands[2])
    for place, register in zip(places, ctx.registers(operation.operands[1]), strict=True):
        ctx.f.store(_element(ctx, array, place), register)


@lowers("spirv.collect")
def _collect(ctx: Lowering, operation: Operation) -> None:
    array, module = _array(ctx, operation.operands[0]), ctx.module
    elements = [ctx.f.load(array.type_id, _element(ctx, array, module.uint(place))) for place in array.places]
    ctx.define(operation.result, elements)
