"""The claims about one value, and how they combine; see the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...ttgir.ir import Value
from ...ttgir.types import FloatType, IntegerType, PointerType, TensorType, Type, element_type

#: The divisibility of 0.
MAX_DIVISOR = 1 << 62


@dataclass(frozen=True, slots=True)
class AxisInfo:
    """Claims about one value, one entry a dimension; ``constant`` is its only value where that is known (signed)."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    constant: int | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions, 1 for a scalar."""
        return len(self.contiguity)


def power_of_two_divisor(value: int) -> int:
    """The largest power of two, up to MAX_DIVISOR, that divides ``value``."""
    return min(value & -value, MAX_DIVISOR) if value else MAX_DIVISOR


def unknown(type_: Type) -> AxisInfo:
    """No claims about a value of ``type_``."""
    ones = (1,) * len(shape_of(type_))
    return AxisInfo(ones, ones, ones)


def constant(type_: Type, value: int) -> AxisInfo:
    """All elements of a value of ``type_`` are ``value``."""
    shape = shape_of(type_)
    value = wrapped(value, type_)
    return AxisInfo((1,) * len(shape), (power_of_two_divisor(value),) * len(shape), shape, value)


def meet(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    """The claims that hold for a value that may be either of two."""
    contiguity = tuple(map(min, left.contiguity, right.contiguity))
    return AxisInfo(
        contiguity,
        tuple(min(divisor_at(left, d, c), divisor_at(right, d, c)) for d, c in enumerate(contiguity)),
        tuple(map(min, left.constancy, right.constancy)),
        left.constant if left.constant == right.constant else None,
    )


def shape_of(type_: Type) -> tuple[int, ...]:
    return type_.shape if isinstance(type_, TensorType) and type_.shape else (1,)


def width_of(type_: Type) -> int:
    """Bits of an integer, index or pointer type; 64 for what is none of them."""
    element = element_type(type_)
    return element.width if isinstance(element, IntegerType) else 64


def wrapped(value: int, type_: Type) -> int:
    """``value`` as a signed integer of the width of ``type_``; an i1 is 0 or 1."""
    width = width_of(type_)
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, type_: Type) -> int:
    return value & ((1 << width_of(type_)) - 1)


def only_filled_once(array: Value) -> bool:
    """Whether an array of an invocation's own holds what a ``spirv.spill`` filled it with, and nothing else later."""
    return not any(
        use.name in ("spirv.assign", "spirv.copy", "spirv.put") and use["array"] is array for use in array.uses
    )


def pointee_bytes(type_: Type) -> int:
    element = element_type(type_)
    assert isinstance(element, PointerType)
    pointee = element.pointee
    bits = pointee.width if isinstance(pointee, IntegerType | FloatType) else 64
    return max(bits // 8, 1)


def step_of(type_: Type) -> int:
    """How far apart consecutive elements are, in the unit of divisibility."""
    return power_of_two_divisor(pointee_bytes(type_)) if isinstance(element_type(type_), PointerType) else 1


def divisor_at(info: AxisInfo, dim: int, block: int, step: int = 1) -> int:
    """What divides the first element of each block of ``block``, where consecutive elements differ by ``step``."""
    divisibility = info.divisibility[dim]
    return divisibility if block >= info.contiguity[dim] else min(divisibility, block * step)


def divisor_of(info: AxisInfo, dim: int, step: int = 1) -> int:
    """What divides every element."""
    return divisor_at(info, dim, 1, step)


def tamed(info: AxisInfo) -> AxisInfo:
    """``info`` with contiguity only in blocks that begin at a multiple of their size, so that none wraps."""
    return replace(info, contiguity=tuple(map(min, info.contiguity, info.divisibility)))


def by_dimension(info: AxisInfo, claims: Callable[[int], tuple[int, int, int]]) -> AxisInfo:
    """The value whose (contiguity, divisibility, constancy) along each dimension is ``claims(dim)``."""
    return columns([claims(dim) for dim in range(info.rank)])


def columns(claims: Sequence[tuple[int, int, int]]) -> AxisInfo:
    """One (contiguity, divisibility, constancy) a dimension."""
    contiguity, divisibility, constancy = zip(*claims, strict=True)
    return AxisInfo(contiguity, divisibility, constancy)
