"""Results have the CPU's strides, with channels last in memory and with transposed operands. torch's compiler predicts
the strides of convolutions."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_LAST, _LAST_3D = torch.channels_last, torch.channels_last_3d

#: (convolution, input, its order, weight, its order). The windows, and so the kernels, are test_convolution.py's.
_CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], Any, tuple[int, ...], Any]] = {
    "2d": (F.conv2d, (2, 3, 7, 9), _LAST, (5, 3, 3, 3), None),
    "of a weight": (F.conv2d, (2, 3, 7, 9), None, (5, 3, 3, 3), _LAST),
    "of both, in groups": (lambda x, w, b: F.conv2d(x, w, b, 2, 1, 1, 2), (2, 6, 5, 5), _LAST, (4, 3, 3, 3), _LAST),
    "transposed": (F.conv_transpose2d, (2, 3, 5, 4), _LAST, (3, 4, 3, 3), None),
    "depthwise": (lambda x, w, b: F.conv2d(x, w, b, 1, 1, 1, 6), (2, 6, 5, 5), _LAST, (6, 1, 3, 3), None),
    "1d": (F.conv1d, (2, 3, 9), None, (4, 3, 3), None),
    "3d": (F.conv3d, (2, 3, 4, 5, 6), _LAST_3D, (4, 3, 2, 3, 3), None),
    "transposed 3d": (F.conv_transpose3d, (2, 3, 4, 5, 6), _LAST_3D, (3, 4, 2, 3, 3), None),
}
_BY_INDUCTOR = ("2d", "depthwise", "transposed 3d")


def _arguments(name: str) -> tuple[torch.Tensor, ...]:
    _, size, order, weight, weights_order = _CONVOLUTIONS[name]
    x, w = values(*size), values(*weight)
    x = x if order is None else x.contiguous(memory_format=order)
    w = w if weights_order is None else w.contiguous(memory_format=weights_order)
    return x, w, values(weight[1] if name.startswith("transposed") else weight[0])


def _step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Its result, that with a view which exists for contiguous results alone, and the gradients."""

    def run(*tensors: torch.Tensor) -> Any:
        tensors = tuple(tensor.detach().requires_grad_() for tensor in tensors)
        y, z = function(*tensors)
        return y.detach(), z.detach(), *torch.autograd.grad((z * z.detach()).sum() + y.sum(), tensors)

    return run


@pytest.mark.parametrize(
    ("name", "how"),
    [(name, how) for name in _CONVOLUTIONS for how in ("eager", "aot_eager")] + [(n, "inductor") for n in _BY_INDUCTOR],
)
def test_convolutions(name: str, how: str) -> None:
    """Values and strides, of gradients too. Compiled, sizes are dynamic: what torch's compiler predicts of the strides
    holds, which it asserts, and views depend on."""
    function = _CONVOLUTIONS[name][0]

    def flattened(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = function(x, w, bias)
        return y, y.relu().flatten(1)

    torch._dynamo.reset()
    compiled = flattened if how == "eager" else torch.compile(flattened, backend=how, dynamic=True)

    def run(*tensors: torch.Tensor) -> Any:
        return _step(flattened if tensors[0].device.type == "cpu" else compiled)(*tensors)

    arguments = _arguments(name)
    compare(run, *arguments, tolerance=(1e-4, 1e-3))
    ours, theirs = run(*(tensor.to("spirv") for tensor in arguments)), run(*arguments)
    assert [result.stride() for result in ours] == [result.stride() for result in theirs]


def test_images_of_any_size_are_compiled_once() -> None:
    """Forward and backward: torch's own lowering of the gradients compiles again for each size."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("inductor")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3, 2, 1))
    compiled = torch.compile(model.to("spirv"), backend=counter, dynamic=True)
    for height, width in ((16, 12), (20, 16), (12, 24)):
        compiled(torch.randn(2, 3, height, width, device="spirv")).square().mean().backward()
    assert counter.frame_count == 1


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
    "logsigmoid": F.logsigmoid,
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
