"""Operations that make tensors or rename their elements: register moves, save for a reshape between layouts that hold
elements in different lanes."""

from __future__ import annotations

from collections.abc import Callable

from ..layouts.element_sizes import bits_in_memory, element_type
from ..layouts.linear import flatten, unflatten
from ..planning.plans import Conversion
from ..ttgir.ir import Operation
from ..ttgir.types import PointerType, TensorType, Type
from .convert_layout import convert_registers
from .elementwise import map_registers
from .errors import LoweringError
from .linear import coordinates
from .lowering import Lowering
from .registry import lowers


def _tensor(type_: Type) -> TensorType:
    assert isinstance(type_, TensorType)
    return type_


@lowers("tt.make_range")
def _make_range(ctx: Lowering, operation: Operation) -> None:
    start = ctx.module.uint(int(operation.attributes["start"]))
    positions = coordinates(ctx, ctx.layout(operation.result.type), 0)
    ctx.define(operation.result, [ctx.f.add(position, start) for position in positions])


@lowers("tt.splat")
def _splat(ctx: Lowering, operation: Operation) -> None:
    value = ctx.scalar(operation.operands[0])
    ctx.define(operation.result, [value] * ctx.register_count(operation.result.type))


@lowers("tt.unsplat")
def _unsplat(ctx: Lowering, operation: Operation) -> None:
    ctx[operation.result] = ctx.registers(operation.operands[0])[0]


@lowers("tt.addptr")
def _addptr(ctx: Lowering, operation: Operation) -> None:
    f = ctx.f
    pointer = element_type(operation.result.type)
    assert isinstance(pointer, PointerType)
    width = 32 if operation.result in ctx.pointer_bases else 64
    size = ctx.module.uint(bits_in_memory(pointer.pointee) // 8, width)
    map_registers(ctx, operation, lambda base, offset: f.add(base, f.mul(f.sign_extend(offset, width), size)))


def _places(ctx: Lowering, type_: Type) -> list[int]:
    """The row-major index of each register's element in lane 0 of warp 0."""
    return ctx.layout(type_).images("register")


def _first_register(ctx: Lowering, type_: Type) -> dict[int, int]:
    """Row-major index → the first register that holds that element in lane 0 of warp 0."""
    lookup: dict[int, int] = {}
    for register, place in enumerate(_places(ctx, type_)):
        lookup.setdefault(place, register)
    return lookup


def _move_registers(ctx: Lowering, operation: Operation, source_of: Callable[[int], int]) -> None:
    """Defines the result's element at row-major index ``i`` as the operand's at ``source_of(i)``.

    Right where lanes and warps hold corresponding elements on both sides, which upstream's encodings guarantee."""
    source = operation.operands[0]
    lookup, registers = _first_register(ctx, source.type), ctx.registers(source)
    try:
        ctx.define(
            operation.result, [registers[lookup[source_of(place)]] for place in _places(ctx, operation.result.type)]
        )
    except KeyError as missing:
        raise LoweringError(
            f"{operation.location}: '{operation.name}': no register holds element {missing} of {source.type}"
        ) from missing


@lowers("tt.expand_dims")
def _expand_dims(ctx: Lowering, operation: Operation) -> None:
    # A dimension of extent 1 changes no row-major index.
    _move_registers(ctx, operation, lambda place: place)


@lowers("tt.broadcast")
def _broadcast(ctx: Lowering, operation: Operation) -> None:
    source, target = _tensor(operation.operands[0].type), _tensor(operation.result.type)

    def source_of(place: int) -> int:
        point = unflatten(place, target.shape)
        return flatten(
            [0 if extent == 1 else coordinate for coordinate, extent in zip(point, source.shape, strict=True)],
            source.shape,
        )

    _move_registers(ctx, operation, source_of)


@lowers("tt.trans")
def _trans(ctx: Lowering, operation: Operation) -> None:
    source, target = _tensor(operation.operands[0].type), _tensor(operation.result.type)
    order = list(operation.attributes["order"])

    def source_of(place: int) -> int:
        point = unflatten(place, target.shape)
        return flatten([point[order.index(dim)] for dim in range(len(order))], source.shape)

    _move_registers(ctx, operation, source_of)


@lowers("tt.reshape")
def _reshape(ctx: Lowering, operation: Operation) -> None:
    source, plan = operation.operands[0], ctx.plan_of(operation, Conversion)
    ctx.define(operation.result, convert_registers(ctx, plan, ctx.registers(source), element_type(source.type)))


@lowers("tt.join")
def _join(ctx: Lowering, operation: Operation) -> None:
    # The new last dimension of extent 2 is the lowest bit of the row-major index.
    left, right = operation.operands
    lookup = _first_register(ctx, left.type)
    sides = (ctx.registers(left), ctx.registers(right))
    ctx.define(
        operation.result, [sides[place & 1][lookup[place >> 1]] for place in _places(ctx, operation.result.type)]
    )


@lowers("tt.split")
def _split(ctx: Lowering, operation: Operation) -> None:
    source = operation.operands[0]
    lookup, registers = _first_register(ctx, source.type), ctx.registers(source)
    for side, result in enumerate(operation.results):
        ctx.define(result, [registers[lookup[place << 1 | side]] for place in _places(ctx, result.type)])


@lowers("tt.cat")
def _cat(ctx: Lowering, operation: Operation) -> None:
    """Any order of elements is allowed: the registers of both, one after the other."""
    ctx.define(operation.result, [*ctx.registers(operation.operands[0]), *ctx.registers(operation.operands[1])])
