"""What is known about a function's integers and pointers along each dimension of their tensors.

An ``AxisInfo`` claims what upstream's analysis of the same name does. All numbers are powers of two. For
dimension d of a value, taken along every line in that dimension, cut into aligned blocks:

* contiguity c: in each block of c, element i + 1 is element i plus 1 (for pointers: plus one pointee);
* divisibility v: the first element of each such block is a multiple of v (for pointers: of v bytes);
* constancy k: in each block of k all elements are equal.

Integers are taken modulo 2^width; a claim of contiguity survives a widening only as far as divisibility shows that
no block wraps. Signed division and remainder of a contiguous value have claims where the dividend is not negative
(signs.py): upstream takes every dividend for such a number. Scalars have one dimension of one element.
"""

from __future__ import annotations

from .analysis import AxisInfoAnalysis
from .info import MAX_DIVISOR, AxisInfo

__all__ = ["MAX_DIVISOR", "AxisInfo", "AxisInfoAnalysis"]
