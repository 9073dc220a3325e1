"""The README's first kernel."""

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


x, y = (runtime.from_numpy(np.random.rand(1000).astype(np.float32)) for _ in range(2))
out = runtime.empty(1000, "float32")
add[(1,)](x, y, out, 1000, BLOCK=1024)
print("largest error:", np.abs(out.to_numpy() - (x.to_numpy() + y.to_numpy())).max())
