"""Kernels that an emulated device finds a fault in, and one that it finds none in: ``python kernels.py NAME``.

Prints the error, or ``right`` or ``wrong`` for a result. It is a program of its own, because TRITON_SPIRV_DEVICE is
read once a process."""

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv.lowering.workgroup_memory import SharedMemory
from triton.backends.spirv.runtime import array
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime import driver

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


@gluon.jit
def buffer_kernel(x_ptr, y_ptr, stride, STORES: gl.constexpr, SIZE: gl.constexpr, LANES: gl.constexpr):
    """One warp reads every ``stride``-th element of a buffer."""
    row: gl.constexpr = gl.BlockedLayout([1], [LANES], [1], [0])
    i = gl.arange(0, LANES, layout=row)
    room = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [SIZE], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    if STORES:
        all_of_it: gl.constexpr = gl.BlockedLayout([1], [LANES], [1], [0])
        at = gl.arange(0, SIZE, layout=all_of_it)
        room.store(gl.load(x_ptr + at))
    gl.store(y_ptr + i, room.gather(i * stride, 0))


@triton.jit
def order_kernel(count_ptr, turn_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    turn = tl.atomic_add(count_ptr + at * 0, 1)
    tl.store(turn_ptr + at, turn)


def gathered(stride: int, stores: bool, dtype: type = np.int32) -> None:
    """What a warp reads of a buffer of 1,024 elements, which count up where it was stored to."""
    lanes = driver.active.get_current_target().warp_size
    x, y = np.arange(1024, dtype=dtype), array(np.zeros(lanes, dtype))
    buffer_kernel[(1,)](array(x), y, stride, STORES=stores, SIZE=1024, LANES=lanes, num_warps=1)
    if stores:
        print("right" if np.array_equal(y.array, x[: lanes * stride : stride]) else "wrong")
    else:
        print(sorted({str(value) for value in y.array}))


def order() -> None:
    """In which order the four subgroups of a workgroup run up to its first barrier."""
    size = 4 * driver.active.get_current_target().warp_size
    turns = array(np.zeros(size, np.int32))
    order_kernel[(1,)](array(np.zeros(1, np.int32)), turns, SIZE=size, num_warps=4)
    print(np.argsort(turns.array.reshape(4, -1).min(1)).tolist())


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
    if name == "order":
        order()
        return
    if name == "never stored":
        gathered(1, False, np.int32)
        gathered(1, False, np.float32)
        gathered(1, False, np.float16)
        return
    if name == "past the buffer":
        load = SharedMemory.load

        def too_far(self: SharedMemory, emitter: Any, type_: Any, index: int, *rest: Any) -> list[int]:
            return load(self, emitter, type_, emitter.f.add(index, self._module.uint(1024)), *rest)

        SharedMemory.load = too_far  # type: ignore[method-assign]
    if name == "strides":
        for stride in (1, 2, 16):
            gathered(stride, True)
        return
    if name == "without barriers":
        SharedMemory.barrier = lambda *_: None  # type: ignore[method-assign]
    launch(past_kernel if name == "past the end" else turned_kernel)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")
