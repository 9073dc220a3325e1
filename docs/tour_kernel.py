"""The kernel of docs/internals/tour.md."""

import triton
import triton.language as tl


@triton.jit
def row_sum(x, out, columns, BLOCK: tl.constexpr):
    """out[r] = the sum of row r of x, for rows of at most BLOCK columns."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=0.0)
    tl.store(out + row, tl.sum(values))
