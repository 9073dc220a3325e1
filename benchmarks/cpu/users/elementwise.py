"""Element by element."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.kernels import add
from benchmarks.cpu.users.rows import Data, Row

_COUNT = (1 << 20) - 5
_BLOCK = 1024


@triton.jit
def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(gate + at, mask=mask).to(tl.float32)
    tl.store(out + at, x * tl.sigmoid(x) * tl.load(up + at, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def gelu_tanh(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    inner = 0.7978845608028654 * (value + 0.044715 * value * value * value)
    tl.store(out + at, 0.5 * value * (1 + 2 * tl.sigmoid(2 * inner) - 1), mask=at < n)


@triton.jit
def cast(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def adamw(parameter, gradient, first, second, n, rate, step, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p, g = tl.load(parameter + at, mask=mask), tl.load(gradient + at, mask=mask)
    m = 0.9 * tl.load(first + at, mask=mask) + 0.1 * g
    v = 0.999 * tl.load(second + at, mask=mask) + 0.001 * g * g
    p = p * (1 - rate * 0.01) - rate * m / (tl.sqrt(v) + 1e-8)
    tl.store(first + at, m, mask=mask)
    tl.store(second + at, v, mask=mask)
    tl.store(parameter + at, p, mask=mask)


@triton.jit
def dropout(x, out, n, chance, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.where(tl.rand(seed, at) > chance, value / (1 - chance), 0.0), mask=at < n)


@triton.jit
def rotary(x, cos, sin, out, heads, HALF: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, HALF)
    place = row // heads * HALF + at
    c, s = tl.load(cos + place), tl.load(sin + place)
    a, b = tl.load(x + row * 2 * HALF + at), tl.load(x + row * 2 * HALF + HALF + at)
    tl.store(out + row * 2 * HALF + at, a * c - b * s)
    tl.store(out + row * 2 * HALF + HALF + at, b * c + a * s)


@triton.jit
def quantize(x, out, scales, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    scale = tl.max(tl.abs(value), 0) / 127.0
    quotient = value / scale
    rounded = tl.where(quotient >= 0, quotient + 0.5, quotient - 0.5).to(tl.int8)
    tl.store(out + row * n + at, rounded, mask=at < n)
    tl.store(scales + row, scale)


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    n = _COUNT
    grid = (triton.cdiv(n, _BLOCK),)
    x, y, out = data.normal(n), data.normal(n), torch.zeros(n)
    yield Row("add", lambda: add[grid](x, y, out, n, BLOCK=_BLOCK), out, x.double() + y, data.sides(torch.add, x, y))
    a, b, sums = x.bfloat16(), y.bfloat16(), torch.zeros(n, dtype=torch.bfloat16)
    yield Row(
        "add of bf16",
        lambda: add[grid](a, b, sums, n, BLOCK=_BLOCK),
        sums,
        a.double() + b,
        data.sides(torch.add, a, b),
        0.1,
    )

    def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return functional.silu(gate) * up

    yield Row(
        "SwiGLU",
        lambda: swiglu[grid](x, y, out, n, BLOCK=_BLOCK),
        out,
        gated(x.double(), y.double()),
        data.sides(gated, x, y),
    )
    yield Row(
        "SwiGLU of bf16",
        lambda: swiglu[grid](a, b, sums, n, BLOCK=_BLOCK),
        sums,
        gated(a.double(), b.double()),
        data.sides(gated, a, b),
        0.2,
    )

    def by_tanh(value: torch.Tensor) -> torch.Tensor:
        return functional.gelu(value, approximate="tanh")

    yield Row(
        "GELU by tanh",
        lambda: gelu_tanh[grid](x, out, n, BLOCK=_BLOCK),
        out,
        by_tanh(x.double()),
        data.sides(by_tanh, x),
    )
    yield Row(
        "cast to bf16",
        lambda: cast[grid](x, sums, n, BLOCK=_BLOCK),
        sums,
        x.bfloat16(),
        data.sides(lambda value: value.to(torch.bfloat16), x),
    )
    p, g, m, v = (data.normal(n) for _ in range(4))
    v = v.abs()
    yield Row(
        "AdamW",
        lambda: adamw[grid](p, g, m, v, n, 1e-3, 1, BLOCK=_BLOCK),
        p,
        None,
        {"torch": _adamw(p.clone(), g, data)},
    )
    yield Row(
        "dropout",
        lambda: dropout[grid](x, out, n, 0.25, 7, BLOCK=_BLOCK),
        out,
        None,
        data.sides(functional.dropout, x, 0.25),
    )
    t, heads, half = 256, 16, 32
    q, angles = data.normal(t, heads, 2 * half), data.normal(t, half)
    cos, sin, turned = angles.cos(), angles.sin(), torch.zeros(t, heads, 2 * half)

    def rotated(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        low, high = q.chunk(2, -1)
        c, s = cos[:, None], sin[:, None]
        return torch.cat([low * c - high * s, high * c + low * s], -1)

    yield Row(
        "rotary embedding",
        lambda: rotary[(t * heads,)](q, cos, sin, turned, heads, HALF=half),
        turned,
        rotated(q.double(), cos.double(), sin.double()),
        data.sides(rotated, q, cos, sin),
    )
    r, c = 512, 1000
    wide, codes, scales = data.normal(r, c), torch.zeros(r, c, dtype=torch.int8), torch.zeros(r)

    def quantized(wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = wide.abs().amax(1, keepdim=True) / 127
        return (wide / scale).round().to(torch.int8), scale

    yield Row(
        "rows to int8",
        lambda: quantize[(r,)](wide, codes, scales, c, BLOCK=1024),
        codes,
        quantized(wide)[0],
        data.sides(quantized, wide),
        1.0,
    )


def _adamw(parameter: torch.Tensor, gradient: torch.Tensor, data: Data):  # type: ignore[no-untyped-def]
    parameter.requires_grad_()
    parameter.grad = gradient
    return torch.optim.AdamW([parameter], 1e-3, fused=True).step
