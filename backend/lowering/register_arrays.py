"""Tensors in arrays of the invocation's own, which loops over strips read and write (transforms/strip_loops.py)."""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts.distributed import LANE
from ..layouts.strip_layouts import array_places, strip_bits
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Operation, Value
from ..ttgir.types import TensorType
from .lowering import Lowering, RegisterArray
from .registry import lowers
from .shuffle import of_lane

#: Equal registers that are stored one by one.
_FEW = 8


def _made(ctx: Lowering, operation: Operation, type_id: int) -> RegisterArray:
    type_ = operation.result.tensor
    dim = int(operation.attribute("dim"))
    places = array_places(type_, dim)
    array = RegisterArray(ctx.f.variable(ctx.module.array(type_id, len(places))), type_id, places, dim)
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
    registers = ctx.registers(operation["value"])
    array = _made(ctx, operation, ctx.f.type_of(registers[0]))
    for place, register in zip(array.places, registers, strict=True):
        ctx.f.store(_element(ctx, array, ctx.module.uint(place)), register)


def _strip_places(ctx: Lowering, operation: Operation, array: RegisterArray) -> list[int]:
    """Where the registers of the strip that an operation takes or puts are in the array."""
    f, whole = ctx.f, operation.attribute("whole") or operation["array"].type
    assert isinstance(whole, TensorType)
    strips, dim = int(operation.attribute("strips")), int(operation.attribute("dim"))
    length = whole.shape[dim] // strips
    number = f.shr(ctx.scalar(operation["at"]), length.bit_length() - 1)
    bits = strip_bits(whole, dim, strips, array.dim)
    if bits == tuple(range(bits[0], bits[0] + len(bits))):
        start = f.shl(number, bits[0])
    else:
        one, start = ctx.module.uint(1), ctx.module.uint(0)
        for bit, place in enumerate(bits):
            start = f.add(start, f.shl(f.and_(f.shr(number, bit), one), place))
    # The strip at the first element has the places without these bits, in the order of its registers.
    beyond = sum(1 << bit for bit in bits)
    return [f.add(start, ctx.module.uint(place)) for place in array_places(whole, array.dim) if not place & beyond]


def _loaded(ctx: Lowering, operation: Operation, array: RegisterArray, places: Sequence[int]) -> None:
    """Defines the result by elements of an array. Where lanes are elements of vectors, and all hold the same element of
    the tensor, that is said of it."""
    loaded = [ctx.f.load(array.type_id, _element(ctx, array, place)) for place in places]
    if ctx.capabilities.tile_products and not any(ctx.layout(operation.result.tensor).inputs[LANE]):
        loaded = [of_lane(ctx, value, 0) for value in loaded]
    ctx.define(operation.result, loaded)


@lowers("spirv.strip")
def _strip(ctx: Lowering, operation: Operation) -> None:
    array = _array(ctx, operation["array"])
    _loaded(ctx, operation, array, _strip_places(ctx, operation, array))


@lowers("spirv.put")
def _put(ctx: Lowering, operation: Operation) -> None:
    array = _array(ctx, operation["array"])
    places = _strip_places(ctx, operation, array)
    for place, register in zip(places, ctx.registers(operation["value"]), strict=True):
        ctx.f.store(_element(ctx, array, place), register)


@lowers("spirv.collect")
def _collect(ctx: Lowering, operation: Operation) -> None:
    array = _array(ctx, operation["array"])
    _loaded(ctx, operation, array, [ctx.module.uint(place) for place in array.places])


@lowers("spirv.assign")
def _assign(ctx: Lowering, operation: Operation) -> None:
    """Equal registers are stored by a loop, zeros at once."""
    array, registers = _array(ctx, operation["array"]), ctx.registers(operation["value"])
    f, module, count = ctx.f, ctx.module, len(registers)
    if len(set(registers)) == 1 and registers[0] == module.null(array.type_id):
        f.store(array.variable, module.null(module.array(array.type_id, count)))
    elif len(set(registers)) == 1 and count > _FEW:

        def body(carried: list[int]) -> list[int]:
            f.store(_element(ctx, array, carried[0]), registers[0])
            return [f.add(carried[0], module.uint(1))]

        def condition(carried: list[int]) -> int:
            return f.compare(op.ULessThan, carried[0], module.uint(count))

        f.loop([module.uint(0)], condition, body, LOOP_CONTROL_DONT_UNROLL)
    else:
        for place, register in zip(array.places, registers, strict=True):
            f.store(_element(ctx, array, module.uint(place)), register)


@lowers("spirv.copy")
def _copy(ctx: Lowering, operation: Operation) -> None:
    target, source = _array(ctx, operation["array"]), _array(ctx, operation["value"])
    ctx.f.do(op.CopyMemory, target.variable, source.variable)
