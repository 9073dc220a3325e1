"""The generator of reductions, softmax and norms."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool], ids=str
)
def test_types(dtype: torch.dtype) -> None:
    x = values(9, 70, dtype=dtype)
    compare(lambda x: (x.sum(), x.sum(0), x.sum(1, keepdim=True), x.amax(0), x.amin(1), x.any(), x.all(1)), x)
    compare(lambda x: (x.max(), x.min(), x.prod(1), x.count_nonzero(0)), x[:, :5])


@pytest.mark.parametrize("dims", [0, 1, 2, 3, (0, 1), (0, 2), (1, 3), (0, 2, 3), (0, 1, 2, 3), (-1, 0)])
def test_dimensions_and_strides(dims: Any) -> None:
    x = values(3, 5, 2, 19)
    compare(lambda x: (x.sum(dims), x.mean(dims, keepdim=True)), x)
    compare(lambda x: x.permute(2, 0, 3, 1).amax(dims), x)
    compare(lambda x: x[:, ::2, :1, 3:].sum(dims), x)


def test_nothing_to_combine() -> None:
    """What is broadcast over no elements has no memory, and must not be read."""
    backward = torch.ops.aten.native_layer_norm_backward

    def gradients(x: torch.Tensor, weight: torch.Tensor) -> Any:
        return backward(x.new_ones(()).expand(0, 5), x, [5], x[:, :1], x[:, :1], weight, weight, [True] * 3)

    compare(gradients, values(0, 5), values(5))
    compare(lambda x: (x.sum(1), x.sum(0)), values(1, 1).expand(3, 1)[:, :0])


def test_few_rows_of_many_elements() -> None:
    x = values(3, 50_001)
    compare(lambda x: (x.sum(), x.sum(1), x.amax(1), x.mean(), x.t().contiguous().sum(0)), x, tolerance=(1e-5, 2e-3))
    compare(lambda x: (x > 3).sum(), x)


def test_few_rows_of_many_elements_into_another_order_of_memory() -> None:
    x = values(3, 5, 9_000)
    for function in (torch.sum, torch.amax):
        out = torch.empty(5, 3, device="spirv").t()
        function(x.to("spirv"), 2, out=out)
        torch.testing.assert_close(out.cpu(), function(x, 2), rtol=1e-5, atol=1e-3)


def test_moments_of_few_long_rows() -> None:
    """Against float64, of numbers far from 0: squares of them would leave nothing of the variance."""
    x = values(3, 20_011) + 1000
    mean, variance = x.double().mean(1), x.double().var(1)
    found = torch.var_mean(x.to("spirv"), 1)
    assert ((found[0].cpu() - variance).abs() <= 2e-4 * variance).all()
    assert ((found[1].cpu() - mean).abs() <= 1e-6 * mean).all()


@pytest.mark.parametrize("shape", [(4, 3, 37, 61), (3, 2, 5)], ids=str)
def test_batch_norm_of_channels_of_any_length(shape: tuple[int, ...], launches: list[Any]) -> None:
    """Values, running statistics and gradients against float64: a kernel each way, or three."""

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> list[torch.Tensor]:
        leaves = [tensor.detach().requires_grad_() for tensor in (x, weight, bias)]
        running, upper = (torch.zeros_like(weight), torch.ones_like(weight)), torch.sin(x)
        launches.clear()
        out = F.batch_norm(leaves[0], *running, *leaves[1:], training=True)
        grads = torch.autograd.grad(out, leaves, upper)
        return [out.detach(), *running, *grads]

    torch.manual_seed(0)
    x, weight, bias = torch.randn(shape) * 3 + 100, torch.rand(shape[1]), torch.rand(shape[1])
    found = run(*(tensor.to("spirv") for tensor in (x, weight, bias)))
    assert len(launches) <= (6 if x.numel() > 10_000 else 2)
    for actual, exact in zip(found, run(*(tensor.double() for tensor in (x, weight, bias))), strict=True):
        assert (actual.cpu().double() - exact).abs().max() <= 1e-4 * exact.abs().max() + 1e-5


@pytest.mark.parametrize("kind", [torch.float16, torch.float32], ids=str)
def test_saved_statistics_of_halves_have_the_type_that_is_asked_for(kind: torch.dtype) -> None:
    """The CPU saves halves, rounded; by itself the device saves what it computes in, as CUDA does."""

    def run(x: torch.Tensor, vector: torch.Tensor) -> list[torch.Tensor]:
        outs = [torch.empty(0, dtype=one, device=x.device) for one in (x.dtype, kind, kind)]
        given = x, vector, vector, vector - 1, vector + 1, True, 0.1, 1e-5
        names = dict(zip(("out", "save_mean", "save_invstd"), outs, strict=True))
        return [*torch.ops.aten.native_batch_norm.out(*given, **names)]

    compare(run, values(6, 4, 5).half(), torch.rand(4).to(kind))


def test_nothing_and_one() -> None:
    x = values(4, 5)
    compare(lambda x: (x[:0].sum(), x[:0].sum(0), x[:0].any(), x[:0].all(), x[:, :0].sum(0), x[:0].prod()), x)
    compare(lambda x: (x[0, 0].sum(), x[0, 0].amax(), x[0, 0].mean()), x)


def test_not_a_number() -> None:
    x = values(6, 40)
    x[2, 7] = float("nan")
    compare(lambda x: (x.amax(1), x.amin(1), x.max(), x.sum(1), x.nansum(1)), x)


def test_moments_and_norms() -> None:
    x = values(6, 100) + 50
    compare(lambda x: (x.var(), x.var(1), x.std(0, correction=0), torch.var_mean(x, 1), torch.std_mean(x, 0)), x)
    compare(lambda x: (x.norm(), x.norm(p=1, dim=1), x.norm(p=3, dim=0), x.norm(p=float("inf"))), x)


def _softmax_and_gradient(function: Any, x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = x.detach().requires_grad_()
    result = function(x, dim)
    (gradient,) = torch.autograd.grad((result * result.detach()).sum(), x)
    return result.detach(), gradient


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_and_its_gradient(function: Any, dim: int) -> None:
    compare(lambda x: _softmax_and_gradient(function, x, dim), values(7, 130) * 4)


@pytest.mark.parametrize("columns", [130, 4097])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_of_what_is_no_number(function: Any, columns: int) -> None:
    """Of rows that one kernel takes, and longer ones."""
    x = values(9, columns)
    x[1, 0] = x[2, 5] = x[3] = float("nan")
    x[4, 7] = float("inf")
    x[5], x[6, : columns // 2] = float("-inf"), float("-inf")
    x[7], x[7, 3] = float("-inf"), float("nan")
    compare(lambda x: function(x, 1), x)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_of_bfloat16(function: Any, dim: int) -> None:
    """Near what float64 gives, measured by the largest value: gradients cancel, on the CPU too."""
    x = (values(7, 130) * 4).bfloat16()
    found = _softmax_and_gradient(function, x.to("spirv"), dim)
    for actual, exact in zip(found, _softmax_and_gradient(function, x.double(), dim), strict=True):
        assert actual.dtype == torch.bfloat16
        assert (actual.cpu().double() - exact).abs().max() <= 2**-5 * exact.abs().max()


_NORMS = [
    lambda: torch.nn.LayerNorm(33),
    lambda: torch.nn.LayerNorm((4, 33), bias=False),
    lambda: torch.nn.LayerNorm(33, elementwise_affine=False),
    lambda: torch.nn.RMSNorm(33),
    lambda: torch.nn.GroupNorm(3, 6),
    lambda: torch.nn.BatchNorm2d(6),
    lambda: torch.nn.BatchNorm2d(6, affine=False, track_running_stats=False),
    lambda: torch.nn.BatchNorm2d(6).eval(),
    lambda: torch.nn.InstanceNorm2d(6),
]


@pytest.mark.parametrize("norm", range(len(_NORMS)))
def test_norms_and_their_gradients(norm: int) -> None:
    def run(x: torch.Tensor, weights: Any) -> Any:
        module = _NORMS[norm]().to(x.device)
        with torch.no_grad():
            for parameter, weight in zip(module.parameters(), weights, strict=False):
                parameter.copy_(weight.view(-1)[: parameter.numel()].view(parameter.shape))
        x = x.detach().requires_grad_()
        y = module(x)
        (y * weights[2][: y.numel()].view(y.shape)).sum().backward()
        state = [b for b in module.buffers() if b.is_floating_point()]
        return y.detach(), x.grad, [p.grad for p in module.parameters()], state

    torch.manual_seed(1)
    compare(run, values(5, 6, 4, 33), [torch.randn(200), torch.randn(200), torch.randn(5000)], tolerance=(1e-4, 1e-4))
