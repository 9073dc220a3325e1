"""Kernels in the interpreter: the table of functions that compiled kernels are held to (tests/fuzz/families/functions),
with arguments of each type, and what has no row there, against NumPy and ml_dtypes.

``TRITON_INTERPRET=1 python -m tests.interpreter.cases`` runs all of them and prints a JSON object: the name of each
case, and what differs, or null.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from tests.fuzz.families.functions import FAMILY, ROWS
from tests.fuzz.families.functions.drawing import dtype_of
from tests.fuzz.steps import Array, Family, Kernel, Writer, fault, generate, tensor_of

N = 128

#: What upstream's interpreter does in another way than its compiler → the kernels that show it.
OTHERWISE: dict[str, Callable[[Kernel], bool]] = {
    "NumPy's functions of f32 are right to a unit, not to half of one": lambda kernel: (
        re.search(r"tl\.(exp|log)\(", kernel.source) is not None and kernel.memory["p0"].dtype == np.float32
    ),
    "the first of equals is found": lambda kernel: "tie_break_left=False" in kernel.source,
}


_SHOWN: set[str] = set()


def _row_case(number: int, type_: str) -> str | None:
    row = ROWS[number]

    def write(writer: Writer) -> None:
        for _ in range(15 if row.names == "cast" else 1):  # to many types
            row.write(writer, dtype_of(type_))

    kernel = generate(Family(row.definition, write, write, FAMILY.functions, most_steps=0), 0)
    with tempfile.TemporaryDirectory() as folder:
        found = fault(kernel, Path(folder))
    reasons = {reason for reason, shows in OTHERWISE.items() if shows(kernel)}
    if found:
        _SHOWN.update(reasons)
    return None if reasons else found or None


def array_of(values: Any, name: str) -> Array:
    """The numbers in the type of that name, NumPy's or ml_dtypes'; those past the largest of fp8 become it."""
    dtype = dtype_of(name)
    largest = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}.get(name)
    return np.ascontiguousarray(np.clip(values, -largest, largest) if largest else values).astype(dtype)


def differs(got: Array, expected: Array) -> str | None:
    """None if the numbers, their NaN and their zeros' signs are the same."""
    got64, expected64 = got.astype(np.float64), expected.astype(np.float64)
    same = (got64 == expected64) & (np.signbit(got64) == np.signbit(expected64))
    wrong = np.flatnonzero(~(same | (np.isnan(got64) & np.isnan(expected64))))
    return f"[{wrong[0]}]: {got64.flat[wrong[0]]!r} instead of {expected64.flat[wrong[0]]!r}" if wrong.size else None


def is_far(got: Array, expected: Any, tolerance: float) -> str | None:
    """None if all numbers are within ``tolerance`` of the largest expected one."""
    error = np.abs(got.astype(np.float64) - expected).max()
    return None if error <= tolerance * np.abs(expected).max() else f"error {error!r}"


@triton.jit
def _dot_scaled(x, xs, y, ys, out, FORMAT: tl.constexpr, K: tl.constexpr):
    i, k, s = tl.arange(0, 16), tl.arange(0, K), tl.arange(0, K // 32)
    a, b = tl.load(x + i[:, None] * K + k[None, :]), tl.load(y + k[:, None] * 16 + i[None, :])
    a_scale, b_scale = (
        tl.load(xs + i[:, None] * (K // 32) + s[None, :]),
        tl.load(ys + i[:, None] * (K // 32) + s[None, :]),
    )
    tl.store(out + i[:, None] * 16 + i[None, :], tl.dot_scaled(a, a_scale, FORMAT, b, b_scale, FORMAT))


def _dot_scaled_case(name: str, format_: str) -> str | None:
    rng = np.random.default_rng(6)
    a, b = array_of(rng.standard_normal((16, 64)), name), array_of(rng.standard_normal((64, 16)), name)
    scales = [rng.integers(120, 132, (16, 2)).astype(np.uint8) for _ in "ab"]
    out = torch.empty((16, 16))
    x, y = (tensor_of(one if format_ == "bf16" else one.view(np.uint8)) for one in (a, b))
    _dot_scaled[(1,)](x, torch.from_numpy(scales[0]), y, torch.from_numpy(scales[1]), out, format_, 64)
    wide = [np.repeat(2.0 ** (scale.astype(np.float64) - 127), 32, 1) for scale in scales]
    return is_far(out.numpy(), (a.astype(np.float64) * wide[0]) @ (b.astype(np.float64) * wide[1].T), 1e-6)


@triton.jit
def _atomic_add(out, x, old, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(old + i, tl.atomic_add(out + i % 3, tl.load(x + i), mask=i < n), mask=i < n)


def _atomic_add_case(name: str) -> str | None:
    values = np.random.default_rng(9).integers(-8, 8, 32).astype(np.float64)
    out, old = array_of(np.ones(4), name), array_of(np.full(32, 99), name)
    _atomic_add[(1,)](tensor_of(out), tensor_of(array_of(values, name)), tensor_of(old), 29, 32)
    sums, olds = np.ones(4), np.full(32, 99.0)
    for i in range(29):
        olds[i] = sums[i % 3]
        sums[i % 3] += values[i]
    return differs(out, sums) or differs(old, olds)


@triton.jit
def _padded(x, out, n, SIZE: tl.constexpr):
    descriptor = tl.make_tensor_descriptor(x, [n], [1], [SIZE], padding_option="nan")
    tl.store(out + tl.arange(0, SIZE), descriptor.load([0]))


def _padding_case(name: str) -> str | None:
    out = array_of(np.zeros(32), name)
    _padded[(1,)](tensor_of(array_of(np.ones(32), name)), tensor_of(out), 20, 32)
    return differs(out, np.where(np.arange(32) < 20, 1.0, np.nan))


# Numbers of loops and arguments have the types that compiled kernels give them.


@triton.jit
def _loop(x, out, n, FORM: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    acc = tl.zeros((SIZE,), tl.int32)
    if FORM == "range":
        for j in range(300):
            acc += (a + j) // 2
    elif FORM == "tl.range":
        for j in tl.range(0, 300):
            acc += (a + j) // 2
    elif FORM == "bounds":
        for j in range(n - 300, n, 1):
            acc += (a + j) // 2
    elif FORM == "downwards":
        for j in range(299, -1, -1):
            acc += (a + j) // 2
    tl.store(out + i, acc)


def _loop_case(form: str, name: str) -> str | None:
    info = np.iinfo(name)
    values = np.random.default_rng(10).integers(info.min, info.max, N, name, endpoint=True)
    values[:4] = 100, 127, 1, 0
    out = torch.empty(N, dtype=torch.int32)
    _loop[(1,)](tensor_of(values), out, 300, form, N)
    terms = values.astype(np.int64)[:, None] + np.arange(300)
    return differs(out.numpy(), np.trunc(terms / 2).sum(1))


@triton.jit
def _scaled(x, out, scale, large, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i) * scale.to(tl.float32) + (large * 4).to(tl.float32))


def _float_and_large_integer_case() -> str | None:
    out = torch.empty(N)
    _scaled[(1,)](tensor_of(np.full(N, 65504.0, np.float16)), out, 1.0001, 3_000_000_000, N)
    return is_far(out.numpy(), 65504 * np.float64(np.float32(1.0001)) + 12e9, 1e-7)


@triton.jit
def _row_of_first(x, out, n, COLUMNS: "tl.constexpr"):
    row = tl.program_id(0)
    i = row * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + i, tl.load(x + i, mask=row < n, other=-1), mask=~(row == 0))


def _one_mask_for_all_case() -> str | None:
    x, out = torch.arange(32.0).reshape(4, 8), torch.zeros(4, 8)
    _row_of_first[(4,)](x, out, 2, 8)
    return differs(out.numpy(), np.stack([np.zeros(8), x[1].numpy(), np.full(8, -1), np.full(8, -1)]))


@triton.jit
def _logic(out, n, YES: tl.constexpr, GUARD: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, ((i >= 2) and (i < 5)) * 1)
    tl.store(out + SIZE + i, (i < 2 or i > 5) * 1)
    tl.store(out + 2 * SIZE + i, (not (i < 3)) * 1)
    tl.store(out + 3 * SIZE + i, (YES and i > 0 and i != 1) * 1)
    tl.store(out + 4 * SIZE + i, (n > 0 and i < 3) * 1)
    tl.store(out + 5 * SIZE + i, tl.full((SIZE,), n > 6 and n < 16, tl.int32))
    tl.store(out + 6 * SIZE + i, tl.full((SIZE,), n > 99 or not n < 0 and YES, tl.int32))
    if GUARD:
        if n < 0 and tl.load(out + (1 << 50)) > 0:
            tl.store(out + i, 7)


def _logic_case(guard: bool) -> str | None:
    _logic[(1,)](out := torch.empty(7, 8, dtype=torch.int32), 15, True, guard, 8)
    i = np.arange(8)
    expected = [(i >= 2) & (i < 5), (i < 2) | (i > 5), i >= 3, i > 1, i < 3, i >= 0, i >= 0]
    return differs(out.numpy(), np.stack(expected).astype(np.int32))


@triton.jit
def _least(x, out, SIZE: tl.constexpr):
    tl.store(out, tl.argmin(tl.load(x + tl.arange(0, SIZE)), 0))


def _index_of_the_least_beside_nan_case() -> str | None:  # compiled code ends with the last NaN
    _least[(1,)](torch.tensor([3.0, float("nan"), 1.0, float("nan")]), out := torch.empty(1, dtype=torch.int32), 4)
    return None if out.item() == 2 else f"{out.item()}, not 2: docs/debugging.md"


@triton.jit
def _to_fp8e4b15(x, out, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i).to(tl.float8e4b15).to(tl.uint8, bitcast=True))


def _fp8e4b15_case(source: str) -> str | None:
    """All of fp16; of fp32 all numbers of fp16, with those that lie next to them and between them."""
    with np.errstate(all="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        if source == "float32":
            sizes = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float32)
            between = np.append((sizes[1:] + sizes[:-1]) / 2, np.float32(np.nan))
            near = [np.nextafter(one, np.float32(to)) for one in (sizes, between) for to in (-1, np.inf)]
            x = np.concatenate([sign * one for sign in (1, -1) for one in (sizes, between, *near)]).astype(np.float32)
        half = x.astype(np.float16)
        half = np.where(np.abs(half) > np.abs(x), np.nextafter(half, np.float16(0)), half).astype(np.float64)
        codes = np.arange(0x7F)
        values = np.where(codes < 8, codes / 8 * 2.0**-14, (1 + codes % 8 / 8) * 2.0 ** (codes // 8 - 15))
        size = np.abs(half)
        expected = np.searchsorted((values[1:] + values[:-1]) / 2, size, side="right")
        expected = np.where(np.isnan(x), 0x7E, expected) | np.where(np.signbit(x), 0x80, 0)
    x, expected = (np.pad(one, (0, -len(x) % 2048)) for one in (x, expected))
    out = torch.zeros(len(x), dtype=torch.uint8)
    _to_fp8e4b15[(len(x) // 2048,)](torch.from_numpy(x), out, 2048)
    nan = np.isnan(x)  # whose sign is lost where fp32 becomes fp16
    got = out.numpy()
    return differs(np.where(nan, got & 0x7F, got), np.where(nan, 0x7E, expected))


def _all() -> Iterator[tuple[str, Callable[[], str | None]]]:
    def bind(function: Callable[..., str | None], *arguments: Any) -> tuple[str, Callable[[], str | None]]:
        words = " ".join(str(argument) for argument in arguments)
        return f"{function.__name__[1:-5].replace('_', ' ')} {words}", lambda: function(*arguments)

    yield bind(_float_and_large_integer_case)
    yield bind(_one_mask_for_all_case)
    yield from (bind(_logic_case, guard) for guard in (False, True))
    yield bind(_index_of_the_least_beside_nan_case)
    yield from (bind(_row_case, number, type_) for number, row in enumerate(ROWS) for type_ in row.types)
    yield "what differs", lambda: "; ".join(OTHERWISE.keys() - _SHOWN) or None
    yield from (bind(_fp8e4b15_case, name) for name in ("float16", "float32"))
    scaled = (("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2"), ("bfloat16", "bf16"))
    yield from (bind(_dot_scaled_case, *row) for row in scaled)
    yield from (bind(_atomic_add_case, name) for name in ["bfloat16", "float16", "float64"])
    yield from (bind(_padding_case, name) for name in ["bfloat16", "float16", "float32"])
    yield from (bind(_loop_case, form, name) for form in FORMS for name in ("int8", "int16", "uint8"))


FORMS = ["range", "tl.range", "bounds", "downwards"]
NAMES = [name for name, _ in _all()]


def main() -> int:
    results: dict[str, str | None] = {}
    for name, run in _all():
        try:
            results[name] = run()
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    json.dump(results, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
