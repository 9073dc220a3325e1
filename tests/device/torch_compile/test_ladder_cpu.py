"""Models of the ladder on CPU tensors through the CPU driver, and a training run."""

import pytest

torch = pytest.importorskip("torch")

from tests.device.torch_compile.ladder import RUNGS, compare  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


@pytest.mark.parametrize("name", ["layer_norm", pytest.param("gpt_block", marks=pytest.mark.slow)])
def test_cpu_tensors_by_the_switch(name: str) -> None:
    """Inductor's cpu_backend="triton"."""
    import torch._inductor.config as inductor
    from torch._inductor.utils import run_and_get_code

    with inductor.patch(cpu_backend="triton"):
        rung = next(rung for rung in RUNGS if rung.name == name)
        _, (code, *_) = run_and_get_code(compare, rung, "cpu", dynamic=False)
        assert "@triton.jit" in code
        assert "type='spirv'" in code


@pytest.mark.slow
def test_training_comes_to_the_loss_of_the_cpu() -> None:
    """AdamW, twelve steps of the example, compiled on the device and eagerly on the CPU."""
    from examples.train_gpt import train

    sizes = {"steps": 12, "batch": 2, "length": 16, "width": 16, "layers": 1, "quiet": True}
    ours, _ = train("spirv", compiled=True, **sizes)
    theirs, _ = train("cpu", compiled=False, **sizes)
    assert ours[-1] < ours[0] - 0.1
    for step, (found, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert abs(found - expected) < 2e-3, f"step {step}: {found} beside {expected}"
