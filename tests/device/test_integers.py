"""Integer and boolean arithmetic against NumPy: shifts past the width, divisions by zero, and what drivers fold.

What is defined for all numbers is in the table of functions (test_fuzz_functions.py).
"""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import INTEGERS, SIGNED, Guarded, assert_same, inputs, pairs, to_torch

SHAPES = ((1, 16, 1), (7, 8, 8), (31, 64, 2), (1023, 256, 4), (1000, 1024, 8))
OPERATIONS = ("div", "rem", "shl", "shr")


@triton.jit
def integer_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(a_ptr + at, mask), tl.load(b_ptr + at, mask)
    tl.store(out_ptr + at, a // b, mask)
    tl.store(out_ptr + n + at, a % b, mask)
    tl.store(out_ptr + 2 * n + at, a << b, mask)
    tl.store(out_ptr + 3 * n + at, a >> b, mask)


def python_result(op: str, a: int, b: int, bits: int) -> int:
    """The result on unbounded integers; wrapped by the caller."""
    if op == "div":
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if op == "rem":
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    amount = b & (2**bits - 1)
    if op == "shl":
        return a << amount if amount < bits else 0
    return a >> min(amount, bits)


def wrap(value: int, dtype: str) -> int:
    info = np.iinfo(dtype)
    return (value - int(info.min)) % 2**info.bits + int(info.min)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("n", "block", "warps"), SHAPES)
def test_arithmetic(dtype, n, block, warps):
    a, b = pairs(dtype, n)
    b[-n // 3 :] = np.random.default_rng(5).integers(1, 2 * np.iinfo(dtype).bits, b[-n // 3 :].size)
    out = Guarded((len(OPERATIONS), n), dtype)
    integer_kernel[(triton.cdiv(n, block),)](to_torch(a), to_torch(b), out.tensor, n, BLOCK=block, num_warps=warps)
    bits = np.iinfo(dtype).bits
    for op, row in zip(OPERATIONS, out.values(), strict=True):
        # A zero divisor gives some value, and may not stop the kernel.
        known = b != 0 if op in ("div", "rem") else np.ones(n, bool)
        expected = np.array(
            [wrap(python_result(op, int(x), int(y), bits), dtype) for x, y in zip(a[known], b[known], strict=True)],
            dtype,
        )
        assert_same(row[known], expected, op, a[known], b[known])


@triton.jit
def division_by_constant_kernel(a_ptr, out_ptr, n, DIVISOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, at < n)
    divisor = tl.full([BLOCK], DIVISOR, a.dtype)
    tl.store(out_ptr + at, a // divisor, at < n)
    tl.store(out_ptr + n + at, a % divisor, at < n)
    tl.store(out_ptr + 2 * n + at, a << tl.full([BLOCK], DIVISOR & 127, a.dtype), at < n)
    tl.store(out_ptr + 3 * n + at, a >> tl.full([BLOCK], DIVISOR & 127, a.dtype), at < n)


@pytest.mark.parametrize("divisor", (1, 2, 7, 64, 127, -1, -2, -7))
@pytest.mark.parametrize("dtype", ("int8", "int32", "int64", "uint8", "uint32", "uint64"))
def test_constant_operands(dtype, divisor):
    if divisor < 0 and dtype not in SIGNED:
        divisor = int(np.iinfo(dtype).max) + 1 + divisor
    a = inputs(dtype, 500)
    out = Guarded((4, 500), dtype)
    division_by_constant_kernel[(1,)](to_torch(a), out.tensor, 500, DIVISOR=divisor, BLOCK=512)
    bits = np.iinfo(dtype).bits
    for op, row in zip(("div", "rem", "shl", "shr"), out.values(), strict=True):
        operand = divisor & 127 if op in ("shl", "shr") else divisor
        expected = np.array([wrap(python_result(op, int(x), operand, bits), dtype) for x in a], dtype)
        assert_same(row, expected, f"{op} by {operand}", a)


@triton.jit
def division_by_argument_kernel(a_ptr, out_ptr, n, divisor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, at < n)
    tl.store(out_ptr + at, a // divisor, at < n)
    tl.store(out_ptr + n + at, a % divisor, at < n)
    tl.store(out_ptr + 2 * n + at, tl.cdiv(a, divisor), at < n)


@pytest.mark.parametrize("divisor", (1, 3, 16, -5, 2**31 - 1, 2**33))
def test_division_by_a_scalar_argument(divisor):
    a = inputs("int32", 300)
    out = Guarded((3, 300), "int64")
    division_by_argument_kernel[(1,)](to_torch(a), out.tensor, 300, divisor, BLOCK=512)
    wide = divisor >= 2**31
    quotient, remainder, ceiling = out.values()
    for op, row in (("div", quotient), ("rem", remainder)):
        expected = [python_result(op, int(x), divisor, 32) for x in a]
        if not wide:
            expected = [wrap(value, "int32") for value in expected]
        assert_same(row, np.array(expected, np.int64), op, a)
    numerators = [int(x) + divisor - 1 for x in a]
    if not wide:
        numerators = [wrap(value, "int32") for value in numerators]
    expected = [python_result("div", value, divisor, 32) for value in numerators]
    assert_same(ceiling, np.array(expected, np.int64), "cdiv", a)


@triton.jit
def double_width_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """a * b + (a << bits) + b of twice the width, as (low, high)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + at, at < n), tl.load(b_ptr + at, at < n)
    product = a * b
    low = product + b
    carry = (low < product).to(a.dtype)
    tl.store(out_ptr + at, low, at < n)
    tl.store(out_ptr + n + at, tl.umulhi(a, b) + a + carry, at < n)


@pytest.mark.parametrize("dtype", ("uint32", "uint64"))
@pytest.mark.parametrize("n", (1, 7, 129, 1001))
def test_arithmetic_of_twice_the_width(dtype, n):
    a, b = pairs(dtype, n)
    out = Guarded((2, n), dtype, offset=1)
    double_width_kernel[(triton.cdiv(n, 64),)](to_torch(a), to_torch(b), out.tensor, n, BLOCK=64)
    bits = np.iinfo(dtype).bits
    exact = [int(x) * int(y) + (int(x) << bits) + int(y) for x, y in zip(a, b, strict=True)]
    expected = np.array([[wrap(value >> shift, dtype) for value in exact] for shift in (0, bits)], dtype)
    assert_same(out.values(), expected, "twice the width")


@triton.jit
def widened_product_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + at, at < n), tl.load(b_ptr + at, at < n)
    tl.store(out_ptr + at, (a.to(tl.int64) * b.to(tl.int64)) >> 32, at < n)
    tl.store(
        out_ptr + n + at,
        (a.to(tl.uint32, bitcast=True).to(tl.uint64) * b.to(tl.uint32, bitcast=True)).to(tl.int64, bitcast=True),
        at < n,
    )


@pytest.mark.parametrize("n", (1, 33, 1001))
def test_products_of_widened_operands(n):
    """Signed: the high half of int32 products; unsigned: all 64 bits of uint32 products."""
    a, b = pairs("int32", n)
    out = Guarded((2, n), "int64", offset=1)
    widened_product_kernel[(triton.cdiv(n, 128),)](to_torch(a), to_torch(b), out.tensor, n, BLOCK=128)
    expected = np.array(
        [
            [int(x) * int(y) >> 32 for x, y in zip(a, b, strict=True)],
            [wrap((int(x) % 2**32) * (int(y) % 2**32), "int64") for x, y in zip(a, b, strict=True)],
        ]
    )
    assert_same(out.values(), expected, "widened")


# -- booleans ----------------------------------------------------------------------------------------------------
BOOLEAN = ("and", "or", "xor", "not", "add", "mul", "min", "max", "where", "sub")


@triton.jit
def boolean_kernel(a_ptr, b_ptr, out_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(a_ptr + at, mask), tl.load(b_ptr + at, mask)
    tl.store(out_ptr + at, a & b, mask)
    tl.store(out_ptr + n + at, a | b, mask)
    tl.store(out_ptr + 2 * n + at, a ^ b, mask)
    tl.store(out_ptr + 3 * n + at, a == 0, mask)
    tl.store(out_ptr + 4 * n + at, a + b, mask)
    tl.store(out_ptr + 5 * n + at, a * b, mask)
    tl.store(out_ptr + 6 * n + at, tl.minimum(a, b), mask)
    tl.store(out_ptr + 7 * n + at, tl.maximum(a, b), mask)
    tl.store(out_ptr + 8 * n + at, tl.where(a, b, ~b), mask)
    tl.store(out_ptr + 9 * n + at, a - b, mask)
    tl.store(sum_ptr + at, a.to(tl.int32) * 10 + b.to(tl.int64), mask)


def test_booleans():
    n = 100
    a, b = inputs("bool", n, 1), inputs("bool", n, 2)
    out, total = Guarded((len(BOOLEAN), n), "bool"), Guarded(n, "int64")
    boolean_kernel[(1,)](to_torch(a), to_torch(b), out.tensor, total.tensor, n, BLOCK=128)
    rows = dict(zip(BOOLEAN, out.values(), strict=True))
    # Adding i1 wraps modulo 2.
    expected = {
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "not": ~a,
        "add": a ^ b,
        "mul": a & b,
        "min": a & b,
        "max": a | b,
        "where": np.where(a, b, ~b),
        "sub": a ^ b,
    }
    for name, row in rows.items():
        assert_same(row, expected[name], name, a, b)
    assert_same(total.values(), a.astype(np.int64) * 10 + b, "widened")


@triton.jit
def boolean_argument_kernel(out_ptr, flag, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.where(flag, at, -at)
    if flag:
        value += 1000
    tl.store(out_ptr + at, value)


@pytest.mark.parametrize("flag", (True, False))
def test_boolean_argument(flag):
    out = Guarded(32, "int32")
    boolean_argument_kernel[(1,)](out.tensor, flag, BLOCK=32)
    at = np.arange(32, dtype=np.int32)
    assert_same(out.values(), at + 1000 if flag else -at, "flag")


@triton.jit
def compared_in_a_loop(out, limit: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for start in range(0, 2 * BLOCK, BLOCK):  # the driver unrolls it, and finds start + at to be at
        index = start.to(tl.int64) + at.to(tl.int64)
        less, least = (index < limit).to(tl.int32), (index >= limit).to(tl.int32)
        tl.store(
            out + start + at, less + 2 * (index <= limit).to(tl.int32) + 4 * (index > limit).to(tl.int32) + 8 * least
        )


@pytest.mark.parametrize("limit", [0, 1, 5, 20, 40, -3, 1 << 31, -(1 << 31), 1 << 40, -(1 << 40)])
def test_a_sum_that_the_driver_finds_to_be_sign_extended(limit: int) -> None:
    """Mesa 22.3 compares it with a 64-bit constant in 32 bits, and gets that wrong."""
    out = torch.zeros(32, dtype=torch.int32)
    compared_in_a_loop[(1,)](out, limit, 16)
    i = np.arange(32)
    wanted = (i < limit) + 2 * (i <= limit) + 4 * (i > limit) + 8 * (i >= limit)
    np.testing.assert_array_equal(out.numpy(), wanted)
