"""The negative log likelihood of classes, which cross entropy is made of, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .bounds import CHECK, fault_of
from .elementwise import Body, run
from .library import enter_by_name
from .pointwise import of_type
from .reducing import SUM, reduce
from .shapes import resized
from .types import OnHost, computed_in

_NONE, _MEAN = 0, 1
_TEXT = (
    "ignored = target == ignore\nindex = tl.where(ignored, 0, target)\n"
    + CHECK
    + "weight = tl.where(ignored, 0.0, {weight})\n"
    "value = tl.load(self + index * step + zero, mask=mask).to(weight.dtype)\n"
    "loss = tl.where(ignored, 0.0, -weight * value)"
)
_ONE = "zero.to({type}) + 1"


def enter_losses(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


def _forward(
    self: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    output: torch.Tensor,
    total_weight: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``self``: log-probabilities (N, C, …) or (C); ``target``: classes (N, …) or none."""
    if not self.dtype.is_floating_point or target.dtype != torch.int64:
        raise OnHost("classes of another type")
    classes = 0 if self.dim() == 1 else 1
    compute = computed_in(self.dtype)
    losses, weights = (torch.empty(target.shape, dtype=compute, device=self.device) for _ in range(2))
    operands = {"target": target, "self": self.select(classes, 0), "fault": fault_of(self.device, "nll_loss")}
    loaded = _ONE.format(type="tl.float64" if compute == torch.float64 else "tl.float32")
    if weight is not None:
        operands["weights"] = weight[0]
        loaded = "tl.load(weights + index * step_weights + zero, mask=mask).to(" + loaded[8 : loaded.index(")")] + ")"
    text = _TEXT.format(weight=loaded)
    body = Body(text, frozenset(("target",)), frozenset(("self", "fault", "weights")))
    counts = {"ignore": ignore_index, "step": self.stride(classes), "size": self.shape[classes]}
    counts["step_weights"] = 0 if weight is None else weight.stride(0)
    run(body, {"loss": losses, "weight": weights}, operands, compute, counts)
    if reduction == _NONE and target.dim():
        of_type(output, self.dtype, target.shape).copy_(losses)
        resized(total_weight, torch.Size()).zero_()
        return output, total_weight
    dims = tuple(range(target.dim()))
    total = reduce("self", SUM, {"self": weights}, dims, dtype=compute)
    loss = reduce("self", SUM, {"self": losses}, dims, dtype=compute)
    if reduction == _MEAN:
        loss = loss / total
    of_type(output, self.dtype, ()).copy_(loss)
    resized(total_weight, torch.Size()).copy_(total)
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
    numbers = torch.arange(self.shape[classes], device=self.device).view(-1, *after)
    grad = grad_output.unsqueeze(classes) if reduction == _NONE and target.dim() else grad_output
    operands = {"target": target.unsqueeze(classes), "number": numbers, "grad": grad}
    value = "-grad"
    if weight is not None:
        operands["weight"] = weight.view(-1, *after)
        value += " * weight"
    if reduction == _MEAN:
        operands["total"] = total_weight
        value += " / total"
    text = f"tl.where((number == target) & (target != ignore), {value}, 0.0)"
    out = resized(grad_input, self.shape)
    run(Body.of(text, "target", "number"), {"out": out}, operands, computed_in(self.dtype), {"ignore": ignore_index})
    return out


_TABLE: dict[str, Callable[..., Any]] = {
    "nll_loss_forward.output": _forward,
    "nll_loss2d_forward.output": _forward,
    "nll_loss2d_forward": lambda self, target, weight, reduction, ignore_index: _forward(
        self, target, weight, reduction, ignore_index, output=self.new_empty(0), total_weight=self.new_empty(())
    ),
    "nll_loss_backward.grad_input": _backward,
    "nll_loss2d_backward.grad_input": _backward,
    "nll_loss2d_backward": lambda grad, self, *rest: _backward(grad, self, *rest, grad_input=torch.empty_like(self)),
}
