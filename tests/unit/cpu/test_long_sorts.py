"""Sorts of long tensors: exchanges along many dimensions of two elements, in loops (transforms/cpu/hypercubes.py)."""

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

RANDOM = np.random.default_rng(17)


@triton.jit
def ordered(x, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DIM: tl.constexpr, OP: tl.constexpr):
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    value = tl.load(x + row * n + column, mask=column < n, other=100)
    if OP == "sort":
        value = tl.sort(value, DIM)
    elif OP == "descending":
        value = tl.sort(value, DIM, descending=True)
    elif OP == "flip":
        value = tl.flip(value, DIM)
    elif OP == "top":
        value = tl.topk(value, K, DIM)
    else:
        # What lies between two sorts is needed, too.
        first = tl.sort(value, DIM)
        value = tl.sort(first * first - value, DIM) + first
    tl.store(out + row * K + tl.arange(0, K)[None, :], value)


def _check(profile: str, op: str, x: np.ndarray, padded: int, k: int | None = None, num_warps: int = 4) -> None:
    m, n = x.shape
    dim = 1 if padded > 1 else 0
    k = padded if k is None else k
    out = np.full(m * k + 2, 77, x.dtype)
    constants = {"M": m, "N": padded, "K": k, "DIM": dim, "OP": op}
    run(profile, ordered, (1,), x, out[1:], n, num_warps=num_warps, **constants)
    full = np.full((m, padded), 100, x.dtype)
    full[:, :n] = x
    sorted_ = np.sort(full, dim)
    expected = {
        "sort": lambda: sorted_,
        "descending": lambda: np.flip(sorted_, dim),
        "flip": lambda: np.flip(full, dim),
        "top": lambda: np.flip(sorted_, dim)[:, :k],
        "between": lambda: np.sort(sorted_ * sorted_ - full, dim) + sorted_,
    }[op]()
    assert np.array_equal(out[1:-1].reshape(m, k), expected)
    assert out[0] == 77 and out[-1] == 77


@pytest.mark.parametrize("shape", [(1, 1000), (2, 1021), (16, 64), (64, 33)])
def test_shapes(shape: tuple[int, int]) -> None:
    x = RANDOM.standard_normal(shape).astype(np.float32)
    _check(PROFILES_HERE[-1], "sort", x, triton.next_power_of_2(shape[1]))


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("op", ["sort", "descending", "flip", "between"])
def test_what_is_ordered(profile: str, op: str) -> None:
    _check(profile, op, RANDOM.integers(-9, 9, (2, 700)).astype(np.int32), 1024)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint32", "int64", "float16", "float64"])
def test_types(dtype: str) -> None:
    _check(PROFILES_HERE[-1], "sort", (RANDOM.standard_normal((1, 1024)) * 20 + 50).astype(dtype), 1024)


@pytest.mark.parametrize("k", [1, 4, 256])
def test_the_largest(k: int) -> None:
    _check(PROFILES_HERE[-1], "top", RANDOM.standard_normal((2, 1000)).astype(np.float32), 1024, k)


def test_the_largest_of_many() -> None:
    """10,000 lines of LLVM IR instead of 75,000; each selection halves the tensor."""
    profile = PROFILES_HERE[-1]
    x = RANDOM.standard_normal((1, 8001)).astype(np.float32)
    _check(profile, "top", x, 8192, 64)
    kernel = compiled(profile, ordered, [x, x, 8001], {"M": 1, "N": 8192, "K": 64, "DIM": 1, "OP": "top"})
    assert translate(kernel.asm["spv"], host_of(PROFILES[profile].processor), 16).text.count("\n") < 20_000


@triton.jit
def in_turn(x, out, turns, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    for turn in range(turns):
        if turn != 1:
            value = tl.sort(value, 0) - turn * at
    tl.store(out + at, value)


def test_sorts_in_a_loop() -> None:
    x, out = RANDOM.integers(-999, 999, 1024).astype(np.int32), np.zeros(1024, np.int32)
    profile = PROFILES_HERE[-1]
    run(profile, in_turn, (1,), x, out, 4, N=1024)
    expected = x
    for turn in (0, 2, 3):
        expected = np.sort(expected) - turn * np.arange(1024, dtype=np.int32)
    assert np.array_equal(out, expected)
    kernel = compiled(profile, in_turn, [x, out, 4], {"N": 1024})
    assert translate(kernel.asm["spv"], host_of(PROFILES[profile].processor), 16).text.count("\n") < 10_000


def test_the_code_of_a_long_sort_is_short() -> None:
    """8,400 lines of LLVM IR instead of 85,800."""
    profile = PROFILES_HERE[-1]
    arrays = [np.zeros(4, np.float32)] * 2
    kernel = compiled(profile, ordered, [*arrays, 4], {"M": 1, "N": 4096, "K": 4096, "DIM": 1, "OP": "sort"})
    text = translate(kernel.asm["spv"], host_of(PROFILES[profile].processor), 16).text
    assert text.count("\n") < 15_000


@triton.jit
def columns(x, out, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    """Along columns: element (row, column) is at column · M + row."""
    at = tl.arange(0, N)[None, :] * M + tl.arange(0, M)[:, None]
    value = tl.load(x + at)
    if OP == "descending":
        value = tl.sort(value, 1, descending=True)
    else:
        value = tl.sort(value, 1) - value
    tl.store(out + at, value)


@pytest.mark.parametrize("op", ["descending", "between"])
@pytest.mark.parametrize("shape", [(64, 128), (4, 2048)])
def test_columns(shape: tuple[int, int], op: str) -> None:
    """The code is 12,100 and 14,100 lines of LLVM IR instead of 32,100 and 89,500."""
    m, n = shape
    x, out = RANDOM.integers(-999, 999, (n, m)).astype(np.int32), np.zeros((n, m), np.int32)
    profile = PROFILES_HERE[-1]
    run(profile, columns, (1,), x, out, M=m, N=n, OP=op)
    expected = np.sort(x, 0)
    assert np.array_equal(out, np.flip(expected, 0) if op == "descending" else expected - x)
    kernel = compiled(profile, columns, [x, out], {"M": m, "N": n, "OP": op})
    assert translate(kernel.asm["spv"], host_of(PROFILES[profile].processor), 16).text.count("\n") < 20_000
