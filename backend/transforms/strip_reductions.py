"""Reductions in loops over strips (strips.py).

Along another dimension than the loop's, within each subgroup: a strip of the result is the reduction of a strip. Along
the loop's own: each round combines its strip into a tile, the least that the layout can be cut to, which is reduced
behind the loop.

    %tile, … = spirv.fold %tile, …, %strip, …, %at {region}    where %at is 0, the tile from before is not combined

The rule of ``spirv.fold``: ``lowering/reduce.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.code_size import reduced_bits
from ..analysis.combinations import commutes
from ..analysis.pointer_range import is_pointer
from ..layouts.distributed import REGISTER, WARP
from ..layouts.strip_layouts import cut_fits
from ..ttgir.ir import DenseAttr, Operation, Value
from ..ttgir.types import TensorType, strip_type
from .rewriting import Rewriter

#: The operation that combines strips.
FOLD = "spirv.fold"

#: Registers that a lane has of a row, at most, where whole rows go into the loop.
_LONG = 128


def keeps_strips(operation: Operation) -> bool:
    """Whether a ``tt.reduce`` gives a strip of its result from strips of its operands, without waiting."""
    if operation.name != "tt.reduce" or not isinstance(operation.results[0].type, TensorType):
        return False
    return (
        not any(map(is_pointer, operation.operands))
        and reduced_bits(operation, WARP) == 0
        and 1 << reduced_bits(operation, REGISTER) <= _LONG
        and any(_cuts(operation.results[0], dim, 2) for dim in range(operation.results[0].type.rank))
    )


def folds(operation: Operation) -> bool:
    """Whether a ``tt.reduce`` can be carried out strip by strip along its own dimension, which combines elements
    that are not neighbours."""
    return (
        operation.name == "tt.reduce"
        and not keeps_strips(operation)
        and commutes(operation.regions[0])
        and not any(map(is_pointer, operation.operands))
        and all(_cuts(operand, operation.attribute("axis"), 2) for operand in operation.operands)
    )


def reduced_dim(operation: Operation, dim: int) -> int:
    """The dimension of a reduction's operands that is dimension ``dim`` of its results."""
    return dim + int(dim >= operation.attribute("axis"))


def _cuts(value: Value, dim: int, strips: int) -> bool:
    return isinstance(value.type, TensorType) and cut_fits(value.type, dim, strips)


def first_tiles(rewriter: Rewriter, reduction: Operation) -> list[Value]:
    """What the loop carries at first, for each operand: nothing that counts."""
    dim, strips = reduction.attribute("axis"), 1
    while all(_cuts(operand, dim, 2 * strips) for operand in reduction.operands):
        strips *= 2
    tiles = [strip_type(operand.type, dim, strips) for operand in reduction.operands]  # type: ignore[arg-type]
    return [
        rewriter.make(
            "arith.constant",
            types=[tile],
            attributes={"value": DenseAttr(tile, (0,), True)},
            location=reduction.location,
        ).result
        for tile in tiles
    ]


def fold(
    body: Rewriter, reduction: Operation, tiles: Sequence[Value], strips: Sequence[Value], counter: Value
) -> list[Value]:
    """The tiles after the round of a loop's ``body`` that has these ``strips``."""
    made = body.make(
        FOLD,
        [*tiles, *strips, counter],
        [tile.type for tile in tiles],
        {"dim": reduction.attribute("axis")},
        [body.copy_region(reduction.regions[0])],
        location=reduction.location,
    )
    return made.results


def reduce_tiles(rewriter: Rewriter, reduction: Operation, tiles: Sequence[Value]) -> None:
    """Makes ``reduction`` that of the loop's results, behind the loop."""
    reduction.set_operands(tiles)
    rewriter.move(reduction)
