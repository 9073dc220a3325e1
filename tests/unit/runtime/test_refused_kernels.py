"""What the error of a kernel says that a driver refuses."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.runtime import kernel as kernels
from triton.backends.spirv.runtime.errors import KernelRejected, RefusedModule, ValidationError


def _refusing(error: RuntimeError) -> Any:
    def load(*_: object) -> None:
        raise error

    return SimpleNamespace(
        in_use=nullcontext,
        opened=SimpleNamespace(load=load),
        native=SimpleNamespace(check_usable=lambda: None),
        device=SimpleNamespace(name="a GPU"),
        remove_kernel=lambda handle: None,
    )


def test_a_refused_module_is_told_what_makes_it_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "save_module", lambda name, code: "")
    refused = _refusing(RuntimeError("vkCreateComputePipelines failed: VK_ERROR_UNKNOWN (-13)"))
    with pytest.raises(RefusedModule, match="VK_ERROR_UNKNOWN.*too many values.*num_warps=8 instead of 4"):
        kernels.Kernel(refused, "retention", bytes(8), lambda: "num_warps=8 instead of 4")


def test_an_invalid_module_is_not_taken_for_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "save_module", lambda name, code: "")
    with pytest.raises(KernelRejected, match="VUID") as raised:
        kernels.Kernel(_refusing(ValidationError("VUID-1")), "retention", bytes(8))
    assert type(raised.value) is KernelRejected
