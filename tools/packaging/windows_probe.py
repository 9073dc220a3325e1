"""What `python3 -m tools windows` runs in Windows' Python: kernels against NumPy in float64, and threads.

A line for each that was right; an assertion for the first that was not.
"""

from __future__ import annotations

import threading

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime, system

COLUMNS, ROWS = 777, 7


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def matmul(a, b, c, K, N, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    r, q, acc = tl.arange(0, M), tl.arange(0, BN), tl.zeros((M, BN), tl.float32)
    for k in range(0, K, BK):
        kk = k + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + r[:, None] * K + kk[None, :]), tl.load(b + kk[:, None] * N + q[None, :]), acc)
    tl.store(c + r[:, None] * N + q[None, :], acc)


@triton.jit
def count(x, total, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i, mask=i < n, other=0), 0))


def report(name: str, error: float, bound: float) -> None:
    assert error <= bound, f"{name}: the largest error is {error}"
    print(f"{name}: largest error {error:.1e}", flush=True)


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    given, expected = runtime.from_numpy(x), np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)

    def softmax_error() -> float:
        out = runtime.empty((ROWS, COLUMNS), "float32")
        softmax[(ROWS,)](given, out, COLUMNS, BLOCK=1024)
        return float(np.abs(out.to_numpy() - expected).max())

    report("softmax", softmax_error(), 1e-6)

    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 64), (64, 32)))
    out = runtime.empty((32, 32), "float32")
    matmul[(1,)](runtime.from_numpy(a), runtime.from_numpy(b), out, 64, 32, M=32, BN=32, BK=32)
    report("matmul", float(np.abs(out.to_numpy() - a.astype(np.float64) @ b.astype(np.float64)).max()), 1e-3)

    numbers, total = rng.integers(0, 100, 5000).astype(np.int32), runtime.from_numpy(np.zeros(1, np.int32))
    count[(5,)](runtime.from_numpy(numbers), total, 5000, BLOCK=1024)
    report("atomics", abs(int(total.to_numpy()[0]) - int(numbers.sum())), 0)

    errors: list[float] = []
    threads = [threading.Thread(target=lambda: errors.append(softmax_error())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == len(threads), "a thread failed"
    report("four threads", max(errors), 1e-6)

    assert system.WINDOWS and system.usable_processors() >= 1
    assert system.is_loaded("kernel32.dll") and not system.is_loaded("nothing.dll")


if __name__ == "__main__":
    main()
