"""The other ways into Inductor: templates that are timed, attention from a score function, what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

_CLOSE = {"rtol": 1e-3, "atol": 1e-3}


pytestmark = pytest.mark.usefixtures("own_caches")


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ y)


def convolution(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv2d(x, y).relu()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (product, ((48, 64), (64, 80))),
        pytest.param(product, ((3, 20, 33), (3, 33, 17)), marks=pytest.mark.weekly("[mm]")),
        (convolution, ((2, 4, 10, 10), (8, 4, 3, 3))),
    ],
    ids=["mm", "bmm", "conv2d"],
)
def test_templates_are_tried_and_right(
    function: Callable[..., torch.Tensor], shapes: tuple[tuple[int, ...], ...], own_caches: Any
) -> None:
    from torch._inductor.utils import run_and_get_code

    torch.manual_seed(0)
    arguments = [torch.randn(shape) for shape in shapes]
    compiled = torch.compile(function, mode="max-autotune-no-cudagraphs")
    with own_caches.patch(max_autotune_gemm_backends="TRITON", max_autotune_conv_backends="TRITON"):
        found, (code, *_) = run_and_get_code(compiled, *(x.to("spirv") for x in arguments))
    assert "triton_tem" in code, "the template, and no operation outside of the generated code"
    torch.testing.assert_close(found.cpu(), function(*arguments), **_CLOSE)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_windows_that_lie_partly_outside(dims: int) -> None:
    """With torch 2.13, Inductor's own are of other means, on every device."""
    pool = getattr(torch.nn.functional, f"avg_pool{dims}d")
    x = torch.randn(1, 2, *(5,) * dims)
    found = []
    for place, function in ((x, pool), (x.to("spirv"), torch.compile(pool))):
        leaf = place.clone().requires_grad_()
        function(leaf, 2, ceil_mode=True).square().sum().backward()
        found.append(leaf.grad.cpu())
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.slow
def test_flex_attention_forward_and_backward() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    length = 128
    ours = [torch.randn(1, 2, length, 16).to("spirv").requires_grad_() for _ in range(3)]
    theirs = [x.detach().cpu().requires_grad_() for x in ours]
    causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="spirv")
    found = torch.compile(flex_attention)(*ours, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.01, block_mask=causal)
    queries, keys, values = theirs
    distance = torch.arange(length)[:, None] - torch.arange(length)
    scores = (queries @ keys.mT / 4 + distance * 0.01).masked_fill(distance < 0, float("-inf"))
    right = torch.softmax(scores, -1) @ values
    torch.testing.assert_close(found.cpu(), right, **_CLOSE)
    found.square().sum().backward()
    right.square().sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), other.grad, **_CLOSE)


def test_flex_attention_of_few_queries() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    torch.manual_seed(0)
    queries, keys, values = torch.randn(1, 2, 3, 16), torch.randn(1, 2, 40, 16), torch.randn(1, 2, 40, 16)
    found = torch.compile(flex_attention)(*(x.to("spirv") for x in (queries, keys, values)))
    right = torch.softmax(queries @ keys.mT / 4, -1) @ values
    torch.testing.assert_close(found.cpu(), right, **_CLOSE)


def test_scales_of_eight_bits_are_bytes() -> None:
    """Inductor passes them to kernels as such."""
    values = torch.arange(5.0, device="spirv")
    made = torch.compile(lambda x: (x + 1).to(torch.uint8).view(torch.float8_e8m0fnu))(values)
    read = torch.compile(lambda x: x.view(torch.uint8).float() * 2)(made)
    assert made.dtype == torch.float8_e8m0fnu and read.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]


def test_cpp_wrapper_is_refused(own_caches: Any) -> None:
    with own_caches.patch(cpp_wrapper=True), pytest.raises(Exception, match="cpp_wrapper and AOTInductor are not"):
        torch.compile(lambda x: x.sin() + 1)(torch.ones(8, device="spirv"))


def test_benchmarks_take_the_devices_time() -> None:
    from torch._inductor.runtime.benchmarking import benchmarker

    x = torch.ones(1 << 16, device="spirv")
    assert 0 < benchmarker.benchmark(lambda: x.fill_(2), device="spirv", warmup=1, rep=2) < 1e3
