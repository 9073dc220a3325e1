"""Kernels in Python for tests of the CPU device in processes of their own."""

import triton
import triton.language as tl


@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    """out[i] = 2 x[i] for i < n."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)
