"""Complex numbers on the device, with their gradients: rotary embeddings, and what is computed element by element."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from .conftest import compare, compare_once, with_gradients
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks", "compiled")


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
    "more": lambda a, b, x: (a.reciprocal(), a.square(), a**2, torch.rsub(a, b, alpha=2j), a.addcmul(a, b, value=3)),
    "roots": lambda a, b, x: (a.sqrt(), (-a).sqrt(), (a * 0).sqrt(), (a.abs() * (-1 + 0j)).sqrt(), a.conj().sqrt()),
    "logarithms": lambda a, b, x: (a.log(), a.log2(), b.log10(), a**0.5, a**3, a**-1.5, a ** (b * 0.3), (a * 0) ** 2.5),
    "waves": lambda a, b, x: (a.sin(), a.cos(), a.sinh(), a.cosh(), a.tanh(), (a * 30).tanh(), (a * 1e-3).tanh()),
    "places": lambda a, b, x: (a.nonzero(), a.masked_fill(x > 0, 0).nonzero(), a.trace(), a.conj().trace()),
    "placed": lambda a, b, x: (
        a.index_put((torch.tensor([3, 0], device=x.device),), b[:2].conj()),
        a.index_put((torch.tensor([3, 0, 3], device=x.device),), b[:3], accumulate=True),
    ),
    "logic": lambda a, b, x: [
        function(a.masked_fill(x > 0.5, 0), b.masked_fill(x < -0.5, 0))
        for function in (torch.logical_and, torch.logical_or, torch.logical_xor)
    ],
    "truths": lambda a, b, x: [
        (y.isnan(), y.isinf(), y.isfinite(), y.logical_not())
        for y in (a, a.masked_fill(x > 0, float("inf")), a.masked_fill(x < 0, complex(0, float("nan"))), a * 0)
    ],
    "chosen": lambda a, b, x: (torch.where(x > 0, a, b), torch.where(x > 0, a, x), torch.where(x < 0, 2j, a)),
    "masked": lambda a, b, x: (a.masked_fill(x > 0, 1 - 2j), a.masked_fill(x > 0, 0), a.mT.masked_fill(x.mT > 0, 3.0)),
    "between": lambda a, b, x: (a.lerp(b, 0.3), a.lerp(b, 0.7j), torch.lerp(a, b, b)),
    "triangles": lambda a, b, x: (a.tril(), a.conj().triu(1), torch.eye(3, 4, dtype=a.dtype, device=a.device)),
    "inplace": lambda a, b, x: (
        *(a.clone().mul_(b), a.clone().add_(x), a.clone().t().div_(b.t()), a[:, ::2].clone()),
        *(a.clone()[:, ::2].conj_physical_(), a.conj().conj_physical_(), x.clone().conj_physical_()),
    ),
}


@pytest.mark.parametrize("name", _OPERATIONS)
def test_element_by_element(name: str) -> None:
    def run(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> Any:
        results = pytree.tree_leaves(_OPERATIONS[name](a, b, x))
        return [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in results]

    compare(run, _numbers(5, 7), _numbers(5, 7) + 0.5, values(5, 7), tolerance=(1e-5, 1e-5))


@pytest.mark.parametrize("by", [0, math.inf, complex(0, -math.inf), complex(math.inf, math.inf)])
def test_divided_by_nothing_or_infinity(by: complex) -> None:
    run = lambda a, b: (torch.view_as_real(a / b), torch.view_as_real(b.reciprocal()))  # noqa: E731
    compare_once(run, _numbers(5, 7), torch.full((5, 7), by, dtype=torch.complex64))


def test_rotary_embeddings() -> None:
    def turned(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        by = torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * by).flatten(-2)

    compare(with_gradients(turned), values(2, 3, 5, 8), values(5, 4), tolerance=(1e-5, 1e-5))


_SUMS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, b: (a.sum(), a.sum(0), a.mean(1, keepdim=True), a.conj().sum(-1), b.mT.mean((0, 1)), a[:0].sum(0)),
    "scans": lambda a, b: (a.cumsum(0), b.conj().cumsum(1)),
    "truths": lambda a, b: (a.any(), (a * 0).any(1), a.all(0), (a - a[0]).count_nonzero(0)),
    "norms": lambda a, b: (torch.linalg.vector_norm(a), a.norm(dim=1), torch.linalg.vector_norm(a, 1, dim=0)),
    "mm": lambda a, b: (a @ b, a.conj() @ b, a @ b.conj(), b.mH @ a.mH, a[:, :0] @ b[:0], a @ b[:, 1]),
    "added": lambda a, b: (torch.addmm(b[:5, :3], a, b, alpha=0.5, beta=2), (a @ b).addmm_(a, b.conj(), beta=-1)),
    "bmm": lambda a, b: (
        a.expand(3, 5, 7) @ b,
        torch.einsum("ij,jk->ki", a, b),
        torch.baddbmm(a[:1, :3], a[None], b[None]),
    ),
    "dot": lambda a, b: (torch.dot(a[0], b[:, 0]), torch.vdot(a[0], b[:, 0])),
}


@pytest.mark.parametrize("name", _SUMS)
def test_sums_and_products(name: str) -> None:
    compare(_SUMS[name], _numbers(5, 7), _numbers(7, 3), tolerance=(1e-5, 1e-5))


@pytest.mark.usefixtures("compiled")
def test_a_product_of_one_number_is_a_copy() -> None:
    for x in (_numbers(1, 1), _numbers(1)[0]):
        there = x.to("spirv")
        torch.prod(there).mul_(2)
        torch.prod(there.conj()).mul_(2)
        assert torch.equal(there.cpu(), x)


def test_gradients_of_products() -> None:
    def run(a: torch.Tensor, b: torch.Tensor) -> Any:
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        y = (a @ b.conj()).mean(0) * a.sum()
        torch.where(y.abs() > 0.5, y * y, y.exp()).abs().sum().backward()
        return y.detach(), a.grad, b.grad

    compare(run, _numbers(5, 7) / 4, _numbers(7, 3) / 4, tolerance=(1e-4, 1e-4))


_INDEXED: dict[str, Callable[..., Any]] = {
    "scatter": lambda y, s, i: (y.scatter(0, i[:1], s), y.scatter(0, i, 2 + 1j), y.scatter(1, i[:, :2] % 3, s.conj())),
    "scatter_add": lambda y, s, i: (y.scatter_add(0, i, s), y.mT.scatter_add(1, i.mT, s.mT)),
    "index_add": lambda y, s, i: (y.index_add(0, i[:, 1], s), y.conj().index_add(0, i[:, 0], s, alpha=2 - 1j)),
    "index_copy": lambda y, s, i: (y.index_copy(0, i[:, 1], s), y.mT.index_copy(-1, i[:, 1], s.mT.conj())),
    "index_fill": lambda y, s, i: (y.clone().index_fill_(-1, i[0], 2 - 1j), y.index_fill(0, i[0], s[0, 0])),
    "nothing": lambda y, s, i: (y.index_add(0, i[0, :0], s[:0]), y.scatter(0, i[:0], s)),
    "one": lambda y, s, i: (
        y[0, 0].scatter(0, i[0, 0], s[0, 0]),
        y[0, 0].scatter_add(0, i[0, 0], s[0, 0]),
        y[0, 0].index_add(0, i[0, 0], s[0, 0]),
        y[0, 0].index_copy(0, i[0, 0], s[0, 0]),
        y[0, 0].clone().index_fill_(0, i[0, :1], 3),
    ),
}


@pytest.mark.parametrize("name", _INDEXED)
def test_writes_at_indices(name: str) -> None:
    compare(_INDEXED[name], _numbers(4, 3), _numbers(2, 3), torch.tensor([[0, 2, 1], [2, 0, 0]]))


_REDUCED: dict[str, Callable[..., Any]] = {
    "prod": lambda z: (
        z.prod(),
        z.prod(1),
        z.prod(-1, keepdim=True),
        z.mT.prod(0),
        z.conj().prod(1),
        z[0, 0, 0].prod(0),
    ),
    "prod of nothing": lambda z: (z[:, :0].prod(1), z[:0].prod(), z.real.prod(dtype=torch.complex64)),
    "var": lambda z: (z.var(1), z.mT.var((0, 1)), z.conj().var(1), torch.var_mean(z, (0, 2), keepdim=True)),
    "std": lambda z: (z.std(), torch.std_mean(z, -1, correction=0), z.std(0, keepdim=True)),
}


@pytest.mark.parametrize("name", _REDUCED)
def test_reductions(name: str) -> None:
    z = _numbers(4, 15).view(4, 3, 5)
    compare(_REDUCED[name], z)
    z[1, 1, 1], z[2, 2, 2] = complex(float("nan"), 1), complex(1, float("inf"))
    compare(lambda z: z.prod(2).isnan(), z)
    compare(lambda z: z.var(2), z)
