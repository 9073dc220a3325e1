"""Inline PTX of arithmetic, against the same in NumPy."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import (
    Guarded,
    accepted,
    assert_one_of,
    assert_ulp,
    computes_with_subnormals,
    device_capabilities,
    inputs,
    pairs,
    to_torch,
)
from tests.interpreter.cases import _fp8e4b15_case

COUNT = 301

Array = np.ndarray[Any, Any]


@triton.jit
def apply(
    x_ptr, y_ptr, z_ptr, out_ptr, n,
    ASM: tl.constexpr, REGISTERS: tl.constexpr, ARGUMENTS: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0)
    z = tl.load(z_ptr + offsets, mask=offsets < n, other=0)
    if ARGUMENTS == 1:
        out = tl.inline_asm_elementwise(ASM, REGISTERS, [x], dtype=out_ptr.dtype.element_ty, is_pure=True, pack=1)
    elif ARGUMENTS == 2:
        out = tl.inline_asm_elementwise(ASM, REGISTERS, [x, y], dtype=out_ptr.dtype.element_ty, is_pure=True, pack=1)
    else:
        out = tl.inline_asm_elementwise(ASM, REGISTERS, [x, y, z], dtype=out_ptr.dtype.element_ty, is_pure=True, pack=1)
    tl.store(out_ptr + offsets, out, mask=offsets < n)


def run(asm: str, registers: str, result: str, *operands: Array) -> Array:
    """What ``asm`` gives for the operands, from addresses that are not aligned."""
    out = Guarded(COUNT, result, offset=1)
    given = [to_torch(operand) for operand in operands]
    padded = [*given, *[given[-1]] * (3 - len(given))]
    apply[(1,)](*padded, out.tensor, COUNT, asm, registers, len(operands), 512)
    return out.values()


LETTER = {"int16": "h", "int32": "r", "int64": "l", "float32": "f", "float64": "d"}


@dataclass(frozen=True)
class Case:
    """``asm`` of operands of type ``of``, and its reference."""

    asm: str
    of: str
    reference: Callable[..., Array]
    result: str = ""

    @property
    def arguments(self) -> int:
        """How many it has."""
        return sum(f"${index}" in self.asm for index in range(1, 4))

    def operands(self) -> list[Array]:
        """Special values of the type in all pairs, as far as they fit, then random ones."""
        third = inputs(self.of, COUNT, 7)
        return [*pairs(self.of, COUNT), third][: self.arguments] if self.arguments > 1 else [inputs(self.of, COUNT)]

    def run(self) -> tuple[Array, list[Array]]:
        """What the device gives, and the operands."""
        operands = self.operands()
        letter, result = LETTER[self.of], self.result or self.of
        registers = ",".join([f"={LETTER[result]}", *[letter] * self.arguments])
        return run(self.asm, registers, result, *operands), operands


def u(x: Array) -> Array:
    """As unsigned numbers."""
    return x.view(f"u{x.dtype.itemsize}")


def shifted(x: Array, amount: Array, left: bool) -> Array:
    """PTX's shifts: the amount is unsigned, and past the width everything is shifted out."""
    width = 8 * x.dtype.itemsize
    count = np.minimum(u(amount).astype(np.uint64), width - 1).astype(x.dtype)
    past = u(amount) >= width
    if left:
        return np.where(past, x.dtype.type(0), x << count)
    return np.where(past & (x.dtype.kind == "u"), x.dtype.type(0), x >> count)


def funnel(low: Array, high: Array, amount: Array, left: bool, clamp: bool) -> Array:
    """The 64 bits ``high:low`` shifted: the upper half to the left, the lower to the right."""
    pool = u(high).astype(np.uint64) << np.uint64(32) | u(low)
    count = np.minimum(u(amount), 32) if clamp else u(amount) & 31
    count = count.astype(np.uint64)
    return (((pool << count) >> np.uint64(32)) if left else pool >> count).astype(np.uint32)


def field(x: Array, start: Array, length: Array, signed: bool) -> Array:
    """bfe, bit by bit as the PTX ISA has it in pseudo-code."""
    found = []
    for value, first, count in zip(u(x).tolist(), (u(start) & 0xFF).tolist(), (u(length) & 0xFF).tolist(), strict=True):
        last = min(first + count - 1, 31)
        sign = value >> last & 1 if signed and count else 0
        bits = 0
        for place in range(32):
            inside = place < count and first + place <= 31
            bits |= (value >> (first + place) & 1 if inside else sign) << place
        found.append(bits)
    return np.array(found, np.uint32)


def inserted(x: Array, into: Array, start: int, length: int) -> Array:
    """bfi with constants."""
    mask = np.uint32((1 << length) - 1 << start & 0xFFFFFFFF)
    return (u(x) << start & mask) | (u(into) & ~mask)


def saturated(x: Array) -> Array:
    """Clamped to the range of s32."""
    return np.clip(x, -(2**31), 2**31 - 1).astype(np.int32)


def remainder(a: Array, b: Array) -> Array:
    """With the sign of ``a``."""
    return np.array([int(np.fmod(int(x), int(y))) if abs(int(x)) < 2**52 else 0 for x, y in zip(a, b, strict=True)])


W = np.int64
INTEGER = [
    Case("add.s32 $0, $1, $2;", "int32", lambda a, b: a + b),
    Case("sub.u32 $0, $1, $2;", "int32", lambda a, b: a - b),
    Case("add.sat.s32 $0, $1, $2;", "int32", lambda a, b: saturated(a.astype(W) + b)),
    Case("sub.sat.s32 $0, $1, $2;", "int32", lambda a, b: saturated(a.astype(W) - b)),
    Case("mul.lo.s32 $0, $1, $2;", "int32", lambda a, b: a * b),
    Case("mul.hi.s32 $0, $1, $2;", "int32", lambda a, b: (a.astype(W) * b) >> 32),
    Case("mul.hi.u32 $0, $1, $2;", "int32", lambda a, b: (u(a).astype(np.uint64) * u(b)) >> np.uint64(32)),
    Case("mul.wide.s32 $0, $1, $2;", "int32", lambda a, b: a.astype(W) * b, "int64"),
    Case("mul.wide.u32 $0, $1, $2;", "int32", lambda a, b: u(a).astype(np.uint64) * u(b), "int64"),
    Case("mul.wide.s16 $0, $1, $2;", "int16", lambda a, b: a.astype(W) * b, "int32"),
    Case("mul.hi.s16 $0, $1, $2;", "int16", lambda a, b: (a.astype(W) * b) >> 16),
    Case("mul.hi.u16 $0, $1, $2;", "int16", lambda a, b: (u(a).astype(W) * u(b)) >> 16),
    Case("mad.lo.s32 $0, $1, $2, $3;", "int32", lambda a, b, c: a * b + c),
    Case("mul24.lo.s32 $0, $1, $2;", "int32", lambda a, b: (a << 8 >> 8).astype(W) * (b << 8 >> 8)),
    Case("min.s32 $0, $1, $2;", "int32", np.minimum),
    Case("max.u32 $0, $1, $2;", "int32", lambda a, b: np.maximum(u(a), u(b))),
    Case("min.s16 $0, $1, $2;", "int16", np.minimum),
    Case("abs.s32 $0, $1;", "int32", np.abs),
    Case("neg.s64 $0, $1;", "int64", lambda a: -a),
    Case("sad.s32 $0, $1, $2, $3;", "int32", lambda a, b, c: np.abs(a.astype(W) - b) + c),
    Case("shl.b32 $0, $1, $2;", "int32", lambda a, b: shifted(a, b, left=True)),
    Case("shr.s32 $0, $1, $2;", "int32", lambda a, b: shifted(a, b, left=False)),
    Case("shr.u32 $0, $1, $2;", "int32", lambda a, b: shifted(u(a), u(b), left=False)),
    Case("shl.b32 $0, $1, 3;", "int32", lambda a: a << 3),
    Case("shf.l.wrap.b32 $0, $1, $2, $3;", "int32", lambda a, b, c: funnel(a, b, c, left=True, clamp=False)),
    Case("shf.r.clamp.b32 $0, $1, $2, $3;", "int32", lambda a, b, c: funnel(a, b, c, left=False, clamp=True)),
    Case("lop3.b32 $0, $1, $2, $3, 0xE4;", "int32", lambda a, b, c: (a & c) | (b & ~c)),
    Case("lop3.b32 $0, $1, $2, $3, 0x96;", "int32", lambda a, b, c: a ^ b ^ c),
    Case("bfe.u32 $0, $1, $2, $3;", "int32", lambda a, b, c: field(a, b, c, signed=False)),
    Case("bfe.s32 $0, $1, $2, $3;", "int32", lambda a, b, c: field(a, b, c, signed=True)),
    Case("bfi.b32 $0, $1, $2, 5, 9;", "int32", lambda a, b: inserted(a, b, 5, 9)),
    Case("and.b64 $0, $1, $2;", "int64", lambda a, b: a & b),
    Case("xor.b16 $0, $1, $2;", "int16", lambda a, b: a ^ b),
    Case("cnot.b32 $0, $1;", "int32", lambda a: a == 0),
    Case("popc.b64 $0, $1;", "int64", lambda a: [x.bit_count() for x in u(a).tolist()], "int32"),
    Case("clz.b32 $0, $1;", "int32", lambda a: [32 - x.bit_length() for x in u(a).tolist()]),
    Case("brev.b32 $0, $1;", "int32", lambda a: [int(f"{x:032b}"[::-1], 2) for x in u(a).tolist()]),
    Case("dp4a.s32 $0, $1, $2, $3;", "int32", lambda a, b, c: dot_of_bytes(a, b, c)),
    Case("cvt.s32.s16 $0, $1;", "int16", lambda a: a, "int32"),
    Case("cvt.u32.u16 $0, $1;", "int16", u, "int32"),
    Case("cvt.s64.s32 $0, $1;", "int32", lambda a: a, "int64"),
    Case("{ .reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {b, a}; }", "int32", lambda a: a << 16 | u(a) >> 16),
    Case("{ .reg .b32 t<2>; mov.b64 {t0, t1}, $1; add.u32 $0, t0, t1; }", "int64", lambda a: a + (a >> 32), "int32"),
    Case("{ .reg .pred p, q; setp.lt.s32 p|q, $1, $2; selp.s32 $0, $1, $2, q; }", "int32", np.maximum),
    Case("{ .reg .pred p; setp.lo.u32 p, $1, $2; @p mov.u32 $0, 1; @!p mov.u32 $0, 2; }", "int32",
         lambda a, b: np.where(u(a) < u(b), 1, 2)),
    Case("{ .reg .pred p; setp.eq.s32 p, $2, 0; @!p div.s32 $0, 7, $2; @p mov.b32 $0, $1; }", "int32",
         lambda a, b: np.where(b == 0, a, np.trunc(7 / np.where(b == 0, 1, b)))),
    Case("slct.s32.s32 $0, $1, $2, $3;", "int32", lambda a, b, c: np.where(c >= 0, a, b)),
    Case("set.le.u32.s32 $0, $1, $2;", "int32", lambda a, b: -(a <= b).astype(np.int32)),
]  # fmt: skip


def dot_of_bytes(a: Array, b: Array, c: Array) -> Array:
    """The sum of the products of the signed bytes, and ``c``."""
    left, right = (x.view(np.int8).reshape(-1, 4).astype(W) for x in (a, b))
    return (left * right).sum(axis=1) + c


@pytest.mark.parametrize("case", INTEGER, ids=lambda case: case.asm)
def test_integers(case: Case) -> None:
    if case.asm.startswith("dp4a"):
        case = Case(case.asm.replace(".s32.s32", ".s32"), case.of, case.reference)
    actual, operands = case.run()
    with np.errstate(all="ignore"):
        expected = np.asarray(case.reference(*operands))
    np.testing.assert_array_equal(actual, expected.astype(W, copy=False).astype(actual.dtype))


def extreme(largest: bool, nan: bool = False) -> Callable[[Array, Array], Array]:
    """min and max, with -0 before +0."""

    def reference(a: Array, b: Array) -> Array:
        first = (a < b) | ((a == b) & (np.signbit(a) & ~np.signbit(b)))
        value = np.where(first != largest, a, b)
        if nan:
            return np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), value)
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, value))

    return reference


def to_zero(x: Array) -> Array:
    """Subnormal f32 numbers as zero."""
    return np.where(np.abs(x) < 2.0**-126, np.copysign(np.float32(0), x), x).astype(np.float32)


def through(x: Array, dtype: Any) -> Array:
    """Rounded to a narrower format."""
    return x.astype(dtype).astype(np.float32)


def clamped(x: Array) -> Array:
    """``.sat``."""
    return np.where(x > 0, np.minimum(x, 1), 0).astype(np.float32)


def integral(x: Array, rounded: Callable[[Array], Array], low: int, high: int) -> Array:
    """A float as an integer, clamped; NaN is 0."""
    return np.clip(np.nan_to_num(rounded(x.astype(np.float64)), nan=0.0, posinf=high, neginf=low), low, high)


S = np.float32
FLOAT = [
    Case("mov.f32 $0, $1;", "float32", lambda a: a),
    Case("add.rn.f32 $0, $1, $2;", "float32", np.add),
    Case("mul.ftz.f32 $0, $1, 0f40400000;", "float32", lambda a: to_zero(to_zero(a) * S(3))),
    Case("sub.f32 $0, $1, 1.5;", "float32", lambda a: a - S(1.5)),
    Case("add.sat.f32 $0, $1, $2;", "float32", lambda a, b: clamped(a + b)),
    Case("fma.rn.f64 $0, $1, $2, 0d3FF0000000000000;", "float64", lambda a, b: a * b + 1),
    Case("div.rn.f32 $0, $1, $2;", "float32", np.divide),
    Case("rcp.rn.f32 $0, $1;", "float32", lambda a: S(1) / a),
    Case("sqrt.rn.f32 $0, $1;", "float32", np.sqrt),
    Case("abs.f32 $0, $1;", "float32", np.abs),
    Case("neg.f32 $0, $1;", "float32", np.negative),
    Case("copysign.f32 $0, $1, $2;", "float32", lambda a, b: np.copysign(b, a)),
    Case("min.f32 $0, $1, $2;", "float32", extreme(largest=False)),
    Case("max.NaN.f32 $0, $1, $2;", "float32", extreme(largest=True, nan=True)),
    Case("max.xorsign.abs.f32 $0, $1, $2;", "float32",
         lambda a, b: np.copysign(extreme(largest=True)(np.abs(a), np.abs(b)), np.copysign(1, a) * np.copysign(1, b))),
    Case("{ .reg .b16 h; cvt.rn.f16.f32 h, $1; cvt.f32.f16 $0, h; }", "float32", lambda a: through(a, np.float16)),
    Case("{ .reg .b16 h; cvt.rn.bf16.f32 h, $1; cvt.f32.bf16 $0, h; }", "float32",
         lambda a: through(a, ml_dtypes.bfloat16)),
    Case("cvt.rzi.f32.f32 $0, $1;", "float32", np.trunc),
    Case("cvt.rn.f32.f64 $0, $1;", "float64", lambda a: a.astype(S), "float32"),
    Case("cvt.rni.s32.f32 $0, $1;", "float32", lambda a: integral(a, np.rint, -(2**31), 2**31 - 1), "int32"),
    Case("cvt.rzi.u16.f32 $0, $1;", "float32", lambda a: integral(a, np.trunc, 0, 2**16 - 1), "int16"),
    Case("{ .reg .pred p; testp.notanumber.f32 p, $1; selp.b32 $0, 1, 0, p; }", "float32", np.isnan, "int32"),
    Case("{ .reg .pred p; setp.geu.f32 p, $1, $2; selp.b32 $0, 1, 0, p; }", "float32",
         lambda a, b: ~(a < b), "int32"),
    Case("{ .reg .pred p; setp.ne.f32 p, $1, $2; selp.b32 $0, 1, 0, p; }", "float32",
         lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b), "int32"),
]  # fmt: skip


@pytest.mark.parametrize("case", FLOAT, ids=lambda case: case.asm)
def test_floats(case: Case) -> None:
    actual, operands = case.run()
    with np.errstate(all="ignore"):
        expected = [
            np.asarray(values).astype(W, copy=False).astype(actual.dtype) if actual.dtype.kind == "i" else values
            for values in accepted(lambda *x: np.asarray(case.reference(*x)), *operands, result=actual.dtype)
        ]
    if "fma" in case.asm or actual.dtype.kind == "f" and "xorsign" in case.asm:
        keep = ~np.isnan(expected[0])  # NumPy rounds twice, and a NaN has no sign
        tolerance = 1e-15 if "fma" in case.asm else 0
        np.testing.assert_allclose(actual[keep], expected[0][keep], rtol=tolerance)
        return
    assert_one_of(actual, expected, *operands, what=case.asm)


APPROXIMATE = {
    "ex2.approx.ftz.f32 $0, $1;": np.exp2,
    "lg2.approx.f32 $0, $1;": np.log2,
    "rcp.approx.ftz.f32 $0, $1;": lambda x: 1 / x,
    "rsqrt.approx.f32 $0, $1;": lambda x: 1 / np.sqrt(x),
    "sqrt.approx.f32 $0, $1;": np.sqrt,
    "tanh.approx.f32 $0, $1;": np.tanh,
    "sin.approx.f32 $0, $1;": np.sin,
    "{ mul.ftz.f32 $0, $1, 0fBFB8AA3B; ex2.approx.ftz.f32 $0, $0; }": lambda x: np.exp(-x),
}


@pytest.mark.parametrize("asm", APPROXIMATE)
def test_approximations_are_near(asm: str) -> None:
    x = np.linspace(0.01, 9, COUNT).astype(np.float32)
    actual = run(asm, "=f,f", "float32", x)
    assert_ulp(actual, APPROXIMATE[asm](x.astype(np.float64)), "float32", 16 if "mul" in asm else 4, asm)


# -- packs -------------------------------------------------------------------------------------------------------
@triton.jit
def bytes_to_halves(x_ptr, low_ptr, high_ptr, n, N: tl.constexpr):
    """The example of tl.inline_asm_elementwise's own documentation, in part: four bytes in a register, two results."""
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    low, high = tl.inline_asm_elementwise(
        """
        {
            .reg .b8 t<4>;          // the bytes of $4
            .reg .b32 nibbles;
            and.b32 nibbles, $4, 0x0F0F0F0F;
            mov.b32 {t0, t1, t2, t3}, nibbles;
            { .reg .b16 a, b; cvt.u16.u8 a, t0; cvt.u16.u8 b, t1; mov.b32 $0, {a, b}; }
            { .reg .b16 a, b; cvt.u16.u8 a, t2; cvt.u16.u8 b, t3; mov.b32 $1, {a, b}; }
            shr.b32 nibbles, $4, 4;
            and.b32 nibbles, nibbles, 0x0F0F0F0F;
            prmt.b32 $2, nibbles, 0, 0x4140;
            prmt.b32 $3, nibbles, 0, 0x4342;
        }
        """,
        "=r,=r,=r,=r,r",
        [x],
        dtype=(tl.int16, tl.int16),
        is_pure=True,
        pack=4,
    )
    tl.store(low_ptr + offsets, low, mask=offsets < n)
    tl.store(high_ptr + offsets, high, mask=offsets < n)


@pytest.mark.parametrize(("size", "warps"), [(512, 1), (512, 4), (4, 4)])
def test_bytes_share_registers_and_there_may_be_two_results(size: int, warps: int) -> None:
    count = min(COUNT, size - 1)
    x = np.random.default_rng(0).integers(0, 256, count, dtype=np.uint8)
    low, high = Guarded(count, "int16", offset=1), Guarded(count, "int16", offset=3)
    bytes_to_halves[(1,)](to_torch(x), low.tensor, high.tensor, count, size, num_warps=warps)
    np.testing.assert_array_equal(low.values(), x & 15)
    np.testing.assert_array_equal(high.values(), x >> 4)


@triton.jit
def halves(x_ptr, y_ptr, out_ptr, n, ASM: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0)
    out = tl.inline_asm_elementwise(ASM, "=r,r,r", [x, y], dtype=x.dtype, is_pure=True, pack=2)
    tl.store(out_ptr + offsets, out, mask=offsets < n)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("operation", ["mul", "fma.rn", "fma.rn.sat", "max"])
def test_two_halves_in_a_register(name: str, operation: str) -> None:
    x, y = pairs(name, COUNT)
    kind = {"float16": "f16x2", "bfloat16": "bf16x2"}[name]
    out = Guarded(COUNT, name)
    third = ", $1" if "fma" in operation else ""
    halves[(1,)](to_torch(x), to_torch(y), out.tensor, COUNT, f"{operation}.{kind} $0, $1, $2{third};", 512)

    def reference(a: Array, b: Array, least: float = 0.0) -> Array:
        """``least``: products below it are 0."""
        if operation == "max":
            return extreme(largest=True)(a.astype(S), b.astype(S)).astype(x.dtype)
        wide = a.astype(np.float64) * b.astype(np.float64)
        wide = np.where(np.abs(wide) < least, 0, wide)
        value = (wide + a.astype(np.float64) if third else wide).astype(x.dtype)
        return clamped(value.astype(S)).astype(x.dtype) if "sat" in operation else value

    with np.errstate(all="ignore"):
        expected = accepted(reference, x, y)
        if third and not computes_with_subnormals():  # of float32, in which products of bfloat16 are added
            expected += accepted(partial(reference, least=float(np.finfo(S).tiny)), x, y)
    # float64 → bfloat16 by way of float32 rounds twice, and bfloat16's fma may be of flushed products
    near = [np.nextafter(expected[0], expected[0].dtype.type(to)) for to in (-np.inf, np.inf)] if third else []
    assert_one_of(out.values(), [*expected, *near], x, y, what=operation)


@triton.jit
def to_fp8(x_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    bits = tl.inline_asm_elementwise(
        "{ .reg .b16 packed; cvt.rn.satfinite.e4m3x2.f32 packed, $1, $1; cvt.u32.u16 $0, packed; }",
        "=r,f",
        [x],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out_ptr + offsets, bits.to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32), mask=offsets < n)


def test_fp8_is_rounded_once() -> None:
    x = np.linspace(-500, 500, COUNT).astype(np.float32)
    out = Guarded(COUNT, "float32")
    to_fp8[(1,)](to_torch(x), out.tensor, COUNT, 512)
    expected = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(out.values(), expected)


def test_fp4_is_rounded_once() -> None:
    """e2m1 (ml_dtypes' float4_e2m1fn), the first operand in the upper half."""
    rng = np.random.default_rng(1)
    x, y = ((rng.integers(-56, 57, COUNT) / 8).astype(np.float32) for _ in range(2))
    x[:3], y[:3] = (np.nan, np.inf, -np.inf), (-0.0, 0.25, -0.75)
    asm = "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, $1, $2; mov.b32 $0, {t, t, t, t}; and.b32 $0, $0, 255; }"
    actual = run(asm, "=r,f,f", "int32", x, y)

    def codes(values: Array) -> Array:
        found = np.clip(values, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).astype(np.int32)
        return np.where(np.isnan(values), 7, found & 15)

    np.testing.assert_array_equal(actual, codes(x) << 4 | codes(y))


@triton.jit
def eight_numbers(codes_ptr, out_ptr, N: tl.constexpr):
    """Words of eight e2m1 numbers, of which four are taken out."""
    at = tl.arange(0, N)
    parts = tl.inline_asm_elementwise(
        """{
            .reg .b8 b0, b1, b2, b3; .reg .b32 p0, p1;
            mov.b32 {b0, b1, b2, b3}, $4;
            cvt.rn.f16x2.e2m1x2 p0, b0;
            cvt.rn.f16x2.e2m1x2 p1, b3;
            mov.b32 {$0, $1}, p0;
            mov.b32 {$2, $3}, p1;
        }""",
        "=h,=h,=h,=h,r",
        [tl.load(codes_ptr + at)],
        dtype=(tl.float16, tl.float16, tl.float16, tl.float16),
        is_pure=True,
        pack=1,
    )
    for i in tl.static_range(4):
        tl.store(out_ptr + i * N + at, parts[i])


def test_fp4_is_unpacked() -> None:
    words = np.random.default_rng(3).integers(0, 1 << 32, 64, dtype=np.uint32)
    words[0] = 0x76543210
    out = Guarded((4, 64), "float16")
    eight_numbers[(1,)](to_torch(words.view(np.int32)), out.tensor, 64)
    codes = np.stack([words >> shift & 15 for shift in (0, 4, 24, 28)]).astype(np.uint8)
    np.testing.assert_array_equal(out.values(), codes.view(ml_dtypes.float4_e2m1fn).astype(np.float16))


@triton.jit
def at_random(x_ptr, random_ptr, out_ptr, ASM: tl.constexpr, N: tl.constexpr):
    """Four numbers, or two, of each row of four."""
    at = tl.arange(0, N)
    code = tl.inline_asm_elementwise(
        ASM,
        "=r,f,f,f,f,r",
        [
            tl.load(x_ptr + 4 * at),
            tl.load(x_ptr + 4 * at + 1),
            tl.load(x_ptr + 4 * at + 2),
            tl.load(x_ptr + 4 * at + 3),
            tl.load(random_ptr + at),
        ],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out_ptr + at, code)


FOUR, TWO = "{$1, $2, $3, $4}, $5", "$3, $4, $5"


@pytest.mark.parametrize(
    ("name", "dtype", "bits", "asm"),
    [
        ("e4m3", ml_dtypes.float8_e4m3fn, 8, f"cvt.rs.satfinite.e4m3x4.f32 $0, {FOUR};"),
        ("e5m2", ml_dtypes.float8_e5m2, 8, f"cvt.rs.satfinite.e5m2x4.f32 $0, {FOUR};"),
        ("e2m1", ml_dtypes.float4_e2m1fn, 8,
         f"{{ .reg .b16 t; cvt.rs.satfinite.e2m1x4.f32 t, {FOUR}; cvt.u32.u16 $0, t; }}"),
        ("f16", np.float16, 13, f"cvt.rs.satfinite.f16x2.f32 $0, {TWO};"),
        ("bf16", ml_dtypes.bfloat16, 16, f"cvt.rs.satfinite.bf16x2.f32 $0, {TWO};"),
        ("f16 to infinity", np.float16, 13, f"cvt.rs.f16x2.f32 $0, {TWO};"),
    ],
)  # fmt: skip
def test_rounding_at_random(name: str, dtype: Any, bits: int, asm: str) -> None:
    """A number goes to the next one where the random number and the first discarded bits carry."""
    count, rng = 256, np.random.default_rng(6)
    width = 4 if name == "e2m1" else np.dtype(dtype).itemsize * 8
    grid = np.arange(1 << (width - 1), dtype=np.uint16 if width == 16 else np.uint8).view(dtype).astype(np.float64)
    grid = np.sort(grid[np.isfinite(grid)])
    x = rng.choice(grid, (count, 4)) * rng.uniform(0.98, 1.02, (count, 4)) * rng.choice([-1, 1], (count, 4))
    x = np.clip(x, -3e38, 3e38).astype(np.float32)
    x[0], x[1] = (0.0, -0.0, np.inf, -np.inf), (np.nan, 1.0, np.nan, 1e-38)
    random = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    out = np.zeros(count, np.int32)
    at_random[(1,)](to_torch(x), to_torch(random.view(np.int32)), result := to_torch(out), asm, count)
    parts = 4 if width < 16 else 2
    for place in range(parts):
        code = (result.numpy().view(np.uint32) >> (place * width)) & ((1 << width) - 1)
        actual = code.astype(np.uint16 if width == 16 else np.uint8).view(dtype).astype(np.float64)
        value = x[:, 3 - place].astype(np.float64)
        part = (random >> (place * (32 // parts))) & ((1 << bits) - 1)
        size = np.minimum(np.nan_to_num(np.abs(value), posinf=grid[-1]), grid[-1])
        below = np.clip(np.searchsorted(grid, size, "right") - 1, 0, len(grid) - 2)
        discarded = np.floor((size - grid[below]) / (grid[below + 1] - grid[below]) * 2.0**bits)
        expected = np.where(part + discarded >= 2.0**bits, grid[below + 1], grid[below]) * np.sign(value)
        if name == "f16 to infinity":
            expected = np.where(np.isinf(value), value, expected)
            past = np.abs(value) > grid[-1]
            actual, expected = actual[~past | np.isinf(value)], expected[~past | np.isinf(value)]
            value = value[~past | np.isinf(value)]
        nan = np.isnan(value)
        np.testing.assert_array_equal(actual[~nan], expected[~nan])
        assert np.isnan(actual[nan]).all() or (actual[nan] == 6).all()


@pytest.mark.parametrize("mode", ["rz", "rp"])
def test_scales_are_powers_of_two(mode: str) -> None:
    x = np.exp2(np.random.default_rng(2).uniform(-126, 127, COUNT)).astype(np.float32)
    x[:5] = (1.0, 2.0**-126, 1.5, np.inf, np.nan)
    actual = run(f"cvt.{mode}.satfinite.ue8m0x2.f32 $0, 0.0, $1;", "=h,r", "int16", x.view(np.int32))
    with np.errstate(all="ignore"):
        log = np.log2(x.astype(np.float64))
        expected = np.clip((np.floor(log) if mode == "rz" else np.ceil(log)) + 127, 0, 254)
    np.testing.assert_array_equal(actual, np.where(np.isnan(x), 255, np.nan_to_num(expected)).astype(np.int16))


@triton.jit
def through_fp8e4b15(x_ptr, wide_ptr, back_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets).to(tl.float8e4b15, bitcast=True)
    tl.store(wide_ptr + offsets, x.to(tl.float32))
    tl.store(back_ptr + offsets, x.to(tl.float16).to(tl.float8e4b15).to(tl.uint8, bitcast=True))


def test_fp8e4b15_is_what_upstreams_own_piece_of_ptx_makes_of_it() -> None:
    """A sign, four bits of exponent with bias 15, three of significand; no infinities and no NaN."""
    codes = np.arange(256, dtype=np.uint8)
    wide, back = Guarded(256, "float32"), Guarded(256, "uint8")
    through_fp8e4b15[(1,)](to_torch(codes), wide.tensor, back.tensor, 256)
    exponent, significand = (codes >> 3 & 15).astype(int), (codes & 7) / 8
    magnitude = np.where(exponent == 0, significand * 2.0**-14, (1 + significand) * 2.0 ** (exponent - 15))
    largest = codes & 127 == 127
    expected = np.where(codes >> 7, -1, 1) * np.where(largest, 1.875, magnitude)
    np.testing.assert_array_equal(wide.values(), expected.astype(np.float32))
    # 0x7E is the largest number that is converted to: 1.75
    np.testing.assert_array_equal(back.values(), np.where(largest, codes - 1, codes))


@pytest.mark.parametrize("source", ["float16", "float32"])
def test_every_number_becomes_the_same_fp8e4b15_as_in_the_interpreter(source: str) -> None:
    assert _fp8e4b15_case(source) is None


@triton.jit
def of_a_scalar(x_ptr, out_ptr):
    tl.store(out_ptr, tl.inline_asm_elementwise("neg.f32 $0, $1;", "=f,f", [tl.load(x_ptr)], tl.float32, True, 1))


def test_a_scalar() -> None:
    x, out = torch.tensor([2.5]), torch.zeros(1)
    of_a_scalar[(1,)](x, out)
    assert out.item() == -2.5


@triton.jit
def of_tied_registers(x_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    out = tl.inline_asm_elementwise("add.s32 $0, $0, 1; add.s32 $0, $0, $0;", "=r,0", [x], tl.int32, True, 1)
    tl.store(out_ptr + offsets, out)


def test_an_argument_in_the_register_of_a_result() -> None:
    x, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    of_tied_registers[(1,)](x, out, 64)
    assert torch.equal(out, 2 * (x + 1))


@triton.jit
def turned(x_ptr, out_ptr, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    for one in range(rounds):
        tl.store(x_ptr + i, i + one)
        tl.inline_asm_elementwise("bar.sync 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
        tl.store(out_ptr + one * N + i, tl.load(x_ptr + N - 1 - i))
        tl.inline_asm_elementwise("bar.sync 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


def test_a_barrier_in_assembly_parts_stores_and_loads() -> None:
    x, out = torch.zeros(256, dtype=torch.int32), torch.zeros(5, 256, dtype=torch.int32)
    turned[(1,)](x, out, 5, 256, num_warps=8)
    np.testing.assert_array_equal(out, np.arange(255, -1, -1) + np.arange(5)[:, None])


# -- what is refused ---------------------------------------------------------------------------------------------
REFUSED = {
    "ld.global.b32 $0, [$1];": "'ld.global.b32' reads or writes memory",
    "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;": "'shfl.sync.bfly.b32' exchanges values between threads",
    "bar.sync 0;": "'bar.sync' waits for other threads",
    "mov.u32 $0, %laneid;": "'%laneid' is a register of the hardware",
    "neg.s32 $0, $1": "';' is missing after 'neg.s32'",
    "v_exp_f32 $0, $1;": "the PTX instruction 'v_exp_f32' is not translated",
    "add.cc.u32 $0, $1, $1;": "'.cc' of 'add.cc.u32' is not translated",
    "add.u32 $0, $1;": "'add.u32' has 2 operands, and takes 3",
    "add.u64 $0, $1, $1;": "'$1' has 32 bits, and .u64 64",
    "add.u32 $0, $1, a;": "'a' is not declared with .reg",
    "add.u32 $0, $1, $5;": "'$5' is past the last operand, '$1'",
    "{ add.u32 $0, $1, 1;": "a '{' is not closed",
    "@$1 add.u32 $0, $1, 1;": "'$1' is a number, not a predicate",
    "lg2.approx.f64 $0, $1;": "lg2 takes f32",
    "add.ftz.f16x2 $0, $1, $1;": "'.ftz' is translated for f32 and bf16, not for .f16x2",
    "add.u32 $0, $1, 1.5;": "1.5 stands where an integer should",
}


@pytest.mark.parametrize("asm", REFUSED)
def test_what_is_refused_says_why(asm: str) -> None:
    with pytest.raises(Exception, match="inline assembly") as caught:
        run(asm, "=r,r", "int32", np.zeros(COUNT, np.int32))
    assert REFUSED[asm] in str(caught.value), caught.value
    assert "test_inline_ptx.py" in str(caught.value)  # where


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ("=v,v", "constraint '=v' is not one of PTX's 'h', 'r', 'f', 'l', 'd'"),
        ("=r,r,r", "the constraints name 2 registers for arguments; with pack=1 they fill 1"),
        ("=h,r", "result 0 has 32 bits, and its constraint's register 16"),
    ],
)
def test_constraints_that_do_not_fit(registers: str, message: str) -> None:
    with pytest.raises(Exception, match="inline assembly") as caught:
        run("mov.b32 $0, $1;", registers, "int32", np.zeros(COUNT, np.int32))
    assert message in str(caught.value), caught.value


@triton.jit
def long_piece_kernel(x_ptr, n_ptr, power_ptr, log_ptr, n_out_ptr, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, n = tl.load(x_ptr + i), tl.load(n_ptr + i)
    log = x
    for _ in range(steps):
        power, log = tl.inline_asm_elementwise(
            "{ .reg .f32 t; ex2.approx.f32 $0, $2; lg2.approx.f32 t, $0; mul.f32 $1, t, 0f3F000000; }",
            "=f,=f,f",
            [log],
            (tl.float32, tl.float32),
            is_pure=True,
            pack=1,
        )
        tl.store(power_ptr + i, power)
    # Four bytes share a register; without its remainders the piece would be short.
    n = tl.inline_asm_elementwise(
        "{ .reg .b32 t; rem.u32 t, $1, 0x7FFFFFFF; rem.u32 t, t, 9; rem.u32 t, t, 7; xor.b32 $0, $1, 0x01020304; }",
        "=r,r",
        [n],
        tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(log_ptr + i, log)
    tl.store(n_out_ptr + i, n)


@pytest.mark.parametrize(("elements", "warps"), [(32, 2), (4, 4)])
def test_long_pieces_on_large_tiles(elements: int, warps: int) -> None:
    """So many elements of each lane, in subgroups of 32 and more. A lane has to have the four of a register."""
    block = elements * warps * max(32, device_capabilities().subgroup_size)
    rng = np.random.default_rng(4)
    x, n = rng.uniform(-8, 8, block).astype(np.float32), rng.integers(0, 256, block).astype(np.uint8)
    power, log, n_out = torch.zeros(block), torch.zeros(block), torch.zeros(block, dtype=torch.uint8)
    steps = 2
    long_piece_kernel[(1,)](
        torch.from_numpy(x), torch.from_numpy(n), power, log, n_out, steps, BLOCK=block, num_warps=warps
    )
    assert np.allclose(power.numpy(), np.exp2(x.astype(np.float64) / 2), rtol=1e-5)
    assert np.allclose(log.numpy(), x.astype(np.float64) / 4, rtol=1e-4, atol=1e-5)
    assert np.array_equal((n_out.numpy() ^ n).reshape(-1, 4), np.tile([4, 3, 2, 1], (block // 4, 1)))
