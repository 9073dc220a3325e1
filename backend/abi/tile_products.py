"""Products of whole tiles, as modules call them: imported functions whose names say what they compute.

A dot of a device that computes tiles as wholes (``Capabilities.tile_products``) is one OpFunctionCall of a function
without a body, decorated with ``LinkageAttributes NAME Import``. The function has no result and three parameters: the
pointers to C, A and B, each a variable of storage class Function with an array of the element type. It computes, for
every batch ``z``, row ``i`` and column ``j``,

    C[z, i, j] = (C[z, i, j] if adds else 0) + A[z, i, 0] · B[z, 0, j] + … + A[z, i, K-1] · B[z, K-1, j]

with k ascending. Floats are added by one fused multiply-add for each k, which rounds once; integers wrap around. C is
in no memory that A or B are in; A and B may be the same. Every element type is the one that products are added in:
narrower operands are widened before, as the kernel's own code.

Where it is known from where in device memory the tiles of the next product will be loaded, the name says so, and there
are two more addresses for each such tile, of 64 bits: of its first row there, and of its second. The function may ask
for these rows to be brought nearer; they need not exist.

The variables are those of a subgroup whose W invocations are the lanes of vectors: an array of R elements is memory of
R · W elements, and element r of invocation l is element r · W + l of it. Strides count such elements of the memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

#: Element types, as TTGIR names them → bits.
ELEMENTS = {"f32": 32, "f64": 64, "i32": 32}

#: Elements of the memory between neighbours along the batches, the rows and the columns.
Strides = tuple[int, int, int]

_NAME = re.compile(
    r"tile_product_(add|set)_(f32|f64|i32)_(\d+)x(\d+)x(\d+)x(\d+)"
    r"_c(\d+)_(\d+)_(\d+)_a(\d+)_(\d+)_(\d+)_b(\d+)_(\d+)_(\d+)((?:_next\d+x\d+)*)"
)
_NEXT = re.compile(r"_next(\d+)x(\d+)")


@dataclass(frozen=True)
class TileProduct:
    """One product: ``batches`` products of M×K and K×N tiles of the type ``element``. ``adds``: C is added to, else it
    is overwritten and need hold nothing before. ``c``, ``a``, ``b``: the strides of C, A and B. ``following``: of tiles
    that the next product will be of, the rows in device memory, and the bytes of each."""

    element: str
    batches: int
    m: int
    n: int
    k: int
    adds: bool
    c: Strides
    a: Strides
    b: Strides
    following: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """The function's name, which says all of it: ``tile_product_add_f32_1x64x64x32_c0_64_1_a0_32_1_b0_64_1``."""
        shape = f"{self.batches}x{self.m}x{self.n}x{self.k}"
        strides = (f"{letter}{'_'.join(map(str, getattr(self, letter)))}" for letter in "cab")
        following = "".join(f"_next{rows}x{size}" for rows, size in self.following)
        return f"tile_product_{'add' if self.adds else 'set'}_{self.element}_{shape}_{'_'.join(strides)}{following}"

    def transposed(self) -> TileProduct:
        """The same product as that of the transposed matrices: A is the B of this one."""
        c, a, b = ((batch, column, row) for batch, row, column in (self.c, self.b, self.a))
        return replace(self, m=self.n, n=self.m, c=c, a=a, b=b)

    @classmethod
    def parse(cls, name: str) -> TileProduct | None:
        """The product that a function's name says; None if it is none's name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        batches, m, n, k, *steps = map(int, found.groups()[2:-1])
        following = tuple((int(rows), int(size)) for rows, size in _NEXT.findall(found.groups()[-1]))
        c, a, b = ((steps[at], steps[at + 1], steps[at + 2]) for at in (0, 3, 6))
        return cls(found[2], batches, m, n, k, found[1] == "add", c, a, b, following)
