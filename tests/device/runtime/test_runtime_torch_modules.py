"""Neural networks on the torch device `spirv`: modules, gradients, optimizers; each result is that of the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from torch import nn
from torch.utils.checkpoint import checkpoint
from triton.backends.spirv.driver import SPIRVDriver
from triton.backends.spirv.torch import registration


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    registration.register()


def _first(result: Any) -> torch.Tensor:
    output: torch.Tensor = result[0] if isinstance(result, tuple) else result
    return output


_MODULES: list[tuple[Callable[[], nn.Module], tuple[int, ...]]] = [
    (lambda: nn.Conv1d(3, 4, 3, dilation=2), (2, 3, 9)),
    (lambda: nn.Conv2d(4, 6, 3, groups=2, stride=2, bias=False), (2, 4, 9, 9)),
    (lambda: nn.Conv2d(3, 4, 3, padding="same", padding_mode="reflect"), (2, 3, 8, 8)),
    (lambda: nn.ConvTranspose2d(3, 6, 3, groups=3, stride=2, output_padding=1), (2, 3, 5, 5)),
    (lambda: nn.Conv3d(1, 2, 2), (1, 1, 4, 4, 4)),
    (lambda: nn.BatchNorm1d(3), (5, 3)),
    (lambda: nn.BatchNorm2d(3, momentum=None), (4, 3, 5, 5)),
    (lambda: nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 6)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.LayerNorm(8), (4, 8)),
    (lambda: nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True), (2, 3, 4)),
    (lambda: nn.LSTM(4, 5, proj_size=3), (2, 3, 4)),
    (lambda: nn.LSTM(4, 5, bias=False), (3, 2, 4)),
    (lambda: nn.LSTMCell(4, 5), (2, 4)),
    (lambda: nn.GRU(4, 5, bidirectional=True), (3, 2, 4)),
    (lambda: nn.GRU(4, 5, bias=False), (3, 2, 4)),
    (lambda: nn.GRUCell(4, 5), (2, 4)),
    (lambda: nn.RNN(4, 5), (3, 2, 4)),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
]


@pytest.mark.parametrize(("make", "size"), _MODULES)
def test_modules(make: Callable[[], nn.Module], size: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    here = make()
    there = copy.deepcopy(here).to("spirv")
    for training in (True, True, False):
        here.train(training)
        there.train(training)
        x = torch.randn(size, requires_grad=True)
        moved = x.detach().to("spirv").requires_grad_()
        expected, result = _first(here(x)), _first(there(moved))
        torch.testing.assert_close(result.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
        grad = torch.randn_like(expected)
        expected.backward(grad)
        result.backward(grad.to("spirv"))
        assert moved.grad is not None and x.grad is not None
        torch.testing.assert_close(moved.grad.cpu(), x.grad, rtol=1e-4, atol=1e-4)
        for mine, right in zip(there.parameters(), here.parameters(), strict=True):
            torch.testing.assert_close(mine.grad.cpu(), right.grad, rtol=1e-4, atol=1e-4)
        for name, value in here.state_dict().items():
            torch.testing.assert_close(there.state_dict()[name].cpu(), value, rtol=1e-4, atol=1e-5)


def test_shared_parameters_stay_shared() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    model = nn.Sequential(first, nn.Sequential(second), nn.LSTM(3, 3), nn.LSTM(3, 3))
    model[3].weight_hh_l0 = model[2].weight_hh_l0
    for device in ("spirv", "cpu", "spirv"):
        model.to(device)
        assert first.weight is second.weight and first.weight.device.type == device
        assert first.bias is not second.bias
        assert model[3].weight_hh_l0 is model[2].weight_hh_l0 and model[3]._flat_weights[1] is model[2]._flat_weights[1]
        assert len(list(model.parameters())) == 3 + 7
    with torch.no_grad():
        first.weight.fill_(2)
    assert (copy.deepcopy(model).cpu()[1][0].weight == 2).all()


class _Packed(nn.Parameter):
    """A parameter of a class of a library's own: what is made of it is a plain tensor, and it has attributes."""

    def __new__(cls, values: torch.Tensor) -> _Packed:
        made: _Packed = torch.Tensor._make_subclass(cls, values, False)  # type: ignore[attr-defined]
        made.scale = 2.0
        return made

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return _Packed(super().to(*args, **kwargs))


def test_parameters_move_in_place() -> None:
    layer = nn.Linear(3, 2)
    layer.packed = _Packed(torch.ones(2))
    layer(torch.ones(1, 3)).sum().backward()
    kept = dict(layer.named_parameters())
    kept["packed"].scale = 3.0
    optimizer = torch.optim.SGD([layer.weight, layer.bias], lr=1.0)
    start = layer.weight.tolist()
    for device in ("spirv", "cpu", "spirv"):
        layer.to(device)
        assert all(one is kept[name] and one.device.type == device for name, one in layer.named_parameters())
        assert layer.weight.grad.device.type == device and layer.weight.grad.tolist() == [[1.0] * 3] * 2
    assert isinstance(layer.packed, _Packed) and layer.packed.scale == 3.0 and layer.packed.tolist() == [1, 1]
    optimizer.step()
    assert layer.weight.tolist() == (torch.tensor(start) - 1).tolist()
    shared = nn.Sequential(layer, nn.Sequential(layer))
    result = shared[0](torch.ones(1, 3, device="spirv"))  # its graph refers to the parameters
    assert shared.cpu()[0].weight is kept["weight"] and kept["weight"].device.type == "cpu"
    assert result.requires_grad and result.device.type == "spirv"


_OPTIMIZERS: list[tuple[type[torch.optim.Optimizer], dict[str, Any]]] = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.Adam, {}),
    (torch.optim.AdamW, {"amsgrad": True}),
    (torch.optim.Adam, {"foreach": True}),
    (torch.optim.Adam, {"foreach": False}),
    (torch.optim.AdamW, {"fused": True}),
]


@pytest.mark.parametrize(("kind", "options"), _OPTIMIZERS)
def test_optimizers(kind: Any, options: dict[str, Any]) -> None:
    results = []
    for device in ("cpu", "spirv"):
        flat = torch.linspace(-1, 1, 24).to(device)
        weights = [
            flat.clone().view(4, 6).requires_grad_(),
            flat[:6].clone().view(2, 3).t().requires_grad_(),
            torch.tensor(0.5, device=device, requires_grad=True),
        ]
        optimizer = kind(weights, lr=0.1, **options)
        for _ in range(4):
            optimizer.zero_grad()
            torch.stack([weight.square().sum() for weight in weights]).sum().backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        results.append([weight.detach().cpu() for weight in weights])
    torch.testing.assert_close(results[1], results[0])


_NUMBERS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x.remainder(2),
    lambda x: x.long().remainder(3),
    lambda x: x.double().remainder(0.1),
    lambda x: x.half().remainder(3),
    lambda x: x.fmod(1.5),
    lambda x: x.copysign(-1.0),
    lambda x: x.int() & 3,
    lambda x: x.int() << 2,
    lambda x: torch.xlogy(2, x.abs()),
    lambda x: 2**x,
    lambda x: 3 - x,
    lambda x: x // 0.3,
    lambda x: torch.where(x > 0, x, 2.0),
    lambda x: torch.take_along_dim(x, torch.zeros_like(x).long(), 1),
    lambda x: torch.special.zeta(2.0, x.abs() + 2),
    lambda x: torch.kaiser_window(5, device=x.device) * x[0, 0],
    lambda x: torch.kaiser_window(6, False, 10.0, device=x.device),
]


@pytest.mark.parametrize("compute", _NUMBERS)
def test_numbers_among_the_operands(compute: Callable[[torch.Tensor], torch.Tensor]) -> None:
    values = torch.linspace(-3, 3, 20).view(4, 5)
    result, expected = compute(values.to("spirv")), compute(values)
    assert result.device.type == "spirv"
    torch.testing.assert_close(result.cpu(), expected)


def test_seeds() -> None:
    module: Any = torch.get_device_module("spirv")
    drawn = []
    for seed in (module.manual_seed, module.manual_seed_all, torch.manual_seed):
        seed(7)
        drawn.append(torch.rand(4, device="spirv").cpu())
    assert torch.equal(drawn[0], drawn[1]) and torch.equal(drawn[0], drawn[2])
    noise = torch.rand(4, device="spirv", generator=torch.Generator().manual_seed(7))
    assert torch.equal(noise.cpu(), torch.rand(4, generator=torch.Generator().manual_seed(7))), "the CPU's own numbers"


def test_loaders_that_are_to_pin_memory() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(20.0), torch.arange(20.0) * 2)
    total = 0.0
    for x, y in torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True):
        total += float((x.to("spirv", non_blocking=True) * y.to("spirv", non_blocking=True)).sum())
    assert total == 4940
    assert torch.equal(torch.arange(3).pin_memory(), torch.arange(3))


@triton.jit
def _square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        _square[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def test_kernels_in_functions_with_gradients_and_checkpoints() -> None:
    if triton.runtime.driver.active.get_current_target().backend != "spirv":
        triton.runtime.driver.set_active(SPIRVDriver())
    x = torch.randn(5, 33, device="spirv", requires_grad=True)
    _Square.apply(x).sum().backward()
    assert x.grad is not None and torch.equal(x.grad.cpu(), 2 * x.detach().cpu())
    masks = []

    def dropped(value: torch.Tensor) -> torch.Tensor:
        mask = nn.functional.dropout(torch.ones_like(value), 0.5)
        masks.append(mask.detach().cpu())
        result: torch.Tensor = _Square.apply(value * mask)
        return result

    for reentrant in (True, False):
        x.grad.zero_()
        masks.clear()
        checkpoint(dropped, x, use_reentrant=reentrant).sum().backward()
        assert torch.equal(masks[0], masks[1])
        torch.testing.assert_close(x.grad.cpu(), 2 * x.detach().cpu() * masks[0].square())
