"""The CTC loss and its gradient, on the device alone, against the CPU's."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

#: (labels, times that count, labels that count, blank). Labels that repeat, none at all, and more than the times hold.
_CASES: dict[str, tuple[Any, list[int], list[int], int]] = {
    "padded": ([[1, 2, 2, 3], [4, 4, 0, 0], [0, 0, 0, 0]], [11, 9, 4], [4, 2, 0], 5),
    "joined": ([1, 2, 2, 5, 5, 5, 3], [11, 7, 1], [3, 3, 1], 0),
    "impossible": ([[1, 1, 1, 2], [2, 3, 1, 2], [1, 2, 3, 4]], [5, 3, 0], [4, 4, 2], 0),
}


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ctc_loss(name: str, zero_infinity: bool, dtype: torch.dtype) -> None:
    labels, times, lengths, blank = _CASES[name]

    def run(x: torch.Tensor, targets: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        losses = F.ctc_loss(
            x.log_softmax(2), targets, times, lengths, blank, reduction="none", zero_infinity=zero_infinity
        )
        weights = torch.arange(1, 4, device=x.device)
        return losses.detach(), *torch.autograd.grad((losses * weights).sum(), x)

    tolerance = (1e-4, 1e-5) if dtype == torch.float32 else (1e-10, 1e-12)
    compare(run, values(11, 3, 6).to(dtype), torch.tensor(labels), tolerance=tolerance)


def test_lengths_that_are_tensors() -> None:
    def run(x: torch.Tensor, targets: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        loss = F.ctc_loss(x.log_softmax(2), targets, torch.tensor([9, 8]), torch.tensor([3, 2]))
        return loss.detach(), *torch.autograd.grad(loss, x)

    compare(run, values(9, 2, 5), torch.tensor([[1, 2, 3], [4, 4, 0]], dtype=torch.int32), tolerance=(1e-4, 1e-5))


def test_labels_out_of_range_are_reported() -> None:
    x = torch.randn(6, 1, 4, device="spirv").log_softmax(2)
    with pytest.raises(IndexError, match="out of range"):
        F.ctc_loss(x, torch.tensor([[1, 9]], device="spirv"), [6], [2]).cpu()
