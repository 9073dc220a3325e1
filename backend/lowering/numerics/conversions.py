"""Conversions between numbers of f32 or f64 and integers, in every rounding mode."""

from __future__ import annotations

from . import precise
from .numeric import Int, Numeric, Real


def to_integer(n: Numeric, x: Real, mode: str, width: int, signed: bool) -> Int:
    """Rounded by ``mode``; past the range its end, NaN 0."""
    rounded = {"rn": x.rint, "rz": x.trunc, "rd": x.floor, "ru": x.ceil}[mode]()
    low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    inside = (rounded >= low) & (rounded < high)
    safe = n.where(inside, rounded, 0.0).to_int(width, signed)
    least, most = (1 << (width - 1), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    value = n.where(rounded >= high, most, safe)
    return n.where(rounded < low, least, value)


def from_integer(n: Numeric, x: Int, mode: str, signed: bool) -> Real:
    """An integer as a float, rounded by ``mode``."""
    return precise.from_int(n, x, signed, mode)


def saturate(n: Numeric, x: Real) -> Real:
    """Clamped to [0, 1]; NaN becomes 0."""
    return n.where(x > 0.0, n.minimum(x, 1.0), 0.0)
