"""``mode="reduce-overhead"``: launches are captured and replayed where that gives what running them gives."""

import copy
import gc
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from triton.backends.spirv.runtime import OutOfDeviceMemory  # noqa: E402
from triton.backends.spirv.torch.compile import graphs  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_caches")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[graphs.Replayed]:
    """The functions that Inductor compiled during the test."""
    found: list[graphs.Replayed] = []
    original = graphs.Replayed.__init__

    def note(self: graphs.Replayed, *args: Any) -> None:
        original(self, *args)
        found.append(self)

    monkeypatch.setattr(graphs.Replayed, "__init__", note)
    return found


def test_training_comes_to_the_same_weights(made: list[graphs.Replayed]) -> None:
    """Inputs change, parameters and the statistics of batch norm are written in place, and the last loss is kept."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()).to("spirv")
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, mode="reduce-overhead")
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, twin)]
    for _ in range(6):
        x = torch.randn(5, 6, device="spirv")
        losses = [function(x).square().mean() for function in (compiled, twin)]
        for loss, optimizer in zip(losses, optimizers, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.testing.assert_close(*losses)
    for mine, expected in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, expected)
    assert len(made) == 2 and all(1 <= each.captured <= 4 and each.why_not is None for each in made)
    weight = model[0].weight
    weight.data = weight.detach().clone() * 2  # at another address
    twin[0].weight.data = twin[0].weight.detach() * 2
    torch.testing.assert_close(compiled(x), twin(x))


def test_results_that_are_in_use_are_not_written_over(made: list[graphs.Replayed]) -> None:
    compiled = torch.compile(lambda x: x.exp() * 2, mode="reduce-overhead")
    kept = []
    for number in range(7):
        kept.append(compiled(torch.full((64,), float(number), device="spirv"))[3:5])  # a view alone
    for number, view in enumerate(kept):
        torch.testing.assert_close(view.cpu(), torch.full((2,), float(number)).exp() * 2)
    assert made[0].captured == 4, "the calls after these run as without the mode"
    del kept, view
    gc.collect()
    torch.empty(1 << 16, device="spirv").fill_(7)  # memory that was given back is not a graph's
    x = torch.randn(64, device="spirv")
    torch.testing.assert_close(compiled(x).cpu(), x.cpu().exp() * 2)
    assert made[0].captured == 4


@pytest.mark.parametrize("kind", [RuntimeError, OutOfDeviceMemory])
def test_what_the_device_refuses_in_a_capture_runs_without(kind: type[Exception]) -> None:
    calls = []

    def compiled(inputs: list[torch.Tensor]) -> tuple[torch.Tensor]:
        calls.append(len(inputs))
        if len(calls) == 2:
            raise kind("refused")
        return (inputs[0] + 1,)

    replayed = graphs.Replayed(compiled, (), (), False)
    for _ in range(3):
        assert replayed([torch.ones(3, device="spirv")])[0].tolist() == [2, 2, 2]
    assert replayed.captured == 0 and replayed.why_not == "refused"


def test_mistakes_in_a_capture_are_not_hidden() -> None:
    calls = []

    def compiled(inputs: list[torch.Tensor]) -> tuple[torch.Tensor]:
        calls.append(len(inputs))
        if len(calls) == 2:
            raise KeyError("a mistake")
        return (inputs[0] + 1,)

    replayed = graphs.Replayed(compiled, (), (), False)
    x = torch.ones(3, device="spirv")
    replayed([x])
    with pytest.raises(KeyError, match="a mistake"):
        replayed([x])


def changed(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


#: Why a function that draws numbers is not captured.
RANDOM = "it draws random numbers"


@pytest.mark.parametrize(
    ("function", "dynamic", "reason"),
    [
        (changed, False, "it writes an input"),
        (lambda x: torch.nn.functional.dropout(torch.ones_like(x)), False, RANDOM),
        (lambda x: x.sin() + 1, True, "a size is known only at the call"),
    ],
    ids=["mutation", "random", "dynamic"],
)
def test_what_cannot_be_captured_runs(
    function: Callable[..., Any], dynamic: bool, reason: str, made: list[graphs.Replayed]
) -> None:
    compiled = torch.compile(function, mode="reduce-overhead", dynamic=dynamic)
    found = set()
    for size in (40, 50, 60, 70) if dynamic else (40,) * 4:
        x = torch.arange(float(size))
        ours = x.to("spirv")
        result = compiled(ours)
        if reason == RANDOM:
            found.add(tuple(result.tolist()))
        else:
            torch.testing.assert_close(result.cpu(), function(x))
            torch.testing.assert_close(ours.cpu(), x)
    assert not found or len(found) == 4, "each call draws its own numbers"
    assert [each.captured for each in made] == [0] and reason in made[0].why_not
