"""Products of tiles of signed integers of 8 bits (abi/tile_products.py): processors add several of them at once.

K is cut in groups of as many factors as an instruction takes, each a word of 32 bits: the micro-kernel is that of words
(micro_kernels.py), with this instruction in place of a multiplication and an addition. A word of A holds neighbours of
a row, a word of B neighbours of a column. Where they are not neighbours in memory, rows are interleaved. Columns of B
that are contiguous are transposed as for other elements, word by word.

VPDPBUSD takes one factor of four as unsigned. A is copied with 128 added to each element, which flips its sign bit, and
128 times the sum of each column of B is taken from the results. Sums wrap around, so this is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..abi.tile_products import TileProduct
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock, TileKernel, block_of

#: Bytes that are copied at once.
_COPIED = 64


@dataclass(frozen=True)
class ByteInstruction:
    """What multiplies and adds words. ``factors``: of a word; ``name``: LLVM's, with the number of a vector's bits;
    ``adds``: whether it adds to sums; ``flips``: whether the sign bits of A are flipped; ``feature``: whether it is one
    of Host.feature's."""

    factors: int
    name: str = ""
    adds: bool = True
    flips: bool = False
    feature: bool = False

    @property
    def bits(self) -> int:
        """The bits that a factor has in a word."""
        return 32 // self.factors

    def attribute(self, host: Host) -> str:
        """What a function has in its head that uses it."""
        return f' "target-features"="+{host.feature}"' if self.feature else ""


#: Feature → LLVM's instruction.
_FEATURES = {
    "avx512vnni": ByteInstruction(4, "llvm.x86.avx512.vpdpbusd.{bits}", flips=True, feature=True),
    "avxvnni": ByteInstruction(4, "llvm.x86.avx512.vpdpbusd.{bits}", flips=True, feature=True),
    "dotprod": ByteInstruction(4, "llvm.aarch64.neon.sdot.v4i32.v16i8", feature=True),
}
#: Bits of a vector → the instruction of x86 that multiplies integers of 16 bits and adds two products each.
_PAIRS = {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}
#: Factors are widened, and multiplied as words.
_WIDENED = ByteInstruction(1)


def instruction_for(product: TileProduct, block: RegisterBlock, host: Host) -> ByteInstruction:
    """The best one for a product whose C has contiguous rows."""
    bits = 32 * block.lanes
    narrow = _FEATURES.get(host.feature)
    if narrow is not None and product.k >= narrow.factors and 128 <= bits <= host.vector_bits:
        return replace(narrow, name=narrow.name.format(bits=bits))
    if host.arch == "x86_64" and product.k >= 2 and bits in _PAIRS:
        return ByteInstruction(2, _PAIRS[bits], adds=False)
    return _WIDENED


def write_bytes(text: FunctionText, product: TileProduct, host: Host, a: str, b: str) -> str:
    """A Writer of micro_kernels.define(), for products of bytes."""
    block = block_of(product, host)
    instruction = instruction_for(product, block, host)
    ByteKernel(text, product, block, instruction).emit(a, b)
    return instruction.attribute(host)


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
            return text.call(vector, instruction.name, [(vector, total), *factors])
        factors = [(narrow, self._cast(factor, vector, narrow)) for factor in (left, right)]
        products = text.call(vector, instruction.name, factors)
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
        text = self._text
        if len(rows) == 1:
            return rows[0]
        pairs = []
        mask = ", ".join(f"i32 {place + row}" for place in range(count) for row in (0, count))
        type_, wide = f"<{count} x i{bits}>", f"<{2 * count} x i{bits}>"
        for one, other in zip(rows[::2], rows[1::2], strict=True):
            both = text.value(f"shufflevector {type_} {one}, {type_} {other}, <{2 * count} x i32> <{mask}>")
            pairs.append(self._cast(both, wide, f"<{count} x i{2 * bits}>"))
        return self._interleaved(pairs, count, 2 * bits)

    def _sum_columns(self, panel: str) -> None:
        """Fills the sums: 128 times those of the columns that are at ``panel``."""
        carried = [(self._vector, "zeroinitializer")] * self._block.vectors
        loop = self._text.loop(self._product.k, 1, lambda k, totals: self._added(panel, k, totals), carried)
        self._store_sums(loop)

    def _added(self, panel: str, k: str, totals: list[str]) -> list[str]:
        """The sums with those of the words of row ``k`` of the panel."""
        text, block = self._text, self._block
        row = text.element("i32", panel, text.times(k, block.columns))
        ones = "splat (i32 -2139062144)"  # four times 128, as bytes
        return [
            self._multiply_add(ones, self._load(self._vector, row, number * block.lanes), total)
            for number, total in enumerate(totals)
        ]

    def _store_sums(self, totals: list[str]) -> None:
        for number, total in enumerate(totals):
            place = self._text.element("i32", self._sums, str(number * self._block.lanes))
            self._text.do(f"store {self._vector} {total}, ptr {place}, align 4")
