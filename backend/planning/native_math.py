"""Which functions of the device's own kernels use."""

from __future__ import annotations

from ..capabilities import NATIVE_MATH, Capabilities
from ..settings import OFF, ON

AUTO = "auto"


def native_math(wanted: str, capabilities: Capabilities) -> frozenset[str]:
    """What the option ``native_math`` (TRITON_SPIRV_NATIVE_MATH) asks for: 0, ``auto`` (those that are exact enough),
    or 1 (all). Keys of NATIVE_MATH. Raises ValueError."""
    word = wanted.strip().lower()
    if word in OFF:
        return frozenset()
    if word in ON:
        return frozenset(NATIVE_MATH)
    if word != AUTO:
        raise ValueError(f"native_math={wanted!r} must be 0, 1 or {AUTO}")
    return capabilities.native_math
