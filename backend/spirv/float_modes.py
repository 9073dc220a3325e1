"""Execution modes that pin the device's float behaviour down, where the device has them."""

from __future__ import annotations

from collections.abc import Callable

from .module import ModuleBuilder
from .opcodes import Capability_, ExecutionMode_

#: Float control → (the capability it needs, the execution mode, which takes a width).
MODES = {
    "round_to_nearest_even": (Capability_.RoundingModeRTE, ExecutionMode_.RoundingModeRTE),
    "preserve_denormals": (Capability_.DenormPreserve, ExecutionMode_.DenormPreserve),
    "preserve_signed_zero_inf_nan": (Capability_.SignedZeroInfNanPreserve, ExecutionMode_.SignedZeroInfNanPreserve),
}


def float_modes(module: ModuleBuilder, has: Callable[[str], bool]) -> list[list[int]]:
    """The modes that the device has, for every width of float that ``module`` declares. ``has`` tells whether it has a
    float control of a width, ``preserve_denormals32`` say."""
    widths = sorted(width for kind, width in module.kinds.values() if kind == "float")
    modes = []
    for control, (capability, mode) in MODES.items():
        for width in widths:
            if has(f"{control}{width}"):
                module.capability(capability)
                modes.append([mode, width])
    return modes
