"""The negative log likelihood of classes, which cross entropy is made from, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from ..device.tensor_memory import empty
from .bounds import CHECK, fault_of
from .dtypes import OnHost, computed_in
from .elementwise import Body, numbers_along, run
from .pointwise import of_type
from .reducing import SUM, What, reduce_together
from .strided_shapes import resized

_NONE, _MEAN = 0, 1
_TEXT = (
    "ignored = target == ignore\nindex = tl.where(ignored, 0, target)\n"
    + CHECK
    + "weight = tl.where(ignored, 0.0, {weight})\n"
    "value = tl.load(self + index * step + zero, mask=mask).to(weight.dtype)\n"
    "loss = tl.where(ignored, 0.0, -weight * value)"
)
_ONE, _LOADED = "zero.to({}) + 1", "tl.load(weights + index * step_weights + zero, mask=mask).to({})"


@cache
def _of_each(compute: torch.dtype, weighted: bool) -> Body:
    """What is computed for each target."""
    weight = (_LOADED if weighted else _ONE).format("tl.float64" if compute == torch.float64 else "tl.float32")
    return Body(_TEXT.format(weight=weight), frozenset(("target",)), frozenset(("self", "fault", "weights")))


@cache
def _of_all(compute: torch.dtype, weighted: bool, mean: bool) -> What:
    """Sum or mean of that."""
    each = _of_each(compute, weighted)
    elements, finish = f"{each.text}\nx_losses = loss\nx_total = weight + blank", "losses = losses / total" * mean
    return What(elements, (("losses", SUM), ("total", SUM)), finish, each.as_stored, each.places)


def _forward(
    self: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    output: torch.Tensor | None = None,
    total_weight: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``self``: log-probabilities (N, C, …) or (C); ``target``: classes (N, …) or none."""
    shape = target.shape if reduction == _NONE else torch.Size()
    output = empty(shape, dtype=self.dtype, device=self.device) if output is None else output
    total_weight = empty((), dtype=self.dtype, device=self.device) if total_weight is None else total_weight
    if not self.dtype.is_floating_point or target.dtype != torch.int64:
        raise OnHost("classes of another type")
    classes = 0 if self.dim() == 1 else 1
    if not 1 <= self.dim() <= 4 or target.shape != self.shape[:classes] + self.shape[classes + 1 :]:
        raise OnHost("scores or classes that are refused")
    if weight is not None and (weight.dtype != self.dtype or weight.shape != (self.shape[classes],)):
        raise OnHost("weights of another type, or not of an element a class")
    compute = computed_in(self.dtype)
    operands = {"target": target, "self": self.select(classes, 0), "fault": fault_of(self.device, "nll_loss")}
    if weight is not None:
        operands["weights"] = weight[0]
    counts = {"ignore": ignore_index, "step": self.stride(classes), "size": self.shape[classes]}
    counts["step_weights"] = 0 if weight is None else weight.stride(0)
    if reduction == _NONE and target.dim():
        outputs = {"loss": of_type(output, self.dtype, target.shape)}
        run(_of_each(compute, weight is not None), outputs, operands, compute, counts)
        resized(total_weight, torch.Size()).zero_()
        return output, total_weight
    one, every = (1,) * target.dim(), tuple(range(target.dim()))
    sums = of_type(output, self.dtype, ()).view(one), of_type(total_weight, self.dtype, ()).view(one)
    what = _of_all(compute, weight is not None, reduction == _MEAN)
    reduce_together(what, dict(zip(("losses", "total"), sums, strict=True)), operands, every, compute, counts)
    return output, total_weight


def _backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: torch.Tensor,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    if not self.dtype.is_floating_point or target.dtype != torch.int64:
        raise OnHost("classes of another type")
    classes = 0 if self.dim() == 1 else 1
    after = (1,) * (self.dim() - 1 - classes)
    out = resized(grad_input, self.shape)
    if not out.numel():
        return out
    grad = grad_output.unsqueeze(classes) if reduction == _NONE and target.dim() else grad_output
    operands = {"target": target.unsqueeze(classes), "number": numbers_along(classes, out), "grad": grad}
    value = "-grad"
    if weight is not None:
        operands["weight"] = weight.view(-1, *after)
        value += " * weight"
    if reduction == _MEAN:
        operands["total"] = total_weight
        value += " / total"
    text = f"out = tl.where((number == target) & (target != ignore), {value}, 0.0)"
    body = Body(text, frozenset(("target",)), numbered=frozenset(("number",)))
    run(body, {"out": out}, operands, computed_in(self.dtype), {"ignore": ignore_index})
    return out


TABLE: dict[str, Callable[..., Any]] = {
    "nll_loss_forward nll_loss_forward.output nll_loss2d_forward nll_loss2d_forward.output": _forward,
    "nll_loss_backward.grad_input nll_loss2d_backward.grad_input": _backward,
    "nll_loss2d_backward": lambda grad, self, *rest: _backward(grad, self, *rest, grad_input=torch.empty_like(self)),
}
