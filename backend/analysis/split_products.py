"""How products of f32 are computed from products of bf16, by the precision that a dot asks for.

Vulkan has no tf32 matrices. bf16 has the range of f32, so an f32 is a sum of bf16 numbers: two give 16 bits, and three
all 24 (G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
Higher-Precision Computations", 2019). f16 is no substitute: it loses numbers below 2**-24 and above 65,504. But the
numbers of tf32 that are between its normal ones are numbers of f16 too: both have ten bits after the point. So a tile
without others takes one product (transforms/gpu/halves.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Split:
    """``parts``: of an operand, the largest one first. ``terms``: the parts of A and of B that are multiplied, small
    products first. ``apart``: the products are added up by themselves, and multiplied by ``factor``, before they are
    added to the accumulator.

    The first part differs from the number by at most 2**-8 of its power of two, two parts together by 2**-17, three not
    at all. A product is off by what its operands are off, and by the terms that are left out: ``error`` × |a| × |b| at
    most, the sum's own roundings aside, and four times as much where an operand passes 2**127. The last part of a
    number below 2**-110 may be subnormal. It is lost on a device that takes such numbers for zero, where the number is
    off by 2**-126 at most. On others it is off by 2**-134 at most, half of bf16's smallest number."""

    parts: int
    terms: tuple[tuple[int, int], ...]
    apart: bool
    error: float
    factor: float = 1.0


#: One product of operands as they are.
WHOLE = Split(1, ((0, 0),), False, 0.0)

#: Operands of f32 are multiplied by two to this power before they become f16: 2**-21 to 511.8 become normal numbers.
HALF_EXPONENT = 7
#: One product of such operands. It is exact, and its sum is in the range of f32.
HALVES = Split(1, ((0, 0),), True, 0.0, 2.0 ** (-2 * HALF_EXPONENT))
#: The attribute of a tt.dot whose operands are such numbers.
OF_HALVES = "spirv.halves"

_THREE_PRODUCTS = ((1, 0), (0, 1), (0, 0))
_SIX_PRODUCTS = ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0))

#: ``inputPrecision`` of a tt.dot of f32 → how it is done on bf16 matrices; the most precise first. tf32 itself rounds
#: operands to 11 bits: 2**-10. tf32x3 leaves out less than bf16x3 does, so it takes as many products as bf16x6.
SPLITS = {
    "bf16x6": Split(3, _SIX_PRODUCTS, True, 2.0**-22),
    "tf32x3": Split(3, _SIX_PRODUCTS, True, 2.0**-22),
    "bf16x3": Split(2, _THREE_PRODUCTS, False, 2.0**-15),
    "tf32": Split(2, _THREE_PRODUCTS, False, 2.0**-15),
}

#: The module attribute that says which of these all rounded dots of f32 have, where it is not the one at each dot.
PRECISION = "ttg.dot-precision"


def widest(precisions: Iterable[str]) -> str | None:
    """The most precise of some, of those in SPLITS; None if there is none."""
    found = set(precisions)
    return next((name for name in SPLITS if name in found), None)
