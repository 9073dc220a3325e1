"""Products of whole tiles (abi/tile_products.py) as LLVM IR for a host: register-blocked micro-kernels.

C is cut in blocks of R rows and V vectors that stay in registers while k ascends. For each k, V vectors of a row of B
are loaded, and each of R elements of A, at any stride, is spread over a vector and multiplied with them. Nothing of A
is packed. B is read in place where its rows are contiguous; else V vectors of its columns at a time are transposed into
memory of the function's own (transposes.py). The last block of a column of blocks has fewer rows; where C is narrower
than a vector, vectors are as narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..abi.tile_products import ELEMENTS, TileProduct
from .host import Host
from .ir_text import FunctionText
from .transposes import Panel, transpose_panel

#: Element type → LLVM's.
TYPES = {"f32": "float", "f64": "double", "i32": "i32"}

#: Steps of k in the body of the loop over k.
_STEPS = 4


#: Bits of a vector register, and how many there are → the vectors of a row of C in a block → rows of the block. Of
#: AVX-512 on a Sapphire Rapids, GFLOP a second: tiles of 64×64×32 170 with any of 8×2, 12×2, 14×2, 6×4 and 16×1;
#: 128×128×64, which are in the second cache, 143 with 6×4, 133 with 13×2, 129 with 8×2, 120 with 14×2, which spill, and
#: 94 with 16×1.
_ROWS = {
    (128, 16): {1: 8, 2: 6, 4: 2},
    (128, 32): {1: 12, 2: 12, 4: 6},
    (256, 16): {1: 8, 2: 6, 4: 2},
    (512, 32): {1: 16, 2: 12, 4: 6},
}

#: Bits of a vector register → vectors of a row of C in a block, where C is so wide. Of C with few rows there are more:
#: sums would wait for each other.
_VECTORS = {128: 2, 256: 2, 512: 4}
_FEW_ROWS, _VECTORS_OF_FEW = 4, 4


@dataclass(frozen=True)
class RegisterBlock:
    """A block of C in registers: ``rows``, and ``vectors`` of ``lanes`` elements in each."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def block_of(product: TileProduct, host: Host) -> RegisterBlock:
    """The blocks that C is cut in."""
    lanes = min(host.vector_bits // ELEMENTS[product.element], product.n)
    most = _VECTORS_OF_FEW if product.m <= _FEW_ROWS else _VECTORS[host.vector_bits]
    vectors = min(product.n // lanes, most)
    return RegisterBlock(min(_ROWS[host.vector_bits, host.registers][vectors], product.m), vectors, lanes)


#: Writes what is between the head of the function of a product and its return, of A and B that are at these pointers;
#: the attributes that the function needs.
Writer = Callable[[FunctionText, TileProduct, Host, str, str], str]


def _write(text: FunctionText, product: TileProduct, host: Host, a: str, b: str) -> str:
    TileKernel(text, product, block_of(product, host)).emit(a, b)
    return ""


def define(product: TileProduct, host: Host, write: Writer = _write) -> tuple[str, frozenset[str]]:
    """The text of the function ``product.name`` of parameters ``ptr %c, ptr %a, ptr %b``, and the declarations that it
    needs. The shape is of powers of two."""
    name, a, b = product.name, "%a", "%b"
    if product.c[2] != 1 and product.n > 1:  # the transposed product: what is a row there is contiguous
        product, a, b = product.transposed(), b, a
    text = FunctionText()
    attributes = write(text, product, host, a, b)
    head = f"define internal void @{name}(ptr noalias %c, ptr readonly %a, ptr readonly %b) noinline nounwind"
    return text.define(head + attributes), frozenset(text.declarations)


class TileKernel:
    """The text of one product whose C has contiguous rows."""

    def __init__(self, text: FunctionText, product: TileProduct, block: RegisterBlock) -> None:
        self._text, self._product, self._block = text, product, block
        self._type = TYPES[product.element]
        self._bytes = ELEMENTS[product.element] // 8
        self._vector = f"<{block.lanes} x {self._type}>"
        #: Memory for the columns of B that a block of C has.
        self._panel = ""

    def emit(self, a: str, b: str) -> None:
        """Everything between the function's head and its return."""
        text, product, block = self._text, self._product, self._block

        def columns(left: str, batch: str, at: str) -> None:
            here, stride = self._columns_of_b(b, batch, at)
            whole = product.m // block.rows * block.rows

            def rows(row: str, _: list[str]) -> None:
                self._rows(batch, row, at, block.rows, left, here, stride)

            text.loop(whole, block.rows, rows)
            if whole < product.m:
                self._rows(batch, str(whole), at, product.m - whole, left, here, stride)

        def batch(index: str, _: list[str]) -> None:
            left = self._rows_of_a(a, index)
            text.loop(product.n, block.columns, lambda at, _: columns(left, index, at))

        text.loop(product.batches, 1, batch)

    def _rows_of_a(self, a: str, batch: str) -> str:
        """Where the A of a batch begins."""
        return self._text.element(self._type, a, self._text.times(batch, self._product.a[0]))

    def _columns_of_b(self, b: str, batch: str, at: str) -> tuple[str, int]:
        """Where the columns of B from ``at`` on begin that a block of C has, and how far its rows are apart: they are
        contiguous."""
        text, product = self._text, self._product
        start = text.sum(text.times(batch, product.b[0]), text.times(at, product.b[2]))
        here = text.element(self._type, b, start)
        if product.b[2] == 1 or product.n == 1:
            return here, product.b[1]
        return self._transposed(here, product.b[1], product.b[2]), self._block.columns

    def _transposed(self, here: str, down: int, along: int) -> str:
        """A panel of the columns that are at ``here``, with these strides."""
        if not self._panel:
            self._panel = self._text.alloca(f"[{self._product.k * self._block.columns} x {self._type}]", 64)
        block = self._block
        panel = Panel(self._panel, self._product.k, block.columns, block.lanes, self._type, self._bytes)
        transpose_panel(self._text, panel, here, down, along)
        return self._panel

    def _rows(self, batch: str, row: str, column: str, rows: int, a: str, b: str, stride: int) -> None:
        """The block of ``rows`` rows that begins at (``row``, ``column``); ``a``: where the batch's A begins, ``b``:
        where its columns of B begin, whose rows are ``stride`` elements apart."""
        text, product, block, vector = self._text, self._product, self._block, self._vector
        places = [(i, j) for i in range(rows) for j in range(block.vectors)]
        at = text.sum(text.times(batch, product.c[0]), text.sum(text.times(row, product.c[1]), column))
        c = text.element(self._type, "%c", at)
        left = text.element(self._type, a, text.times(row, product.a[1]))
        offsets = [i * product.c[1] + j * block.lanes for i, j in places]
        initial = [
            self._initial(self._load(vector, c, offset) if product.adds else "zeroinitializer", j)
            for offset, (_, j) in zip(offsets, places, strict=True)
        ]
        steps = min(_STEPS, product.k)

        def body(k: str, totals: list[str]) -> list[str]:
            beside = text.element(self._type, left, text.times(k, product.a[2]))
            below = text.element(self._type, b, text.times(k, stride))
            for step in range(steps):
                totals = self._step(totals, places, step, beside, below, stride)
            return totals

        totals = text.loop(product.k, steps, body, [(vector, value) for value in initial])
        for offset, total in zip(offsets, totals, strict=True):
            pointer = text.element(self._type, c, str(offset))
            text.do(f"store {vector} {total}, ptr {pointer}, align {self._bytes}")

    def _step(
        self, totals: list[str], places: list[tuple[int, int]], step: int, left: str, right: str, stride: int
    ) -> list[str]:
        """One multiply-add of each vector of the block."""
        block, vector, (_, down, along) = self._block, self._vector, self._product.a
        columns = [self._load(vector, right, step * stride + j * block.lanes) for j in range(block.vectors)]
        spread: dict[int, str] = {}
        found = []
        for (i, j), total in zip(places, totals, strict=True):
            if i not in spread:
                spread[i] = self._spread(self._load(self._type, left, i * down + step * along))
            found.append(self._multiply_add(spread[i], columns[j], total))
        return found

    def _initial(self, total: str, vector: int) -> str:
        """What products are added to, of a vector of a row of the block, where ``total`` was in C."""
        return total

    def _load(self, type_: str, pointer: str, at: int) -> str:
        pointer = self._text.element(self._type, pointer, str(at))
        return self._text.value(f"load {type_}, ptr {pointer}, align {self._bytes}")

    def _spread(self, scalar: str) -> str:
        return self._text.spread(self._vector, scalar)

    def _multiply_add(self, left: str, right: str, total: str) -> str:
        vector = self._vector
        if self._type == "i32":
            return self._text.value(f"add {vector} {self._text.value(f'mul {vector} {left}, {right}')}, {total}")
        return self._text.intrinsic("fma", vector, left, right, total)
