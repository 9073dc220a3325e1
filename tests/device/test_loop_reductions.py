"""Reductions in loops whose results go into what the loop carries, against the kernels as Python in float64."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.fuzz.reference import run_as_python

ROWS, COLUMNS, STEPS, START = 16, 256, 3, 1.25
TYPES = {"float32": torch.float32, "float64": torch.float64}

UPDATES = [
    "acc + sum",
    "sum + acc",
    "acc + max",
    "acc - sum",
    "sum - acc",
    "acc * sum",
    "acc / max",
    "max(acc, sum)",
    "max(acc, max)",
    "min(acc, max)",
    "sum",
    "sum + sum",
]


@triton.jit
def _updated(acc, x, OP: tl.constexpr):
    if OP == "acc + sum":
        result = acc + tl.sum(x, 1)
    elif OP == "sum + acc":
        result = tl.sum(x, 1) + acc
    elif OP == "acc + max":
        result = acc + tl.max(x, 1)
    elif OP == "acc - sum":
        result = acc - tl.sum(x, 1)
    elif OP == "sum - acc":
        result = tl.sum(x, 1) - acc
    elif OP == "acc * sum":
        result = acc * tl.sum(x, 1)
    elif OP == "acc / max":
        result = acc / tl.max(x, 1)
    elif OP == "max(acc, sum)":
        result = tl.maximum(acc, tl.sum(x, 1))
    elif OP == "max(acc, max)":
        result = tl.maximum(acc, tl.max(x, 1))
    elif OP == "min(acc, max)":
        result = tl.minimum(acc, tl.max(x, 1))
    elif OP == "sum":
        result = tl.sum(x, 1)
    else:
        tl.static_assert(OP == "sum + sum")
        total = tl.sum(x, 1)
        result = total + total
    return result


@triton.jit
def _rows(x, step, n, R: tl.constexpr, C: tl.constexpr, MASKED: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, C)
    at = x + step * R * C + i[:, None] * C + j[None, :]
    return tl.load(at, mask=j[None, :] < n, other=0) if MASKED else tl.load(at)


@triton.jit
def one(
    x, out, steps, n, R: tl.constexpr, C: tl.constexpr, OP: tl.constexpr, START: tl.constexpr, MASKED: tl.constexpr
):
    acc = tl.full((R,), START, x.dtype.element_ty)
    for step in range(steps):
        acc = _updated(acc, _rows(x, step, n, R, C, MASKED), OP)
    tl.store(out + tl.arange(0, R), acc)


@triton.jit
def several(x, out, steps, R: tl.constexpr, C: tl.constexpr, A: tl.constexpr, B: tl.constexpr, SWAPPED: tl.constexpr):
    """Two are carried, and where ``SWAPPED`` change places in each round."""
    a = tl.full((R,), 1.25, x.dtype.element_ty)
    b = tl.full((R,), -0.5, x.dtype.element_ty)
    for step in range(steps):
        v = _rows(x, step, C, R, C, False)
        a, b = _updated(a, v, A), _updated(b, v, B)
        if SWAPPED:
            a, b = b, a
    i = tl.arange(0, R)
    tl.store(out + i, a)
    tl.store(out + R + i, b)


@triton.jit
def used(x, out, steps, R: tl.constexpr, C: tl.constexpr, OP: tl.constexpr, INSIDE: tl.constexpr, TWICE: tl.constexpr):
    """What is carried is stored in each round, before it is updated, or is used twice behind the loop."""
    i = tl.arange(0, R)
    acc = tl.full((R,), 1.25, x.dtype.element_ty)
    for step in range(steps):
        v = _rows(x, step, C, R, C, False)
        if INSIDE:
            tl.store(out + step * R + i, acc)
        acc = _updated(acc, v, OP)
    tl.store(out + steps * R + i, acc * acc if TWICE else acc)


@triton.jit
def dependent(x, out, steps, R: tl.constexpr, C: tl.constexpr, OP: tl.constexpr):
    """What is reduced depends on what is carried."""
    acc = tl.full((R,), 1.25, x.dtype.element_ty)
    for step in range(steps):
        acc = _updated(acc, _rows(x, step, C, R, C, False) + acc[:, None] * 0.125, OP)
    tl.store(out + tl.arange(0, R), acc)


@triton.jit
def nested(x, out, outer, inner, R: tl.constexpr, C: tl.constexpr, OP: tl.constexpr):
    acc = tl.full((R,), 1.25, x.dtype.element_ty)
    for i in range(outer):
        for j in range(inner):
            acc = _updated(acc, _rows(x, i * inner + j, C, R, C, False), OP)
        acc = _updated(acc, _rows(x, i, C, R, C, False), OP)
    tl.store(out + tl.arange(0, R), acc)


def _input(dtype: str, steps: int = STEPS, columns: int = COLUMNS) -> torch.Tensor:
    numbers = np.random.default_rng(steps).uniform(0.25, 1, (steps, ROWS, columns))
    return torch.from_numpy(numbers).to(TYPES[dtype])


def _check(kernel: triton.JITFunction, x: torch.Tensor, shape: tuple[int, ...], *others: Any, warps: int = 4) -> None:
    """Against the kernel as Python, in float64."""
    out, expected = torch.zeros(shape, dtype=x.dtype), torch.zeros(shape, dtype=torch.float64)
    kernel[(1,)](x, out, *others, num_warps=warps)
    run_as_python(kernel, (1,), x.double(), expected, *others)
    torch.testing.assert_close(out.double(), expected, rtol=1e-5 if x.dtype == torch.float32 else 1e-13, atol=0)


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("dtype", TYPES)
def test_one(dtype: str, update: str, masked: bool) -> None:
    n = COLUMNS - 19 if masked else COLUMNS
    _check(one, _input(dtype), (ROWS,), STEPS, n, ROWS, COLUMNS, update, START, masked)


@pytest.mark.parametrize("start", [0.0, 1.0, -3.5, float("-inf")])
@pytest.mark.parametrize("update", UPDATES)
def test_start(update: str, start: float) -> None:
    """Each is the neutral number of some operation, and of no other one."""
    _check(one, _input("float32"), (ROWS,), STEPS, COLUMNS, ROWS, COLUMNS, update, start, False)


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("update", ["acc + sum", "acc + max", "acc * sum"])
def test_warps(update: str, warps: int) -> None:
    _check(one, _input("float32"), (ROWS,), STEPS, COLUMNS, ROWS, COLUMNS, update, START, False, warps=warps)


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("swapped", [False, True], ids=["kept", "swapped"])
@pytest.mark.parametrize(
    "pair", [("acc + sum", "acc + max"), ("acc - sum", "max(acc, max)"), ("acc * sum", "acc + sum")]
)
def test_several(pair: tuple[str, str], swapped: bool, steps: int) -> None:
    _check(several, _input("float32", steps), (2, ROWS), steps, ROWS, COLUMNS, *pair, swapped)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("update", ["acc + sum", "acc + max", "acc - sum", "max(acc, sum)"])
def test_used_in_the_loop_and_behind_it(update: str, twice: bool, inside: bool) -> None:
    _check(used, _input("float32"), (STEPS + 1, ROWS), STEPS, ROWS, COLUMNS, update, inside, twice)


@pytest.mark.parametrize("update", ["acc + sum", "acc + max", "sum - acc", "max(acc, max)"])
def test_of_what_depends_on_what_is_carried(update: str) -> None:
    _check(dependent, _input("float32"), (ROWS,), STEPS, ROWS, COLUMNS, update)


@pytest.mark.parametrize("update", ["acc + sum", "acc + max", "acc - sum", "max(acc, sum)"])
def test_nested(update: str) -> None:
    _check(nested, _input("float32", 6), (ROWS,), 2, 3, ROWS, COLUMNS, update)
