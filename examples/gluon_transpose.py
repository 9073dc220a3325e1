"""Transpose in Gluon: which lane holds which element, and what goes through shared memory, is written in the kernel.

A tile is read along its rows and written along the rows of the transposed matrix, so that neighbouring lanes access
neighbouring addresses both times. In between, lanes exchange the tile through shared memory, where four elements of
padding after each row keep a column out of a single bank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from examples.harness import Case, device_array, run_alone

TILE, WARPS = 32, 4


@gluon.jit
def transpose_kernel(out_ptr, x_ptr, rows, columns, TILE: gl.constexpr, LANES: gl.constexpr, WARPS: gl.constexpr):
    # Four consecutive elements a lane, eight lanes a row.
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 8, 8], [WARPS, 1], [1, 0])
    padded: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[TILE, 4]], [TILE, TILE], [1, 0])
    down = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))[:, None]
    across = gl.arange(0, TILE, layout=gl.SliceLayout(0, layout))[None, :]

    row, column = gl.program_id(1) * TILE, gl.program_id(0) * TILE
    inside = (row + down < rows) & (column + across < columns)
    tile = gl.allocate_shared_memory(gl.float32, [TILE, TILE], padded)
    tile.store(gl.load(x_ptr + (row + down) * columns + column + across, mask=inside, other=0.0))
    gl.barrier()
    turned = tile.permute((1, 0)).load(layout)
    inside = (column + down < columns) & (row + across < rows)
    gl.store(out_ptr + (column + down) * rows + row + across, turned, mask=inside)


def transpose(x: Any, out: Any, rows: int, columns: int) -> None:
    """``out``, (columns, rows), becomes the transpose of ``x``, (rows, columns); both contiguous float32."""
    lanes = triton.runtime.driver.active.get_current_target().warp_size
    grid = triton.cdiv(columns, TILE), triton.cdiv(rows, TILE)
    transpose_kernel[grid](out, x, rows, columns, TILE=TILE, LANES=lanes, WARPS=WARPS, num_warps=WARPS)


def cases() -> list[Case]:
    """A matrix whose sizes are not multiples of a tile's."""
    rows, columns = 1000, 1543
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    out = np.zeros((columns, rows), np.float32)
    device_x, device_out = device_array(x), device_array(out)
    return [
        Case(
            "Gluon transpose",
            f"{rows}×{columns} fp32",
            lambda: transpose(device_x, device_out, rows, columns),
            out,
            x.astype(np.float64).T,
            bytes_moved=2 * x.nbytes,
            tolerance=0.0,
        )
    ]


if __name__ == "__main__":
    run_alone(cases)
