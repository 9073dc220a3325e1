"""What is computed of complex numbers, in terms of their real and imaginary parts (complex_numbers.py)."""

from __future__ import annotations

from typing import Any

import torch

from .dtypes import OnHost

_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}

_SUM = "out_re = self_re {} (alpha_re * other_re - alpha_im * other_im)\n"
_SUM += "out_im = self_im {} (alpha_re * other_im + alpha_im * other_re)"
#: By the larger part of the divisor, so that no square of it overflows, and by infinity and 0 it is as in torch.
_DIVIDE = """wide = tl.abs({d}_re) >= tl.abs({d}_im)
large, small = tl.where(wide, {d}_re, {d}_im), tl.where(wide, {d}_im, {d}_re)
part = tl.where(large == 0, 0.0, small / large)
under = tl.where(large == 0, 0.0, large + small * part)
out_re = tl.where(wide, {n}_re + {n}_im * part, {n}_re * part + {n}_im) / under
out_im = tl.where(wide, {n}_im - {n}_re * part, {n}_im * part - {n}_re) / under"""
_EXP = "size = libdevice.exp(self_re)\nout_re, out_im = size * libdevice.cos(self_im), size * libdevice.sin(self_im)"
_SGN = """size = libdevice.hypot(self_re, self_im)
size = tl.where(size == 0, size + 1, size)
out_re, out_im = self_re / size, self_im / size"""
_RECIPROCAL = "one_re, one_im = 1.0, 0.0\n" + _DIVIDE.format(n="one", d="self")
_SQUARE = "out_re = self_re * self_re - self_im * self_im\nout_im = 2 * self_re * self_im"
_CUBE = """re, im = self_re * self_re - self_im * self_im, 2 * self_re * self_im
out_re = re * self_re - im * self_im
out_im = re * self_im + im * self_re"""
_LOG = "out_re = libdevice.log(libdevice.hypot(self_re, self_im)){0}\nout_im = libdevice.atan2(self_im, self_re){0}"
#: The larger part of a root first, so that nothing cancels.
_SQRT = """large = libdevice.sqrt((tl.abs(self_re) + libdevice.hypot(self_re, self_im)) / 2)
small = tl.where(large == 0, 0.0, tl.abs(self_im) / (2 * tl.where(large == 0, 1.0, large)))
out_re = tl.where(self_re >= 0, large, small)
out_im = libdevice.copysign(tl.where(self_re >= 0, small, large), self_im)"""
_POW = """size, turn = libdevice.hypot(self_re, self_im), libdevice.atan2(self_im, self_re)
grown = libdevice.log(size)
size_re = libdevice.exp(exponent_re * grown - exponent_im * turn)
turn = exponent_im * grown + exponent_re * turn
nothing, one = (size == 0) & (exponent_re > 0), (exponent_re == 0) & (exponent_im == 0)
out_re = tl.where(nothing, 0.0, tl.where(one, 1.0, size_re * libdevice.cos(turn)))
out_im = tl.where(nothing | one, 0.0, size_re * libdevice.sin(turn))"""
_WAVES = (
    "out_re = libdevice.{}(self_re) * libdevice.{}(self_im)\nout_im = {}libdevice.{}(self_re) * libdevice.{}(self_im)"
)
_ADDCMUL = """re = tensor1_re * tensor2_re - tensor1_im * tensor2_im
im = tensor1_re * tensor2_im + tensor1_im * tensor2_re
out_re = self_re + (value_re * re - value_im * im)
out_im = self_im + (value_re * im + value_im * re)"""
#: Of large numbers 1 or -1, whose exponential functions overflow; where the denominator nearly cancels, it is a sum of
#: squares.
_TANH = """held = tl.minimum(tl.maximum(self_re, -20.0), 20.0)
rise, wave = libdevice.sinh(held), libdevice.cos(self_im)
under = rise * rise + wave * wave
out_re = rise * libdevice.cosh(held) / under
out_im = tl.where(tl.abs(self_re) > 20, 0.0, libdevice.sin(self_im) * wave / under)"""
_LERP = """near = weight_re * weight_re + weight_im * weight_im < 0.25
step_re, step_im = end_re - self_re, end_im - self_im
part_re, part_im = tl.where(near, weight_re, weight_re - 1), weight_im
out_re = tl.where(near, self_re, end_re) + (part_re * step_re - part_im * step_im)
out_im = tl.where(near, self_im, end_im) + (part_re * step_im + part_im * step_re)"""
#: Operation → lines for its result's parts ``out_re`` and ``out_im``, or for ``out`` where it is not complex.
_LINES = {
    "add": _SUM.format("+", "+"),
    "sub": _SUM.format("-", "-"),
    "mul": "out_re = self_re * other_re - self_im * other_im\nout_im = self_re * other_im + self_im * other_re",
    "div": _DIVIDE.format(n="self", d="other"),
    "rsub": "out_re = other_re - (alpha_re * self_re - alpha_im * self_im)\n"
    "out_im = other_im - (alpha_re * self_im + alpha_im * self_re)",
    "reciprocal": _RECIPROCAL,
    "addcmul": _ADDCMUL,
    "square": _SQUARE,
    "pow:2": _SQUARE,
    "pow:3": _CUBE,
    "pow:": _POW,
    "sqrt": _SQRT,
    "log": _LOG.format(""),
    "log2": _LOG.format(" * 1.4426950408889634"),
    "log10": _LOG.format(" * 0.4342944819032518"),
    "sin": _WAVES.format("sin", "cosh", "", "cos", "sinh"),
    "cos": _WAVES.format("cos", "cosh", "-", "sin", "sinh"),
    "sinh": _WAVES.format("sinh", "cos", "", "cosh", "sin"),
    "cosh": _WAVES.format("cosh", "cos", "", "sinh", "sin"),
    "tanh": _TANH,
    "lerp": _LERP,
    "isnan": "out = (self_re != self_re) | (self_im != self_im)",
    "isinf": "out = fn.is_infinite(self_re) | fn.is_infinite(self_im)",
    "logical_and": "out = ((self_re != 0) | (self_im != 0)) & ((other_re != 0) | (other_im != 0))",
    "logical_or": "out = (self_re != 0) | (self_im != 0) | (other_re != 0) | (other_im != 0)",
    "logical_xor": "out = ((self_re != 0) | (self_im != 0)) != ((other_re != 0) | (other_im != 0))",
    "logical_not": "out = (self_re == 0) & (self_im == 0)",
    "neg": "out_re = -self_re\nout_im = -self_im",
    "exp": _EXP,
    "sgn": _SGN,
    "abs": "out = libdevice.hypot(self_re, self_im)",
    "angle": "out = libdevice.atan2(self_im, self_re)",
    "eq": "out = (self_re == other_re) & (self_im == other_im)",
    "ne": "out = (self_re != other_re) | (self_im != other_im)",
}
#: Results that are real, and those that are bool.
_MAGNITUDES, _TRUTHS = (
    frozenset(("abs", "angle")),
    frozenset(("eq", "ne", "isnan", "isinf", "logical_not", "logical_and", "logical_or", "logical_xor")),
)


def lines_of(name: str, texts: list[str], kind: torch.dtype) -> tuple[str, torch.dtype, torch.dtype]:
    """(the text, the type that is computed in, the result's) of an operation on numbers of ``kind``. Raises OnHost."""
    if name not in _LINES or texts or kind not in _REAL:
        raise OnHost("complex numbers")
    real = _REAL[kind]
    return _LINES[name], real, real if name in _MAGNITUDES else torch.bool if name in _TRUTHS else kind


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Views of the real and of the imaginary parts."""
    if tensor.is_conj() or tensor.is_neg():
        raise OnHost("a pending conjugation")
    pair = torch.view_as_real(tensor)
    return pair.select(-1, 0), pair.select(-1, 1)


def split(operands: dict[str, Any]) -> dict[str, Any]:
    """Operands by the names of their parts, of which a real number's second is 0."""
    found: dict[str, Any] = {}
    for name, value in operands.items():
        if isinstance(value, torch.Tensor):
            found[f"{name}_re"], found[f"{name}_im"] = parts(value) if value.is_complex() else (value, 0.0)
        else:
            number = complex(value)
            found[f"{name}_re"], found[f"{name}_im"] = number.real, number.imag
    return found
