"""``torch.autocast("spirv")``: types and values equal the CPU's, computed in the same types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from triton.backends.spirv.torch.device import registration  # noqa: E402

_HALVES = [torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()


@pytest.mark.parametrize("dtype", _HALVES, ids=str)
@pytest.mark.parametrize(
    ("function", "lower"),
    [
        (lambda x: x @ x, True),
        (lambda x: F.linear(x, x, x[0]), True),
        (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), True),
        (lambda x: (x @ x).exp(), False),
        (lambda x: (x @ x).softmax(-1), False),
        (lambda x: (x @ x).sum(), False),
        (lambda x: F.layer_norm(x @ x, (8,)), False),
        (lambda x: F.mse_loss(x @ x, x), False),
        (lambda x: torch.addcmul(x @ x, x @ x, x), False),
        (lambda x: (x @ x) + 1, True),
    ],
)
def test_types_are_those_of_an_autocast(function: Callable[..., Any], lower: bool, dtype: Any) -> None:
    torch.manual_seed(0)
    values = torch.randn(8, 8)
    with torch.autocast("spirv", dtype=dtype):
        found = function(values.to("spirv"))
    assert found.dtype == (dtype if lower else torch.float32)
    torch.testing.assert_close(found.float().cpu(), function(values), rtol=5e-2, atol=5e-2)


def test_what_it_leaves_alone() -> None:
    x, double = torch.randn(4, 4, device="spirv"), torch.randn(4, 4, dtype=torch.float64, device="spirv")
    with torch.autocast("spirv"):
        assert torch.get_autocast_dtype("spirv") == torch.float16 and (x @ x).dtype == torch.float16
        assert (double @ double).dtype == torch.float64
        assert x.cpu().matmul(x.cpu()).dtype == torch.float32
        assert (x @ x).sum(dtype=torch.float16).dtype == torch.float16
        with torch.autocast("spirv", enabled=False):
            assert (x @ x).dtype == torch.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            F.binary_cross_entropy(x.sigmoid(), x.sigmoid())
    assert (x @ x).dtype == torch.float32


def test_arguments_of_all_sorts() -> None:
    x, bias = torch.randn(4, 4, device="spirv"), torch.nn.Parameter(torch.ones(4, device="spirv"))
    with torch.autocast("spirv", dtype=torch.bfloat16):
        assert torch.einsum("ij,jk", x, x).dtype == torch.bfloat16, "tensors in a list"
        assert F.layer_norm(x.bfloat16(), [4], weight=bias, bias=None).dtype == torch.float32
        assert torch.addmm(bias, x, x, beta=2).dtype == torch.bfloat16
        assert torch.pow(x.half().abs(), 2).dtype == torch.float32
        assert F.linear(x, x.bfloat16()).dtype == torch.bfloat16
        with pytest.raises(RuntimeError):
            x @ torch.ones(3, 3, device="spirv")
        assert (x @ x).dtype == torch.bfloat16, "after an error, too"
        F.linear(x, x, bias).sum().backward()
    assert bias.grad is not None and bias.grad.dtype == torch.float32


def test_training_with_a_gradient_scaler() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1).to("spirv")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scaler = torch.amp.GradScaler("spirv", init_scale=256.0)
    x = torch.randn(64, 16, device="spirv")
    target = x[:, :1] * 0.5
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("spirv", dtype=torch.float16):
            loss = F.mse_loss(model(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert model.weight.dtype == model.weight.grad.dtype == torch.float32
    assert losses[-1] < 0.95 * losses[0], losses
    optimizer.zero_grad()
    scaler.scale(model(x).sum() * float("inf")).backward()
    before = model.weight.clone()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, model.weight) and scaler.get_scale() == 128.0, "a step with infinities is skipped"


def test_compiled_as_eager() -> None:
    torch._dynamo.reset()
    model = torch.nn.Linear(8, 8).to("spirv")
    x = torch.randn(4, 8, device="spirv")

    def function(x: Any) -> Any:
        with torch.autocast("spirv", dtype=torch.bfloat16):
            hidden = model(x)
            return hidden, F.softmax(hidden, -1)

    for found, expected in zip(torch.compile(function, fullgraph=True)(x), function(x), strict=True):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found.float(), expected.float(), rtol=2e-2, atol=2e-2)
