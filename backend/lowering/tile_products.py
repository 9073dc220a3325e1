"""Products of whole tiles: calls of functions that the device has (abi/tile_products.py)."""

from __future__ import annotations

from ..abi.tile_products import Strides, TileProduct
from ..layouts.strips import memory_strides
from ..spirv import opcodes as op
from ..ttgir.ir import Operation, Value
from .lowering import Lowering, RegisterArray
from .registry import lowers


@lowers("spirv.multiply")
def _multiply(ctx: Lowering, operation: Operation) -> None:
    arrays = [ctx[operand] for operand in operation.operands]
    c, a, b = operation.operands
    left, right = operation.attributes["turned"]
    *batches, m, n = c.tensor.shape
    product = TileProduct(
        str(c.tensor.element),
        batches[0] if batches else 1,
        m,
        n,
        a.tensor.shape[left[-1]],
        bool(operation.attributes["adds"]),
        _strides(c, tuple(range(c.tensor.rank))),
        _strides(a, left),
        _strides(b, right),
    )
    variables = []
    for array in arrays:
        assert isinstance(array, RegisterArray)
        variables.append(array.variable)
    function = ctx.module.imported(product.name, [ctx.module.type_of[variable] for variable in variables])
    ctx.f.effect(op.FunctionCall, ctx.module.void, function, *variables)


def _strides(value: Value, order: tuple[int, ...]) -> Strides:
    """Of an array whose dimension ``order[i]`` is dimension i of a factor, or of the product."""
    strides = memory_strides(value.tensor)
    assert strides is not None
    batch, row, column = (0,) * (3 - len(order)) + tuple(strides[dim] for dim in order)
    return batch, row, column
