"""``torch.spirv.as_cuda()``: code that insists on CUDA runs on the device, and nothing is left of it afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.torch import registration

from tests.vendor import cuda_packages

if torch.cuda.is_available():
    pytest.skip("as_cuda() is refused where torch has CUDA devices", allow_module_level=True)

registration.register()


@triton.jit
def _double(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def _doubled(x: torch.Tensor) -> torch.Tensor:
    """As kernel libraries write it."""
    assert torch.cuda.is_available() and x.is_cuda
    if torch.cuda.get_device_capability(x.device)[0] < 8:
        raise RuntimeError("needs Ampere")
    shared = torch.cuda.get_device_properties(torch.cuda.current_device()).shared_memory_per_block_optin
    out = torch.empty_like(x)
    with torch.cuda.device(x.device.index):
        _double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256 if shared >= 16384 else 128)
    torch.cuda.synchronize()
    return out


def test_a_library_that_insists_on_cuda() -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        _doubled(torch.ones(300, device="spirv"))
    with torch.spirv.as_cuda():
        assert _doubled(torch.arange(300.0, device="cuda")).tolist() == [2.0 * i for i in range(300)]


_WAYS: dict[str, Callable[[], torch.Tensor]] = {
    "factory": lambda: torch.zeros(3, device="cuda"),
    "number": lambda: torch.zeros(3, device="cuda:0"),
    "object": lambda: torch.zeros(3, device=torch.device("cuda")),
    "of a module": lambda: torch.nn.Linear(2, 3).to("cuda").weight,
    "of a module, by name": lambda: torch.nn.Linear(2, 3).cuda().weight,
    "moved": lambda: torch.zeros(3).to("cuda"),
    "moved as named": lambda: torch.zeros(3).to(device="cuda", dtype=torch.float16),
    "by its method": lambda: torch.zeros(3).cuda(),
    "by its method and number": lambda: torch.zeros(3).cuda(0),
    "like": lambda: torch.zeros_like(torch.zeros(3), device="cuda"),
    "tensor": lambda: torch.tensor([1.0], device="cuda"),
    "default": lambda: _by_default(),
}


def _by_default() -> torch.Tensor:
    with torch.device("cuda"):
        return torch.ones(3)


@pytest.mark.parametrize("name", _WAYS)
def test_cuda_names_the_device(name: str) -> None:
    with torch.spirv.as_cuda():
        x = _WAYS[name]()
        assert x.device.type == "spirv" and x.is_cuda and not torch.zeros(1).is_cuda
        assert torch.zeros(1, device="cpu").device.type == "cpu"


def test_nothing_is_left_afterwards() -> None:
    before = {name: getattr(torch.cuda, name) for name in dir(torch.cuda) if callable(getattr(torch.cuda, name, None))}
    with torch.spirv.as_cuda(), torch.spirv.as_cuda():
        assert torch.cuda.device_count() == torch.spirv.device_count() and torch.version.cuda
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.is_available()))
        thread.start()
        thread.join()
        assert seen == [True]
    with pytest.raises(ZeroDivisionError), torch.spirv.as_cuda():
        raise ZeroDivisionError
    assert {name: getattr(torch.cuda, name) for name in before} == before
    assert not torch.cuda.is_available() and torch.version.cuda is None
    assert not torch.ones(1, device="spirv").is_cuda and "is_cuda" not in vars(torch.Tensor)


def test_cudas_own_devices_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(RuntimeError, match="CUDA devices of its own"), torch.spirv.as_cuda():
        pass


def test_a_kernel_library_runs() -> None:
    """liger-kernel, which is installed for the tests; tests/vendor/cuda_packages.py has others."""
    torch.manual_seed(0)
    with torch.spirv.as_cuda():
        cuda_packages.PACKAGES["liger_kernel"]()
