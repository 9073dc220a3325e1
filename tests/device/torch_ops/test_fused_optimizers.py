"""Fused steps of optimizers, against float64 on the CPU, one parameter at a time: they never run on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_O = torch.optim
_OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "adamw": (_O.AdamW, {}),
    "adam amsgrad": (_O.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    "sgd": (_O.SGD, {}),
    "sgd momentum": (_O.SGD, {"momentum": 0.9, "dampening": 0.1}),
    "sgd nesterov": (_O.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adagrad": (_O.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.01}),
}


def _values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


#: Of an 8 x 6 matrix, what has its values in another order of memory.
_LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x.clone(),
    "turned": lambda x: x.t().contiguous().t(),
    "gaps": lambda x: torch.stack((x, x), -1)[..., 0],
    "offset": lambda x: torch.cat((x, x))[8:],
}


def _steps(
    name: str, dtype: torch.dtype, device: str, parameter: str, gradient: str, fused: bool, **more: Any
) -> list[torch.Tensor]:
    """The parameters and their gradients after three steps."""
    kind, options = _OPTIMIZERS[name]
    given = [_values(8, 6), _values(33, seed=1), _values(1, seed=2)]
    leaves = []
    for place, value in enumerate(given):
        leaf = _LAYOUTS[parameter](value.to(dtype).to(device)) if place == 0 else value.to(dtype).to(device)
        leaves.append(leaf.requires_grad_())
    optimizer = kind(leaves, lr=more.pop("lr", 0.1), **options, **({"fused": True} if fused else {"foreach": False}))
    for step in range(3):
        for place, leaf in enumerate(leaves):
            grad = _values(*leaf.shape, seed=9 + step).to(dtype).to(device)
            if place == 0:
                grad = grad[:, :1].expand(8, 6) if gradient == "expanded" else _LAYOUTS[gradient](grad)
            leaf.grad = grad
        for key, value in more.items():
            setattr(optimizer, key, torch.tensor(value, device=device))
        optimizer.step()
    return [leaf.detach().cpu().double() for leaf in leaves]


_GRADIENTS = (*_LAYOUTS, "expanded")


@pytest.mark.parametrize(
    ("name", "parameter", "gradient"),
    [
        *(("sgd momentum", parameter, gradient) for parameter in _LAYOUTS for gradient in _GRADIENTS),
        *((name, "turned", gradient) for name in ("adamw", "adagrad") for gradient in _GRADIENTS),
    ],
)
def test_gradients_of_another_order_than_their_parameter(name: str, parameter: str, gradient: str) -> None:
    found = _steps(name, torch.float32, "spirv", parameter, gradient, True)
    want = _steps(name, torch.float64, "cpu", parameter, gradient, False)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_parameters_of_every_type(name: str, dtype: torch.dtype) -> None:
    for gradient in ("plain", "turned"):
        found = _steps(name, dtype, "spirv", "plain", gradient, True)
        want = _steps(name, torch.float64, "cpu", "plain", gradient, False)
        # Each of three steps rounds the parameters and their state, of a few units.
        error = 16 * torch.finfo(dtype).eps
        torch.testing.assert_close(found, want, rtol=max(error, 1e-9), atol=max(error, 1e-9))


def test_rates_that_are_tensors_of_either_device() -> None:
    want = _steps("adamw", torch.float64, "cpu", "plain", "plain", False, lr=0.05)
    for place in ("cpu", "spirv"):
        rate = torch.tensor(0.05, device=place)
        torch.testing.assert_close(
            _steps("adamw", torch.float32, "spirv", "plain", "turned", True, lr=rate),
            _steps("adamw", torch.float64, "cpu", "plain", "turned", False, lr=0.05),
            rtol=1e-4,
            atol=1e-5,
        )
        found = _steps("adamw", torch.float32, "spirv", "plain", "plain", True, lr=rate)
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_other_orders_take_two_launches(launches: list[Any]) -> None:
    """One that copies, and one step of all."""
    leaves = [_values(8, 6, seed=seed).float().to("spirv").requires_grad_() for seed in range(4)]
    for leaf in leaves:
        leaf.grad = torch.ones_like(leaf)
    leaves[1].grad = torch.ones(6, 8, device="spirv").t()
    optimizer = _O.SGD(leaves, lr=0.1, fused=True)
    launches.clear()
    optimizer.step()
    assert len(launches) == 2


def test_parameters_that_share_memory_step_one_after_the_other() -> None:
    found = {}
    for device, dtype, options in (
        ("cpu", torch.float64, {"foreach": False}),
        ("spirv", torch.float32, {"fused": True}),
    ):
        memory = _values(20).to(dtype).to(device)
        leaves = [memory[:12].requires_grad_(), memory[4:16].detach().requires_grad_()]
        optimizer = _O.SGD(leaves, lr=0.1, weight_decay=0.5, **options)
        for leaf in leaves:
            leaf.grad = _values(12, seed=4).to(dtype).to(device)
        optimizer.step()
        found[device] = memory.detach().cpu().double()
    torch.testing.assert_close(found["spirv"], found["cpu"], rtol=1e-5, atol=1e-6)


def test_types_mixed_in_one_call() -> None:
    """As torch.ops has it; torch.optim calls once for each type."""
    parameters = [_values(5).to(dtype).to("spirv") for dtype in (torch.bfloat16, torch.float32)]
    grads = [torch.ones_like(p) for p in parameters]
    numbers = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.5, "dampening": 0.0, "nesterov": False}
    torch.ops.aten._fused_sgd_(parameters, grads, [], **numbers, maximize=False, is_first_step=True)
    for parameter in parameters:
        torch.testing.assert_close(parameter.cpu().double(), _values(5) - 0.5, rtol=1e-2, atol=1e-2)


def test_gradients_are_scaled_in_their_own_order() -> None:
    for scale, infinite in ((4.0, 0.0), (4.0, 1.0)):
        leaf = _values(8, 6).float().to("spirv").requires_grad_()
        given = _values(8, 6, seed=3).float().to("spirv").t().contiguous().t()
        leaf.grad = given
        before, grad = leaf.detach().cpu(), given.cpu()
        optimizer = _O.SGD([leaf], lr=0.1, fused=True)
        optimizer.grad_scale = torch.tensor(scale, device="spirv")
        optimizer.found_inf = torch.tensor(infinite, device="spirv")
        optimizer.step()
        taken = (grad / scale) * (1 - infinite)
        torch.testing.assert_close(leaf.detach().cpu(), before - 0.1 * taken)
        assert given.stride() == (1, 8)
        torch.testing.assert_close(given.cpu(), grad if infinite else grad / scale)
