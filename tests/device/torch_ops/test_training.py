"""Training steps (forward, loss, backward, AdamW) that run on the device alone, to the losses of the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from . import models


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"foreach": False}], ids=["default", "fused", "one by one"])
@pytest.mark.usefixtures("no_fallbacks")
def test_a_training_step_of_an_mlp_needs_no_cpu(options: Any) -> None:
    _same(models.MLP, **options)


@pytest.mark.usefixtures("no_fallbacks")
def test_a_training_step_of_a_gpt_needs_no_cpu() -> None:
    _same(models.GPT, fused=True)


@pytest.mark.usefixtures("no_fallbacks")
def test_a_training_step_of_a_convolution_net_needs_no_cpu() -> None:
    _same(models.ConvNet)


def _same(model: Any, **options: Any) -> None:
    losses, state = models.train(model, "spirv", 4, **options)
    expected, expected_state = models.train(model, "cpu", 4)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
    for one, other in zip(state, expected_state, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-4)
