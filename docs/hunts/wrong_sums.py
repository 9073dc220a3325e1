"""A kernel with a bug, for docs/debugging.md: the sums of the rows of a matrix, of which some are wrong."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + i)
    tl.store(out + row, tl.sum(total))


@triton.jit
def row_sums_mended(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + i, mask=start + i < columns, other=0)
    tl.store(out + row, tl.sum(total))


def main() -> None:
    kernel = row_sums_mended if "--mended" in sys.argv else row_sums
    x = torch.ones(64, 1000)
    out = torch.empty(64)
    kernel[(64,)](x, out, 1000, BLOCK=256)
    wrong = (out != x.sum(dim=1)).sum().item()
    print(f"{wrong} of 64 rows are wrong; the first is {out[0].item():.0f} instead of 1000")


if __name__ == "__main__":
    main()
