"""A kernel that the tests of graphs capture."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    total = tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask)
    tl.store(x_ptr + offsets, total, mask)
