"""Products of tiles of signed integers of 8 bits (abi/tile_products.py): processors add several of them at once.

K is cut in groups of as many factors as an instruction takes, each a word of 32 bits: the micro-kernel is that of words
(micro_kernels.py), with this instruction in place of a multiplication and an addition. A word of A holds neighbours of
a row, a word of B neighbours of a column. Where they are not neighbours in memory, rows are interleaved. Columns of B
that are contiguous are transposed as for other elements, word by word.

VPDPBUSD takes one factor of four as unsigned. A is copied with 128 added to each element, which flips its sign bit, and
128 times the sum of each column of B is taken from the results; in rounds it is B, and the rows of A (byte_rounds.py).
Sums wrap around, so this is exact. AMX multiplies whole tiles of such words (byte_tiles.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from ..abi.tile_products import TileProduct
from . import byte_tiles
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock, TileKernel, block_of

#: Bytes that are copied at once.
_COPIED = 64
#: Words of four times 128, as bytes.
BIAS = "splat (i32 -2139062144)"
#: Words of a vector that words are interleaved in.
_LANES = 16


@dataclass(frozen=True)
class ByteInstruction:
    """What multiplies and adds words. ``factors``: of a word; ``name``: LLVM's, with the number of a vector's bits;
    ``adds``: whether it adds to sums; ``flips``: whether one factor's sign bits are flipped; ``features``: what LLVM is
    to use for it beyond the host's level; ``tiles``: whether it multiplies tiles, not vectors."""

    factors: int
    name: str = ""
    adds: bool = True
    flips: bool = False
    features: str = ""
    tiles: bool = False

    @property
    def bits(self) -> int:
        """The bits that a factor has in a word."""
        return 32 // self.factors

    @property
    def attribute(self) -> str:
        """What a function has in its head that uses it."""
        return f' "target-features"="{self.features}"' if self.features else ""


#: Feature → LLVM's instruction.
_FEATURES = {
    "amx-int8": ByteInstruction(4, "llvm.x86.tdpbssd", features="+amx-tile,+amx-int8", tiles=True),
    "avx512vnni": ByteInstruction(4, "llvm.x86.avx512.vpdpbusd.{bits}", flips=True, features="+avx512vnni"),
    "avxvnni": ByteInstruction(4, "llvm.x86.avx512.vpdpbusd.{bits}", flips=True, features="+avxvnni"),
    "dotprod": ByteInstruction(4, "llvm.aarch64.neon.sdot.v4i32.v16i8", features="+dotprod"),
}
#: Bits of a vector → the instruction of x86 that multiplies integers of 16 bits and adds two products each.
_PAIRS = {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}
#: Factors are widened, and multiplied as words.
_WIDENED = ByteInstruction(1)


def chosen(product: TileProduct, host: Host) -> tuple[RegisterBlock, ByteInstruction]:
    """The blocks that C is cut in, whose rows are contiguous, and the best instruction for them."""
    block = block_of(product, host)
    bits = 32 * block.lanes
    for feature in host.features:
        narrow = _FEATURES.get(feature)
        if narrow is None:
            continue
        if narrow.tiles and byte_tiles.suits(product):
            return byte_tiles.block_of(product), narrow
        if not narrow.tiles and product.k >= narrow.factors and 128 <= bits <= host.vector_bits:
            return block, replace(narrow, name=narrow.name.format(bits=bits))
    if host.arch == "x86_64" and product.k >= 2 and bits in _PAIRS:
        return block, ByteInstruction(2, _PAIRS[bits], adds=False)
    return block, _WIDENED


def write_bytes(text: FunctionText, product: TileProduct, host: Host, a: str, b: str) -> str:
    """A Writer of micro_kernels.define(), for products of bytes."""
    block, instruction = chosen(product, host)
    ByteKernel(text, product, block, instruction).emit(a, b)
    return instruction.attribute


class ByteKernel(TileKernel):
    """The text of one product whose C has contiguous rows."""

    def __init__(
        self, text: FunctionText, product: TileProduct, block: RegisterBlock, instruction: ByteInstruction
    ) -> None:
        self._bytes_of, self._instruction = product, instruction
        words = product.k // instruction.factors
        self._of_rows = product.a[2] == 1 or product.k == 1
        a = (0, words, 1) if self._of_rows else (0, 1, product.m)
        super().__init__(text, replace(product, factor="", k=words, a=a), block)
        self._words_of_a = ""
        #: Where columns of B are neighbours in no memory, rows of words of them.
        self._words_of_b = ""
        #: Sums of the columns of B that a block of C has, where they are needed.
        self._sums = text.alloca(f"[{block.columns} x i32]", 64) if instruction.flips else ""
        #: What multiplies blocks, where it takes tiles.
        self._tiles = byte_tiles.TileRegisters(text, block, words) if instruction.tiles else None

    def emit(self, a: str, b: str) -> None:
        """Extends TileKernel.emit()."""
        with self._tiles or nullcontext():
            super().emit(a, b)

    def _rows(self, batch: str, row: str, column: str, rows: int, a: str, b: str, stride: int) -> None:
        """Extends TileKernel._rows()."""
        if self._tiles is None:
            super()._rows(batch, row, column, rows, a, b, stride)
            return
        text, product = self._text, self._product
        at = text.sum(text.times(batch, product.c[0]), text.sum(text.times(row, product.c[1]), column))
        c, left = text.element("i32", "%c", at), text.element("i32", a, text.times(row, product.a[1]))
        places = (c, str(4 * product.c[1])), (left, str(4 * product.a[1])), (b, str(4 * stride))
        self._tiles.multiply(rows, str(product.k), *places, adds=product.adds)

    def _rows_of_a(self, a: str, batch: str) -> str:
        text, product, (step, down, along) = self._text, self._bytes_of, self._bytes_of.a
        if not self._words_of_a:
            self._words_of_a = text.alloca(f"[{product.m * self._product.k} x i32]", 64)
        here, flips = text.element("i8", a, text.times(batch, step)), self._instruction.flips
        if self._of_rows:
            self._copy_rows(here, product.m, down, self._words_of_a, flips)
        else:
            self._interleave(here, along, down, product.m, self._words_of_a, flips)
        return self._words_of_a

    def _columns_of_b(self, b: str, batch: str, at: str) -> tuple[str, int]:
        text, (step, down, along), block = self._text, self._bytes_of.b, self._block
        here = text.element("i8", b, text.sum(text.times(batch, step), text.times(at, along)))
        words = self._product.k
        if down == 1 and words > 1 and self._instruction.factors == 4 and along % 4 == 0:
            panel = self._transposed(here, 1, along // 4)
        elif down == 1 and words > 1:
            if not self._words_of_b:
                self._words_of_b = text.alloca(f"[{block.columns * words} x i32]", 64)
            self._copy_rows(here, block.columns, along, self._words_of_b, False)
            panel = self._transposed(self._words_of_b, 1, words)
        else:
            if not self._panel:
                self._panel = text.alloca(f"[{words * block.columns} x i32]", 64)
            panel = self._panel
            self._interleave(here, down, along, block.columns, panel, False)
        if self._sums:
            self._sum_columns(panel)
        return panel, block.columns

    def _initial(self, total: str, vector: int) -> str:
        if not self._sums:
            return total
        above = self._load(self._vector, self._sums, vector * self._block.lanes)
        return self._text.value(f"sub {self._vector} {total}, {above}")

    def _multiply_add(self, left: str, right: str, total: str) -> str:
        text, vector, instruction = self._text, self._vector, self._instruction
        if instruction is _WIDENED:
            return super()._multiply_add(left, right, total)
        bits = instruction.bits
        narrow = f"<{self._block.lanes * instruction.factors} x i{bits}>"
        if instruction.adds:
            takes = narrow if "neon" in instruction.name else vector
            factors = [(takes, self._cast(factor, vector, takes)) for factor in (left, right)]
            return text.call(instruction.name, vector, [(vector, total), *factors])
        factors = [(narrow, self._cast(factor, vector, narrow)) for factor in (left, right)]
        products = text.call(instruction.name, vector, factors)
        return text.value(f"add {vector} {products}, {total}")

    # -- how factors become words -------------------------------------------------------------------------------------
    def _cast(self, value: str, source: str, target: str) -> str:
        return value if source == target else self._text.value(f"bitcast {source} {value} to {target}")

    def _factors(self, pointer: str, count: int, flips: bool) -> str:
        """So many neighbours in memory, each as it is in a word."""
        text, type_ = self._text, f"<{count} x i8>"
        value = text.value(f"load {type_}, ptr {pointer}, align 1")
        if flips:
            value = text.value(f"xor {type_} {value}, splat (i8 -128)")
        bits = self._instruction.bits
        return value if bits == 8 else text.value(f"sext {type_} {value} to <{count} x i{bits}>")

    def _copy_rows(self, source: str, rows: int, down: int, target: str, flips: bool) -> None:
        """Puts rows whose elements are neighbours along K, ``down`` elements apart, into words, one behind the
        other."""
        text, length, bits = self._text, self._bytes_of.k, self._instruction.bits
        if down == length:
            rows, length = 1, rows * length
        count = min(_COPIED, length)

        def row(number: str, _: list[str]) -> None:
            here = text.element("i8", source, text.times(number, down))
            there = text.element(f"i{bits}", target, text.times(number, length))

            def part(at: str, _: list[str]) -> None:
                value = self._factors(text.element("i8", here, at), count, flips)
                text.do(f"store <{count} x i{bits}> {value}, ptr {text.element(f'i{bits}', there, at)}, align 4")

            text.loop(length, count, part)

        text.loop(rows, 1, row)

    def _interleave(self, source: str, down: int, along: int, columns: int, target: str, flips: bool) -> None:
        """Puts ``columns`` columns of K elements, with these strides, into words: those of a group of K are one behind
        the other."""
        text, factors, bits = self._text, self._instruction.factors, self._instruction.bits
        count = min(_COPIED, columns) if along == 1 else 1

        def group(word: str, _: list[str]) -> None:
            here = text.element("i8", source, text.times(word, down * factors))
            there = text.element("i32", target, text.times(word, columns))

            def part(at: str, _: list[str]) -> None:
                start = text.element("i8", here, text.times(at, along))
                rows = [
                    self._factors(text.element("i8", start, str(number * down)), count, flips)
                    for number in range(factors)
                ]
                value = self._interleaved(rows, count, bits)
                text.do(f"store <{count} x i32> {value}, ptr {text.element('i32', there, at)}, align 4")

            text.loop(columns, count, part)

        text.loop(self._product.k, 1, group)

    def _interleaved(self, rows: Sequence[str], count: int, bits: int) -> str:
        """Vectors of words from rows of factors: the first of all rows, the second of all, and so on."""
        if len(rows) == 1:
            return rows[0]
        if bits == 8 and len(rows) == 4 and count % _LANES == 0:
            vectors = [self._interleaved_vector(rows, count, start) for start in range(0, count, _LANES)]
            return self._joined(vectors, "i32", _LANES)
        places = [place + row for place in range(count) for row in (0, count)]
        type_, wide = f"<{count} x i{bits}>", f"<{2 * count} x i{bits}>"
        pairs = zip(rows[::2], rows[1::2], strict=True)
        both = [self._cast(self._shuffled(type_, *pair, places), wide, f"<{count} x i{2 * bits}>") for pair in pairs]
        return self._interleaved(both, count, 2 * bits)

    def _interleaved_vector(self, rows: Sequence[str], count: int, start: int) -> str:
        """A vector of words from 16 columns of four rows: words change places, then bytes. That is 8 shuffles
        for 64 columns, and 12 that a processor does as it loads; by pairs there are 36."""
        words, factors, columns = f"<{_LANES} x i32>", f"<{4 * _LANES} x i8>", range(start, start + _LANES)
        parts = [self._shuffled(f"<{count} x i8>", row, "poison", columns) for row in rows]
        value = self._cast(self._joined(parts, "i8", _LANES), factors, words)
        value = self._shuffled(words, value, "poison", [4 * (at % 4) + at // 4 for at in range(_LANES)])
        places = [16 * (at // 16) + 4 * (at % 4) + at // 4 % 4 for at in range(4 * _LANES)]
        return self._cast(self._shuffled(factors, self._cast(value, words, factors), "poison", places), factors, words)

    def _joined(self, parts: list[str], type_: str, size: int) -> str:
        """Vectors of ``size`` elements, one behind the other."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._shuffled(f"<{size} x {type_}>", *pair, range(2 * size)) for pair in pairs]
            size *= 2
        return parts[0]

    def _shuffled(self, type_: str, one: str, other: str, places: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {place}" for place in places)
        return self._text.value(f"shufflevector {type_} {one}, {type_} {other}, <{len(places)} x i32> <{mask}>")

    def _sum_columns(self, panel: str) -> None:
        """Fills the sums: 128 times those of the columns that are at ``panel``."""
        text, block = self._text, self._block
        numbers = range(0, block.columns, block.lanes)

        def row(k: str, totals: list[str]) -> list[str]:
            words = text.element("i32", panel, text.times(k, block.columns))
            factors = [self._load(self._vector, words, number) for number in numbers]
            return [self._multiply_add(BIAS, *each) for each in zip(factors, totals, strict=True)]

        totals = text.loop(self._product.k, 1, row, [(self._vector, "zeroinitializer")] * block.vectors)
        for number, total in zip(numbers, totals, strict=True):
            text.do(f"store {self._vector} {total}, ptr {text.element('i32', self._sums, str(number))}, align 4")
