"""Which matrix products a device's subgroups compute, and which lane holds which element of them, as frozen data.

SPIR-V leaves open which element a component of a cooperative matrix is (SPV_KHR_cooperative_matrix, "Cooperative
Matrix Type"). If it is known, matrices are made from values that a subgroup holds, and taken apart, without memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

#: A row and a column of a matrix.
Position = tuple[int, int]


@dataclass(frozen=True)
class Component:
    """A type of the components of matrices. ``bits``: of one. ``feature``: the key of capabilities.FEATURES that a
    device has whose matrices have it, besides ``matrices``; empty for none. ``scalar``: the key without which a module
    has no such type, in matrices or outside of them."""

    bits: int
    feature: str = ""
    scalar: str = ""


#: Types of components as a configuration names them, floats as TTGIR does. An integer has its signedness: TTGIR's are
#: signed.
COMPONENTS = {
    "f16": Component(16, scalar="float16"),
    "bf16": Component(16, "bfloat16_matrices"),
    "f32": Component(32),
    "f64": Component(64, scalar="float64"),
    "f8E4M3FN": Component(8),
    "f8E5M2": Component(8),
    **{f"{sign}{bits}": Component(bits) for bits in (8, 16, 32) for sign in "su"},
}

#: The features that a device needs to multiply matrices at all, or matrices of some types.
MATRIX_FEATURES = frozenset({"matrices", *(one.feature for one in COMPONENTS.values() if one.feature)})


def component_features(types: Iterable[str]) -> frozenset[str]:
    """The features, besides ``matrices``, that a device has whose matrices have components of these types."""
    components = [COMPONENTS[name] for name in types]
    return frozenset(name for one in components for name in (one.feature, one.scalar) if name)


@dataclass(frozen=True)
class ComponentMap:
    """Which element each component of a matrix is, linear over GF(2).

    Component i of lane l is the element at the exclusive or of ``registers[b]`` over the set bits b of i and of
    ``lanes[b]`` over the set bits b of l. A lane basis (0, 0) means that lanes hold copies.
    """

    registers: tuple[Position, ...]
    lanes: tuple[Position, ...]

    def place(self, component: int, lane: int) -> Position:
        """The element that ``component`` of ``lane`` is."""
        row = column = 0
        for number, bases in ((component, self.registers), (lane, self.lanes)):
            for bit, basis in enumerate(bases):
                if number >> bit & 1:
                    row, column = row ^ basis[0], column ^ basis[1]
        return row, column

    def transposed(self) -> ComponentMap:
        """The map of the transposed matrix in the same components."""
        registers, lanes = (tuple((column, row) for row, column in bases) for bases in (self.registers, self.lanes))
        return ComponentMap(registers, lanes)

    def __str__(self) -> str:
        return "/".join("+".join(f"{row}.{column}" for row, column in bases) for bases in (self.registers, self.lanes))

    @classmethod
    def parse(cls, text: str) -> ComponentMap:
        """The map whose text is given. Raises ValueError."""
        parts = text.split("/")
        if len(parts) != 2:
            raise ValueError(f"{text!r} is not a component map: register bases, '/', lane bases")
        registers, lanes = (tuple(_place(basis) for basis in part.split("+") if basis) for part in parts)
        return cls(registers, lanes)


def _place(text: str) -> Position:
    row, _, column = text.partition(".")
    return int(row), int(column)


@dataclass(frozen=True)
class MatrixConfiguration:
    """One row of vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR for matrices of a subgroup, with its maps.

    A (``m`` × ``k``, of ``a``) times B (``k`` × ``n``, of ``b``) plus C (``m`` × ``n``, of ``c``) is of ``result``.
    ``maps``: of A, B, and of C and the result, which are alike.

    ``mirrored``: the unit is given the transposes, Bᵀ × Aᵀ + Cᵀ. All else is of A, B and C as they are meant.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    result: str
    saturating: bool
    maps: tuple[ComponentMap, ComponentMap, ComponentMap]
    mirrored: bool = False

    def __post_init__(self) -> None:
        unknown = {self.a, self.b, self.c, self.result} - COMPONENTS.keys()
        if unknown:
            raise ValueError(f"unknown component types {sorted(unknown)}; known: {sorted(COMPONENTS)}")
        lanes = {len(map_.lanes) for map_ in self.maps}
        if len(lanes) != 1:
            raise ValueError(f"{self.shape}: its component maps are for subgroups of different sizes")
        for map_, extents in zip(self.maps, self.extents, strict=True):
            bases = [*map_.registers, *map_.lanes]
            covered = {(0, 0)}
            for row, column in bases:
                covered |= {(r ^ row, c ^ column) for r, c in covered}
            if covered != {(r, c) for r in range(extents[0]) for c in range(extents[1])}:
                raise ValueError(f"{self.shape}: the component map {map_} does not cover {extents[0]}×{extents[1]}")

    @property
    def shape(self) -> str:
        """``m16n8k16``."""
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def extents(self) -> tuple[Position, Position, Position]:
        """Rows and columns of A, B and C."""
        return (self.m, self.k), (self.k, self.n), (self.m, self.n)

    @property
    def lanes(self) -> int:
        """Invocations of the subgroup."""
        return 1 << len(self.maps[0].lanes)

    def turned(self) -> MatrixConfiguration:
        """The configuration, or its mirror image, in which a lane holds more columns of a row of the result: sums and
        maxima of rows, as in softmax, are then of fewer lanes, and the result is nearer to an operand A."""
        result = self.maps[2]
        rows, columns = (sum(bool(basis[dim]) for basis in result.registers) for dim in (0, 1))
        if rows <= columns or self.a != self.b or self.mirrored:
            return self
        left, right = (self.maps[index].transposed() for index in (1, 0))
        return replace(self, m=self.n, n=self.m, maps=(left, right, result.transposed()), mirrored=True)

    @property
    def types(self) -> tuple[str, str, str, str]:
        """Component types of A, B, C and the result."""
        return self.a, self.b, self.c, self.result

    def __str__(self) -> str:
        saturating = ":sat" if self.saturating else ""
        return ":".join((f"{self.shape}{saturating}", "*".join(self.types), *map(str, self.maps)))

    @classmethod
    def parse(cls, text: str) -> MatrixConfiguration:
        """The configuration whose text is given. Raises ValueError."""
        match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)(:sat)?:([^:]*):([^:]*):([^:]*):([^:]*)", text)
        types = match[5].split("*") if match else []
        if match is None or len(types) != 4:
            raise ValueError(f"{text!r} is not a matrix configuration, such as 'm8n8k8:f16*f16*f32*f32:A:B:C'")
        m, n, k = (int(match[number]) for number in (1, 2, 3))
        left, right, result = (ComponentMap.parse(match[number]) for number in (6, 7, 8))
        return cls(m, n, k, types[0], types[1], types[2], types[3], bool(match[4]), (left, right, result))


def format_configurations(configurations: Sequence[MatrixConfiguration]) -> str:
    """One text for all, for ``parse_configurations``."""
    return ",".join(map(str, configurations))


def parse_configurations(text: str) -> tuple[MatrixConfiguration, ...]:
    """The configurations of a text. Raises ValueError."""
    return tuple(MatrixConfiguration.parse(part) for part in text.split(",") if part)
