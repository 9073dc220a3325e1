"""Pooling at places that random numbers say, on the device alone, against the CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (torch's own convention)

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

#: (dimensions, shape, window, outputs).
_CASES: list[tuple[int, tuple[int, ...], Any, Any]] = [
    (2, (2, 3, 9, 7), (2, 3), (4, 3)),
    (2, (3, 8, 8), 2, (1, 5)),
    (3, (2, 3, 6, 7, 5), (2, 2, 1), (3, 4, 2)),
    (3, (3, 6, 7, 5), 2, (1, 1, 3)),
]


def _pooled(count: int, x: torch.Tensor, window: Any, outputs: Any, samples: torch.Tensor) -> Any:
    pool = getattr(F, f"fractional_max_pool{count}d_with_indices")
    return pool(x, window, outputs, _random_samples=samples)


def _samples(count: int, x: torch.Tensor) -> torch.Tensor:
    planes = x.shape[0] if x.dim() == count + 2 else 1, x.shape[-count - 1]
    return torch.rand(*planes, count, generator=torch.Generator().manual_seed(2)).to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("count", "shape", "window", "outputs"), _CASES)
def test_maxima_and_their_places(
    count: int, shape: tuple[int, ...], window: Any, outputs: Any, dtype: torch.dtype
) -> None:
    def run(x: torch.Tensor, samples: torch.Tensor) -> Any:
        return _pooled(count, x, window, outputs, samples)

    x = values(*shape).to(dtype)
    compare(run, x, _samples(count, x))
    x.view(-1)[5:30:4], x.view(-1)[40:50] = float("nan"), float("-inf")
    compare(run, x, _samples(count, x))
    compare(run, x.transpose(-1, -2).contiguous().transpose(-1, -2), _samples(count, x))


@pytest.mark.parametrize(("count", "shape", "window", "outputs"), _CASES)
def test_gradients(count: int, shape: tuple[int, ...], window: Any, outputs: Any) -> None:
    def run(x: torch.Tensor, samples: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y, _ = _pooled(count, x, window, outputs, samples)
        return torch.autograd.grad((y * torch.arange(1, y.numel() + 1, device=y.device).view(y.shape)).sum(), x)

    x = values(*shape)
    compare(run, x, _samples(count, x))


def test_of_no_images_there_are_none() -> None:
    x = torch.randn(0, 2, 6, 7, 5)
    compare(lambda x, s: _pooled(3, x, 2, (1, 1, 3), s), x, torch.rand(0, 2, 3))
