"""Matrix multiplication in the microscaling formats (OCP Microscaling Formats specification 1.0).

Elements are 4 or 8 bits wide; each run of 32 along K shares a scale, a power of two held in one byte. ``tl.dot_scaled``
takes both. Devices without such instructions multiply bfloat16 numbers, which hold every scaled element exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone

#: Elements that share a scale.
RUN = 32

#: Format → (exponent bits, mantissa bits, bias).
FORMATS = {"e2m1": (2, 1, 1), "e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}


@triton.jit
def scaled_kernel(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    RUN: tl.constexpr,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
):
    a_pack: tl.constexpr = 2 if A_FORMAT == "e2m1" else 1
    b_pack: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_steps, b_steps = tl.arange(0, BLOCK_K // a_pack), tl.arange(0, BLOCK_K // b_pack)
    runs = tl.arange(0, BLOCK_K // RUN)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(
            a_ptr + rows[:, None] * (k // a_pack) + (start // a_pack + a_steps)[None, :],
            mask=rows[:, None] < m,
            other=0,
        )
        b = tl.load(
            b_ptr + (start // b_pack + b_steps)[:, None] * n + columns[None, :], mask=columns[None, :] < n, other=0
        )
        at = (start // RUN + runs)[None, :]
        a_scale = tl.load(a_scale_ptr + rows[:, None] * (k // RUN) + at, mask=rows[:, None] < m, other=127)
        b_scale = tl.load(b_scale_ptr + columns[:, None] * (k // RUN) + at, mask=columns[:, None] < n, other=127)
        total = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc=total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


def scaled_matmul(
    a: Any, a_scale: Any, b: Any, b_scale: Any, c: Any, m: int, n: int, k: int, a_format: str, b_format: str
) -> None:
    """``c = a @ b`` of scaled elements. a is (m, k), b is (k, n), both packed along k; a_scale is (m, k / 32), b_scale
    is (n, k / 32). ``k`` is a multiple of 64."""
    scaled_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a,
        a_scale,
        b,
        b_scale,
        c,
        m,
        n,
        k,
        BLOCK_M=32,
        BLOCK_N=32,
        BLOCK_K=64,
        RUN=RUN,
        A_FORMAT=a_format,
        B_FORMAT=b_format,
    )


def decode(codes: np.ndarray, name: str) -> np.ndarray:
    """Codes of a format as float64; e4m3's NaN and e5m2's infinities and NaN are not among them here."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    exponent = (codes >> mantissa_bits & (1 << exponent_bits) - 1).astype(np.int32)
    mantissa = (codes & (1 << mantissa_bits) - 1) / 2**mantissa_bits
    value = np.where(exponent == 0, np.ldexp(mantissa, 1 - bias), np.ldexp(1 + mantissa, exponent - bias))
    return np.where(codes >> (exponent_bits + mantissa_bits) & 1, -value, value)


def operand(random: np.random.Generator, rows: int, k: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(bytes, scales, value in float64) of a random (rows, k) operand: finite elements from 1/8 to 16, and zeros."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    exponent = random.integers(max(0, bias - 3), min(bias + 4, 1 << exponent_bits), (rows, k))
    codes = (exponent << mantissa_bits | random.integers(0, 1 << mantissa_bits, (rows, k))).astype(np.uint8)
    codes[random.random((rows, k)) < 0.1] = 0
    codes |= (random.integers(0, 2, (rows, k)) << (exponent_bits + mantissa_bits)).astype(np.uint8)
    scales = random.integers(120, 134, (rows, k // RUN)).astype(np.uint8)
    value = decode(codes, name) * np.repeat(np.exp2(scales.astype(np.float64) - 127), RUN, axis=1)
    packed = codes[:, ::2] | codes[:, 1::2] << 4 if name == "e2m1" else codes
    return np.ascontiguousarray(packed), scales, value


def case(a_format: str, b_format: str, m: int = 100, n: int = 70, k: int = 192) -> Case:
    """A product of two formats."""
    random = np.random.default_rng(0)
    a, a_scale, a_value = operand(random, m, k, a_format)
    b, b_scale, b_value = operand(random, n, k, b_format)
    b = np.ascontiguousarray(b.T)
    c = np.zeros((m, n), np.float32)
    arguments = [device_array(array) for array in (a, a_scale, b, b_scale, c)]
    expected = a_value @ b_value.T
    return Case(
        "block-scaled matmul",
        f"{m}×{n}×{k} mx{a_format} × mx{b_format}",
        lambda: scaled_matmul(*arguments, m, n, k, a_format, b_format),
        c,
        expected,
        operations=2 * m * n * k,
        tolerance=1e-6 * float((np.abs(a_value) @ np.abs(b_value).T).max()),
    )


def cases() -> list[Case]:
    """Four bits, eight bits, and both."""
    return [case("e2m1", "e2m1"), case("e4m3", "e5m2"), case("e2m1", "e4m3")]


if __name__ == "__main__":
    run_alone(cases)
