"""Families of orthogonal polynomials, which generated kernels call: of order n, a tile of floats whose fractions do not
count, by their recurrences (DLMF 18.9). Values and limits are as in torch's own code, ATen/native/Math.h: 0 of
negative orders, and NaN of Hermite's past the order 128 in float32.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

# Kinds of recurrences.
_CHEBYSHEV: tl.constexpr = tl.constexpr(0)
_HERMITE_H: tl.constexpr = tl.constexpr(1)
_HERMITE_HE: tl.constexpr = tl.constexpr(2)
_LAGUERRE: tl.constexpr = tl.constexpr(3)
_LEGENDRE: tl.constexpr = tl.constexpr(4)


@triton.jit
def _order(x, n):
    """n without its fraction, in the shape of x; -1 for NaN and past int64, as which torch's code on x86 takes it."""
    n = n + tl.zeros_like(x)
    return tl.where(n < 9223372036854775808.0, libdevice.trunc(n), -1.0)


@triton.jit
def _recurrence(x, m, first, skipped, kind: tl.constexpr):
    """The polynomial of order m, from order 0, which is 1, and order 1; order 1 if m is less or x is ``skipped``. NaN
    ends the recurrence, as in torch, because some devices limit a loop's iterations."""
    before, value, order = tl.zeros_like(x) + 1, first, tl.zeros_like(x) + 1
    active = (order < m) & (value == value) & (skipped == 0)
    while tl.max(active.to(tl.int32)) > 0:
        if kind == _CHEBYSHEV:
            after = 2 * x * value - before
        elif kind == _HERMITE_H:
            after = 2 * x * value - 2 * order * before
        elif kind == _HERMITE_HE:
            after = x * value - order * before
        elif kind == _LAGUERRE:
            after = ((2 * order + (1 - x)) * value - order * before) / (order + 1)
        else:
            after = ((2 * order + 1) * x * value - order * before) / (order + 1)
        before, value = tl.where(active, value, before), tl.where(active, after, value)
        order += 1
        active = active & (order < m) & (value == value)
    return value


@triton.jit
def _from_order_0(m, first, value):
    return tl.where(m == 1, first, tl.where(m == 0, 1.0, tl.where(m < 0, 0.0, value)))


@triton.jit
def _signed(m, value):
    """The value of even orders, its negative of odd ones."""
    return tl.where(libdevice.floor(m / 2) * 2 == m, value, -value)


@triton.jit
def _chebyshev(x, m, first, at_1, before_1, inside, last: tl.constexpr):
    """``inside``: between -1 and 1, of orders past ``last``; ``at_1``, and of even orders ``before_1`` at -1."""
    closed = (tl.abs(x) < 1) & (m > last)
    ends = tl.abs(x) == 1
    value = _recurrence(x, m, first, (closed | ends).to(tl.int32), _CHEBYSHEV)
    value = tl.where(closed, inside, value)
    value = tl.where(ends, tl.where(x > 0, at_1, _signed(m, before_1)), value)
    return _from_order_0(m, first, value)


@triton.jit
def chebyshev_t(x, n):
    """T_n(x)."""
    m = _order(x, n)
    one = tl.zeros_like(x) + 1
    return _chebyshev(x, m, x, one, one, libdevice.cos(m * libdevice.acos(x)), 6)


@triton.jit
def chebyshev_u(x, n):
    """U_n(x)."""
    m = _order(x, n)
    angle = libdevice.acos(x)
    inside = libdevice.sin((m + 1) * angle) / libdevice.sin(angle)
    return _chebyshev(x, m, 2 * x, m + 1, m + 1, inside, 8)


@triton.jit
def chebyshev_v(x, n):
    """V_n(x)."""
    m = _order(x, n)
    angle = libdevice.acos(x)
    inside = libdevice.cos((m + 0.5) * angle) / libdevice.cos(angle / 2)
    return _chebyshev(x, m, 2 * x - 1, tl.zeros_like(x) + 1, 2 * m + 1, inside, 8)


@triton.jit
def chebyshev_w(x, n):
    """W_n(x)."""
    m = _order(x, n)
    angle = libdevice.acos(x)
    inside = libdevice.sin((m + 0.5) * angle) / libdevice.sin(angle / 2)
    return _chebyshev(x, m, 2 * x + 1, 2 * m + 1, tl.zeros_like(x) + 1, inside, 8)


@triton.jit
def _hermite(x, n, first, kind: tl.constexpr):
    m = _order(x, n)
    past = m > (512 if x.dtype == tl.float64 else 128)
    value = _recurrence(x, m, first, past.to(tl.int32), kind)
    return _from_order_0(m, first, tl.where(past, float("nan"), value))


@triton.jit
def hermite_h(x, n):
    """H_n(x)."""
    return _hermite(x, n, 2 * x, _HERMITE_H)


@triton.jit
def hermite_he(x, n):
    """He_n(x)."""
    return _hermite(x, n, x, _HERMITE_HE)


@triton.jit
def laguerre(x, n):
    """L_n(x)."""
    m = _order(x, n)
    value = _recurrence(x, m, 1 - x, (x == 0).to(tl.int32), _LAGUERRE)
    return _from_order_0(m, 1 - x, value)


@triton.jit
def legendre(x, n):
    """P_n(x)."""
    m = _order(x, n)
    ends = tl.abs(x) == 1
    value = _recurrence(x, m, x, ends.to(tl.int32), _LEGENDRE)
    value = tl.where(ends, tl.where(x > 0, 1.0, _signed(m, tl.zeros_like(x) + 1)), value)
    return _from_order_0(m, x, value)
