"""Batch norm with its backward formula, as norms.py's others, and its running statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import rows
from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .norms import normalise, normalised, parameter_gradients, same_types
from .pointwise import of_type
from .reducing import SUM, What, reduce_together
from .strided_shapes import empty_in_order_of

_Optional = torch.Tensor | None
_Mask = Sequence[bool]


def _channels(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A vector with an element a channel, as a tensor that is broadcast to ``like`` (N, C, …)."""
    return tensor.view(1, -1, *(1,) * (like.dim() - 2))


def _batch_norm(
    input: torch.Tensor,
    weight: _Optional,
    bias: _Optional,
    running_mean: _Optional,
    running_var: _Optional,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    dims = _all_but_channels(input, weight, bias, running_mean, running_var)
    w, b = (None if vector is None else _channels(vector, input) for vector in (weight, bias))
    if not training:
        mean, rstd = _fixed(input, running_mean, running_var, eps)
        none = input.new_empty(0, dtype=mean.dtype)
        return normalised(input, mean, rstd, w, b), none, none
    running: dict[str, Any] = {}
    if running_mean is not None and running_var is not None:
        count = math.prod(input.shape[d] for d in dims)
        running = {"running_mean": _channels(running_mean, input), "running_var": _channels(running_var, input)}
        running |= {"momentum": float(momentum), "unbiased": count / max(count - 1, 1)}
    elif running_mean is not running_var:
        raise OnHost("one running statistic without the other")
    out, mean, rstd = normalise(input, dims, w, b, eps, running)
    return out, mean.view(-1), rstd.view(-1)


def _all_but_channels(input: torch.Tensor, *vectors: _Optional) -> tuple[int, ...]:
    """The dimensions that are normalised over. Raises RuntimeError for vectors that have not an element a channel, of
    which torch's own CPU code reads foreign memory, and OnHost for those of types that it refuses."""
    if input.dim() < 2:
        raise OnHost("an input without channels")
    given = [vector for vector in vectors if vector is not None]
    if any(vector.device != input.device for vector in given):
        raise OnHost("a vector on another device")
    if any(vector.numel() != input.shape[1] for vector in given):
        shapes = " and ".join(str(list(vector.shape)) for vector in given)
        raise RuntimeError(f"batch_norm: weights and statistics of {input.shape[1]} channels have the shapes {shapes}")
    if any(vector.dim() != 1 for vector in given):
        raise OnHost("a vector of several dimensions")
    same_types(input, *given)
    return (0, *range(2, input.dim()))


def _fixed(
    input: torch.Tensor, running_mean: _Optional, running_var: _Optional, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean, 1 / standard deviation) of the running statistics."""
    if running_mean is None or running_var is None:
        raise OnHost("statistics that are refused")
    compute = computed_in(input.dtype)
    mean, variance = _channels(running_mean, input).to(compute), _channels(running_var, input)
    rstd = torch.empty_like(mean)
    run(Body.of("libdevice.rsqrt(self + eps)"), {"out": rstd}, {"self": variance, "eps": float(eps)}, compute)
    return mean, rstd


#: The sums of a channel's gradients are the gradients of its weight and bias, too.
_CHANNEL_SUMS = "x = (self - mean) * rstd\nweight_ = fn.row_sum(grad * x, mask)\nbias_ = fn.row_sum(grad, mask)\n"
_CHANNEL_GRADIENT = "{scale} * (grad - bias_ / count - (self - mean) * rstd * weight_ / count)"


def _batch_norm_backward(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    weight: _Optional,
    running_mean: _Optional,
    running_var: _Optional,
    save_mean: _Optional,
    save_invstd: _Optional,
    train: bool,
    eps: float,
    output_mask: _Mask,
) -> tuple[_Optional, ...]:
    dims = _all_but_channels(input, weight)
    compute = computed_in(input.dtype)
    if not input.numel() or grad_out.device != input.device:
        raise OnHost("an input without numbers, or gradients on another device")
    if train and save_mean is not None and save_invstd is not None:
        mean, rstd = _channels(save_mean, input), _channels(save_invstd, input)
    else:
        mean, rstd = _fixed(input, running_mean, running_var, eps)
    operands = {"grad": grad_out, "self": input, "mean": mean, "rstd": rstd}
    scale, like = "rstd", input.new_empty(input.shape[1]) if weight is None else weight
    if weight is not None:
        scale, operands["weight"] = "weight * rstd", _channels(weight, input)
    out = empty_in_order_of(input, input.shape) if output_mask[0] else None
    if out is not None and not train:
        run(Body.of(f"{scale} * grad"), {"out": out}, _only(operands, f"{scale} grad"), compute)
    if out is None or not train:
        wanted = (like if asked else None for asked in output_mask[1:])
        return out, *parameter_gradients(grad_out, input, mean, rstd, dims, *wanted)
    sums: dict[str, Any] = {"weight_": like.dtype, "bias_": like.dtype}
    text = _CHANNEL_GRADIENT.format(scale=scale)
    if rows.fits(input.shape, dims):
        sums = {name: torch.empty_like(_channels(like, input)) for name in sums}
        rows.run(f"{_CHANNEL_SUMS}out = {text}", {"out": out, **sums}, operands, dims, compute)
    else:
        elements = "x_weight_ = grad * ((self - mean) * rstd)\nx_bias_ = grad"
        what = What(elements, (("weight_", SUM), ("bias_", SUM)), "")
        given = {name: operands[name] for name in ("grad", "self", "mean", "rstd")}
        found = reduce_together(what, dict.fromkeys(sums, compute), given, dims, compute)
        sums = dict(zip(sums, found, strict=True))
        count = float(math.prod(input.shape[d] for d in dims))
        run(Body.of(text), {"out": out}, {**operands, **sums, "count": count}, compute)
    gradients = [total.view(like.shape).to(like.dtype) for total in sums.values()]
    return out, *(total if asked else None for total, asked in zip(gradients, output_mask[1:], strict=True))


def _only(operands: dict[str, torch.Tensor], words: str) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in operands.items() if name in words.split()}


def _with_update(*args: Any) -> tuple[torch.Tensor, ...]:
    """Normalises while training, with memory for its gradient, of which none is needed. ``args``: those of
    _batch_norm() but ``training``."""
    given = *args[:5], True, *args[5:]
    found = _batch_norm(*given)
    return *found, torch.empty(0, dtype=torch.uint8, device=args[0].device)


def _into_given(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with tensors for its results, by their names: the statistics of halves may be halves, too, as they
    are on the CPU, where they are rounded."""

    def run_into(*args: Any, out: torch.Tensor, save_mean: torch.Tensor, save_invstd: torch.Tensor, **how: Any) -> Any:
        given = out, save_mean, save_invstd
        for target, result in zip(given, function(*args, **how), strict=True):
            kind = out.dtype if target.dtype == out.dtype else result.dtype
            of_type(target, kind, result.shape).copy_(result)
        return given

    return run_into


TABLE: dict[str, Callable[..., Any]] = {
    "native_batch_norm _native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit.no_stats": lambda x, weight, bias, *how: _batch_norm(x, weight, bias, None, None, *how),
    "native_batch_norm_backward": _batch_norm_backward,
    "native_batch_norm.out _native_batch_norm_legit.out": _into_given(_batch_norm),
    "_batch_norm_with_update": _with_update,
    "batch_norm_backward": lambda *args: _batch_norm_backward(*args[:-1]),
}
