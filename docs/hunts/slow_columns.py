"""A slow kernel, for docs/debugging.md: the largest element of each column of a matrix."""

import sys

import torch
import triton
import triton.language as tl


def work(grid, metadata, args):
    """What upstream's profiler and this project's ask for: the bytes that a launch has to move."""
    return {"name": metadata.name, "bytes": 4 * args["rows"] * args["columns"]}


@triton.jit(launch_metadata=work)
def column_max(x, out, rows, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, rows, BLOCK):
        best = tl.maximum(best, tl.load(x + (start + i) * columns + column))
    tl.store(out + column, tl.max(best))


@triton.jit(launch_metadata=work)
def column_max_mended(x, out, rows, columns, WIDTH: tl.constexpr):
    column = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    best = tl.full((WIDTH,), float("-inf"), tl.float32)
    for row in range(0, rows):
        best = tl.maximum(best, tl.load(x + row * columns + column))
    tl.store(out + column, best)


def main() -> None:
    rows, columns = 2048, 2048
    x = torch.rand(rows, columns)
    out = torch.empty(columns)
    for _ in range(10):
        if "--mended" in sys.argv:
            column_max_mended[(columns // 128,)](x, out, rows, columns, WIDTH=128)
        else:
            column_max[(columns,)](x, out, rows, columns, BLOCK=256)
    assert torch.equal(out, x.max(dim=0).values)


if __name__ == "__main__":
    main()
