"""Random expressions of floats: f32 within a bound that follows each operation, bfloat16 with the bits of torch.

The interpreter computes bfloat16 on raw bits, and its f32 functions have errors of their own. The references are
float64 with the errors that docs/internals/math.md states, and torch on the CPU, which rounds after each operation as
Triton does.
"""

import hashlib
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.fuzz.running import Found
from tests.written import written

SIZE = 128
HEADER = '"""Generated."""\nimport triton\nimport triton.language as tl\n\n\n'

#: A float64 value with the bound of its absolute error.
Bounded = tuple[np.ndarray, np.ndarray]


def _rounded(value: np.ndarray, error: np.ndarray, ulp: float = 0.5) -> Bounded:
    """With half a unit in the last place of f32 more, of the largest value that the error allows."""
    return value, error + ulp * 2.0**-23 * (np.abs(value) + error) + 2.0**-126


def _product(a: Bounded, b: Bounded) -> Bounded:
    return _rounded(a[0] * b[0], np.abs(a[0]) * b[1] + np.abs(b[0]) * a[1] + a[1] * b[1])


def _monotonic(of: Callable[[np.ndarray], np.ndarray], ulp: float) -> Callable[[Bounded], Bounded]:
    """A monotonic function: its error is at most that at the ends of the argument's."""

    def apply(a: Bounded) -> Bounded:
        value = of(a[0])
        return _rounded(value, np.maximum(np.abs(of(a[0] + a[1]) - value), np.abs(of(a[0] - a[1]) - value)), ulp)

    return apply


def _sum(a: Bounded) -> Bounded:
    error = a[1].sum() + SIZE * 2.0**-24 * np.abs(a[0]).sum()
    return np.full(SIZE, a[0].sum()), np.full(SIZE, error)


#: Expression of a and b → what it is with bounds. Functions are bounded by twice the ULP of docs/internals/math.md.
SINGLE: dict[str, Callable[..., Bounded]] = {
    "{a} + {b}": lambda a, b: _rounded(a[0] + b[0], a[1] + b[1]),
    "{a} - {b}": lambda a, b: _rounded(a[0] - b[0], a[1] + b[1]),
    "{a} * {b}": _product,
    "tl.fma({a}, {b}, {a})": lambda a, b: _rounded(_product(a, b)[0] + a[0], _product(a, b)[1] + a[1], 1),
    "tl.maximum({a}, {b})": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "tl.minimum({a}, {b})": lambda a, b: (np.minimum(a[0], b[0]), np.maximum(a[1], b[1])),
    "tl.abs({a})": lambda a, b: (np.abs(a[0]), a[1]),
    "-{a}": lambda a, b: (-a[0], a[1]),
    "tl.exp(tl.minimum({a}, 3.0))": lambda a, b: _monotonic(np.exp, 4)((np.minimum(a[0], 3), a[1])),
    "tl.log(tl.abs({a}) + 1.0)": lambda a, b: _monotonic(np.log, 4)(_rounded(np.abs(a[0]) + 1, a[1])),
    "tl.sqrt(tl.abs({a}) + 1.0)": lambda a, b: _monotonic(np.sqrt, 6)(_rounded(np.abs(a[0]) + 1, a[1])),
    "tl.erf({a})": lambda a, b: _monotonic(_erf, 4)(a),
    "tl.sigmoid({a})": lambda a, b: _monotonic(lambda x: np.exp(-np.logaddexp(0, -x)), 12)(a),
    "{a} * 0.0 + tl.sum({a}, 0)": lambda a, b: _sum(a),
    "tl.clamp({a}, -1.5, 2.0)": lambda a, b: (np.clip(a[0], -1.5, 2), a[1]),
}


def _erf(values: np.ndarray) -> np.ndarray:
    return np.asarray(torch.erf(torch.from_numpy(np.asarray(values, np.float64))).numpy())


#: Expression → torch's, with the same roundings.
BFLOAT: dict[str, Callable[..., torch.Tensor]] = {
    "{a} + {b}": lambda a, b: a + b,
    "{a} - {b}": lambda a, b: a - b,
    "{a} * {b}": lambda a, b: a * b,
    "-{a}": lambda a, b: -a,
    "tl.abs({a})": lambda a, b: a.abs(),
    "tl.maximum({a}, {b})": torch.maximum,
    "tl.minimum({a}, {b})": torch.minimum,
    "tl.where({a} > {b}, {a}, {b} + {b})": lambda a, b: torch.where(a > b, a, b + b),
    "({a}.to(tl.float32) * 1.25).to(tl.bfloat16)": lambda a, b: (a.float() * 1.25).bfloat16(),
    "tl.flip({a}, 0)": lambda a, b: a.flip(0),
    "({a} * {b}).to(tl.int32).to(tl.bfloat16)": lambda a, b: (a * b).clamp(-1e9, 1e9).to(torch.int32).bfloat16(),
    "tl.max({a}, 0).to(tl.bfloat16) + {b}": lambda a, b: a.max() + b,
}


def _steps(rng: random.Random, table: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(rng.choice(list(table)), rng.randrange(2 + n), rng.randrange(2 + n)) for n in range(rng.randint(3, 10))]


def _kernel(steps: list[tuple[str, int, int]]) -> Any:
    lines = ["@triton.jit", "def kernel(x_ptr, y_ptr, out_ptr):", "    at = tl.arange(0, 128)"]
    lines += ["    v0 = tl.load(x_ptr + at)", "    v1 = tl.load(y_ptr + at)"]
    for number, (text, a, b) in enumerate(steps):
        lines.append(f"    v{number + 2} = {text.format(a=f'v{a}', b=f'v{b}')}")
    lines.append(f"    tl.store(out_ptr + at, v{len(steps) + 1})")
    return "\n".join(lines) + "\n"


def _load(source: str, folder: Path) -> Any:
    path = folder / f"floats_{hashlib.sha256(source.encode()).hexdigest()[:12]}.py"
    return written(path, HEADER + source).kernel


def _run(source: str, folder: Path, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, float]:
    start, out = time.process_time(), torch.zeros_like(x)
    _load(source, folder)[(1,)](x, y, out, enable_fp_fusion=x.dtype == torch.float32)
    return out, time.process_time() - start


def _single_fault(steps: list[tuple[str, int, int]], folder: Path, x: np.ndarray, y: np.ndarray) -> Found:
    values: list[Bounded] = [(part.astype(np.float64), np.zeros(SIZE)) for part in (x, y)]
    with np.errstate(all="ignore"):
        for text, a, b in steps:
            values.append(SINGLE[text](values[a], values[b]))
        value, bound = values[-1]
    source = _kernel(steps)
    out, seconds = _run(source, folder, torch.from_numpy(x.copy()), torch.from_numpy(y.copy()))
    finite = np.isfinite(value) & np.isfinite(bound) & (np.abs(value) + bound < 1e38)
    wrong = finite & ~(np.abs(out.numpy().astype(np.float64) - value) <= bound)
    fault = f"{int(wrong.sum())} values are past their bounds" if wrong.any() else ""
    return Found(fault, source, seconds)


def _bfloat_fault(steps: list[tuple[str, int, int]], folder: Path, x: torch.Tensor, y: torch.Tensor) -> Found:
    values = [x, y]
    for text, a, b in steps:
        values.append(BFLOAT[text](values[a], values[b]))
    source = _kernel(steps)
    out, seconds = _run(source, folder, x.clone(), y.clone())
    wanted = values[-1].expand(SIZE)
    wrong = ~((out == wanted) | (out.isnan() & wanted.isnan()))
    return Found(f"{int(wrong.sum())} values differ from torch's" if wrong.any() else "", source, seconds)


def run(seed: int, bfloat: bool, folder: Path) -> Found:
    """One expression; where it fails, the first steps of it that do."""
    rng, numbers = random.Random(seed * 2 + bfloat), np.random.default_rng(seed)
    x, y = numbers.uniform(-4, 4, (2, SIZE)).astype(np.float32)
    steps = _steps(rng, BFLOAT if bfloat else SINGLE)

    def outcome(count: int) -> Found:
        if bfloat:
            return _bfloat_fault(steps[:count], folder, *(torch.from_numpy(part).bfloat16() for part in (x, y)))
        return _single_fault(steps[:count], folder, x, y)

    whole = outcome(len(steps))
    if whole.fault:
        return next(part for count in range(1, len(steps) + 1) if (part := outcome(count)).fault)
    return whole
