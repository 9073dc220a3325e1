"""Products of whole tiles: calls of functions that the device has (abi/tile_products.py)."""

from __future__ import annotations

from ..abi.tile_products import RoundsProduct, Strides, TileProduct
from ..layouts.strip_layouts import line_starts, memory_strides
from ..spirv import opcodes as op
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Operation, Value
from ..ttgir.types import PointerType
from .lowering import Lowering, RegisterArray
from .registry import lowers
from .shuffle import of_lane


@lowers("spirv.multiply")
def _multiply(ctx: Lowering, operation: Operation) -> None:
    c, a, b = operation["total"], operation["left"], operation["right"]
    arrays = [ctx[operand] for operand in (c, a, b)]
    left, right = operation.attribute("turned")
    *batches, m, n = c.tensor.shape
    element, factor = (str(value.tensor.element) for value in (c, a))
    product = TileProduct(
        element,
        batches[0] if batches else 1,
        m,
        n,
        a.tensor.shape[left[-1]],
        bool(operation.attribute("adds")),
        _strides(c, tuple(range(c.tensor.rank))),
        _strides(a, left),
        _strides(b, right),
        "" if factor == element else factor,
    )
    variables = []
    for array in arrays:
        assert isinstance(array, RegisterArray)
        variables.append(array.variable)
    function = ctx.module.imported(product.name, [ctx.module.type_of[variable] for variable in variables])
    ctx.f.effect(op.FunctionCall, ctx.module.void, function, *variables)


@lowers("spirv.multiply_rounds")
def _multiply_rounds(ctx: Lowering, operation: Operation) -> None:
    c, a, b = operation["total"], operation["left"], operation["right"]
    array = ctx[c]
    assert isinstance(array, RegisterArray)
    left, right = operation.attribute("turned")
    (m, n), strides = c.tensor.shape, memory_strides(c.tensor)
    assert strides is not None
    (a_type, a_step, a_starts), (b_type, b_step, b_starts) = (
        _line_starts(ctx, pointers, dim) for pointers, dim in ((a, left[-1]), (b, right[-2]))
    )
    product = RoundsProduct(
        str(c.tensor.element),
        m,
        n,
        a.tensor.shape[left[-1]],
        strides[0],
        (a_type, a_step),
        (b_type, b_step),
        bool(operation.attribute("neighbours")),
    )
    arguments = [array.variable, a_starts, b_starts, *map(ctx.scalar, operation.operands[3:])]
    function = ctx.module.imported(product.name, [ctx.module.type_of[value] for value in arguments])
    ctx.f.effect(op.FunctionCall, ctx.module.void, function, *arguments)


def _line_starts(ctx: Lowering, pointers: Value, dim: int) -> tuple[str, int, int]:
    """The element type of a tile in device memory, and where the lines along ``dim`` begin: how far neighbouring
    addresses are from each other in a variable, and that."""
    f, module, type_ = ctx.f, ctx.module, pointers.tensor
    assert isinstance(type_.element, PointerType)
    starts = line_starts(type_, dim)
    assert starts is not None
    registers, step = starts
    addresses = [ctx.address(pointers, register) for register in registers]
    if step != 1:
        addresses = [of_lane(ctx, address, 0) for address in addresses]
    type_id = f.type_of(addresses[0])
    variable = f.variable(module.array(type_id, len(addresses)))
    for place, address in enumerate(addresses):
        f.store(f.access(module.pointer(StorageClass.Function, type_id), variable, module.uint(place)), address)
    return str(type_.element.pointee), step, variable


def _strides(value: Value, order: tuple[int, ...]) -> Strides:
    """The strides of an array whose dimension ``order[i]`` is dimension i of a factor, or of the product."""
    strides = memory_strides(value.tensor)
    assert strides is not None
    batch, row, column = (0,) * (3 - len(order)) + tuple(strides[dim] for dim in order)
    return batch, row, column
