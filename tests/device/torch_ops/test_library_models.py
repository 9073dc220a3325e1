"""benchmarks/library_models on torch's own models: docs/internals/torch-models.md has those of other libraries."""

from typing import Any

import pytest
import torch

from benchmarks import library_models
from benchmarks.outcomes import FAILED, NOT_ENDED, PASSED, WRONG


@pytest.mark.parametrize("name", ["nn.GRU", "nn.Transformer"])
def test_a_model_is_as_near_to_float64_as_on_the_cpu(name: str) -> None:
    line = library_models.in_a_process("torch", name, 2, 300)
    assert (line["outcome"], line["why"], line["fallbacks"]) == (PASSED, "", {})
    assert all(error < 1e-4 for kind in line["errors"].values() for error in kind.values())


def test_a_model_is_ended_after_its_limit() -> None:
    line = library_models.in_a_process("torch", "nn.GRU", 2, 0.01)
    assert line["outcome"] == NOT_ENDED
    assert "not done in 0 s" in line["why"]


@pytest.mark.usefixtures("no_fallbacks")
def test_a_wrong_gradient_and_an_error_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    original = library_models.trained

    def shifted(case: Any, device: str, dtype: torch.dtype, steps: int) -> Any:
        found = original(case, device, dtype, steps)
        if device == "spirv":
            found.tensors["gradients"]["head.bias"][0] += 1e-3
        return found

    monkeypatch.setattr(library_models, "trained", shifted)
    line = library_models.measured("torch", "nn.GRU", 1)
    assert line["outcome"] == WRONG
    assert line["why"].startswith("gradients of head.bias: ")

    def refused(case: Any, device: str, dtype: torch.dtype, steps: int) -> Any:
        if device == "spirv":
            raise RuntimeError("no kernel")
        return original(case, device, dtype, steps)

    monkeypatch.setattr(library_models, "trained", refused)
    line = library_models.measured("torch", "nn.GRU", 1)
    assert (line["outcome"], line["why"]) == (FAILED, "on spirv: RuntimeError: no kernel")
