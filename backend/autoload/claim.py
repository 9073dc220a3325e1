"""Takes torch's one place for a device from outside its tree (PrivateUse1)."""

from __future__ import annotations

from typing import Any

from .accelerator import put_in_place
from .first_use import register_first
from .placeholder import NAME, Placeholder, is_used


def claim(module: Any) -> None:
    """Take it, with ``module`` as ``torch.spirv``."""
    import torch
    from torch.utils import backend_registration

    class DeviceHooks(torch._C._acc.PrivateUse1Hooks):
        def is_available(self) -> bool:
            return bool(torch.spirv.is_available())  # type: ignore[attr-defined]

        def has_primary_context(self, dev_id: int) -> bool:
            return is_used()

        def is_built(self) -> bool:
            return True

    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=module, hook=DeviceHooks())
    put_in_place()
    if isinstance(module, Placeholder):
        register_first()
