"""Strides of results: those of the CPU's, where channels come last in memory, and of transposed operands. Results of
convolutions are contiguous, as torch's compiler expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (torch's own convention)

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_LAST, _LAST_3D = torch.channels_last, torch.channels_last_3d

#: (convolution, input, its order, weight, its order). Windows are those of test_convolution.py, whose kernels serve.
_CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], Any, tuple[int, ...], Any]] = {
    "2d": (F.conv2d, (2, 3, 7, 9), _LAST, (5, 3, 3, 3), None),
    "of a weight": (F.conv2d, (2, 3, 7, 9), None, (5, 3, 3, 3), _LAST),
    "of both, in groups": (lambda x, w, b: F.conv2d(x, w, b, 2, 1, 1, 2), (2, 6, 5, 5), _LAST, (4, 3, 3, 3), _LAST),
    "transposed": (F.conv_transpose2d, (2, 3, 5, 4), _LAST, (3, 4, 3, 3), None),
    "3d": (F.conv3d, (2, 3, 4, 5, 6), _LAST_3D, (4, 3, 2, 3, 3), None),
}


@pytest.mark.parametrize("name", _CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    function, size, order, weight, weights_order = _CONVOLUTIONS[name]

    def run(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> Any:
        x, w, bias = (tensor.detach().requires_grad_() for tensor in (x, w, bias))
        y = function(x, w, bias)
        results = y.detach(), *torch.autograd.grad((y * y.detach()).sum(), (x, w, bias))
        assert x.device.type == "cpu" or all(result.is_contiguous() for result in results)
        return [result.contiguous() for result in results]

    x, w = values(*size), values(*weight)
    x = x if order is None else x.contiguous(memory_format=order)
    w = w if weights_order is None else w.contiguous(memory_format=weights_order)
    compare(run, x, w, values(weight[1] if name == "transposed" else weight[0]), tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_convolutions_of_channels_last(backend: str) -> None:
    """What torch's compiler predicts of the strides holds: it asserts them, and views depend on them."""

    def flattened(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(F.pad(x, (1, 1, 1, 1), "replicate"), w).relu().flatten(1)

    x, w = values(2, 3, 7, 9).contiguous(memory_format=_LAST), values(5, 3, 3, 3)
    compiled = torch.compile(flattened, backend=backend)

    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = (flattened if x.device.type == "cpu" else compiled)(x, w)
        gradients = torch.autograd.grad((y * y.detach()).sum(), (x, w))
        return y.detach(), *(gradient.contiguous() for gradient in gradients)

    compare(run, x, w, tolerance=(1e-4, 1e-3))


def test_convolutions_of_views() -> None:
    """Gaps, expanded gradients, and images that are read backwards in memory order."""

    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        part, w = x[:, 1:4, ::2, 1:].transpose(2, 3).detach().requires_grad_(), w.detach().requires_grad_()
        y = F.conv2d(part, w)
        return torch.autograd.grad(y.sum(), (part, w))

    compare(run, values(2, 5, 9, 8), values(4, 3, 3, 3), tolerance=(1e-4, 1e-3))


#: Of images with channels last.
_IMAGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "reflection_pad": lambda x: F.pad(x, (1, 2, 1, 0), "reflect"),
    "replication_pad": lambda x: F.pad(x, (1, 2, 1, 0), "replicate"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "max_pool": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "max_unpool": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "max_pool3d": lambda x: F.max_pool3d(x.unflatten(1, (4, 2)).contiguous(memory_format=_LAST_3D), (1, 2, 2)),
}


@pytest.mark.parametrize("name", _IMAGES)
def test_images(name: str) -> None:
    compare(_IMAGES[name], values(2, 8, 6, 4).contiguous(memory_format=_LAST), tolerance=(1e-4, 1e-4))


#: Of transposed matrices.
_TRANSPOSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "abs": torch.abs,
    "isinf": torch.isinf,
    "logical_and": lambda x: torch.logical_and(x, x),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "out": lambda x: torch.exp(x, out=x.new_empty(0)),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 0),
    "batch_norm": lambda x: F.batch_norm(x.unsqueeze(0), None, None, training=True),
}


@pytest.mark.parametrize("name", _TRANSPOSED)
def test_transposed(name: str) -> None:
    compare(_TRANSPOSED[name], values(5, 7).t(), tolerance=(1e-4, 1e-4))
