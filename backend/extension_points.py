"""What packages that stand above this one give it, by name: the places where an import would go up.

CONTRIBUTING.md has the packages and their order (tests/unit/test_packages.py).
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

#: Name → where it is defined.
POINTS = {
    #: () → the torch device whose tensors kernels take with no copy.
    "active_device": "torch.active:active_device",
    #: () → whether TRITON_SPIRV_TORCH_DEVICE asks for torch's device.
    "asked_for": "autoload.others:asked_for",
    #: () → the type of torch's own accelerator that is there, or None.
    "other_accelerator": "autoload.others:other_accelerator",
    #: (a SPIR-V module) → its text, with the lines of the source.
    "listing": "inspection.listing:listing",
}


def given(name: str) -> Any:
    """What a package above gives as ``name``, imported where it is asked for."""
    return resolve_name(f"{__package__}.{POINTS[name]}")
