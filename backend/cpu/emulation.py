"""Kernels of another device, as machine code: a workgroup is several subgroups, each of them one vector's lanes.

The subgroups of a workgroup run on one thread, each up to the next barrier (native/cpu/emulation.cpp). Accesses of
shared and of device memory are looked at before they happen. A cooperative matrix is as many numbers of a lane as it
has components there, by the component maps of the device's profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..matrices import ComponentMap, MatrixConfiguration
from ..spirv.opcodes import MatrixUse

#: Component types as native/cpu/emulated_matrices.cpp numbers them.
COMPONENTS = ("f16", "bf16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32")


@dataclass(frozen=True, slots=True)
class Emulation:
    """What is emulated of a device: its matrix units, as its profile has them. ``counts``: whether code says which
    instructions it executes (native/cpu/emulated_counts.h)."""

    matrices: tuple[MatrixConfiguration, ...] = ()
    counts: bool = False

    def component_map(self, use: int, rows: int, columns: int, component: str) -> ComponentMap | None:
        """Which element each component of a matrix is, of a type in COMPONENTS; None where the profile has no such
        matrix. The signedness of integers is none of its type's."""
        for one in self.matrices:
            of = {MatrixUse.A: one.a, MatrixUse.B: one.b}.get(use, one.result)
            if one.extents[use] == (rows, columns) and of.replace("u", "s") == component.replace("u", "s"):
                return one.maps[use]
        return None


def component_of(kind: str, bits: int, encoding: int | None, signed: bool = False) -> str:
    """The name of a scalar type among COMPONENTS."""
    if kind == "float":
        return f"f{bits}" if encoding is None else "bf16"
    return f"{'s' if signed else 'u'}{bits}"


def numbers(map_: ComponentMap, columns: int, components: int, lanes: int) -> list[list[int]]:
    """For each component, for each lane: row × columns + column of its element."""
    places = [[map_.place(component, lane) for lane in range(lanes)] for component in range(components)]
    return [[row * columns + column for row, column in of] for of in places]


def key_of(emulation: Emulation | None) -> str:
    """What the machine code of a kernel depends on."""
    if emulation is None:
        return ""
    return ("counted " if emulation.counts else "emulated ") + ",".join(map(str, emulation.matrices))


def flat(rows: Sequence[Sequence[int]]) -> list[int]:
    """All numbers, one row after the other."""
    return [number for row in rows for number in row]
