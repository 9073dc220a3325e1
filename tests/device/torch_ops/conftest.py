"""Operations of torch on the device, compared with the CPU's; what runs on the CPU is counted."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from triton import knobs
from triton.backends.spirv import runtime
from triton.backends.spirv.launching.typed_kernels import TypedKernel
from triton.backends.spirv.settings import TORCH_COMPILED
from triton.backends.spirv.torch import registration
from triton.backends.spirv.torch.device.tensor_memory import shares_host_memory

#: What torch.testing.assert_close takes as equal, by type; None is its own choice.
_TOLERANCES = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (2e-2, 2e-2), torch.float32: (2e-5, 2e-5)}


@pytest.fixture(autouse=True, scope="session")
def _registered() -> None:
    registration.register()


@pytest.fixture(autouse=True)
def _torchs_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the device is the processor, some operations are done by torch's own kernels, as users have it."""
    monkeypatch.delenv(TORCH_COMPILED.name, raising=False)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, _torchs_kernels: None) -> None:
    """These operations are kernels of this backend, as on other devices."""
    monkeypatch.setenv(TORCH_COMPILED.name, "1")


@pytest.fixture
def no_fallbacks() -> Any:
    """Fails where anything ran on the CPU during the test."""
    before = registration.FALLBACKS.copy()
    yield
    assert dict(registration.FALLBACKS - before) == {}


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is launched. No call is prepared: there is a launch hook."""
    found: list[Any] = []
    original = TypedKernel.launch

    def launch(self: Any, *args: Any, **how: Any) -> None:
        found.append(self)
        original(self, *args, **how)

    def hook(_: Any) -> None:
        """Tells nobody."""

    monkeypatch.setattr(TypedKernel, "launch", launch)
    knobs.runtime.launch_enter_hook.add(hook)
    yield found
    knobs.runtime.launch_enter_hook.remove(hook)


def to(device: str, value: Any) -> Any:
    """Tensors in lists, tuples and dictionaries, on a device; their sizes and strides stay."""

    def move(leaf: Any) -> Any:
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    return pytree.tree_map(move, value)


def compare(function: Callable[..., Any], *args: Any, tolerance: tuple[float, float] | None = None) -> None:
    """Check results of a function, and what it makes of its arguments, against the CPU's: values, types, strides. What
    torch's own kernels do is checked as this backend's, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(TORCH_COMPILED.name, raising=False)
        compare_once(function, *args, tolerance=tolerance)
        if shares_host_memory(runtime.current()):
            patch.setenv(TORCH_COMPILED.name, "1")
            compare_once(function, *args, tolerance=tolerance)


def compare_once(function: Callable[..., Any], *args: Any, tolerance: tuple[float, float] | None = None) -> None:
    """The same by whichever kernels the setting asks for."""
    there = to("spirv", args)
    here = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, args)
    want, got = function(*here), function(*there)
    for expected, actual in zip(pytree.tree_leaves((want, here)), pytree.tree_leaves((got, there)), strict=True):
        if not isinstance(expected, torch.Tensor):
            assert actual == expected
            continue
        assert actual.device.type == "spirv"
        assert actual.dtype == expected.dtype
        assert expected.numel() < 2 or actual.stride() == expected.stride()
        relative, absolute = tolerance or _TOLERANCES.get(expected.dtype, (None, None))
        torch.testing.assert_close(actual.cpu(), expected, rtol=relative, atol=absolute, equal_nan=True)


def with_gradients(function: Callable[..., Any], strides: bool = True) -> Callable[..., Any]:
    """``function`` of inputs to one tensor, and behind its result their gradients under fixed weights, with their
    ``strides`` or contiguous."""

    def run(*inputs: torch.Tensor) -> Any:
        leaves = [x.detach().requires_grad_() for x in inputs]
        out = function(*leaves)
        weights = torch.linspace(-1, 2, out.numel(), device=out.device, dtype=out.dtype).view(out.shape)
        grads = torch.autograd.grad((out * weights).sum(), leaves)
        return out.detach(), *(grad if strides else grad.contiguous() for grad in grads)

    return run
