"""The README's first kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


device = triton.runtime.driver.active.get_active_torch_device()
x, y = torch.rand(1000, device=device), torch.rand(1000, device=device)
out = torch.empty_like(x)
add[(1,)](x, y, out, 1000, BLOCK=1024)
print("largest error:", (out - (x + y)).abs().max().item())
