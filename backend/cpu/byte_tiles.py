"""Products of tiles of signed integers of 8 bits by AMX: a block of C is up to two by two tiles of registers.

A tile has up to 16 rows of 64 bytes. TDPBSSD adds the products of a tile of A, rows of words of four factors, and of a
tile of B, whose rows have a word of each column, to one of C. Sums wrap around, so this is exact. The shape of tiles is
a thread's own state: a function sets it at its start, and leaves the tiles released, as other users of them and the
system expect.
"""

from __future__ import annotations

from ..abi.tile_products import TileProduct
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock

#: Rows of a tile, and words of one.
_ROWS = _WORDS = 16
#: Tiles of C in a block: beside each other in a column, and in registers in a row. A block has more columns: those that
#: are packed at a time.
_DOWN, _ACROSS, _PACKED = 2, 2, 4
#: The numbers of the first tiles of A and of B; those of C are before.
_A, _B = _DOWN * _ACROSS, _DOWN * _ACROSS + _DOWN
#: Rows of C, words of K, and multiplications from which on tiles are worth it. The shape of tiles takes 80 ns to set
#: and to release: products of 32³, 8×64×64 and 16×64×32 take what they take by VNNI, 64³ 0.4 of it.
_LEAST_ROWS, _LEAST_WORDS, _LEAST = 4, 4, 1 << 16

#: Where a matrix begins, and the bytes from one of its rows to the next, an i64.
Place = tuple[str, str]


def suits(product: TileProduct) -> bool:
    """Whether tiles multiply this, of rows of C that are contiguous: rows of A have to be, too."""
    large = product.batches * product.m * product.n * product.k >= _LEAST and product.a[2] == 1
    return large and product.m >= _LEAST_ROWS and product.n >= _WORDS and product.k >= 4 * _LEAST_WORDS


def block_of(product: TileProduct) -> RegisterBlock:
    """The blocks that C is cut in."""
    return RegisterBlock(min(_DOWN * _ROWS, product.m), min(_PACKED, product.n // _WORDS), _WORDS)


class TileRegisters:
    """Multiplies blocks, within a ``with``, in a function of products of ``words`` words, or of a multiple of them."""

    def __init__(self, text: FunctionText, block: RegisterBlock, words: int) -> None:
        self._text, self._block = text, block
        self._rows, self.words = min(_ROWS, block.rows), min(_WORDS, words)

    def __enter__(self) -> None:
        numbers = [(self._rows, _WORDS)] * _A + [(self._rows, self.words)] * _DOWN + [(self.words, _WORDS)] * _ACROSS
        # The palette, where to resume, and reserved bytes; then the bytes of rows, in 16 bits each, and how many rows.
        widths = [byte for _, words in numbers for byte in (4 * words, 0)]
        numbers_of_rows = [rows for rows, _ in numbers]
        shape = [1, *[0] * 15, *widths, *[0] * 16, *numbers_of_rows, *[0] * 8]
        place = self._text.alloca("<64 x i8>", 64)
        self._text.do(f"store <64 x i8> <{', '.join(f'i8 {byte}' for byte in shape)}>, ptr {place}, align 64")
        self._do("ldtilecfg", f"ptr {place}")

    def __exit__(self, *_: object) -> None:
        self._do("tilerelease")

    def _do(self, name: str, *arguments: str) -> None:
        types = ", ".join(argument.split()[0] for argument in arguments)
        self._text.declarations.add(f"declare void @llvm.x86.{name}({types})")
        self._text.do(f"call void @llvm.x86.{name}({', '.join(arguments)})")

    def _move(self, name: str, tile: int, place: Place, row: str, column: str) -> None:
        """Loads or stores the tile that begins at a row and a word of a matrix."""
        text, (start, step) = self._text, place
        down = text.times(row, int(step)) if step.isdigit() else text.value(f"mul i64 {row}, {step}")
        at = text.element("i8", start, text.sum(down, text.times(column, 4)))
        self._do(name, f"i8 {tile}", f"ptr {at}", f"i64 {step}")

    def multiply(self, rows: int, words: str, c: Place, a: Place, b: Place, adds: bool) -> None:
        """The block of C with so many rows, for so many words of K."""
        for column in range(0, self._block.vectors, _ACROSS):
            across = range(column, min(column + _ACROSS, self._block.vectors))
            self._part(range(rows // self._rows), across, words, (c, a, b), adds)

    def _part(self, down: range, across: range, words: str, places: tuple[Place, Place, Place], adds: bool) -> None:
        """Some tiles of C."""
        text, (c, a, b) = self._text, places
        targets = [
            (i * _ACROSS + j, str(i * self._rows), str(column * _WORDS))
            for i in down
            for j, column in enumerate(across)
        ]
        for tile, row, column in targets:
            if adds:
                self._move("tileloadd64", tile, c, row, column)
            else:
                self._do("tilezero", f"i8 {tile}")

        def step(word: str, _: list[str]) -> None:
            for i in down:
                self._move("tileloadd64", _A + i, a, str(i * self._rows), word)
            for j, column in enumerate(across):
                self._move("tileloadd64", _B + j, b, word, str(column * _WORDS))
                for i in down:
                    self._do("tdpbssd", f"i8 {i * _ACROSS + j}", f"i8 {_A + i}", f"i8 {_B + j}")

        text.counted(words, self.words, step)
        for tile, row, column in targets:
            self._move("tilestored64", tile, c, row, column)
