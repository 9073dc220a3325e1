"""RMS norm and its gradient: one kernel of rows that fit it, else reductions and elementwise kernels.

x̂ = x rstd, rstd = 1 / sqrt(mean(x²) + eps), y = x̂ w. Backward, with g = dy w: dx = rstd (g - x̂ mean(g x̂)),
dw = sum(dy x̂).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import rows
from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .reducing import SUM, reduce

_Optional = torch.Tensor | None
_RMS = "libdevice.rsqrt({} / count + eps)"
_RMS_GRADIENT = "g = {g}\nx = self * rstd\nout = rstd * (g - x * (fn.row_sum(g * x, mask) / count))"


def _rms_norm(
    input: torch.Tensor, normalized_shape: Sequence[int], weight: _Optional, eps: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(the normalised input, 1 / the root of the mean square)."""
    count = len(normalized_shape)
    if not count or not input.dtype.is_floating_point or tuple(input.shape[-count:]) != tuple(normalized_shape):
        raise OnHost("a shape or type that is refused")
    if weight is not None and weight.dtype != input.dtype:
        raise OnHost("a weight of another type")
    x, dims, compute = input.contiguous(), tuple(range(-count, 0)), computed_in(input.dtype)
    numbers = {"eps": torch.finfo(compute).eps if eps is None else float(eps)}
    out = torch.empty_like(x)
    rstd = torch.empty((*x.shape[:-count], *(1,) * count), dtype=compute, device=x.device)
    given = {"self": x} | ({} if weight is None else {"weight": weight})
    scaled = "self * rstd" + ("" if weight is None else " * weight")
    if rows.fits(x.shape, dims):
        text = f"rstd = {_RMS.format('fn.row_sum(self * self, mask)')}\nout = {scaled}"
        rows.run(text, {"out": out, "rstd": rstd}, {**given, **numbers}, dims, compute)
    elif x.numel():
        operands = {"self": x, **numbers}
        reduce("self * self", SUM, operands, dims, dtype=compute, keepdim=True, finish=_RMS.format("acc"), out=rstd)
        run(Body.of(scaled), {"out": out}, {**given, "rstd": rstd}, compute)
    return out, rstd


def _rms_norm_backward(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    rstd: torch.Tensor,
    weight: _Optional,
    output_mask: Sequence[bool],
) -> tuple[_Optional, _Optional]:
    count = len(normalized_shape)
    x, dims, compute = input.contiguous(), tuple(range(-count, 0)), computed_in(input.dtype)
    rest = tuple(range(input.dim() - count))
    operands = {"grad": grad_out, "self": x, "rstd": rstd} | ({} if weight is None else {"weight": weight})
    g = "grad" if weight is None else "grad * weight"
    grad_input = grad_weight = None
    if output_mask[0]:
        grad_input = torch.empty_like(x)
        if rows.fits(x.shape, dims):
            rows.run(_RMS_GRADIENT.format(g=g), {"out": grad_input}, operands, dims, compute)
        elif x.numel():
            how: Any = {"dtype": compute, "keepdim": True, "finish": "acc / count"}
            mean = reduce(f"{g} * self * rstd", SUM, operands, dims, **how)
            body = Body.of(f"rstd * ({g} - self * rstd * mean)")
            run(body, {"out": grad_input}, {**operands, "mean": mean}, compute)
    if output_mask[1] and weight is not None:
        products = {"grad": grad_out, "self": x, "rstd": rstd}
        total = reduce("grad * self * rstd", SUM, products, rest, dtype=weight.dtype, compute=compute)
        grad_weight = total.view(weight.shape)
    return grad_input, grad_weight


TABLE: dict[str, Callable[..., Any]] = {"_fused_rms_norm": _rms_norm, "_fused_rms_norm_backward": _rms_norm_backward}
