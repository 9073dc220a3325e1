"""What is computed of complex numbers, in terms of their real and imaginary parts (complex_numbers.py)."""

from __future__ import annotations

from typing import Any

import torch

from .types import OnHost

_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}

_SUM = "out_re = self_re {} (alpha_re * other_re - alpha_im * other_im)\n"
_SUM += "out_im = self_im {} (alpha_re * other_im + alpha_im * other_re)"
#: The divisor is scaled by its larger part, so that no square of it overflows.
_DIVIDE = """size = fn.maximum(tl.abs({d}_re), tl.abs({d}_im))
size = tl.where((size > 0) & (size < float("inf")), size, size * 0 + 1)
re, im = {d}_re / size, {d}_im / size
square = (re * re + im * im) * size
out_re = ({n}_re * re + {n}_im * im) / square
out_im = ({n}_im * re - {n}_re * im) / square"""
_EXP = "size = libdevice.exp(self_re)\nout_re, out_im = size * libdevice.cos(self_im), size * libdevice.sin(self_im)"
_SGN = """size = libdevice.hypot(self_re, self_im)
size = tl.where(size == 0, size + 1, size)
out_re, out_im = self_re / size, self_im / size"""
#: Operation → lines for its result's parts ``out_re`` and ``out_im``, or for ``out`` where it is not complex.
_LINES = {
    "add": _SUM.format("+", "+"),
    "sub": _SUM.format("-", "-"),
    "mul": "out_re = self_re * other_re - self_im * other_im\nout_im = self_re * other_im + self_im * other_re",
    "div": _DIVIDE.format(n="self", d="other"),
    "neg": "out_re = -self_re\nout_im = -self_im",
    "exp": _EXP,
    "sgn": _SGN,
    "abs": "out = libdevice.hypot(self_re, self_im)",
    "angle": "out = libdevice.atan2(self_im, self_re)",
    "eq": "out = (self_re == other_re) & (self_im == other_im)",
    "ne": "out = (self_re != other_re) | (self_im != other_im)",
}
#: Results that are real, and those that are bool.
_MAGNITUDES, _TRUTHS = frozenset(("abs", "angle")), frozenset(("eq", "ne"))


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
