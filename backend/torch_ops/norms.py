"""Layer, group and batch norm with their backward formulas: one kernel of rows that fit it, else reductions and
elementwise kernels.

All normalise a view of their input over some of its dimensions; x̂ = (x - mean) rstd, y = x̂ w + b. Backward, with
g = dy w: dx = rstd (g - mean(g) - x̂ mean(g x̂)), dw = sum(dy x̂), db = sum(dy).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import rows
from .elementwise import Body, run
from .library import enter_by_name
from .reducing import SUM, reduce
from .types import OnHost, computed_in

_Optional = torch.Tensor | None
_Mask = Sequence[bool]
_MEAN = "acc / count"
_MOMENTS = """mean = fn.row_sum(self, mask) / count
rstd = libdevice.rsqrt(fn.row_sum((self - mean) * (self - mean), mask) / count + eps)
"""
_GRADIENT = """g = {g}
x = (self - mean) * rstd
out = rstd * (g - fn.row_sum(g, mask) / count - x * (fn.row_sum(g * x, mask) / count))"""


def enter_norms(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


def _statistics(x: torch.Tensor, dims: tuple[int, ...], eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean, 1 / standard deviation) over ``dims``, which are kept with size 1."""
    compute = computed_in(x.dtype)
    if not x.dtype.is_floating_point or x.numel() == 0:
        raise OnHost("an input without numbers, or without floats")
    mean = reduce("self", SUM, {"self": x}, dims, dtype=compute, keepdim=True, finish=_MEAN)
    rstd = reduce(
        "(self - mean) * (self - mean)",
        SUM,
        {"self": x, "mean": mean, "eps": float(eps)},
        dims,
        dtype=compute,
        keepdim=True,
        finish="libdevice.rsqrt(acc / count + eps)",
    )
    return mean, rstd


def _normalise(
    x: torch.Tensor, dims: tuple[int, ...], weight: _Optional, bias: _Optional, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(the normalised view, mean, 1 / standard deviation) over ``dims``, which the last two keep with size 1."""
    compute = computed_in(x.dtype)
    if not x.dtype.is_floating_point or not rows.fits(x.shape, dims):
        mean, rstd = _statistics(x, dims, eps)
        return _normalised(x, mean, rstd, weight, bias), mean, rstd
    out = torch.empty_like(x)
    kept = [1 if d - x.dim() in dims or d in dims else size for d, size in enumerate(x.shape)]
    mean, rstd = (torch.empty(kept, dtype=compute, device=x.device) for _ in range(2))
    given = {name: tensor for name, tensor in (("weight", weight), ("bias", bias)) if tensor is not None}
    text = _MOMENTS + f"out = {_affine(weight, bias)}"
    rows.run(text, {"out": out, "mean": mean, "rstd": rstd}, {"self": x, **given, "eps": float(eps)}, dims, compute)
    return out, mean, rstd


def _affine(weight: _Optional, bias: _Optional) -> str:
    return (
        "(self - mean) * rstd" + (" * weight" if weight is not None else "") + (" + bias" if bias is not None else "")
    )


def _normalised(
    x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, weight: _Optional, bias: _Optional
) -> torch.Tensor:
    operands = {"self": x, "mean": mean, "rstd": rstd, "weight": weight, "bias": bias}
    out = torch.empty_like(x)
    given = {name: tensor for name, tensor in operands.items() if tensor is not None}
    run(Body.of(_affine(weight, bias)), {"out": out}, given, computed_in(x.dtype))
    return out


def _input_gradient(
    grad: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: _Optional,
    dims: tuple[int, ...],
    constant: bool = False,
) -> torch.Tensor:
    """dx of the views that were normalised over ``dims``; ``constant``: mean and rstd do not depend on x."""
    compute = computed_in(x.dtype)
    g = "grad" if weight is None else "grad * weight"
    operands = {"grad": grad, "self": x, "mean": mean, "rstd": rstd}
    if weight is not None:
        operands["weight"] = weight
    out = torch.empty_like(x)
    if constant:
        run(Body.of(f"{g} * rstd"), {"out": out}, operands, compute)
        return out
    if rows.fits(x.shape, dims):
        rows.run(_GRADIENT.format(g=g), {"out": out}, operands, dims, compute)
        return out
    one: dict[str, Any] = {name: operands[name] for name in ("grad", "weight") if name in operands}
    first = reduce(g, SUM, one, dims, dtype=compute, keepdim=True, finish=_MEAN)
    text = f"{g} * ((self - mean) * rstd)"
    second = reduce(text, SUM, operands, dims, dtype=compute, keepdim=True, finish=_MEAN)
    body = Body.of(f"rstd * ({g} - first - (self - mean) * rstd * second)")
    run(body, {"out": out}, {**operands, "first": first, "second": second}, compute)
    return out


def _weight_gradient(
    grad: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    dims: tuple[int, ...],
    like: torch.Tensor,
) -> torch.Tensor:
    operands = {"grad": grad, "self": x, "mean": mean, "rstd": rstd}
    kind = computed_in(x.dtype)
    result = reduce("grad * ((self - mean) * rstd)", SUM, operands, dims, dtype=like.dtype, compute=kind)
    return result.view(like.shape)


def _bias_gradient(grad: torch.Tensor, dims: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    return reduce("self", SUM, {"self": grad}, dims, dtype=like.dtype, compute=computed_in(grad.dtype)).view(like.shape)


# ---- Layer norm --------------------------------------------------------------------------------------------------


def _layer_norm(
    input: torch.Tensor,  # noqa: A002 (torch's name)
    normalized_shape: Sequence[int],
    weight: _Optional,
    bias: _Optional,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    count = len(normalized_shape)
    if not count or tuple(input.shape[-count:]) != tuple(normalized_shape):
        raise OnHost("a shape that is refused")
    return _normalise(input.contiguous(), tuple(range(-count, 0)), weight, bias, eps)


def _layer_norm_backward(
    grad_out: torch.Tensor,
    input: torch.Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: _Optional,
    bias: _Optional,
    output_mask: _Mask,
) -> tuple[_Optional, ...]:
    count = len(normalized_shape)
    rest = tuple(range(input.dim() - count))
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        dims = tuple(range(-count, 0))
        grad_input = _input_gradient(grad_out, input.contiguous(), mean, rstd, weight, dims)
    if output_mask[1] and weight is not None:
        grad_weight = _weight_gradient(grad_out, input, mean, rstd, rest, weight)
    if output_mask[2] and bias is not None:
        grad_bias = _bias_gradient(grad_out, rest, bias)
    return grad_input, grad_weight, grad_bias


# ---- Group norm --------------------------------------------------------------------------------------------------


def _group_norm(
    input: torch.Tensor,  # noqa: A002
    weight: _Optional,
    bias: _Optional,
    N: int,  # noqa: N803 (torch's names)
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    x = input.contiguous().view(N, group, C // group, HxW)
    out, mean, rstd = _normalise(x, (2, 3), _grouped(weight, group), _grouped(bias, group), eps)
    kind = input.dtype
    return out.view(input.shape), mean.view(N, group).to(kind), rstd.view(N, group).to(kind)


def _grouped(weight: _Optional, group: int) -> _Optional:
    return None if weight is None else weight.view(1, group, -1, 1)


def _group_norm_backward(
    grad_out: torch.Tensor,
    input: torch.Tensor,  # noqa: A002
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: _Optional,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: _Mask,
) -> tuple[_Optional, ...]:
    x, grad = (tensor.contiguous().view(N, group, C // group, HxW) for tensor in (input, grad_out))
    mean, rstd = mean.view(N, group, 1, 1), rstd.view(N, group, 1, 1)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = _input_gradient(grad, x, mean, rstd, _grouped(weight, group), (2, 3)).view(input.shape)
    like = weight if weight is not None else input.new_empty(C)
    if output_mask[1]:
        grad_weight = _weight_gradient(grad, x, mean, rstd, (0, 3), like)
    if output_mask[2]:
        grad_bias = _bias_gradient(grad, (0, 3), like)
    return grad_input, grad_weight, grad_bias


# ---- Batch norm --------------------------------------------------------------------------------------------------


def _channels(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A vector with an element a channel, as a tensor that is broadcast to ``like`` (N, C, …)."""
    return tensor.view(1, -1, *(1,) * (like.dim() - 2))


def _batch_norm(
    input: torch.Tensor,  # noqa: A002
    weight: _Optional,
    bias: _Optional,
    running_mean: _Optional,
    running_var: _Optional,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    dims = (0, *range(2, input.dim()))
    compute = computed_in(input.dtype)
    if training:
        mean, rstd = _statistics(input, dims, eps)
        if running_mean is not None:
            count = math.prod(input.shape[d] for d in dims)
            _update(running_mean, running_var, mean, rstd, momentum, eps, count)
    elif running_mean is None or running_var is None:
        raise OnHost("statistics that are refused")
    else:
        mean = _channels(running_mean, input).to(compute)
        rstd = torch.empty_like(mean)
        run(Body.of("libdevice.rsqrt(self + eps)"), {"out": rstd}, _of(running_var, input, eps), compute)
    vectors = [None if vector is None else _channels(vector, input) for vector in (weight, bias)]
    out = _normalised(input, mean, rstd, *vectors)
    if not training:
        return out, input.new_empty(0, dtype=compute), input.new_empty(0, dtype=compute)
    return out, mean.view(-1), rstd.view(-1)


def _of(running_var: torch.Tensor, like: torch.Tensor, eps: float) -> dict[str, Any]:
    return {"self": _channels(running_var, like), "eps": float(eps)}


def _update(
    running_mean: torch.Tensor,
    running_var: _Optional,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    momentum: float,
    eps: float,
    count: int,
) -> None:
    """running = (1 - momentum) running + momentum now, the variance now being that of a sample of ``count``."""
    numbers = {"momentum": float(momentum), "eps": float(eps), "unbiased": count / max(count - 1, 1)}
    compute = computed_in(mean.dtype)
    mixed = "self + momentum * ({} - self)"
    run(
        Body.of(mixed.format("now")),
        {"out": running_mean},
        {"self": running_mean, "now": mean.view(-1), "momentum": numbers["momentum"]},
        compute,
    )
    if running_var is not None:
        run(
            Body.of(mixed.format("(1 / (now * now) - eps) * unbiased")),
            {"out": running_var},
            {"self": running_var, "now": rstd.view(-1), **numbers},
            compute,
        )


def _batch_norm_backward(
    grad_out: torch.Tensor,
    input: torch.Tensor,  # noqa: A002
    weight: _Optional,
    running_mean: _Optional,
    running_var: _Optional,
    save_mean: _Optional,
    save_invstd: _Optional,
    train: bool,
    eps: float,
    output_mask: _Mask,
) -> tuple[_Optional, ...]:
    dims = (0, *range(2, input.dim()))
    compute = computed_in(input.dtype)
    if train and save_mean is not None and save_invstd is not None:
        mean, rstd = _channels(save_mean, input), _channels(save_invstd, input)
    elif running_mean is not None and running_var is not None:
        mean = _channels(running_mean, input).to(compute)
        rstd = torch.empty_like(mean)
        run(Body.of("libdevice.rsqrt(self + eps)"), {"out": rstd}, _of(running_var, input, eps), compute)
    else:
        raise OnHost("statistics that are refused")
    grad_input = grad_weight = grad_bias = None
    scale = None if weight is None else _channels(weight, input)
    if output_mask[0]:
        grad_input = _input_gradient(grad_out, input, mean, rstd, scale, dims, constant=not train)
    like = weight if weight is not None else input.new_empty(input.shape[1])
    if output_mask[1]:
        grad_weight = _weight_gradient(grad_out, input, mean, rstd, dims, like)
    if output_mask[2]:
        grad_bias = _bias_gradient(grad_out, dims, like)
    return grad_input, grad_weight, grad_bias


def _without_statistics(
    input: torch.Tensor,  # noqa: A002
    weight: _Optional,
    bias: _Optional,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    return _batch_norm(input, weight, bias, None, None, training, momentum, eps)


_TABLE: dict[str, Callable[..., Any]] = {
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit.no_stats": _without_statistics,
    "native_batch_norm_backward": _batch_norm_backward,
}
