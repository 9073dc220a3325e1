"""Attention in compiled functions: one operation that runs the kernels, as eagerly, wherever those are worth it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code
from triton.backends.spirv.torch.ops import attention, traced_attention
from triton.runtime.errors import OutOfResources

OPERATION = "torch.ops.triton_spirv.attention.default"
SHAPE = (2, 3, 40, 16)
attend = F.scaled_dot_product_attention

#: Functions of queries, keys, values and perhaps a mask, and the shapes of these.
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], torch.Tensor | None]] = {
    "causal": (lambda q, k, v: attend(q, k, v, is_causal=True) * 2, (SHAPE,) * 3, None),
    "heads last": (
        lambda q, k, v: attend(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2).reshape(2, 40, 48),
        ((2, 40, 3, 16),) * 3,
        None,
    ),
    "a mask": (lambda q, k, v, mask: attend(q, k, v, mask), (SHAPE,) * 3, torch.arange(1600).view(40, 40) % 7 > 2),
    "a bias": (lambda q, k, v, mask: attend(q, k, v, mask), (SHAPE,) * 3, torch.linspace(-2, 2, 1600).view(1, 40, 40)),
    "other widths": (lambda q, k, v: attend(q, k, v, scale=0.3), (SHAPE, (2, 3, 24, 16), (2, 3, 24, 32)), None),
    "shared heads": (
        lambda q, k, v: attend(q, k, v, enable_gqa=True),
        ((2, 4, 40, 16), (2, 2, 40, 16), (2, 2, 40, 16)),
        None,
    ),
}


pytestmark = pytest.mark.usefixtures("own_caches")


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a CPU's driver, too."""
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", True)
    monkeypatch.setattr(traced_attention, "_COMPOSED", set())
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compare(name: str, gradients: bool = True) -> list[str]:
    """Compares a compiled function and its gradients with torch's CPU code, and gives the code that Inductor wrote."""
    function, shapes, mask = CASES[name]
    torch.manual_seed(0)
    host = [torch.randn(shape).requires_grad_(gradients) for shape in shapes]
    device = [one.detach().to("spirv").requires_grad_(gradients) for one in host]
    rest = () if mask is None else (mask,)
    wanted = function(*host, *rest)
    found, code = run_and_get_code(torch.compile(function), *device, *(one.to("spirv") for one in rest))
    torch.testing.assert_close(found.cpu(), wanted, atol=2e-5, rtol=1e-4)
    assert found.stride() == wanted.stride()
    if gradients:
        weights = torch.randn_like(wanted)
        wanted.backward(weights)
        found.backward(weights.to("spirv"))
        for one, other in zip(device, host, strict=True):
            assert one.grad is not None
            torch.testing.assert_close(one.grad.cpu(), other.grad, atol=2e-5, rtol=1e-4)
    return list(code)


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_one_operation(name: str) -> None:
    assert any(OPERATION in code for code in compare(name))


def test_without_gradients() -> None:
    assert any(OPERATION in code for code in compare("causal", gradients=False))


def test_lengths_that_are_not_known() -> None:
    compiled = torch.compile(lambda q, k, v: attend(q, k, v) * 2, dynamic=True)
    for length in (24, 40, 56):
        host = [torch.randn(1, 2, length, 16) for _ in range(3)]
        found = compiled(*(one.to("spirv").requires_grad_() for one in host))
        torch.testing.assert_close(found.detach().cpu(), attend(*host) * 2, atol=2e-5, rtol=1e-4)


def test_what_the_kernels_cannot_do_is_composed_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any) -> None:
        raise OutOfResources(1 << 20, 1 << 15, "shared memory")

    monkeypatch.setattr(attention, "_forward_kernel", too_large)
    assert any(OPERATION in code for code in compare("causal"))
    assert len(traced_attention._COMPOSED) == 1


def test_a_driver_for_a_cpu_compiles_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "COMPILED_FOR_CPUS", False)
    on_cpu = attention.kind_of(0).cpu
    assert any(OPERATION in code for code in compare("causal")) != on_cpu
