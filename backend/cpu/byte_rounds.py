"""Products of the rounds of a loop whose factors are signed integers of 8 bits, in device memory.

For a number of K, the rows of A are copied into words once, unless tiles are read in place, and the columns of B that a
block of C has are interleaved, or transposed where they are contiguous themselves (byte_kernels.py). B has zeros behind
the last K, so the words there may hold anything of A.
"""

from __future__ import annotations

from contextlib import nullcontext

from ..abi.tile_products import FACTORS, RoundsProduct, TileProduct
from .byte_kernels import ByteInstruction, ByteKernel, chosen
from .byte_tiles import Place
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock
from .round_lines import FactorLines

#: Words of a row that are multiplied at a time. 64 rows of A take 32 KiB, and as many columns of B.
WORDS = 128
#: Bytes that are copied at once, and words in the body of the loop over them.
_COPIED, _STEPS = 64, 4


def byte_rounds(text: FunctionText, product: RoundsProduct, host: Host) -> ByteInstruction:
    """Writes everything between the head of the function of a product and its return; what it multiplies with."""
    rows, nowhere = (0, product.row, 1), (0, 0, 0)
    whole = TileProduct("i32", 1, product.m, product.n, 4 * WORDS, True, rows, rows, nowhere)
    block, instruction = chosen(whole, host)
    ByteRounds(text, product, block, instruction).emit_rounds()
    return instruction


class ByteRounds(ByteKernel):
    """The text of one product, for factors of other types (pair_rounds.py), too."""

    #: Words that are multiplied at a time: B has zeros for those behind the last.
    _together = _STEPS

    def __init__(
        self, text: FunctionText, product: RoundsProduct, block: RegisterBlock, instruction: ByteInstruction
    ) -> None:
        length = WORDS * instruction.factors
        a, b, c = (0, length, 1), (0, block.columns, 1), (0, product.row, 1)
        part = TileProduct("i32", 1, product.m, product.n, length, True, c, a, b, factor="i8")
        super().__init__(text, part, block, instruction)
        self._rounds, self._length = product, length
        #: Bytes of a factor in memory, and LLVM's type of its bits.
        self._size, self._bits = FACTORS[product.a[0]], f"i{8 * FACTORS[product.a[0]]}"
        self._zeros = text.alloca(f"[{length + block.columns} x {self._bits}]", 64)
        self._lines = FactorLines(text, product, block.lanes, self._zeros)
        self._panel = text.alloca(f"[{WORDS * block.columns} x i32]", 64)
        self._words_of_a = text.alloca(f"[{product.m * WORDS} x i32]", 64)
        self._words_of_b = text.alloca(f"[{block.columns * WORDS} x i32]", 64) if product.turned else ""

    def emit_rounds(self) -> None:
        text, product, block = self._text, self._rounds, self._block
        text.fill(self._zeros, (self._length + block.columns) * self._size)
        if self._together > 1 and not self._tiles:
            text.fill(self._words_of_a, product.m * WORDS * 4)
        numbers = self._lines.numbers
        steps = self._tiles.words if self._tiles else self._together
        end = text.value(f"udiv i64 {text.add(numbers['needed'], block.rows - 1)}, {block.rows}")
        whole = product.m // block.rows * block.rows
        end = text.intrinsic("umin", "i64", text.times(end, block.rows), str(whole))

        def part(start: str, _: list[str]) -> None:
            rest = text.value(f"sub i64 {numbers['steps']}, {start}")
            count = text.intrinsic("umin", "i64", rest, str(self._length))
            # The words that are multiplied, a multiple of those of a step.
            together = steps * self._instruction.factors
            words = text.times(text.value(f"udiv i64 {text.add(count, together - 1)}, {together}"), steps)
            left = self._words_of_rows(start, count, apart)

            def columns(column: str, _: list[str]) -> None:
                self._pack(column, start, count, words)
                text.counted(end, block.rows, lambda row, _: self._multiply(row, column, block.rows, left, words))
                if whole < product.m:
                    self._multiply(str(whole), column, product.m - whole, left, words)

            text.loop(product.n, block.columns, columns)

        apart = self._lines.steady_rows() if self._tiles else ("", "")
        with self._tiles or nullcontext():
            text.counted(numbers["steps"], self._length, part)

    def _words_of_rows(self, start: str, count: str, apart: tuple[str, str]) -> Place:
        """Where the words of ``count`` K of the rows of A are. They are copied, unless tiles can be read in place."""
        text, product = self._text, self._rounds
        copied, step = self._words_of_a, str(4 * WORDS)

        def copy() -> None:
            text.loop(product.m, 1, lambda row, _: self._copy_row_of_a(row, start, count))

        if not self._tiles:
            copy()
            return copied, step
        steady, distance = apart
        rest = text.value(f"urem i64 {count}, {4 * self._tiles.words}")
        here = text.value(f"and i1 {steady}, {text.value(f'icmp eq i64 {rest}, 0')}")
        text.either(here, lambda: None, copy)
        first = text.element("i8", self._lines.address("%a", 1, "0"), start)
        return (
            text.value(f"select i1 {here}, ptr {first}, ptr {copied}"),
            text.value(f"select i1 {here}, i64 {distance}, i64 {step}"),
        )

    def _copy_row_of_a(self, row: str, start: str, count: str) -> None:
        target = self._text.element("i32", self._words_of_a, self._text.times(row, WORDS))
        source = self._lines.line("%a", row, self._text.times(start, self._size))
        self._copy(source, target, count, self._instruction.flips)

    def _copy(self, source: str, target: str, count: str, flips: bool) -> None:
        """``count`` neighbours, as they are in words."""
        text, bits = self._text, self._instruction.bits

        def copy(length: int, at: str) -> None:
            value = self._factors(text.element("i8", source, at), length, flips)
            text.do(f"store <{length} x i{bits}> {value}, ptr {text.element(f'i{bits}', target, at)}, align 1")

        vectors = text.value(f"and i64 {count}, {-_COPIED}")
        text.counted(vectors, _COPIED, lambda at, _: copy(_COPIED, at))
        rest = text.value(f"sub i64 {count}, {vectors}")
        text.counted(rest, 1, lambda at, _: copy(1, text.sum(at, vectors)))

    # -- B ------------------------------------------------------------------------------------------------------------
    def _pack(self, column: str, start: str, count: str, words: str) -> None:
        """Fills the panel with ``count`` K of the columns from ``column`` on, and zeros up to ``words`` words."""
        text, down = self._text, self._lines.numbers["down"]
        behind = text.value(f"mul i64 {start}, {down}")
        together = self._lines.are_together(column, self._block.columns)
        if together is None:
            self._pack_apart(column, behind, count)
        else:
            text.either(
                together,
                lambda: self._pack_together(column, behind, count, words),
                lambda: self._pack_apart(column, behind, count),
            )
        if self._sums:
            self._sum(words)

    def _pack_together(self, column: str, behind: str, count: str, words: str) -> None:
        """Packs columns whose elements are neighbours in memory."""
        text, block, down = self._text, self._block, self._lines.numbers["down"]
        first = text.element("i8", self._lines.address("%b", 1, column), behind)
        factors, bits = self._instruction.factors, self._instruction.bits

        def group(word: str, _: list[str]) -> None:
            starts = []
            for number in range(factors):
                k = text.add(text.times(word, factors), number)
                there = text.value(f"icmp ult i64 {k}, {count}")
                place = text.element("i8", first, text.value(f"mul i64 {k}, {down}"))
                starts.append(text.value(f"select i1 {there}, ptr {place}, ptr {self._zeros}"))
            value = self._interleaved(self._ordered(starts), block.columns, bits)
            place = text.element("i32", self._panel, text.times(word, block.columns))
            text.do(f"store <{block.columns} x i32> {value}, ptr {place}, align 4")

        text.counted(words, 1, group)

    def _ordered(self, places: list[str]) -> list[str]:
        """The factors of rows of B, in the order that they have in words."""
        return [self._factors(place, self._block.columns, False) for place in places]

    def _within(self, k: str) -> str:
        """The place of a factor in its word."""
        return self._text.value(f"urem i64 {k}, {self._instruction.factors}")

    def _pack_apart(self, column: str, behind: str, count: str) -> None:
        """Packs columns each of which has an address of its own."""
        text, block, factors = self._text, self._block, self._instruction.factors
        bits, down = self._instruction.bits, self._lines.numbers["down"]
        target = self._words_of_b or self._panel
        text.fill(target, block.columns * WORDS * 4)

        def each(number: str, _: list[str]) -> None:
            at = text.sum(column, number)
            if self._words_of_b:
                there = text.element("i32", target, text.times(number, WORDS))
                self._copy(self._lines.line("%b", at, behind), there, count, False)
                return

            def element(k: str, _: list[str]) -> None:
                further = text.sum(behind, text.value(f"mul i64 {k}, {down}"))
                type_ = self._bits
                value = text.value(f"load {type_}, ptr {self._lines.line('%b', at, further)}, align 1")
                wide = value if type_ == f"i{bits}" else text.value(f"sext {type_} {value} to i{bits}")
                word = text.value(f"udiv i64 {k}, {factors}")
                place = text.sum(text.times(word, block.columns), number)
                place = text.sum(text.times(place, factors), self._within(k))
                text.do(f"store i{bits} {wide}, ptr {text.element(f'i{bits}', target, place)}, align 1")

            text.counted(count, 1, element)

        text.loop(block.columns, 1, each)
        if self._words_of_b:
            self._transposed(self._words_of_b, 1, WORDS)

    def _sum(self, words: str) -> None:
        carried = [(self._vector, "zeroinitializer")] * self._block.vectors
        self._store_sums(self._text.counted(words, 1, lambda k, totals: self._added(self._panel, k, totals), carried))

    # -- C ------------------------------------------------------------------------------------------------------------
    def _multiply(self, row: str, column: str, rows: int, a: Place, words: str) -> None:
        """The block of C of ``rows`` rows that begins at (``row``, ``column``); ``a``: where rows of A are."""
        text, block, vector, step = self._text, self._block, self._vector, self._rounds.row
        c = text.element("i32", "%c", text.sum(text.times(row, step), column))
        if self._tiles:
            left = text.element("i8", a[0], text.value(f"mul i64 {row}, {a[1]}"))
            panel = self._panel, str(4 * block.columns)
            self._tiles.multiply(rows, words, (c, str(4 * step)), (left, a[1]), panel, adds=True)
            return
        places = [(i, j) for i in range(rows) for j in range(block.vectors)]
        left = text.element("i32", a[0], text.times(row, WORDS))
        offsets = [i * step + j * block.lanes for i, j in places]
        loaded = [self._load(vector, c, offset) for offset in offsets]
        initial = [self._initial(total, j) for total, (_, j) in zip(loaded, places, strict=True)]

        def body(k: str, totals: list[str]) -> list[str]:
            beside = text.element("i32", left, k)
            below = text.element("i32", self._panel, text.times(k, block.columns))
            for number in range(_STEPS):
                totals = self._step(totals, places, number, beside, below, block.columns)
            return totals

        totals = text.counted(words, _STEPS, body, [(vector, value) for value in initial])
        for offset, total in zip(offsets, totals, strict=True):
            text.do(f"store {vector} {total}, ptr {text.element('i32', c, str(offset))}, align 4")
