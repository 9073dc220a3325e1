"""Products of the rounds of a loop whose factors are signed integers of 8 bits, in device memory.

For a number of K, the columns of B that a block of C has are interleaved, or transposed where they are contiguous
themselves (byte_kernels.py). Rows of A are words as they are in memory where an instruction takes four factors and K
fills the words of a step; else, and for tiles that are not equally far apart, they are copied into words once. B has
zeros behind the last K, so the words there may hold anything of A.

Where columns of B are neighbours, the rows of C that are left if all other blocks are whole are multiplied while B is
packed: they are few, so that registers are left for packing. For VPDPBUSD the sign bits of B are flipped, not those of
A (byte_kernels.py): 128 times the sum of each row of A is taken from the results when they are stored, so that products
do not wait for it. Meanwhile the rows of A that the next block takes are brought nearer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from ..abi.tile_products import FACTORS, RoundsProduct, TileProduct
from .byte_kernels import BIAS, ByteInstruction, ByteKernel, chosen
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock
from .round_lines import FactorLines
from .round_prefetches import Prefetches

#: Words of a row that are multiplied at a time. 64 rows of A take 32 KiB, and as many columns of B.
WORDS = 128
#: Bytes that are copied at once, and words in the body of the loop over them.
_COPIED, _STEPS = 64, 4
#: Writes the instructions that pack a word of each column; its vectors.
Packed = Callable[[str], list[str]]


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
        #: Columns of B that are contiguous, or rows of columns of which some are not there.
        self._words_of_b = text.alloca(f"[{block.columns * WORDS} x i32]", 64)
        self._ask = Prefetches(text, product, block, length, _STEPS * instruction.factors)
        #: Whether the first block of rows is multiplied while B is packed.
        self._meanwhile = self._tiles is None
        #: Rows of the first block: those that are left if the others are whole.
        self._first = product.m % block.rows or block.rows
        #: Whether rows of A are read where they are, an i1; from which K on; of tiles, where those are that are read.
        self._in_place, self._start, self._left = "false", "0", (self._words_of_a, str(4 * WORDS))

    def emit_rounds(self) -> None:
        text, product, block = self._text, self._rounds, self._block
        text.fill(self._zeros, (self._length + block.columns) * self._size)
        numbers = self._lines.numbers
        steps = self._tiles.words if self._tiles else self._together
        # The rows of blocks behind the first that are needed.
        rest = text.intrinsic("usub.sat", "i64", numbers["needed"], str(self._first))
        blocks = text.value(f"udiv i64 {text.add(rest, block.rows - 1)}, {block.rows}")
        end = text.intrinsic("umin", "i64", text.times(blocks, block.rows), str(product.m - self._first))

        def part(start: str, _: list[str]) -> None:
            rest = text.value(f"sub i64 {numbers['steps']}, {start}")
            count = text.intrinsic("umin", "i64", rest, str(self._length))
            # The words that are multiplied, a multiple of those of a step.
            together = steps * self._instruction.factors
            words = text.times(text.value(f"udiv i64 {text.add(count, together - 1)}, {together}"), steps)
            self._prepare_rows(start, count, apart)

            def columns(column: str, _: list[str]) -> None:
                self._pack(column, start, count, words)
                if not self._meanwhile:
                    self._multiply("0", column, self._first, words)

                def rows(number: str, _: list[str]) -> None:
                    self._multiply(text.add(number, self._first), column, block.rows, words)

                text.counted(end, block.rows, rows)

            text.loop(product.n, block.columns, columns)

        apart = self._lines.steady_rows() if self._tiles else ("", "")
        with self._tiles or nullcontext():
            text.counted(numbers["steps"], self._length, part)

    def _prepare_rows(self, start: str, count: str, apart: tuple[str, str]) -> None:
        """Copies ``count`` K of the rows of A, unless they can be read in place; ``apart``: whether they are equally
        far apart, as tiles need, and how many bytes."""
        text, product, factors = self._text, self._product, self._instruction.factors

        def copy() -> None:
            text.loop(product.m, 1, lambda row, _: self._copy_row_of_a(row, start, count))

        self._start = start
        if self._instruction.bits != 8:
            copy()
            return
        rest = text.value(f"urem i64 {count}, {factors * (self._tiles.words if self._tiles else self._together)}")
        here = text.value(f"icmp eq i64 {rest}, 0")
        self._in_place = text.value(f"and i1 {apart[0]}, {here}") if self._tiles else here
        text.either(self._in_place, lambda: None, copy)
        if self._tiles:
            first = text.element("i8", self._lines.address("%a", 1, "0"), start)
            self._left = (
                text.value(f"select i1 {self._in_place}, ptr {first}, ptr {self._words_of_a}"),
                text.value(f"select i1 {self._in_place}, i64 {apart[1]}, i64 {4 * WORDS}"),
            )

    def _copy_row_of_a(self, row: str, start: str, count: str) -> None:
        target = self._text.element("i32", self._words_of_a, self._text.times(row, WORDS))
        source = self._lines.line("%a", row, self._text.times(start, self._size))
        self._copy(source, target, count, False)

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

        def apart() -> None:
            self._pack_apart(column, behind, count)
            if self._meanwhile:
                self._multiply("0", column, self._first, words)

        neighbours = self._lines.are_neighbours(column, self._block.columns)
        if neighbours is None:
            apart()
        else:
            text.either(neighbours, lambda: self._pack_together(column, behind, count, words), apart)

    def _pack_together(self, column: str, behind: str, count: str, words: str) -> None:
        """Packs columns whose elements are neighbours in memory. Where some are not there, rows of the others are
        copied before, beside zeros."""
        text, block, copied, numbers = self._text, self._block, self._words_of_b, self._lines.numbers
        there = text.intrinsic("usub.sat", "i64", numbers["columns"], column)
        here = text.element("i8", self._lines.address("%b", 1, column), behind)
        factors, bits, width = self._instruction.factors, self._instruction.bits, block.columns * self._size

        def copy_row(k: str, _: list[str]) -> None:
            source = text.element("i8", here, text.value(f"mul i64 {k}, {numbers['down']}"))
            target, length = text.element("i8", copied, text.times(k, width)), text.times(there, self._size)
            arguments = [("ptr", target), ("ptr", source), ("i64", length), ("i1", "false")]
            text.call("llvm.memcpy.p0.p0.i64", "void", arguments)

        def copy() -> None:
            text.fill(copied, width * self._length)
            text.counted(count, 1, copy_row)

        whole = text.value(f"icmp uge i64 {there}, {block.columns}")
        text.either(whole, lambda: None, copy)
        first = text.value(f"select i1 {whole}, ptr {here}, ptr {copied}")
        down = text.value(f"select i1 {whole}, i64 {numbers['down']}, i64 {width}")

        def group(word: str) -> list[str]:
            starts = []
            for number in range(factors):
                k = text.add(text.times(word, factors), number)
                there = text.value(f"icmp ult i64 {k}, {count}")
                place = text.element("i8", first, text.value(f"mul i64 {k}, {down}"))
                starts.append(text.value(f"select i1 {there}, ptr {place}, ptr {self._zeros}"))
            value, type_ = self._interleaved(self._ordered(starts), block.columns, bits), f"<{block.columns} x i32>"
            if self._instruction.flips:
                value = text.value(f"xor {type_} {value}, {BIAS}")
            place = text.element("i32", self._panel, text.times(word, block.columns))
            text.do(f"store {type_} {value}, ptr {place}, align 4")
            return [
                self._shuffled(type_, value, "poison", range(at, at + block.lanes))
                for at in range(0, block.columns, block.lanes)
            ]

        def pack(word: str, _: list[str]) -> None:
            group(word)

        if self._meanwhile:
            self._multiply("0", column, self._first, words, group)
        else:
            text.counted(words, 1, pack)

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
        turned, flips = self._rounds.turned, self._instruction.flips
        target = self._words_of_b if turned else self._panel
        text.fill(target, block.columns * WORDS * 4, 128 if flips else 0)

        def each(number: str, _: list[str]) -> None:
            at = text.sum(column, number)
            if turned:
                there = text.element("i32", target, text.times(number, WORDS))
                self._copy(self._lines.line("%b", at, behind), there, count, flips)
                return

            def element(k: str, _: list[str]) -> None:
                further = text.sum(behind, text.value(f"mul i64 {k}, {down}"))
                type_ = self._bits
                value = text.value(f"load {type_}, ptr {self._lines.line('%b', at, further)}, align 1")
                if flips:
                    value = text.value(f"xor i8 {value}, -128")
                wide = value if type_ == f"i{bits}" else text.value(f"sext {type_} {value} to i{bits}")
                word = text.value(f"udiv i64 {k}, {factors}")
                place = text.sum(text.times(word, block.columns), number)
                place = text.sum(text.times(place, factors), self._within(k))
                text.do(f"store i{bits} {wide}, ptr {text.element(f'i{bits}', target, place)}, align 1")

            text.counted(count, 1, element)

        text.loop(block.columns, 1, each)
        if turned:
            self._transposed(self._words_of_b, 1, WORDS)

    # -- C ------------------------------------------------------------------------------------------------------------
    def _multiply(self, row: str, column: str, rows: int, words: str, packed: Packed | None = None) -> None:
        """The block of C of ``rows`` rows that begins at (``row``, ``column``); ``packed``: gives the vectors of a word
        of B, where they are not in the panel yet."""
        text, block, vector, step = self._text, self._block, self._vector, self._rounds.row
        c = text.element("i32", "%c", text.sum(text.times(row, step), column))
        if self._tiles:
            left = text.element("i8", self._left[0], text.value(f"mul i64 {row}, {self._left[1]}"))
            panel = self._panel, str(4 * block.columns)
            self._tiles.multiply(rows, words, (c, str(4 * step)), (left, self._left[1]), panel, adds=True)
            return
        places = [(i, j) for i in range(rows) for j in range(block.vectors)]
        pointers = [text.element("i32", c, str(i * step + j * block.lanes)) for i, j in places]
        lines = [self._line_of_a(text.add(row, i)) for i in range(rows)]
        sums = self._sums_of_rows(lines, words) if self._instruction.flips else []
        following = self._ask.next_block(row, rows, self._start)
        factors, steps = self._instruction.factors, 1 if packed else _STEPS

        def body(k: str, totals: list[str]) -> list[str]:
            if not packed:
                self._ask.rows_of_a(following, text.times(k, factors), factors * steps)
            for number in range(steps):
                word = text.add(k, number)
                if packed:
                    below = packed(word)
                else:
                    start = text.element("i32", self._panel, text.times(word, block.columns))
                    below = [self._load(vector, start, j * block.lanes) for j in range(block.vectors)]
                beside = [text.value(f"load i32, ptr {text.element('i32', line, word)}, align 1") for line in lines]
                beside = [self._spread(one) for one in beside]
                products = [(below[j], beside[i]) for i, j in places]  # what is unsigned is first
                totals = [self._multiply_add(*each, total) for each, total in zip(products, totals, strict=True)]
            return totals

        initial = [(vector, text.value(f"load {vector}, ptr {pointer}, align 4")) for pointer in pointers]
        totals = text.counted(words, steps, body, initial)
        above = [self._spread(total) for total in sums]
        for pointer, total, (i, _) in zip(pointers, totals, places, strict=True):
            value = text.value(f"sub {vector} {total}, {above[i]}") if above else total
            text.do(f"store {vector} {value}, ptr {pointer}, align 4")

    def _line_of_a(self, row: str) -> str:
        """Where the words of a row begin that are multiplied."""
        copied = self._text.element("i32", self._words_of_a, self._text.times(row, WORDS))
        if self._in_place == "false":
            return copied
        place = self._lines.line("%a", row, self._start)
        return self._text.value(f"select i1 {self._in_place}, ptr {place}, ptr {copied}")

    def _sums_of_rows(self, lines: list[str], words: str) -> list[str]:
        """128 times the sum of the factors of each line."""
        text, vector, lanes = self._text, self._vector, self._block.lanes
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))

        def body(k: str, totals: list[str]) -> list[str]:
            left = text.spread(vector, text.value(f"trunc i64 {text.value(f'sub i64 {words}, {k}')} to i32"))
            mask = f"<{lanes} x i1>", text.value(f"icmp slt {vector} <{numbers}>, {left}")
            found = []
            for line, total in zip(lines, totals, strict=True):
                arguments = [("ptr", f"align 1 {text.element('i32', line, k)}"), mask, (vector, "zeroinitializer")]
                value = text.call(f"llvm.masked.load.v{lanes}i32.p0", vector, arguments)
                found.append(self._multiply_add(BIAS, value, total))
            return found

        totals = text.counted(words, lanes, body, [(vector, "zeroinitializer")] * len(lines))
        return [text.call(f"llvm.vector.reduce.add.v{lanes}i32", "i32", [(vector, total)]) for total in totals]
