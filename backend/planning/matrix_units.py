"""Which matrix units a kernel is compiled for: the device's own, none, or another device's, emulated."""

from __future__ import annotations

from dataclasses import dataclass

from ..capabilities import PROFILES, Capabilities
from ..matrices import MatrixConfiguration
from ..settings import OFF, ON
from .workgroup import WARP

AUTO = "auto"


@dataclass(frozen=True)
class MatrixUnits:
    """``configurations`` are for the target's subgroups; ``emulated``: by shuffles and multiply-adds."""

    configurations: tuple[MatrixConfiguration, ...] = ()
    emulated: bool = False


def matrix_units(wanted: str, capabilities: Capabilities) -> MatrixUnits:
    """What the option ``matrix_units`` (TRITON_SPIRV_MATRIX_UNITS) asks for: 0, 1, ``auto`` (where they are faster), or
    the name of a device profile whose matrix units are emulated. Raises ValueError."""
    word, lanes = wanted.strip().lower(), capabilities.subgroup_size
    if word in OFF or (word == AUTO and not capabilities.traits.matrix_units):
        return MatrixUnits()
    emulated = word not in ON and word != AUTO
    if emulated and word not in PROFILES:
        raise ValueError(f"matrix_units={wanted!r} must be 0, 1, {AUTO} or a device profile ({', '.join(PROFILES)})")
    known = PROFILES[word].matrices if emulated else capabilities.matrices
    if lanes > WARP:
        return MatrixUnits()
    return MatrixUnits(
        tuple(one.turned().folded(lanes) for one in known if one.lanes == lanes or (emulated and one.lanes > lanes)),
        emulated,
    )
