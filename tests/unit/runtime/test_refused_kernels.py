"""What the error of a kernel says that a driver refuses."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.runtime import kernel as kernels
from triton.backends.spirv.runtime.errors import KernelRejected


@pytest.mark.parametrize("size, large", [(1 << 19, False), (2_900_000, True)])
def test_a_large_module_is_told_what_makes_it_smaller(size: int, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise RuntimeError("vkCreateComputePipelines failed: VK_ERROR_UNKNOWN (-13)")

    context: Any = SimpleNamespace(
        in_use=nullcontext,
        opened=SimpleNamespace(load=load),
        native=SimpleNamespace(check_usable=lambda: None),
        device=SimpleNamespace(name="a GPU"),
        remove_kernel=lambda handle: None,
    )
    monkeypatch.setattr(kernels, "save_module", lambda name, code: "")
    with pytest.raises(KernelRejected, match="VK_ERROR_UNKNOWN") as raised:
        kernels.Kernel(context, "retention", bytes(size), lambda: "num_warps=8 instead of 4")
    assert ("2.9 MB of SPIR-V" in str(raised.value) and "num_warps=8 instead of 4" in str(raised.value)) == large
