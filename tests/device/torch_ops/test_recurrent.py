"""LSTM, GRU and their cells: values, gradients, and how many kernels they are."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from triton.backends.spirv.torch.device import substitutes

from .conftest import to

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_NETS: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(6, 5),
    "lstm, both ways, of two layers": lambda: nn.LSTM(6, 5, num_layers=2, bidirectional=True),
    "lstm, without biases": lambda: nn.LSTM(6, 5, bias=False),
    "lstm, projected": lambda: nn.LSTM(6, 5, proj_size=3),
    "gru": lambda: nn.GRU(6, 5),
    "gru, without biases": lambda: nn.GRU(6, 5, bias=False, batch_first=True),
    "lstm cell": lambda: nn.LSTMCell(6, 5),
    "gru, both ways, of two layers": lambda: nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True),
    "gru cell": lambda: nn.GRUCell(6, 5),
}
_TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 4e-2}


def _trained(net: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Results, and gradients of the input and the parameters."""
    x = x.detach().requires_grad_()
    results = torch.utils._pytree.tree_leaves(net(x))
    sum(((n + 1) * result.square().sum() for n, result in enumerate(results))).backward()
    return [*(result.detach() for result in results), x.grad, *(parameter.grad for parameter in net.parameters())]


@pytest.mark.parametrize("kernels", ["_torchs_kernels", "compiled"])
@pytest.mark.parametrize("dtype", _TOLERANCES, ids=str)
@pytest.mark.parametrize("name", _NETS)
def test_values_and_gradients(name: str, dtype: torch.dtype, kernels: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(kernels)
    torch.manual_seed(0)
    net = _NETS[name]().to(dtype)
    twin = copy.deepcopy(net).to("spirv")
    x = torch.randn(3, 6) if "cell" in name else torch.randn(4, 3, 6)
    tolerance = _TOLERANCES[dtype]
    for _ in range(3):  # the second call is recorded, the third repeats it
        net.zero_grad()
        twin.zero_grad()
        every = list(zip(_trained(twin, x.to("spirv", dtype)), _trained(net, x.to(dtype)), strict=True))
    for found, expected in every:
        assert found.dtype == expected.dtype and found.shape == expected.shape
        torch.testing.assert_close(found.cpu(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_a_step_is_a_product_and_a_kernel_each_way(name: str, launches: list[Any]) -> None:
    net, x = _NETS[name]().to("spirv"), torch.randn(8, 3, 6, device="spirv")
    for trains in (False, True):
        counts = []
        for steps in (4, 8):
            net.zero_grad()
            launches.clear()
            with torch.set_grad_enabled(trains):
                out = net(x[:steps])[0]
            if trains:
                out.square().sum().backward()
            counts.append(len(launches))
        # On the way back a third kernel adds the gradient of a step's output to that of its state.
        assert counts[1] - counts[0] == 4 * (2 + 3 * trains), counts


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["lstm", "gru", "gru, without biases"])
def test_gradients_of_gradients(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    net = _NETS[name]().to(dtype)
    twin, x = copy.deepcopy(net).to("spirv"), torch.randn(4, 3, 6, dtype=dtype)
    found = []
    for module, given in ((net, x), (twin, x.to("spirv"))):
        parameters = list(module.parameters())
        given.requires_grad_()
        firsts = torch.autograd.grad(module(given)[0].square().sum(), [given, *parameters], create_graph=True)
        second = torch.autograd.grad(sum(first.square().sum() for first in firsts), [given, *parameters])
        found.append([gradient.cpu() for gradient in (*firsts, *second)])
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_what_torch_composes(name: str) -> None:
    """Autocast, forward-mode derivatives, and sizes that do not fit, which torch refuses."""
    torch.manual_seed(0)
    net, x = _NETS[name]().to("spirv"), torch.randn(4, 3, 6, device="spirv")
    expected = net(x)[0]
    with torch.autocast("spirv", dtype=torch.bfloat16):
        torch.testing.assert_close(net(x)[0].float(), expected, rtol=5e-2, atol=5e-2)
    with torch.no_grad():
        _, tangent = torch.func.jvp(lambda x: net(x)[0], (x,), (x,))
        difference = (net(1.001 * x)[0] - net(0.999 * x)[0]) / 0.002
    torch.testing.assert_close(tangent, difference, rtol=1e-2, atol=1e-3)
    with pytest.raises(RuntimeError):
        net(torch.randn(4, 3, 7, device="spirv"))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_kernels_compute_what_is_composed(cell: str) -> None:
    """Of a gradient that is None, and of one that is not; biases are there."""
    torch.manual_seed(0)
    kernels, gates, wide = substitutes.KERNELS, 4 if cell == "lstm" else 3, 4 if cell == "lstm" else 5
    shapes = [(3, gates * 5), (3, gates * 5), (3, 5), (gates * 5,), (gates * 5,)]
    inputs = [torch.randn(shape, device="spirv") for shape in shapes]
    composed = getattr(substitutes, f"_{cell}_cell")
    for found, expected in zip(kernels[f"{cell}_cell"](*inputs), composed(*inputs), strict=True):
        torch.testing.assert_close(found, expected)
    one, other, third = torch.randn(3, 3, 5, device="spirv")
    workspace = torch.rand(3, wide * 5, device="spirv")
    calls: list[Any] = [(one, workspace, True), (one, workspace, False)]
    if cell == "lstm":
        gradients: list[Any] = [(one, other), (None, one), (one, None), (None, None)]
        calls = [(*pair, other, third, workspace, pair[0] is None) for pair in gradients]
    for call in calls:
        found, expected = (
            kernels[f"{cell}_cell_backward"](*call),
            getattr(substitutes, f"_{cell}_cell_backward")(*call),
        )
        torch.testing.assert_close(to("cpu", list(found)), to("cpu", list(expected)))
