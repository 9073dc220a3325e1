"""The runtime's arrays and torch's device in a process whose kernels are interpreted: ``python -m
tests.interpreter.devices NAME``."""

import sys

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime


@triton.jit
def double(x):
    return x * 2


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + double(tl.load(y + i, mask=i < n)), mask=i < n)


@triton.jit
def maxima(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.max(tl.load(x + i, mask=i < n, other=0.0), 0) + i.max(0))


def arrays() -> None:
    """Whole arrays, views that overlap, numbers of bfloat16, and one without elements."""
    import ml_dtypes

    values = np.arange(1000, dtype=np.float32)
    x, y, out = runtime.from_numpy(values), runtime.from_numpy(values[::-1]), runtime.empty(1000, "float32").fill(-1)
    add[(4,)](x[:997], y[:997], out=out[1:], n=997, BLOCK=256)
    assert np.array_equal(out.to_numpy()[1:998], (values + 2 * values[::-1])[:997])
    assert (out.to_numpy()[[0, 998, 999]] == -1).all()
    both = runtime.from_numpy(values)
    add[(1,)](both, both[500:], both[500:], 3, BLOCK=4)  # reads and writes one memory through two arguments
    assert np.array_equal(both.to_numpy()[500:503], values[:3] + 2 * values[500:503])
    halves = runtime.from_numpy(values[:7].astype(ml_dtypes.bfloat16))
    add[(1,)](halves, halves, halves, 7, BLOCK=8)
    assert np.array_equal(halves.to_numpy().astype(np.float32), 3 * values[:7])
    add[(1,)](runtime.empty(0, "float32"), y, out, 0, BLOCK=4)
    x.free()
    try:
        add[(1,)](x, y, out, 1000, BLOCK=1024)
    except RuntimeError as error:
        assert "was freed" in str(error)
    else:
        raise AssertionError("a freed array was taken")


def _torch(device: str) -> None:
    import torch

    x = torch.arange(100, dtype=torch.float32, device=device)
    out = torch.zeros(100, device=device)
    add[(1,)](x, x[1:], out[:99], 99, 128)
    expected = torch.arange(100) + 2.0 * torch.arange(1, 101)
    expected[99] = 0
    assert torch.equal(out.cpu(), expected)
    largest = torch.zeros(1, device=device)
    maxima[(1,)](x, largest, 100, 128)
    assert largest.item() == 99 + 127
    # Operations of torch after kernels were interpreted: they are compiled, and so is what they call of tl.
    assert out.sum().item() == expected.sum().item()
    w = torch.arange(12.0, device=device).reshape(3, 4).requires_grad_()
    torch.nn.functional.softmax(w @ w.T, 1).max().backward()
    add[(1,)](x, x, out, 100, 128)
    assert torch.equal(out.cpu(), 3.0 * torch.arange(100)) and w.grad.isfinite().all().item()


def tensors() -> None:
    _torch("spirv")


def cuda_tensors() -> None:
    import torch

    with torch.spirv.as_cuda():
        _torch("cuda")


if __name__ == "__main__":
    {function.__name__: function for function in (arrays, tensors, cuda_tensors)}[sys.argv[1]]()
