"""Complex numbers on the device, with their gradients: rotary embeddings, and what is computed element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def _numbers(*shape: int) -> torch.Tensor:
    return torch.complex(values(*shape), values(*shape).flip(0))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, x: (a + b, a + x, a + 2, torch.add(a, b, alpha=2j), x + 1j),
    "sub": lambda a, b, x: (a - b, x - a, 1j - a, a - x),
    "mul": lambda a, b, x: (a * b, a * x, 3 * a, a * (1 - 2j), x * 2j),
    "div": lambda a, b, x: (a / b, a / x, x / a, a / 2, a / (b * 1e25)),
    "parts": lambda a, b, x: (a.abs(), a.angle(), -a, a.exp(), a.sgn(), (a * 0).sgn(), torch.view_as_real(a * b)),
    "conj": lambda a, b, x: (a * b.conj(), a.conj().clone(), (a.conj() + 1).resolve_conj(), a.t().conj().contiguous()),
    "equal": lambda a, b, x: (a == b, a != b, a == a, a == 1),
    "polar": lambda a, b, x: (torch.polar(x.abs(), x), torch.complex(x, -x), torch.polar(x[:1].abs().expand(5, 7), x)),
    "inplace": lambda a, b, x: (a.clone().mul_(b), a.clone().add_(x), a.clone().t().div_(b.t()), a[:, ::2].clone()),
}


@pytest.mark.parametrize("name", _OPERATIONS)
def test_element_by_element(name: str) -> None:
    def run(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> Any:
        return [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in _OPERATIONS[name](a, b, x)]

    compare(run, _numbers(5, 7), _numbers(5, 7) + 0.5, values(5, 7), tolerance=(1e-5, 1e-5))


def test_rotary_embeddings() -> None:
    def run(x: torch.Tensor, angles: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angles), angles)
        y = torch.view_as_real(turned).flatten(-2)
        (y * y.detach().tanh()).sum().backward()
        return y.detach(), x.grad

    compare(run, values(2, 3, 5, 8), values(5, 4), tolerance=(1e-5, 1e-5))
