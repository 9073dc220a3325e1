"""Complex numbers, element by element: kernels compute with the real and the imaginary parts, which are views.

``pointwise.py`` comes here where a result or an operand is complex. What is not in the table is left to the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .pointwise import output_strides
from .splitting import parts
from .strided_shapes import resized

_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}
_POLAR = Body("out_re = self * libdevice.cos(other)\nout_im = self * libdevice.sin(other)")
_PAIR = Body("out_re = self\nout_im = other")
_CONJUGATE = Body("out_re = self_re\nout_im = -self_im")


def _from_two(body: Body) -> Callable[..., torch.Tensor]:
    def made(one: torch.Tensor, two: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        if one.dtype != two.dtype or one.device != two.device or out.dtype != _COMPLEX.get(one.dtype):
            raise OnHost("numbers that are refused")
        shape = torch.broadcast_shapes(one.shape, two.shape)
        if out.shape != shape:
            strides = output_strides((one, two), shape)
            resized(out, shape)
            out.as_strided_(shape, strides)
        real, imaginary = parts(out)
        run(body, {"out_re": real, "out_im": imaginary}, {"self": one, "other": two}, computed_in(one.dtype))
        return out

    return made


def _conjugate(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    if out.dtype != self.dtype:
        raise OnHost("an output of another type")
    if out.shape != self.shape:
        strides = output_strides((self,), self.shape)
        resized(out, self.shape)
        out.as_strided_(self.shape, strides)
    if not self.is_complex():
        return out.copy_(self)
    (re, im), (real, imaginary) = parts(self), parts(out)
    run(_CONJUGATE, {"out_re": real, "out_im": imaginary}, {"self_re": re, "self_im": im}, computed_in(re.dtype))
    return out


def _conjugate_itself(self: torch.Tensor) -> torch.Tensor:
    plain = torch._conj(self) if self.is_conj() else self
    _conjugate(plain, out=plain)
    return self


TABLE: dict[str, Callable[..., Any]] = {
    "complex.out": _from_two(_PAIR),
    "polar.out": _from_two(_POLAR),
    "conj_physical.out": _conjugate,
    "conj_physical_": _conjugate_itself,
}
