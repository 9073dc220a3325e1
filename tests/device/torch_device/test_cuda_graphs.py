"""``torch.cuda.graph`` in ``torch.spirv.as_cuda()``: a captured step does what it does without a graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from triton.backends.spirv.runtime import Graph
from triton.backends.spirv.torch import registration
from triton.backends.spirv.torch.ops import bounds

if torch.cuda.is_available():
    pytest.skip("as_cuda() is refused where torch has CUDA devices", allow_module_level=True)

registration.register()


@pytest.fixture(autouse=True)
def _as_cuda() -> Any:
    with torch.spirv.as_cuda():
        torch.manual_seed(3)
        yield


def _model(p: float = 0.0) -> torch.nn.Module:
    layers = torch.nn.Linear(12, 40), torch.nn.ReLU(), torch.nn.Dropout(p), torch.nn.Linear(40, 5)
    return torch.nn.Sequential(*layers).cuda()


def _step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "one by one": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, capturable=True),
    "AdamW fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, capturable=True, fused=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, capturable=True),
}


@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_a_whole_step_of_training(name: str) -> None:
    """The backward pass, which torch else runs in other threads, too; with gradients of the graph's own memory."""
    model = _model()
    optimizer = _OPTIMIZERS[name](model.parameters())
    x, y = torch.randn(7, 12, device="cuda"), torch.randn(7, 5, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            _step(model, optimizer, x, y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    twin = copy.deepcopy(model)
    plain = _OPTIMIZERS[name](twin.parameters())
    plain.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    with torch.cuda.graph(graph):
        loss = _step(model, optimizer, x, y)
    for _ in range(3):
        new = torch.randn(7, 12), torch.randn(7, 5)
        x.copy_(new[0])
        y.copy_(new[1])
        graph.replay()
        plain.zero_grad(set_to_none=True)
        wanted = _step(twin, plain, new[0].cuda(), new[1].cuda())
        torch.testing.assert_close(loss.cpu(), wanted.detach().cpu())
        for ours, others in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours.detach().cpu(), others.detach().cpu())


def test_gradients_that_go_stay_the_graphs() -> None:
    """What an optimizer's list of tensors names is kept: memory that a later tensor had would be written."""
    model = _model()
    optimizer = _OPTIMIZERS["SGD"](model.parameters())
    x, y = torch.randn(7, 12, device="cuda"), torch.randn(7, 5, device="cuda")
    _step(model, optimizer, x, y)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _step(model, optimizer, x, y)
    optimizer.zero_grad(set_to_none=True)
    optimizer.state.clear()
    others = [torch.full_like(parameter, 7.0) for parameter in model.parameters() for _ in range(3)]
    graph.replay()
    assert all((other == 7).all() for other in others)


def test_a_step_with_numbers_of_the_host_is_refused() -> None:
    """As on CUDA: its corrections for the first steps would stay those of the capture."""
    model = _model()
    x, y = torch.randn(7, 12, device="cuda"), torch.randn(7, 5, device="cuda")
    for chosen in ({"foreach": False}, {"foreach": True}):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, **chosen)
        _step(model, optimizer, x, y)
        with pytest.raises(RuntimeError, match="capturable"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            optimizer.step()


def test_a_graph_of_the_runtimes_has_the_backward_pass() -> None:
    w, x = torch.randn(6, 4, device="spirv", requires_grad=True), torch.randn(5, 6, device="spirv")
    (x @ w).square().sum().backward()
    w.grad, graph = None, Graph()
    with graph.capture():
        (x @ w).square().sum().backward()
    x.copy_(torch.randn(5, 6))
    graph.replay()
    torch.testing.assert_close(w.grad.cpu(), 2 * x.cpu().T @ (x.cpu() @ w.detach().cpu()))


_DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand": torch.rand_like,
    "randn twice": lambda x: torch.randn_like(x) + torch.randn_like(x),
    "dropout": lambda x: functional.dropout(x, 0.4),
    "randint": lambda x: torch.randint(9, x.shape, device="cuda"),
    "bernoulli": lambda x: torch.bernoulli(torch.sigmoid(x)),
    "exponential": lambda x: torch.empty_like(x).exponential_(2.0),
    "strided": lambda x: torch.empty(4, 9, device="cuda").T.normal_(),
    "permutation": lambda x: torch.randperm(30, device="cuda"),
    "categories": lambda x: torch.multinomial(x, 40, replacement=True),
    "categories once each": lambda x: torch.multinomial(x, 40),
}


@pytest.mark.parametrize("name", _DRAWS)
def test_each_replay_draws_anew(name: str) -> None:
    """The numbers that the calls without a graph would have, and later draws go on behind them."""
    draw, x = _DRAWS[name], torch.ones(50, device="cuda")
    draw(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = draw(x)
    torch.cuda.manual_seed(11)
    wanted = [draw(x).cpu() for _ in range(3)]
    later = torch.rand(5, device="cuda").cpu()
    torch.cuda.manual_seed(11)
    for numbers in wanted:
        graph.replay()
        assert torch.equal(found.cpu(), numbers)
    assert torch.equal(torch.rand(5, device="cuda").cpu(), later)


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_a_checkpoint_draws_again(reentrant: bool) -> None:
    """The numbers of its first run: it sets the generator back in the capture."""
    model, x = _model(0.3), torch.randn(7, 12, device="cuda", requires_grad=True)

    def step() -> None:
        checkpoint(model, x, use_reentrant=reentrant).square().sum().backward()

    def gradients() -> list[torch.Tensor]:
        return [x.grad.cpu(), *(parameter.grad.cpu() for parameter in model.parameters())]

    step()
    graph = torch.cuda.CUDAGraph()
    x.grad = None
    model.zero_grad()
    with torch.cuda.graph(graph):
        step()
    torch.cuda.manual_seed(8)
    found = [(graph.replay(), gradients())[1] for _ in range(2)]
    torch.cuda.manual_seed(8)
    for ours in found:
        x.grad = None
        model.zero_grad()
        step()
        for one, wanted in zip(ours, gradients(), strict=True):
            torch.testing.assert_close(one, wanted)


def test_the_end_of_a_capture_that_did_not_begin() -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="capture_begin"):
        graph.capture_end()
    graph.capture_begin()
    graph.capture_end()
    with pytest.raises(RuntimeError, match="capture_begin"):
        graph.capture_end()


def test_a_generator_is_not_seeded_in_a_capture() -> None:
    for change in (lambda: torch.cuda.manual_seed(1), lambda: torch.cuda.set_rng_state(torch.zeros(16).byte())):
        with pytest.raises(RuntimeError, match="seed"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            change()


def test_a_generator_of_the_programs_own() -> None:
    generator, graph = torch.Generator("cuda").manual_seed(5), torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        found = torch.rand(9, device="cuda", generator=generator)
    assert generator.get_offset() == 0
    wanted = torch.rand(9, device="cuda", generator=torch.Generator("cuda").manual_seed(5)).cpu()
    graph.replay()
    assert torch.equal(found.cpu(), wanted) and generator.get_offset() == 9
    graph.replay()
    assert not torch.equal(found.cpu(), wanted)


def test_make_graphed_callables() -> None:
    model, x = _model(0.25), torch.randn(7, 12, device="cuda", requires_grad=True)
    twin = copy.deepcopy(model)
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(7, 12, device="cuda", requires_grad=True),))
    for seed in (1, 2):
        found = []
        for one in (graphed, twin):
            x.grad = None
            one.zero_grad()
            torch.cuda.manual_seed(seed)
            one(x).square().sum().backward()
            found.append([x.grad.cpu(), *(p.grad.cpu() for p in one.parameters())])
        for ours, wanted in zip(*found, strict=True):
            torch.testing.assert_close(ours, wanted)


def test_gradients_of_graphed_callables_are_added_up() -> None:
    """The graph's own memory, which the next replay writes, is no gradient that stays."""
    model, batches = _model(), torch.randn(3, 7, 12, device="cuda")
    twin = copy.deepcopy(model)
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(7, 12, device="cuda"),))
    for batch in batches:
        for one in (graphed, twin):
            one(batch).square().sum().backward()
    for ours, wanted in zip(graphed.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), wanted.grad.cpu())


@pytest.mark.parametrize(
    "use",
    [
        lambda x: torch.fft.fft(x.view(10, 15)).real,
        lambda x: functional.interpolate(x.view(1, 10, 15), 31, mode="linear"),
        lambda x: torch._foreach_mul([x.view(10, 15), x], 3.0)[0],
    ],
    ids=["fft", "interpolate", "lists"],
)
def test_what_is_kept_of_a_first_use(use: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Tables that a call in a capture makes are there at once, for calls before the first replay."""
    x, graph = torch.randn(150, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = use(x)
    wanted = use(x).cpu()
    graph.replay()
    torch.testing.assert_close(found.cpu(), wanted)


def test_where_faults_are_noted_is_zero_before_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that had other numbers is cleared at once, not by the captured launch."""
    monkeypatch.setattr(bounds, "_faults", {})
    x, index, graph = torch.randn(10, 15, device="cuda"), torch.arange(3, device="cuda"), torch.cuda.CUDAGraph()
    used = [torch.full((), 7, dtype=torch.int32, device="cuda") for _ in range(20)]
    torch.cuda.synchronize()
    del used
    with torch.cuda.graph(graph):
        x[index]
    assert bounds._faults[0].item() == 0


@pytest.mark.parametrize("ours", [False, True], ids=["CUDA's", "the runtime's"])
def test_a_replay_tells_of_an_index_out_of_range(ours: bool) -> None:
    x, index = torch.ones(5, device="cuda"), torch.arange(3, device="cuda")
    x[index]
    graph: Any = Graph() if ours else torch.cuda.CUDAGraph()
    with graph.capture() if ours else torch.cuda.graph(graph):
        found = x[index]
    index.fill_(9)
    graph.replay()
    with pytest.raises(IndexError, match="out of range"):
        found.tolist()
