"""The ladder: each model compiled on the device, forward and backward, static and with a dynamic batch, beside torch on
the CPU, eagerly."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.device.torch_compile.ladder import RUNGS, Rung  # noqa: E402

#: Single precision, sums in another order.
_CLOSE = {"rtol": 1e-3, "atol": 1e-3}


@pytest.fixture(autouse=True)
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that was compiled before is taken, and no compile workers are started."""
    import torch._inductor.config as inductor

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    with inductor.patch(compile_threads=1, fx_graph_cache=False):
        yield
    torch._dynamo.reset()


def compare(rung: Rung, device: str, *, dynamic: bool) -> None:
    torch.manual_seed(0)
    expected = rung.make()
    model = copy.deepcopy(expected).to(device)
    compiled = torch.compile(model, fullgraph=rung.name != "lstm")
    for batch in (rung.shape[0], rung.shape[0] + 3)[: 1 + dynamic]:
        x = torch.randn(batch, *rung.shape[1:])
        ours, theirs = x.to(device), x.clone()
        if dynamic:
            torch._dynamo.mark_dynamic(ours, 0)
        if rung.input_gradient:
            ours.requires_grad_()
            theirs.requires_grad_()
        found, right = compiled(ours), expected(theirs)
        assert found.device.type == device
        torch.testing.assert_close(found.cpu(), right, **_CLOSE)
        found.square().sum().backward()
        right.square().sum().backward()
        if rung.input_gradient:
            torch.testing.assert_close(ours.grad.cpu(), theirs.grad, **_CLOSE)
        for name, parameter in model.named_parameters():
            gradient = expected.get_parameter(name).grad
            torch.testing.assert_close(
                parameter.grad.cpu(), gradient, **_CLOSE, msg=lambda text, name=name: name + text
            )


@pytest.mark.parametrize(
    "rung", [pytest.param(rung, id=rung.name, marks=[pytest.mark.slow] * (not rung.quick)) for rung in RUNGS]
)
@pytest.mark.parametrize("dynamic", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["static", "dynamic"])
def test_compiled(rung: Rung, dynamic: bool) -> None:
    compare(rung, "spirv", dynamic=dynamic)


@pytest.mark.parametrize("name", ["layer_norm", pytest.param("gpt_block", marks=pytest.mark.slow)])
def test_cpu_tensors_by_the_switch(name: str) -> None:
    """Inductor's cpu_backend="triton"."""
    import torch._inductor.config as inductor
    from torch._inductor.utils import run_and_get_code

    with inductor.patch(cpu_backend="triton"):
        rung = next(rung for rung in RUNGS if rung.name == name)
        compare(rung, "cpu", dynamic=False)
        torch._dynamo.reset()
        _, (code, *_) = run_and_get_code(torch.compile(rung.make()), torch.randn(rung.shape))
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
