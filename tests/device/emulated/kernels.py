"""Kernels that an emulated device finds a fault in, and one that it finds none in: ``python kernels.py NAME``.

Prints the error, or ``right`` or ``wrong`` for a result. It is a program of its own, because TRITON_SPIRV_DEVICE is
read once a process."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv.lowering.shared_memory import SharedMemory
from triton.backends.spirv.runtime import array

SIZE = 256
#: What a module that has cooperative matrices names; in two parts, because a module has this text, too.
_MATRICES = b"SPV_KHR_" + b"cooperative_matrix"


@triton.jit
def turned_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    y = tl.gather(tl.load(x_ptr + at), SIZE - 1 - at, 0)
    tl.store(y_ptr + at, y)


@triton.jit
def past_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at + 16 * SIZE * SIZE)
    tl.store(y_ptr + at, x)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + rows * N + columns), tl.load(b_ptr + rows * N + columns)
    tl.store(c_ptr + rows * N + columns, tl.dot(a, b))


@triton.jit
def summed_kernel(x_ptr, sums_ptr, running_ptr, total_ptr, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    sums = tl.sum(x, 1)
    tl.store(sums_ptr + tl.arange(0, N), sums.to(tl.float16).to(tl.float32))
    tl.store(running_ptr + rows * N + columns, tl.cumsum(x, 0))
    tl.atomic_add(total_ptr + tl.arange(0, N) % 4, sums)


def launch(kernel: Any) -> None:
    """Runs a kernel that turns an array around, and says whether it did."""
    x, y = np.arange(SIZE, dtype=np.int32), np.zeros(SIZE, np.int32)
    there, back = array(x), array(y)
    kernel[(1,)](there, back, SIZE=SIZE, num_warps=4)
    print("right" if np.array_equal(back.array, x[::-1]) else "wrong")


def product() -> None:
    """The product of two matrices of float16, on the profile's matrix units."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    c = array(np.zeros((64, 64), np.float32))
    kernel = product_kernel[(1,)](array(a), array(b), c, N=64, num_warps=4)
    used = _MATRICES in kernel.asm["spv"]
    print("right" if np.array_equal(c.array, a.astype(np.float32) @ b.astype(np.float32)) else "wrong", used)


def summed() -> None:
    """Sums along both axes, in float16 as well, and sums of several lanes in memory."""
    x = np.random.default_rng(6).integers(-4, 5, (64, 64)).astype(np.float32)
    sums, running, total = (array(np.zeros(shape, np.float32)) for shape in (64, (64, 64), 4))
    summed_kernel[(1,)](array(x), sums, running, total, N=64, num_warps=4)
    right = [
        np.array_equal(sums.array, x.sum(1)),
        np.array_equal(running.array, x.cumsum(0)),
        np.array_equal(total.array, x.sum(1).reshape(16, 4).sum(0)),
    ]
    print("right" if all(right) else f"wrong {right}")


def main(name: str) -> None:
    if name == "everything":
        launch(turned_kernel)
        product()
        summed()
        return
    if name == "product":
        product()
        return
    if name == "without barriers":
        SharedMemory.barrier = lambda *_: None  # type: ignore[method-assign]
    launch(past_kernel if name == "past the end" else turned_kernel)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")
