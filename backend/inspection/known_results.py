"""Kernels whose results are known: the self-test of a driver runs some of them, ``triton-spirv report`` all.

Each case compares what a kernel wrote with NumPy in float64, neighbours that must stay untouched included, and gives
the largest error relative to what is allowed, so that above 1 is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ..runtime import context
from ..runtime.buffer import from_numpy
from ..runtime.measuring.trust import ATOMICS, BASICS, BFLOAT16_MATRICES, FLOAT16, MATRICES, SUBGROUPS

#: Elements behind a result that kernels must leave as they are, and what they are.
_BEYOND, _UNTOUCHED = 32, 77
#: What is allowed of sums of 100 numbers up to 50, which may cancel (100 * 100 * 50 * 2^-24 in any order, at most),
#: and of the polynomial, whose products of up to 16 in float16 may be rounded, or fused, and multiplied by 4.
_SUM, _STEPS = 3e-2, 0.1
#: Launches of which the shortest is told, and how often products are timed in turn.
_LAUNCHES, _ROUNDS = 5, 3


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = x + y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def polynomial(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = (x * y - x) * x + y, each step rounded to the type."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, (a * b - a) * a + b, mask=i < n)


@triton.jit
def quotients(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = x // y + x % y, in integers."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=1), tl.load(y + i, mask=i < n, other=1)
    tl.store(out + i, a // b + a % b, mask=i < n)


@triton.jit
def functions(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = exp(-x) + log(x + 1) * sin(y) + sqrt(x) / (y + 2)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=1.0), tl.load(y + i, mask=i < n, other=1.0)
    tl.store(out + i, tl.exp(-a) + tl.log(a + 1) * tl.sin(b) + tl.sqrt(a) / (b + 2), mask=i < n)


@triton.jit
def sums(x, out, columns, AXIS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = the sums of a tile along an axis."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(x + row * columns + column, mask=column < columns, other=0)
    if AXIS == 0:
        tl.store(out + tl.arange(0, COLUMNS), tl.sum(tile, 0), mask=tl.arange(0, COLUMNS) < columns)
    else:
        tl.store(out + tl.arange(0, ROWS), tl.sum(tile, 1))


@triton.jit
def largest(x, out, columns, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = where the largest element of each row is."""
    row, column = tl.program_id(0), tl.arange(0, COLUMNS)
    tl.store(out + row, tl.argmax(tl.load(x + row * columns + column, mask=column < columns, other=-9999), 0))


@triton.jit
def running(x, out, columns, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = the running sums of each row."""
    row, column = tl.program_id(0), tl.arange(0, COLUMNS)
    mask = column < columns
    tile = tl.load(x + row * columns + column, mask=mask, other=0)
    tl.store(out + row * columns + column, tl.cumsum(tile, 0), mask=mask)


@triton.jit
def transposed(x, out, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = x transposed: lanes and subgroups exchange elements."""
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(out + row * SIZE + column, tl.trans(tl.load(x + row * SIZE + column)))


@triton.jit
def ordered(x, out, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = the elements in order."""
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def softmax(x, out, columns, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = the softmax of each row."""
    row, column = tl.program_id(0), tl.arange(0, COLUMNS)
    mask = column < columns
    tile = tl.load(x + row * columns + column, mask=mask, other=-float("inf"))
    weights = tl.exp(tile - tl.max(tile, 0))
    tl.store(out + row * columns + column, weights / tl.sum(weights, 0), mask=mask)


@triton.jit
def counted(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out[i % 16] += x[i], by atomic additions."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i % 16, tl.load(x + i, mask=i < n, other=0), mask=i < n)


@triton.jit
def product(a, b, out, K: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr, KIND: tl.constexpr, BITS: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = a b for SIZE rows and columns. ``BITS``: they are bfloat16 as int16."""
    row, column, k = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, STEP)
    a += tl.program_id(0) * SIZE * K
    out += tl.program_id(0) * SIZE * SIZE
    total = tl.zeros((SIZE, SIZE), KIND)
    for start in range(0, K, STEP):
        left = tl.load(a + row * K + start + k[None, :])
        right = tl.load(b + (start + k[:, None]) * SIZE + column)
        if BITS:
            left, right = left.to(tl.bfloat16, bitcast=True), right.to(tl.bfloat16, bitcast=True)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(out + row * SIZE + column, total)


@dataclass(frozen=True)
class Result:
    """What a case gave. ``error``: relative to what is allowed; ``seconds``: the least that a launch took, once it was
    compiled; other programs make the others longer."""

    error: float
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the values are right. NaN is not."""
        return self.error <= 1


@dataclass(frozen=True)
class Case:
    """A kernel with inputs. ``group``: what it is about, a key of trust.LEFT_OUT, or "" where the report alone runs
    it; ``needs``: the feature of the device that it takes."""

    name: str
    group: str
    run: Callable[[], Result]
    needs: str = ""


def _random(shape: tuple[int, ...], dtype: str, low: float, high: float) -> Any:
    return np.random.default_rng(len(shape) + shape[-1]).uniform(low, high, shape).astype(dtype)


def _measured(launch: Callable[[Any], Any], first: Any, expected: Any, allowed: float, timed: bool = True) -> Result:
    """``first``: what the result's memory holds before; ``allowed``: the error for an expected value of 1."""
    flat = np.ravel(expected)
    beyond = np.full(_BEYOND, _UNTOUCHED, np.asarray(first).dtype)
    out: Any = from_numpy(np.concatenate([np.ravel(first), beyond]))
    launch(out)
    found = out.to_numpy()
    wrong = float((found[flat.size :] != _UNTOUCHED).sum())
    with np.errstate(all="ignore"):
        errors = np.abs(found[: flat.size].astype(np.float64) - flat) / np.maximum(1, np.abs(flat))
    error = float(errors.max()) / allowed if allowed else float(errors.max() > 0) * 2
    times = []
    native = context.current().native
    for _ in range(_LAUNCHES if timed else 0):
        start = time.perf_counter()
        launch(out)
        native.synchronize()
        times.append(time.perf_counter() - start)
    return Result(error if not wrong else float("inf"), min(times, default=0.0))


def _elementwise(
    kernel: Any, wanted: Callable[[Any, Any], Any], dtype: str, bounds: tuple[float, float], allowed: float
) -> Result:
    n = 1000
    x, y = _random((n,), dtype, *bounds), _random((n + 1,), dtype, *bounds)[:n]
    if dtype.startswith("int"):
        y = np.where(y == 0, 3, y).astype(dtype)
    a, b = from_numpy(x), from_numpy(y)
    return _measured(lambda out: kernel[(4,)](a, b, out, n, BLOCK=256), np.zeros(n, dtype), wanted(x, y), allowed)


def _stepwise(x: Any, y: Any) -> Any:
    """NumPy's float16 rounds each step, as kernels must."""
    return ((x * y - x) * x + y).astype(np.float64)


def _rows(kernel: Any, wanted: Callable[[Any], Any], dtype: str, allowed: float, **constants: Any) -> Result:
    rows, columns = 8, 100
    x = _random((rows, columns), dtype, -50, 50)
    a, expected = from_numpy(x), wanted(x.astype(np.float64))
    kind = np.int32 if kernel is largest else x.dtype
    first = np.zeros(expected.size, kind)
    return _measured(lambda out: kernel[(rows,)](a, out, columns, COLUMNS=128, **constants), first, expected, allowed)


def _sums(axis: int, dtype: str, allowed: float) -> Result:
    rows, columns = 32, 100
    x = _random((rows, columns), dtype, -50, 50)
    a, expected = from_numpy(x), x.astype(np.float64).sum(axis)
    constants = {"AXIS": axis, "ROWS": rows, "COLUMNS": 128}
    return _measured(
        lambda out: sums[(1,)](a, out, columns, **constants), np.zeros(expected.size, dtype), expected, allowed
    )


def _transposed(dtype: str) -> Result:
    x = _random((32, 32), dtype, -100, 100)
    a = from_numpy(x)
    return _measured(lambda out: transposed[(1,)](a, out, SIZE=32), np.zeros(1024, dtype), x.astype(np.float64).T, 0)


def _ordered(dtype: str) -> Result:
    x = _random((256,), dtype, -100, 100)
    a = from_numpy(x)
    return _measured(lambda out: ordered[(1,)](a, out, SIZE=256), np.zeros(256, dtype), np.sort(x), 0)


def _counted(dtype: str) -> Result:
    n = 4000
    x = _random((n,), dtype, -4, 4).round().astype(dtype)
    expected = np.array([x[at::16].astype(np.float64).sum() for at in range(16)])
    a = from_numpy(x)
    return _measured(lambda out: counted[(16,)](a, out, n, BLOCK=256), np.zeros(16, dtype), expected, 0, timed=False)


def _product(dtype: str, size: int, units: str, timed: bool = True) -> Result:
    """With small whole numbers, so that every sum is exact. ``units``: the option ``matrix_units``."""
    programs, k = 8, 128
    whole = [np.random.default_rng(seed).integers(-4, 5, (rows, k)) for seed, rows in ((1, programs * size), (2, size))]
    left, right = whole[0], whole[1].T
    expected = (left @ right).astype(np.float64)
    result, kind = (np.int32, tl.int32) if dtype == "int8" else (np.float32, tl.float32)
    a, b = (from_numpy(_typed(np.ascontiguousarray(one), dtype)) for one in (left, right))
    constants: dict[str, Any] = {"K": k, "SIZE": size, "STEP": 32, "KIND": kind, "BITS": dtype == "bfloat16"}
    constants["matrix_units"] = units
    return _measured(
        lambda out: product[(programs,)](a, b, out, **constants), np.zeros(expected.size, result), expected, 0, timed
    )


def _typed(values: Any, dtype: str) -> Any:
    if dtype != "bfloat16":
        return values.astype(dtype)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.int16)


def cases() -> Iterator[Case]:
    """All, in the order in which one builds on the other."""
    for dtype in ("float32", "int32", "int8", "int16", "int64"):
        bounds = (-10.0, 10.0) if dtype.startswith("float") else (-50.0, 50.0)
        yield Case(f"add {dtype}", BASICS, partial(_elementwise, add, _add, dtype, bounds, 1e-7))
    yield Case("add float64", "", partial(_elementwise, add, _add, "float64", (-10, 10), 1e-16), "float64")
    for dtype in ("int32", "int64", "int16"):
        yield Case(f"quotients {dtype}", "", partial(_elementwise, quotients, _quotients, dtype, (-100, 100), 0))
    yield Case("functions float32", BASICS, partial(_elementwise, functions, _functions, "float32", (0.1, 5), 1e-5))
    for axis in (0, 1):
        yield Case(f"sums float32 {axis}", SUBGROUPS, partial(_sums, axis, "float32", _SUM))
        yield Case(f"sums int32 {axis}", SUBGROUPS, partial(_sums, axis, "int32", 0))
    yield Case("largest float32", SUBGROUPS, partial(_rows, largest, lambda x: x.argmax(1), "float32", 0))
    yield Case("running sums int32", SUBGROUPS, partial(_rows, running, lambda x: x.cumsum(1), "int32", 0))
    yield Case("running sums float32", SUBGROUPS, partial(_rows, running, lambda x: x.cumsum(1), "float32", _SUM))
    for dtype in ("float32", "int8", "float16"):
        yield Case(f"transposed {dtype}", SUBGROUPS, partial(_transposed, dtype))
    for dtype in ("float32", "int32"):
        yield Case(f"ordered {dtype}", SUBGROUPS, partial(_ordered, dtype))
    yield Case("softmax float32", SUBGROUPS, partial(_rows, softmax, _softmax, "float32", 1e-5))
    yield Case("add float16", FLOAT16, partial(_elementwise, add, _add, "float16", (-10, 10), 1e-6))
    steps = partial(_elementwise, polynomial, _stepwise, "float16", (-4, 4), _STEPS)
    yield Case("polynomial float16", FLOAT16, steps)
    yield Case("softmax float16", FLOAT16, partial(_rows, softmax, _softmax, "float16", 1e-2))
    yield Case("counted int32", BASICS, partial(_counted, "int32"))
    yield Case("counted float32", ATOMICS, partial(_counted, "float32"))
    yield Case("counted float64", ATOMICS, partial(_counted, "float64"), "float64")
    for dtype in ("float32", "float16", "bfloat16", "int8"):
        yield Case(f"product {dtype}", "", partial(_product, dtype, 32, "0"))
    yield Case("product float16 on matrix units", MATRICES, partial(_product, "float16", 32, "1"), "matrices")
    yield Case("product int8 on matrix units", MATRICES, partial(_product, "int8", 32, "1"), "matrices")
    yield Case("large product float16 on matrix units", MATRICES, partial(_product, "float16", 64, "1"), "matrices")
    wide = partial(_product, "bfloat16", 32, "1")
    yield Case("product bfloat16 on matrix units", BFLOAT16_MATRICES, wide, "bfloat16_matrices")


def times_of_products() -> tuple[float, float]:
    """Seconds of a float16 product of 64 columns on matrix units and by multiply-adds: the least of launches in turn.
    Another program that uses the device for a while makes neither the slower one then."""
    rounds = [[_product("float16", 64, units).seconds for units in "10"] for _ in range(_ROUNDS)]
    units, multiply_adds = map(min, zip(*rounds, strict=True))
    return units, multiply_adds


def _add(x: Any, y: Any) -> Any:
    return (x + y).astype(np.float64)


def _quotients(x: Any, y: Any) -> Any:
    """C's: quotients are cut off towards zero."""
    a, b = x.astype(np.int64), y.astype(np.int64)
    quotient = np.trunc(a / b).astype(np.int64)
    return (quotient + (a - quotient * b)).astype(np.float64)


def _functions(x: Any, y: Any) -> Any:
    a, b = x.astype(np.float64), y.astype(np.float64)
    return np.exp(-a) + np.log(a + 1) * np.sin(b) + np.sqrt(a) / (b + 2)


def _softmax(x: Any) -> Any:
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)
