"""Training steps (forward, loss, backward, AdamW) that run on the device alone, to the losses of the CPU."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tests.device.torch_compile.ladder import Recurrent

from . import models


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"foreach": False}], ids=["default", "fused", "one by one"])
@pytest.mark.usefixtures("no_fallbacks")
def test_a_training_step_of_an_mlp_needs_no_cpu(options: Any) -> None:
    _same(models.MLP, **options)


@pytest.mark.parametrize(("model", "count"), [(models.GPT, 100), (models.ConvNet, 44)])
def test_how_many_kernels_a_training_step_launches(model: Any, count: int, launches: list[Any]) -> None:
    torch.manual_seed(0)
    module = model().to("spirv")
    inputs, targets = (tensor.to("spirv") for tensor in model.data())
    optimizer = torch.optim.AdamW(module.parameters(), fused=True)
    launches.clear()
    torch.nn.functional.cross_entropy(module(inputs), targets).backward()
    optimizer.step()
    assert len(launches) <= count


@pytest.mark.usefixtures("no_fallbacks")
def test_a_training_step_of_a_gpt_needs_no_cpu() -> None:
    _same(models.GPT, fused=True)


@pytest.mark.usefixtures("no_fallbacks")
def test_a_training_step_of_a_convolution_net_needs_no_cpu() -> None:
    _same(models.ConvNet)


@pytest.mark.parametrize("name", ["lstm", "unet", "gru"])
@pytest.mark.usefixtures("no_fallbacks")
def test_a_step_of_a_recurrent_net_and_of_a_diffusion_model_needs_no_cpu(name: str) -> None:
    shapes = {"lstm": (2, 5, 16), "gru": (2, 5, 16), "unet": (2, 1, 16, 16)}
    torch.manual_seed(0)
    model = {"lstm": Recurrent, "gru": lambda: nn.GRU(16, 12, batch_first=True), "unet": models.Diffusion}[name]()
    twin, x = copy.deepcopy(model).to("spirv"), torch.randn(shapes[name])
    for module, inputs in ((model, x), (twin, x.to("spirv"))):
        result = module(inputs)
        (result if isinstance(result, torch.Tensor) else result[0]).square().mean().backward()
    for one, other in zip(twin.parameters(), model.parameters(), strict=True):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-3, atol=1e-4)


def _same(model: Any, **options: Any) -> None:
    losses, state = models.train(model, "spirv", 4, **options)
    expected, expected_state = models.train(model, "cpu", 4)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
    for one, other in zip(state, expected_state, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-4)
