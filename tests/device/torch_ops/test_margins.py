"""Losses with margins between classes, on the device alone, against the CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (torch's own convention)

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_multi_margin_loss(p: int, reduction: str, dtype: torch.dtype) -> None:
    def run(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        how: list[dict[str, Any]] = [{}, {"margin": -0.3}, {"weight": weight}]
        losses = [F.multi_margin_loss(x, target, p=p, reduction=reduction, **given) for given in how]
        one = F.multi_margin_loss(x[0], target[0], p=p, reduction=reduction)
        scale = torch.arange(1, losses[0].numel() + 1, device=x.device).view(losses[0].shape)
        total = sum((loss * scale).sum() for loss in losses) + one * 3
        return losses[2].detach(), one.detach(), *torch.autograd.grad(total, x)

    x = values(6, 5).to(dtype)
    x[2, 3], x[4] = float("nan"), 1.0  # all differ by the margin at most
    compare(run, x, torch.tensor([0, 4, 3, 2, 1, 0]), torch.rand(5, dtype=dtype), tolerance=(1e-5, 1e-6))


def test_scores_and_classes_of_fewer_dimensions() -> None:
    """Of one line the class may be in a line, too."""
    scores = values(5)
    for x, target in ((scores, torch.tensor(3)), (scores, torch.tensor([3])), (scores[:1], torch.tensor([0]))):
        compare(lambda x, t: [F.multi_margin_loss(x, t, reduction=r) for r in ("none", "sum", "mean")], x, target)
    compare(lambda x, t: [F.multi_margin_loss(x, t, p=2, reduction=r) for r in ("none", "mean")], scores[0], target[0])


def test_halves_have_the_loss_of_float32() -> None:
    """torch's CPU refuses them, CUDA does not."""
    x, target = values(6, 5), torch.tensor([0, 4, 3, 2, 1, 0])
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype).to("spirv").requires_grad_()
        loss = F.multi_margin_loss(half, target.to("spirv"))
        loss.backward()
        whole = x.to(dtype).float().requires_grad_()
        expected = F.multi_margin_loss(whole, target)
        expected.backward()
        torch.testing.assert_close(loss.cpu(), expected.detach().to(dtype))
        assert half.grad is not None and whole.grad is not None
        torch.testing.assert_close(half.grad.cpu(), whole.grad.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_multilabel_margin_loss(dtype: torch.dtype) -> None:
    """Classes end at the first -1, and count as often as they are named."""

    def run(x: torch.Tensor, target: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        losses = [F.multilabel_margin_loss(x, target, reduction=how) for how in ("mean", "sum", "none")]
        scales = (torch.arange(1, loss.numel() + 1, device=x.device).view(loss.shape) for loss in losses)
        total = sum((loss * scale).sum() for loss, scale in zip(losses, scales, strict=True))
        return *(loss.detach() for loss in losses), *torch.autograd.grad(total, x)

    x = values(4, 6).to(dtype)
    target = torch.tensor([[3, 0, -1, 1, 2, 0], [1, 2, 3, 4, 5, 0], [-1] * 6, [2, 2, 5, -1, 2, 3]])
    compare(run, x, target, tolerance=(1e-5, 1e-6))
    compare(run, x.t().contiguous().t(), target, tolerance=(1e-5, 1e-6))
    for line in range(4):
        compare(run, x[line], target[line], tolerance=(1e-5, 1e-6))
    compare(run, x[0, 0], torch.tensor(0))
    x[0, 2], x[1, 1], x[3, 0] = float("nan"), float("inf"), float("-inf")
    compare(run, x, target, tolerance=(1e-5, 1e-6))


def test_classes_out_of_range_are_reported() -> None:
    x = torch.randn(2, 4, device="spirv")
    F.multi_margin_loss(x, torch.tensor([1, 4], device="spirv"))
    with pytest.raises(IndexError, match="out of range"):
        torch.zeros(1, device="spirv").cpu()
    F.multilabel_margin_loss(x, torch.tensor([[1, 5, -1, 0], [0, -1, 0, 0]], device="spirv"))
    with pytest.raises(IndexError, match="out of range"):
        torch.zeros(1, device="spirv").cpu()
