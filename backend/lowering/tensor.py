"""Operations that make tensors or rename their elements: register moves, except for a reshape between layouts that hold
elements in different lanes."""

from __future__ import annotations

from ..layouts.element_sizes import bits_in_memory
from ..planning.plans import Conversion
from ..ttgir.ir import Operation
from ..ttgir.types import PointerType, Type, element_type
from .convert_layout import convert_registers
from .elementwise import map_registers
from .index_arithmetic import coordinates
from .lowering import UNREAD, Lowering
from .registry import lowers


@lowers("tt.make_range")
def _make_range(ctx: Lowering, operation: Operation) -> None:
    start = ctx.module.uint(int(operation.attribute("start")))
    wanted = ctx.plan.live.of(operation.result)
    positions = coordinates(ctx, ctx.layout(operation.result.type), 0, wanted)
    ctx.define(
        operation.result,
        [ctx.f.add(position, start) if wanted >> n & 1 else UNREAD for n, position in enumerate(positions)],
    )


@lowers("tt.splat")
def _splat(ctx: Lowering, operation: Operation) -> None:
    value = ctx.scalar(operation["src"])
    ctx.define(operation.result, [value] * ctx.register_count(operation.result.type))


@lowers("tt.unsplat")
def _unsplat(ctx: Lowering, operation: Operation) -> None:
    ctx[operation.result] = ctx.registers(operation["src"])[0]


@lowers("tt.addptr")
def _addptr(ctx: Lowering, operation: Operation) -> None:
    f = ctx.f
    pointer = element_type(operation.result.type)
    assert isinstance(pointer, PointerType)
    width = 32 if operation.result in ctx.pointer_bases else 64
    size = ctx.module.uint(bits_in_memory(pointer.pointee) // 8, width)
    map_registers(ctx, operation, lambda base, offset: f.add(base, f.mul(f.sign_extend(offset, width), size)))


@lowers("tt.expand_dims", "tt.broadcast", "tt.trans")
def _rename(ctx: Lowering, operation: Operation) -> None:
    registers = ctx.registers(operation["src"])
    ctx.define(operation.result, [registers[source] for source in ctx.plan.live.renamed[operation]])


@lowers("tt.reshape")
def _reshape(ctx: Lowering, operation: Operation) -> None:
    source, plan = operation["src"], ctx.plan_of(operation, Conversion)
    ctx.define(operation.result, convert_registers(ctx, plan, ctx.registers(source), element_type(source.type)))


def _places(ctx: Lowering, type_: Type) -> list[int]:
    """The row-major index of each register's element in lane 0 of warp 0."""
    return ctx.layout(type_).images("register")


def _first_register(ctx: Lowering, type_: Type) -> dict[int, int]:
    """Row-major index → the first register that holds that element in lane 0 of warp 0."""
    lookup: dict[int, int] = {}
    for register, place in enumerate(_places(ctx, type_)):
        lookup.setdefault(place, register)
    return lookup


@lowers("tt.join")
def _join(ctx: Lowering, operation: Operation) -> None:
    # The new last dimension of extent 2 is the lowest bit of the row-major index.
    left, right = operation["lhs"], operation["rhs"]
    lookup = _first_register(ctx, left.type)
    sides = (ctx.registers(left), ctx.registers(right))
    ctx.define(
        operation.result, [sides[place & 1][lookup[place >> 1]] for place in _places(ctx, operation.result.type)]
    )


@lowers("tt.split")
def _split(ctx: Lowering, operation: Operation) -> None:
    source = operation["src"]
    lookup, registers = _first_register(ctx, source.type), ctx.registers(source)
    for side, result in enumerate(operation.results):
        ctx.define(result, [registers[lookup[place << 1 | side]] for place in _places(ctx, result.type)])


@lowers("tt.cat")
def _cat(ctx: Lowering, operation: Operation) -> None:
    """Any order of elements is allowed: the registers of both, one after the other."""
    ctx.define(operation.result, [*ctx.registers(operation["lhs"]), *ctx.registers(operation["rhs"])])
