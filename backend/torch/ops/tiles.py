"""Tiles of matrix products, and which of them, with K in how many parts, should take a device the least time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .device_facts import DeviceFacts


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile of a product: its rows and columns, the products of a step, and the warps of a program. ``group``: rows
    of tiles whose programs follow one another, so that they share what they read in a cache.

    ``rate``: products a second on a full device, relative to the others that it is chosen from. ``times``: how long one
    program takes that has a compute unit alone, two that share it, and so on up to as many as it runs at a time, where
    the last of them take one each."""

    rows: int
    columns: int
    step: int
    warps: int = 4
    group: int = 1
    rate: float = 1.0
    times: tuple[float, ...] = (1.0,)

    def programs(self, rows: int, columns: int) -> int:
        """Tiles of a result."""
        return -(-rows // self.rows) * -(-columns // self.columns)

    def time(self, programs: int) -> float:
        """How long a compute unit takes for so many programs."""
        full, left = divmod(programs, len(self.times))
        return full * self.times[-1] + (self.times[left - 1] if left else 0.0)


@dataclass(frozen=True, slots=True)
class Division:
    """A tile, and in how many parts K is divided, whose sums are added by a second kernel."""

    tile: Tile
    parts: int


#: Tiles by what multiplies. The figures of ON_GPU are from products of seven sizes and orders on an H100, with K in 1
#: to 8 parts: 1536×12608 by 12608×384 takes 0.40 ms by 128×64 and eight parts, and 0.85 by 128×64 and one. The rates
#: of ON_MATRIX_UNITS are of bfloat16, 4096³ and 8192×1024 by K = 4096, whichever operand is transposed: 128×64 has 0.69
#: to 0.72 of the rate of 128×128, and 64×64 has 0.60 to 0.63. Their times are estimates.
ON_CPU = (Tile(64, 64, 32),)
ON_MATRIX_UNITS = (
    Tile(128, 128, 32, 4, 8, 1.0, (1.24, 2.0)),
    Tile(128, 64, 32, 4, 8, 0.71, (1.5, 2.2, 3.0)),
    Tile(64, 64, 32, 4, 8, 0.61, (1.5, 2.0, 3.0, 4.0)),
)
ON_GPU = (
    Tile(128, 128, 16, 8, 8, 1.0, (1.24, 2.0)),
    Tile(128, 64, 16, 4, 8, 0.98, (1.8, 2.4, 3.0)),
    Tile(64, 64, 16, 4, 8, 0.88, (2.0, 2.04, 3.06, 4.0)),
)
#: Products that a compute unit of an H100 makes while an element of a partial sum is written and read again (8 bytes of
#: its memory's): with multiply-adds, and on matrix units.
_PARTIAL = 70, 430
#: Products that a program's beginning and end take as long as, for each element of its tile. Estimated from products of
#: K = 384 to 4,096 on an H100.
_ENDS = 100
#: K has so many parts at most, none of which is shorter than so many products.
MOST_PARTS, SHORTEST = 128, 128


def tiles_for(on: DeviceFacts, dtype: torch.dtype) -> tuple[Tile, ...]:
    """The tiles that a device may take for products of this type."""
    if on.cpu:
        return ON_CPU
    if not on.multiplies(dtype):
        return ON_GPU
    return tuple(tile for tile in ON_MATRIX_UNITS if tile.columns <= 64) if on.small_tiles else ON_MATRIX_UNITS


def fastest(
    tiles: Sequence[Tile], on: DeviceFacts, dtype: torch.dtype, sizes: tuple[int, int, int, int], divides: bool = True
) -> Division:
    """The division that takes the least time, by the tiles' figures. ``sizes``: rows, columns, products of an element,
    and the number of matrices; ``divides``: K may be divided."""
    rows, columns, products, batches = sizes
    partial = _PARTIAL[on.multiplies(dtype)]

    def time(division: Division) -> float:
        tile, parts = division.tile, division.parts
        on_a_unit = -(-tile.programs(rows, columns) * batches * parts // on.units)
        length = -(-products // (parts * tile.step)) * tile.step
        own = tile.time(on_a_unit) * tile.rows * tile.columns * (length + _ENDS) / tile.rate
        return own + (parts * rows * columns * batches * partial / on.units if parts > 1 else 0.0)

    return min(_divisions(tiles, products, divides), key=time)


def _divisions(tiles: Sequence[Tile], products: int, divides: bool) -> Iterator[Division]:
    for tile in tiles:
        parts = 1
        while parts == 1 or (divides and parts <= min(MOST_PARTS, products // SHORTEST)):
            yield Division(tile, parts)
            parts += max(1, parts // 8)


def shared(products: int, parts: int, step: int) -> tuple[int, int]:
    """(in how many parts so many products are divided, how many there are in each, a multiple of ``step``)."""
    share = -(-products // (parts * step)) * step
    return -(-products // share), share
