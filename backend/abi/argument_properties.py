"""What kernels are compiled for of their arguments besides types: a letter for each property, and the attribute of
TTIR that the compiler reads of it.

``D``, upstream's letter: an integer, or the address of a tensor, is a multiple of ALIGNMENT. ``S``: a tensor's memory
is small, so that any address in it is reached from any other by a signed 32-bit offset.
"""

from __future__ import annotations

from typing import Any

ALIGNED, SMALL = "D", "S"

#: What aligned addresses, in bytes, and numbers are multiples of.
ALIGNMENT = 16
#: Bytes of small memory, at most.
POINTER_RANGE = (1 << 31) - 1

#: The attribute of an argument whose memory is small, and its value.
RANGE, RANGE_BITS = "tt.pointer_range", 32


def properties(address: int, size: float, align: bool) -> str:
    """The letters of a tensor at ``address`` in memory of ``size`` bytes. ``align``: whether its alignment counts."""
    return (ALIGNED if align and address % ALIGNMENT == 0 else "") + (SMALL if size <= POINTER_RANGE else "")


def divisible_by(divisor: int) -> list[Any]:
    """The attribute of an argument that is a multiple of ``divisor``."""
    return ["tt.divisibility", divisor]


def attributes_of(letters: str) -> list[list[Any]]:
    """The attributes of an argument with these properties."""
    known = {ALIGNED: divisible_by(ALIGNMENT), SMALL: [RANGE, RANGE_BITS]}
    return [attribute for letter, attribute in known.items() if letter in letters]
