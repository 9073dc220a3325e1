"""Errors of the lowering."""

from __future__ import annotations

from ..errors import LoweringError, UnsupportedOperation

__all__ = ["LoweringError", "UnsupportedOperation", "missing"]

#: Feature of a device → what to use where it has none.
_WITHOUT = {
    "float64": "use float32",
    "int8": "use int32",
    "int16": "use int32",
    "storage8": "use elements of 32 bits in memory",
    "storage16": "use elements of 32 bits in memory",
    "int64_atomics": "use atomics on 32 bits",
}


def missing(driver: str, what: str, feature: str) -> NotImplementedError:
    """What to raise where the device lacks a feature: registry.lower adds the operation and the place."""
    return NotImplementedError(
        f"the device '{driver}' {what} (feature {feature}); {_WITHOUT[feature]}, or a device that has the feature"
    )
