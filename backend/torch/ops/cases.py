"""Elementwise operations whose expression depends on which arguments are given, and losses, which are reduced."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .expressions import POWERS
from .pointwise import apply, check_output, of_type, output_strides
from .reducing import SUM, reduce
from .strided_shapes import resized

_NONE, _MEAN = 0, 1  # torch's Reduction; 2 is the sum
#: The bits of infinity in 16-bit floats.
_INFINITIES = {torch.float16: 0x7C00, torch.bfloat16: 0x7F80}
_FREXP = Body("""finite = (self == self) & (tl.abs(self) != float("inf")) & (self != 0)
exponent = tl.where(finite, libdevice.ilogb(tl.where(finite, self, 1.0)) + 1, 0)
# In two steps: a power of two may be past the largest number.
half = exponent // 2
mantissa = tl.where(finite, libdevice.ldexp(libdevice.ldexp(self, -half), half - exponent), self)
exponent = exponent.to(self.dtype)""")


def _clamp(self: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    given = {key: value for key, value in (("self", self), ("min", min), ("max", max)) if value is not None}
    case = "both" if len(given) == 3 else next((key for key in given if key != "self"), None)
    if case is None:
        raise OnHost("a clamp without bounds")
    if case != "both" and isinstance(given[case], Tensor):  # of which torch takes booleans, too
        return apply({"min": "maximum", "max": "minimum"}[case], {"self": self, "other": given[case]}, out)
    return apply(f"clamp:{case}", given, out)


def _pow(self: Any, exponent: Any, *, out: Tensor) -> Tensor:
    if isinstance(exponent, (int, float)) and isinstance(self, Tensor):
        if not (out.dtype.is_floating_point or out.dtype.is_complex) and exponent < 0:
            raise OnHost("a negative power of integers")
        case = POWERS.get(float(exponent))
        if case is not None and (self.dtype.is_floating_point or (isinstance(exponent, int) and exponent > 0)):
            return apply(f"pow:{case}", {"self": self}, out)
    return apply("pow:", {"self": self, "exponent": exponent}, out)


_MOST_DECIMALS = 308


def _round(self: Tensor, *, decimals: int, out: Tensor) -> Tensor:
    """To so many decimal places, or tens, hundreds … where they are negative."""
    if not self.dtype.is_floating_point:
        raise OnHost("decimal places of integers")
    if abs(decimals) > _MOST_DECIMALS:
        raise OnHost("a power of ten past float64")
    case = "round:before" if decimals < 0 else "round:after"
    return apply(case, {"self": self, "power": 10.0 ** abs(decimals)}, out)


def _nan_to_num(self: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None, *, out: Tensor) -> Tensor:
    if out.dtype != self.dtype:
        raise OnHost(f"an output of {out.dtype}")
    if not self.dtype.is_floating_point:
        return resized(out, self.shape).copy_(self)
    limits = torch.finfo(self.dtype)
    chosen = {
        "nan": 0.0 if nan is None else nan,
        "posinf": limits.max if posinf is None else posinf,
        "neginf": limits.min if neginf is None else neginf,
    }
    return apply("nan_to_num:", {"self": self, **chosen}, out)


def _logit(self: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    if self.is_complex():
        raise OnHost("complex numbers")
    if not self.dtype.is_floating_point:
        self = self.to(torch.get_default_dtype())
    given = {"self": self} if eps is None or eps != eps else {"self": self, "eps": eps}
    return apply("logit:eps" if "eps" in given else "logit:", given, out)


def _logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None, *, grad_input: Tensor) -> Tensor:
    given = {"grad_output": grad_output, "self": self}
    if eps is None or eps < 0:
        return apply("logit_backward", given, grad_input)
    return apply("logit_backward:eps", {**given, "eps": eps}, grad_input)


#: The greatest number whose factorial is a float32.
_HIGHEST_ORDER = 34


def _polygamma(n: int, self: Tensor, *, out: Tensor) -> Tensor:
    if self.is_complex() or not 0 <= n <= _HIGHEST_ORDER:
        raise OnHost("complex numbers, or an order that is refused, or whose factorial is past float32")
    self = self if self.dtype.is_floating_point else self.to(torch.get_default_dtype())
    if n == 0:
        return apply("polygamma:0", {"self": self}, out)
    factor = math.factorial(n) * (1.0 if n % 2 else -1.0)
    return apply("polygamma:", {"self": self, "order": float(n + 1), "factor": factor}, out)


def _elu_backward(
    grad_output: Tensor,
    alpha: Any,
    scale: Any,
    input_scale: Any,
    is_result: bool,
    self_or_result: Tensor,
    *,
    grad_input: Tensor,
) -> Tensor:
    given = {"grad_output": grad_output, "alpha": alpha, "scale": scale, "input_scale": input_scale}
    case = "result" if is_result else "input"
    return apply(f"elu_backward:{case}", {**given, "self_or_result": self_or_result}, grad_input)


def _reduced(loss: Tensor, reduction: int, out: Tensor | None) -> Tensor:
    finish = "acc / count" if reduction == _MEAN else "acc"
    if reduction == _MEAN and not loss.numel():
        raise OnHost("the mean of nothing")
    dims = tuple(range(loss.dim()))
    if out is not None:
        check_output(out, loss.dtype, torch.Size())
    return reduce("self", SUM, {"self": loss}, dims, finish=finish, dtype=loss.dtype, out=out)


def _loss(name: str, number: str | None = None) -> Callable[..., Tensor]:
    def loss(
        self: Tensor, target: Tensor, reduction: int = _MEAN, parameter: Any = 1.0, *, out: Tensor | None = None
    ) -> Tensor:
        if not self.dtype.is_floating_point or self.dtype != target.dtype:
            raise OnHost("a loss of numbers that are not of one float type")
        if number == "delta" and not parameter > 0 or number == "beta" and parameter < 0:
            raise OnHost(f"a {number} of {parameter}")
        given = {"self": self, "target": target} | ({} if number is None else {number: parameter})
        if reduction == _NONE:
            return apply(f"{name}:", given, out)
        return _reduced(apply(f"{name}:", given, None), reduction, out)

    return loss


def _loss_backward(name: str, scale: float, number: str | None = None) -> Callable[..., Tensor]:
    def backward(
        grad_output: Tensor,
        self: Tensor,
        target: Tensor,
        reduction: int,
        parameter: Any = 1.0,
        *,
        grad_input: Tensor | None = None,
    ) -> Tensor:
        factor = scale / max(self.numel(), 1) if reduction == _MEAN else scale
        given = {"grad_output": grad_output, "self": self, "target": target, "factor": factor}
        return apply(f"{name}:", given | ({} if number is None else {number: parameter}), grad_input)

    return backward


def _check_weights(self: Tensor, *weights: Tensor | None) -> None:
    for weight in weights:
        if weight is not None and (
            weight.dtype != self.dtype or torch.broadcast_shapes(weight.shape, self.shape) != self.shape
        ):
            raise OnHost("weights of another type, or past the shape of the loss")


def _bce(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN) -> Tensor:
    if not self.dtype.is_floating_point or self.dtype != target.dtype:
        raise OnHost("a loss of numbers that are not of one float type")
    _check_weights(self, weight)
    loss = apply("binary_cross_entropy:", {"self": self, "target": target}, None)
    loss = loss if weight is None else loss * weight
    return loss if reduction == _NONE else _reduced(loss, reduction, None)


def _bce_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN
) -> Tensor:
    factor = 1.0 / max(self.numel(), 1) if reduction == _MEAN else 1.0
    given = {"grad_output": grad_output, "self": self, "target": target, "factor": factor}
    gradient = apply("binary_cross_entropy_backward:", given, None)
    return gradient if weight is None else gradient * weight


def _bce_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = _MEAN
) -> Tensor:
    if not self.dtype.is_floating_point or self.dtype != target.dtype:
        raise OnHost("numbers that are not of one float type")
    _check_weights(self, weight, pos_weight)
    if pos_weight is None:
        loss = apply("binary_cross_entropy_with_logits:", {"self": self, "target": target}, None)
    else:
        given = {"self": self, "target": target, "weight": pos_weight}
        loss = apply("binary_cross_entropy_with_logits:weight", given, None)
    loss = loss if weight is None else loss * weight
    return loss if reduction == _NONE else _reduced(loss, reduction, None)


def _log_sigmoid(self: Tensor) -> tuple[Tensor, Tensor]:
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return apply("log_sigmoid:", {"self": self}, out), self.new_empty(0)


def _log_sigmoid_out(self: Tensor, *, output: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
    return apply("log_sigmoid:", {"self": self}, of_type(output, self.dtype, self.shape)), resized(buffer, (0,))


def _slope(case: str, grad_output: Tensor, self: Tensor) -> Tensor:
    return apply(case, {"grad_output": grad_output, "self": self}, None)


def _nextafter(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    kind = torch.result_type(self, other)
    if kind not in _INFINITIES:
        return apply("nextafter:", {"self": self, "other": other}, out)
    bits = {"self": self.to(kind).view(torch.int16), "other": other.to(kind).view(torch.int16)}
    result = apply("nextafter:halves", {**bits, "infinity": _INFINITIES[kind]}, None).view(kind)
    check_output(out, kind, result.shape)
    return out.copy_(result)


def _frexp(self: Tensor, *, mantissa: Tensor, exponent: Tensor) -> tuple[Tensor, Tensor]:
    """Fractions of at least 1/2 and below 1, and powers of two; 0 of what is 0 or not finite."""
    if not self.dtype.is_floating_point or mantissa.dtype != self.dtype or exponent.dtype != torch.int32:
        raise OnHost("numbers that are no floats, or outputs of other types")
    strides = output_strides((self,), self.shape)
    for out in (mantissa, exponent):
        if out.shape != self.shape:
            resized(out, self.shape)
            out.as_strided_(self.shape, strides)
    run(_FREXP, {"mantissa": mantissa, "exponent": exponent}, {"self": self}, computed_in(self.dtype))
    return mantissa, exponent


def _mvlgamma_out(self: Tensor, p: int, *, out: Tensor) -> Tensor:
    result = torch.mvlgamma(self, p)
    check_output(out, result.dtype, result.shape)
    return out.copy_(result)


TABLE: dict[str, Callable[..., Any]] = {
    "clamp.out clamp.Tensor_out": _clamp,
    "clamp_min.out clamp_min.Tensor_out": lambda self, bound, **out: _clamp(self, bound, **out),
    "clamp_max.out clamp_max.Tensor_out": lambda self, bound, **out: _clamp(self, None, bound, **out),
    "pow.Tensor_Scalar_out pow.Tensor_Tensor_out pow.Scalar_out": _pow,
    "round.decimals_out": _round,
    "nan_to_num.out": _nan_to_num,
    "polygamma.out": _polygamma,
    "mvlgamma.out": _mvlgamma_out,
    "logit": _logit,
    "logit_": lambda self, eps=None: _logit(self, eps, out=self),
    "logit_backward.grad_input": _logit_backward,
    "logit.out": _logit,
    "elu_backward.grad_input": _elu_backward,
    "mse_loss.out": _loss("mse_loss"),
    "smooth_l1_loss.out": _loss("smooth_l1_loss", "beta"),
    "huber_loss huber_loss.out": _loss("huber_loss", "delta"),
    "mse_loss_backward mse_loss_backward.grad_input": _loss_backward("mse_loss_backward", 2.0),
    "smooth_l1_loss_backward.grad_input": _loss_backward("smooth_l1_loss_backward", 1.0, "beta"),
    "huber_loss_backward.out": _loss_backward("huber_loss_backward", 1.0, "delta"),
    "binary_cross_entropy": _bce,
    "binary_cross_entropy_backward": _bce_backward,
    "binary_cross_entropy_with_logits": _bce_with_logits,
    "log_sigmoid_forward": _log_sigmoid,
    "log_sigmoid_forward.output": _log_sigmoid_out,
    "log_sigmoid_backward": lambda grad, self, _: _slope("log_sigmoid_backward:", grad, self),
    "mish_backward": lambda grad, self: _slope("mish_backward:", grad, self),
    "nextafter.out": _nextafter,
    "frexp.Tensor_out": _frexp,
}
