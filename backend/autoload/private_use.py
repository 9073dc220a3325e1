"""Takes torch's only place for an out-of-tree device (PrivateUse1)."""

from __future__ import annotations

from typing import Any

from .accelerator import put_in_place
from .collectives import take_collectives
from .first_use import make_storages, register_at_first_operation, register_before_pinning
from .libraries import help_libraries
from .others import explain_missing_gradients, other_accelerator
from .placeholder import NAME, Placeholder, is_used
from .shared_parameters import keep_shared_parameters


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
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=False, for_module=False, for_packed_sequence=False, for_storage=True
    )
    put_in_place()
    take_collectives()
    keep_shared_parameters()
    help_libraries()
    register_at_first_operation()
    make_storages()
    other = other_accelerator()
    if other is not None:
        explain_missing_gradients(other)
    if isinstance(module, Placeholder):
        register_before_pinning()
