"""The kernel that compares numbers, for floats and for integers."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

#: NumPy's names of its rows.
COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


@triton.jit
def comparison_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(a_ptr + at, mask), tl.load(b_ptr + at, mask)
    tl.store(out_ptr + at, a < b, mask)
    tl.store(out_ptr + n + at, a <= b, mask)
    tl.store(out_ptr + 2 * n + at, a > b, mask)
    tl.store(out_ptr + 3 * n + at, a >= b, mask)
    tl.store(out_ptr + 4 * n + at, a == b, mask)
    tl.store(out_ptr + 5 * n + at, a != b, mask)
