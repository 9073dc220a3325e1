"""Products of whole tiles, as modules call them: imported functions whose names say what they compute.

A dot of a device that computes tiles as wholes (``Capabilities.tile_products``) is one OpFunctionCall of a function
without a body, decorated with ``LinkageAttributes NAME Import``. The function has no result and three parameters: the
pointers to C, A and B, each a variable of storage class Function with an array of the element type. It computes, for
every batch ``z``, row ``i`` and column ``j``,

    C[z, i, j] = (C[z, i, j] if adds else 0) + A[z, i, 0] · B[z, 0, j] + … + A[z, i, K-1] · B[z, K-1, j]

with k ascending. Floats are added by one fused multiply-add for each k, which rounds once; integers wrap around. C is
in no memory that A or B are in; A and B may be the same. Every element type is the one that products are added in:
narrower operands are widened before, as the kernel's own code. Factors of signed integers of 8 bits are not: processors
have instructions for their products.

A loop of such products, each of the next K columns of A and rows of B in device memory, is one call, too
(``RoundsProduct``): the tiles are read in place, or packed as the function likes best. Its parameters are the pointer
to C, those to two variables with addresses, of where each row of A and each column of B begins, and six numbers of 64
bits: the bytes from one row of B to the next; how many k there are, of all rounds; 1 if the last round has fewer k than
the others, whose products are then of zeros, else 0; how many of C's first rows and columns have a row of A and a
column of B: all others are multiplied as zeros, and nothing is read at their addresses; and how many of C's first rows
are needed: all others may have any value.

The variables are those of a subgroup whose W invocations are the lanes of vectors: an array of R elements is memory of
R · W elements, and element r of invocation l is element r · W + l of it. Strides count such elements of the memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .elements import FLOATS

#: Element types, as TTGIR names them → bits.
ELEMENTS = {"f32": 32, "f64": 64, "i32": 32}

#: Element types of factors that are narrower than what their products are added in → that type.
NARROW = {"i8": "i32"}

#: Elements of the memory between neighbours along the batches, the rows and the columns.
Strides = tuple[int, int, int]

_NAME = re.compile(
    r"tile_product_(add|set)_(f32|f64|i32)(?:_(i8))?_(\d+)x(\d+)x(\d+)x(\d+)"
    r"_c(\d+)_(\d+)_(\d+)_a(\d+)_(\d+)_(\d+)_b(\d+)_(\d+)_(\d+)"
)


@dataclass(frozen=True)
class TileProduct:
    """One product: ``batches`` products of M×K and K×N tiles of the type ``element``. ``adds``: C is added to, else it
    is overwritten and need hold nothing before. ``c``, ``a``, ``b``: the strides of C, A and B. ``factor``: the
    element type of A and B, a key of NARROW, where it is not ``element``."""

    element: str
    batches: int
    m: int
    n: int
    k: int
    adds: bool
    c: Strides
    a: Strides
    b: Strides
    factor: str = ""

    @property
    def name(self) -> str:
        """The function's name, which says all of it: ``tile_product_add_f32_1x64x64x32_c0_64_1_a0_32_1_b0_64_1``."""
        shape = f"{self.batches}x{self.m}x{self.n}x{self.k}"
        strides = (f"{letter}{'_'.join(map(str, getattr(self, letter)))}" for letter in "cab")
        types = "_".join(filter(None, (self.element, self.factor)))
        return f"tile_product_{'add' if self.adds else 'set'}_{types}_{shape}_{'_'.join(strides)}"

    def transposed(self) -> TileProduct:
        """The product of the transposed matrices, which is this one's transpose: A is the B of this one."""
        c, a, b = ((batch, column, row) for batch, row, column in (self.c, self.b, self.a))
        return replace(self, m=self.n, n=self.m, c=c, a=a, b=b)

    @classmethod
    def parse(cls, name: str) -> TileProduct | None:
        """The product that a function's name says; None if it is none's name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        batches, m, n, k, *steps = map(int, found.groups()[3:])
        c, a, b = ((steps[at], steps[at + 1], steps[at + 2]) for at in (0, 3, 6))
        return cls(found[2], batches, m, n, k, found[1] == "add", c, a, b, found[3] or "")


#: Element types of factors in device memory, as TTGIR names them → the bytes of one.
FACTORS = {**{name: FLOATS[name].bytes for name in ("f16", "bf16", "f32", "f64")}, "i8": 1}

_ROUNDS = re.compile(
    r"tile_rounds_(f32|f64|i32)_(\d+)x(\d+)x(\d+)_c(\d+)_a(f16|bf16|f32|f64|i8)_(\d+)_b(f16|bf16|f32|f64|i8)_(\d+)"
    r"(_t)?"
)


@dataclass(frozen=True)
class RoundsProduct:
    """The products of some rounds of a loop, which are added to an M×N tile C of the type ``element`` whose rows are
    ``row`` elements apart and contiguous. A round multiplies ``k`` columns of A, which are neighbours in memory, with
    as many rows of B. ``a``, ``b``: the element type in memory, and how far the addresses of neighbouring rows of A, or
    columns of B, are from each other in their variable, in addresses. ``turned``: neighbours in a column of B are
    neighbours in memory. The order of sums, and their rounding, is that of the products one after the other."""

    element: str
    m: int
    n: int
    k: int
    row: int
    a: tuple[str, int]
    b: tuple[str, int]
    turned: bool

    @property
    def name(self) -> str:
        """The function's name, which says all of it."""
        factors = f"a{self.a[0]}_{self.a[1]}_b{self.b[0]}_{self.b[1]}"
        return f"tile_rounds_{self.element}_{self.m}x{self.n}x{self.k}_c{self.row}_{factors}{'_t' * self.turned}"

    @classmethod
    def parse(cls, name: str) -> RoundsProduct | None:
        """The product that a function's name says; None if it is none's name."""
        found = _ROUNDS.fullmatch(name)
        if found is None:
            return None
        m, n, k, row, a, b = (int(found[group]) for group in (2, 3, 4, 5, 7, 9))
        return cls(found[1], m, n, k, row, (found[6], a), (found[8], b), found[10] is not None)
