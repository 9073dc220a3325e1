"""Where a dot operand lies in shared memory while plain multiply-adds read it.

A step along K reads, in each invocation, several rows of A or columns of B. They are therefore made contiguous: one
128-bit access gives four rows of f32. Invocations that hold different steps of K store at the same time; the vectors
of a row are permuted by the step, so that their stores fall into different banks.
"""

from __future__ import annotations

from functools import lru_cache

from ..ttgir.encodings import SharedLinearEncoding
from .linear import log2

#: Bytes of the widest access, which stays contiguous.
VECTOR_BYTES = 16


@lru_cache(maxsize=256)
def operand_encoding(shape: tuple[int, int], k_axis: int, element_bytes: int) -> SharedLinearEncoding:
    """The encoding of a buffer of ``shape`` whose reduced dimension is ``k_axis``.

    Offset = k × extent + (outer ^ swizzle(k)), where ``outer`` is the other dimension's coordinate, of that extent.
    """
    outer_axis = 1 - k_axis
    extent = shape[outer_axis]
    vector = max(1, VECTOR_BYTES // element_bytes)
    bases = [_point(outer_axis, 1 << bit, 0) for bit in range(log2(extent))]
    # A lane that loaded a vector along K holds steps that differ in the low bits only: those need no permutation.
    held = log2(vector)
    for bit in range(log2(shape[k_axis])):
        swizzle = vector << (bit - held) if bit >= held else 0
        bases.append(_point(outer_axis, swizzle if swizzle < extent else 0, 1 << bit))
    return SharedLinearEncoding(tuple(bases), ())


def _point(outer_axis: int, outer: int, k: int) -> tuple[int, int]:
    return (outer, k) if outer_axis == 0 else (k, outer)
