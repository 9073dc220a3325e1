"""Layer and group norm with their backward formulas: one kernel of rows that fit it, else a reduction and an
elementwise kernel.

All normalise a view of their input over some of its dimensions; x̂ = (x - mean) rstd, y = x̂ w + b. Backward, with
g = dy w: dx = rstd (g - mean(g) - x̂ mean(g x̂)), dw = sum(dy x̂), db = sum(dy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from ..device.tensor_memory import empty
from . import rows
from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .reducing import MOMENTS, SUM, What, reduce_together
from .strided_shapes import empty_in_order_of

_Optional = Tensor | None
_Mask = Sequence[bool]
#: Mean and mean of the squares of the distances from it, of a row that fits a kernel, and of any.
_OF_ROW = """mean = fn.row_sum(self, mask) / count
square = fn.row_sum((self - mean) * (self - mean), mask) / count
"""
_OF_ALL = "mean = x_mean\nsquare = x_squares / count\n"
_ROOT = "rstd = libdevice.rsqrt(square + eps)\n"
#: How a batch's statistics go into the running ones, the variance as that of a sample.
_RUNNING = """running_mean = running_mean + momentum * (mean - running_mean)
running_var = running_var + momentum * (square * unbiased - running_var)
"""
_GRADIENT = """g = {g}
x = (self - mean) * rstd
out = rstd * (g - fn.row_sum(g, mask) / count - x * (fn.row_sum(g * x, mask) / count))"""


def _statistics(
    x: Tensor, dims: tuple[int, ...], eps: float, running: Mapping[str, Any] | None = None
) -> tuple[Tensor, Tensor]:
    """(mean, 1 / standard deviation) over ``dims``, which are kept with size 1. ``running``: what _RUNNING names, which
    is updated."""
    compute = computed_in(x.dtype)
    if not x.dtype.is_floating_point or x.numel() == 0:
        raise OnHost("an input without numbers, or without floats")
    finish, running = _OF_ALL + _ROOT + (_RUNNING if running else ""), running or {}
    outputs: dict[str, Any] = {"mean": compute, "rstd": compute, **_tensors(running)}
    what = What("x_x = self", (("x", MOMENTS),), finish)
    mean, rstd, *_ = reduce_together(what, outputs, {"self": x, "eps": float(eps), **running}, dims, compute)
    return mean, rstd


def _tensors(given: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: value for name, value in given.items() if isinstance(value, Tensor)}


def normalise(
    x: Tensor,
    dims: tuple[int, ...],
    weight: _Optional,
    bias: _Optional,
    eps: float,
    running: Mapping[str, Any] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(the normalised view, mean, 1 / standard deviation) over ``dims``, which the last two keep with size 1.
    ``running``: as _statistics()'s."""
    compute = computed_in(x.dtype)
    if not x.dtype.is_floating_point or not rows.fits(x.shape, dims):
        mean, rstd = _statistics(x, dims, eps, running)
        return normalised(x, mean, rstd, weight, bias), mean, rstd
    out = empty_in_order_of(x, x.shape)
    kept = [1 if d - x.dim() in dims or d in dims else size for d, size in enumerate(x.shape)]
    mean, rstd = (empty(kept, dtype=compute, device=x.device) for _ in range(2))
    given = {"weight": weight, "bias": bias, **(running or {})}
    given = {name: value for name, value in given.items() if value is not None}
    text = _OF_ROW + _ROOT + (_RUNNING if running else "") + f"out = {_affine(weight, bias)}"
    outputs = {"out": out, "mean": mean, "rstd": rstd, **_tensors(running or {})}
    rows.run(text, outputs, {"self": x, **given, "eps": float(eps)}, dims, compute)
    return out, mean, rstd


def _affine(weight: _Optional, bias: _Optional) -> str:
    return (
        "(self - mean) * rstd" + (" * weight" if weight is not None else "") + (" + bias" if bias is not None else "")
    )


def same_types(x: Tensor, *vectors: _Optional) -> None:
    """Raises OnHost for weights and statistics of several types, or of another than ``x`` has or is computed in."""
    kinds = {vector.dtype for vector in vectors if vector is not None}
    if len(kinds) > 1 or not kinds <= {x.dtype, computed_in(x.dtype)}:
        raise OnHost("vectors of several types, or of another than the input's")


def normalised(x: Tensor, mean: Tensor, rstd: Tensor, weight: _Optional, bias: _Optional) -> Tensor:
    operands = {"self": x, "mean": mean, "rstd": rstd, "weight": weight, "bias": bias}
    out = empty_in_order_of(x, x.shape)
    given = {name: tensor for name, tensor in operands.items() if tensor is not None}
    run(Body.of(_affine(weight, bias)), {"out": out}, given, computed_in(x.dtype))
    return out


def _input_gradient(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: _Optional, dims: tuple[int, ...]
) -> Tensor:
    """dx of the views that were normalised over ``dims``."""
    compute = computed_in(x.dtype)
    g = "grad" if weight is None else "grad * weight"
    operands = {"grad": grad, "self": x, "mean": mean, "rstd": rstd}
    if weight is not None:
        operands["weight"] = weight
    out = torch.empty_like(x)
    if rows.fits(x.shape, dims):
        rows.run(_GRADIENT.format(g=g), {"out": out}, operands, dims, compute)
        return out
    text = f"x_first = {g}\nx_second = {g} * ((self - mean) * rstd)"
    what = What(text, (("first", SUM), ("second", SUM)), "first = first / count\nsecond = second / count")
    first, second = reduce_together(what, {"first": compute, "second": compute}, operands, dims, compute)
    body = Body.of(f"rstd * ({g} - first - (self - mean) * rstd * second)")
    run(body, {"out": out}, {**operands, "first": first, "second": second}, compute)
    return out


def parameter_gradients(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, dims: tuple[int, ...], weight: _Optional, bias: _Optional
) -> tuple[_Optional, _Optional]:
    """(dw, db), sums over ``dims``; None for what is None, else it has the shape of that."""
    lines = {"weight": "x_weight = grad * ((self - mean) * rstd)", "bias": "x_bias = grad"}
    wanted = {name: like for name, like in (("weight", weight), ("bias", bias)) if like is not None}
    if not wanted:
        return None, None
    what = What("\n".join(lines[name] for name in wanted), tuple((name, SUM) for name in wanted), "")
    operands = {"grad": grad} | ({} if weight is None else {"self": x, "mean": mean, "rstd": rstd})
    kinds: dict[str, Any] = {name: like.dtype for name, like in wanted.items()}
    results = reduce_together(what, kinds, operands, dims, computed_in(x.dtype))
    found = {name: result.view(wanted[name].shape) for name, result in zip(wanted, results, strict=True)}
    return found.get("weight"), found.get("bias")


# ---- Layer norm --------------------------------------------------------------------------------------------------


def _layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: _Optional, bias: _Optional, eps: float
) -> tuple[Tensor, ...]:
    count = len(normalized_shape)
    if not count or tuple(input.shape[-count:]) != tuple(normalized_shape):
        raise OnHost("a shape that is refused")
    if any(vector is not None and tuple(vector.shape) != tuple(normalized_shape) for vector in (weight, bias)):
        raise OnHost("weights that are refused")
    same_types(input, weight, bias)
    return normalise(input.contiguous(), tuple(range(-count, 0)), weight, bias, eps)


def _layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: _Optional,
    bias: _Optional,
    output_mask: _Mask,
) -> tuple[_Optional, ...]:
    count = len(normalized_shape)
    rest, dims = tuple(range(input.dim() - count)), tuple(range(-count, 0))
    wanted = (like if asked else None for like, asked in zip((weight, bias), output_mask[1:], strict=True))
    x = input.contiguous()
    grad_input = _input_gradient(grad_out, x, mean, rstd, weight, dims) if output_mask[0] else None
    return grad_input, *parameter_gradients(grad_out, x, mean, rstd, rest, *wanted)


# ---- Group norm --------------------------------------------------------------------------------------------------


def _group_norm(
    input: Tensor, weight: _Optional, bias: _Optional, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, ...]:
    same_types(input, weight, bias)
    if min(N, C, HxW) < 0 or group < 1 or C % group or tuple(input.shape[:2]) != (N, C) or input.numel() != N * C * HxW:
        raise OnHost("sizes that are refused")
    if any(vector is not None and vector.shape != (C,) for vector in (weight, bias)):
        raise OnHost("weights that are refused")
    x = input.contiguous().view(N, group, C // group, HxW)
    if not N and C and HxW:
        return torch.empty_like(input), *(input.new_empty((N, group)) for _ in range(2))
    out, mean, rstd = normalise(x, (2, 3), _grouped(weight, group), _grouped(bias, group), eps)
    kind = input.dtype
    out = out.view(input.shape).contiguous(memory_format=suggest_memory_format(input))
    return out, mean.view(N, group).to(kind), rstd.view(N, group).to(kind)


def _grouped(weight: _Optional, group: int) -> _Optional:
    return None if weight is None else weight.view(1, group, -1, 1)


def _group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: _Optional,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: _Mask,
) -> tuple[_Optional, ...]:
    x, grad = (tensor.contiguous().view(N, group, C // group, HxW) for tensor in (input, grad_out))
    mean, rstd = mean.view(N, group, 1, 1), rstd.view(N, group, 1, 1)
    grad_input = None
    if output_mask[0]:
        grad_input = _input_gradient(grad, x, mean, rstd, _grouped(weight, group), (2, 3)).view(input.shape)
    like = weight if weight is not None else input.new_empty(C)
    wanted = (like if asked else None for asked in output_mask[1:])
    return grad_input, *parameter_gradients(grad, x, mean, rstd, (0, 3), *wanted)


TABLE: dict[str, Callable[..., Any]] = {
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
}
