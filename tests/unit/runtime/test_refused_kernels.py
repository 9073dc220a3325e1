"""What the error of a kernel says that a driver refuses."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.runtime import kernel as kernels
from triton.backends.spirv.runtime.errors import KernelRejected, RefusedModule, ValidationError


@pytest.mark.parametrize(
    "error, raised, says",
    [
        (RuntimeError("VK_ERROR_UNKNOWN (-13)"), RefusedModule, "VK_ERROR_UNKNOWN.*too many values.*8 warps"),
        (ValidationError("VUID-1"), KernelRejected, "VUID-1;"),
    ],
)
def test_who_refused(error: RuntimeError, raised: type, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise error

    context: Any = SimpleNamespace(
        in_use=nullcontext,
        opened=SimpleNamespace(load=load),
        native=SimpleNamespace(check_usable=lambda: None),
        device=SimpleNamespace(name="a GPU"),
    )
    monkeypatch.setattr(kernels, "save_module", lambda name, code: "")
    with pytest.raises(KernelRejected, match=says) as caught:
        kernels.Kernel(context, "retention", bytes(8), lambda: "8 warps")
    assert type(caught.value) is raised
