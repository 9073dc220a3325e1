"""Losses of classes whose scores are to be larger than all others by a margin, and their gradients: of one class a line
(multi_margin_loss), and of several (multilabel_margin_loss).

They are composed of a few kernels. Halves are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .bounds import INDEX, note_outside
from .dtypes import OnHost, computed_in, require

_NONE, _MEAN = 0, 1
_Optional = torch.Tensor | None
#: Pairs of a class and another one that are compared at once.
_MOST_PAIRS = 2**26


class _Excesses:
    """What both directions need: by how much each score (N, C) exceeds what the margin allows, 0 for a class itself,
    and the factor of each line (N, 1)."""

    def __init__(self, scores: torch.Tensor, target: torch.Tensor, margin: Any, weight: _Optional) -> None:
        device, kind = scores.device, computed_in(scores.dtype)
        require(scores.dtype, device.index or 0)
        if not scores.dtype.is_floating_point or scores.dim() > 2 or not scores.numel():
            raise OnHost("scores that are refused")
        lines = scores.shape[0] if scores.dim() == 2 else 1
        if target.dtype != torch.int64 or target.device != device or target.dim() > 1 or target.numel() != lines:
            raise OnHost("classes that are refused")
        if scores.dim() == 2 and target.dim() != 1:
            raise OnHost("classes that are refused")
        self.lines, self.classes = lines, scores.numel() // lines
        self.target = target.reshape(lines, 1)
        self.factor: Any = 1.0 / self.classes
        if weight is not None:
            if weight.shape != (self.classes,) or weight.dtype != scores.dtype or weight.device != device:
                raise OnHost("weights that are refused")
            self.factor = weight.to(kind)[self.target] / self.classes
        whole = scores.reshape(lines, self.classes).to(kind)
        over = whole - whole.gather(1, self.target) + float(margin)
        self.over = torch.where(over > 0, over, 0).scatter(1, self.target, 0)  # NaN exceeds nothing


def _power(p: Any) -> int:
    if p not in (1, 2):
        raise OnHost("a power that is refused")
    return int(p)


def _loss(
    self: torch.Tensor,
    target: torch.Tensor,
    p: Any = 1,
    margin: Any = 1,
    weight: _Optional = None,
    reduction: int = _MEAN,
) -> torch.Tensor:
    """(N), or one number; of scores (N, C), (C) or one and classes (N) or one."""
    known, power = _Excesses(self, target, margin, weight), _power(p)
    losses = (known.over**power * known.factor).sum(1)
    result = losses.mean() if reduction == _MEAN else losses.sum() if reduction != _NONE else losses
    if reduction == _NONE:
        result = result.view(target.shape)
    return result.to(self.dtype)


def _gradient(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    target: torch.Tensor,
    p: Any,
    margin: Any,
    weight: _Optional = None,
    reduction: int = _MEAN,
) -> torch.Tensor:
    """The gradient, shaped as the scores: what each that exceeds the margin adds, and at the class itself less all of
    those."""
    known, power = _Excesses(self, target, margin, weight), _power(p)
    slope = (known.over > 0).to(known.over.dtype) if power == 1 else known.over * 2
    grad = grad_output.to(slope.dtype)
    grad = grad.reshape(-1, 1) if reduction == _NONE else grad / (known.lines if reduction == _MEAN else 1)
    slope = slope * known.factor * grad
    return slope.scatter(1, known.target, -slope.sum(1, keepdim=True)).view(self.shape).to(self.dtype)


class _Pairs:
    """What both directions of multilabel_margin_loss need, of scores (N, C) and the classes of each line, which end at
    the first -1: ``over`` (N, C, C), by how much each score exceeds what the margin of each class allows, and 0
    elsewhere; ``classes`` (N, C), C behind the last."""

    def __init__(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        kind = computed_in(scores.dtype)
        require(scores.dtype, scores.device.index or 0)
        if not scores.dtype.is_floating_point or scores.dim() > 2 or not scores.numel():
            raise OnHost("scores that are refused")
        if target.dtype != torch.int64 or target.device != scores.device or target.shape != scores.shape:
            raise OnHost("classes that are refused")
        self.count = count = scores.shape[-1] if scores.dim() else 1
        if scores.numel() * count > _MOST_PAIRS:
            raise OnHost(f"{scores.numel()} scores of {count} classes")
        x, classes = scores.reshape(-1, count).to(kind), target.reshape(-1, count)
        self.lines = x.shape[0]
        named = (classes == -1).cumsum(1) == 0
        note_outside(torch.where(named, classes, 0), 0, count - 1, INDEX, "multilabel_margin_loss")
        self.classes = torch.where(named, classes, count)
        nothing = x.new_zeros(self.lines, count + 1)
        self.is_target = nothing.scatter(1, self.classes, 1.0)[:, :count]
        theirs = torch.cat((x, nothing[:, :1]), 1).gather(1, self.classes)
        over = 1 - theirs[:, :, None] + x[:, None, :]
        counts = named[:, :, None] & (self.is_target == 0)[:, None, :] & (over > 0)  # NaN exceeds nothing
        self.over = torch.where(counts, over, 0.0)


def _multilabel(self: torch.Tensor, target: torch.Tensor, reduction: int) -> tuple[torch.Tensor, torch.Tensor]:
    """((N) or one number, as the scores: 1 where a class is named)."""
    known = _Pairs(self, target)
    losses = known.over.sum((1, 2)) / known.count
    result = losses.mean() if reduction == _MEAN else losses.sum() if reduction != _NONE else losses
    if reduction == _NONE and self.dim() < 2:
        result = result.view(())
    return result.to(self.dtype), known.is_target.reshape(self.shape).to(self.dtype)


def _multilabel_gradient(
    grad_output: torch.Tensor, self: torch.Tensor, target: torch.Tensor, reduction: int, is_target: torch.Tensor
) -> torch.Tensor:
    """The gradient, shaped as the scores: what each adds to the losses of all classes, less what a class of the line
    takes from them."""
    known = _Pairs(self, target)
    slope = (known.over > 0).to(known.over.dtype) / known.count
    grad = grad_output.to(slope.dtype)
    grad = grad.reshape(-1, 1) if reduction == _NONE else grad / (known.lines if reduction == _MEAN else 1)
    taken = slope.new_zeros(known.lines, known.count + 1).scatter_add(1, known.classes, slope.sum(2))
    return ((slope.sum(1) - taken[:, : known.count]) * grad).view(self.shape).to(self.dtype)


TABLE: dict[str, Callable[..., Any]] = {
    "multi_margin_loss multi_margin_loss.out": _loss,
    "multi_margin_loss_backward multi_margin_loss_backward.grad_input": _gradient,
    "multilabel_margin_loss_forward multilabel_margin_loss_forward.output": _multilabel,
    "multilabel_margin_loss_backward multilabel_margin_loss_backward.grad_input": _multilabel_gradient,
}
