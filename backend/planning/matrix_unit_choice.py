"""Which of a device's matrix units a kernel is compiled for."""

from __future__ import annotations

from ..capabilities import PROFILES, Capabilities
from ..matrices import MatrixConfiguration
from ..settings import EMULATE, OFF, ON
from .workgroup import WARP

AUTO = "auto"


def matrix_units(wanted: str, capabilities: Capabilities) -> tuple[MatrixConfiguration, ...]:
    """What the option ``matrix_units`` (TRITON_SPIRV_MATRIX_UNITS) asks for: none (0), the device's (1), or the
    device's where they are faster (``auto``). Raises ValueError."""
    word, lanes = wanted.strip().lower(), capabilities.subgroup_size
    if word not in OFF and word not in ON and word != AUTO:
        instead = f"; TRITON_SPIRV_DEVICE={EMULATE}{word} emulates that device" if word in PROFILES else ""
        raise ValueError(f"matrix_units={wanted!r} must be 0, 1 or {AUTO}{instead}")
    if word in OFF or (word == AUTO and not capabilities.traits.matrix_units) or lanes > WARP:
        return ()
    return tuple(one.turned() for one in capabilities.matrices if one.lanes == lanes)
