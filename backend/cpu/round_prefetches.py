"""What a product of rounds (round_kernels.py) asks memory for while it multiplies: lines that are needed next."""

from __future__ import annotations

from dataclasses import dataclass

from ..abi.tile_products import FACTORS, RoundsProduct
from .ir_text import FunctionText
from .micro_kernels import RegisterBlock

#: Bytes of a cache's line, and the level that lines of the rows of B that are packed next are brought to, as
#: llvm.prefetch counts them: with the second, products of 1024³ in tiles of 64×64×32 are 6 to 11% faster on a Sapphire
#: Rapids, and those of 512³ 5%; with the nearest, 9 to 23% and 0%.
LINE, _LEVEL = 64, 2

#: The level for the rows of A that the next block takes, and for the row of B so many behind that which the first block
#: reads: with 8, products of 1024³ are 5 to 7% faster, those of 512³ in tiles of 32×32×32 3 to 5%, in tiles of 64×64×32
#: between 4% slower and 6% faster; with 4 and 16 there is less of it.
_NEAREST, _AHEAD = 3, 8


def _power(number: int) -> int:
    """The least power of two that is no less."""
    return 1 << (number - 1).bit_length()


def _address(text: FunctionText, table: str, place: str) -> str:
    return text.value(f"load ptr, ptr {text.element('i64', table, place)}, align 8")


@dataclass(frozen=True)
class Prefetches:
    """The requests in the text of one product. ``most``: rows of B that are packed at a time; ``steps``: those of k in
    the body of the loop over k of all blocks but the first."""

    _text: FunctionText
    _product: RoundsProduct
    _block: RegisterBlock
    _most: int
    _steps: int

    def _behind(self, start: str, k: str, down: str) -> str:
        return self._text.element("i8", start, self._text.value(f"mul i64 {k}, {down}"))

    def rows_of_b(self, column: str, offset: str, down: str) -> tuple[str, ...]:
        """Where the lines begin of the row of B behind those of a part, whose first is ``offset`` bytes behind the
        addresses; empty where its elements are not beside each other."""
        text, product, block = self._text, self._product, self._block
        if product.turned or product.b[1] != 1:
            return ()
        behind = text.sum(offset, text.value(f"mul i64 {down}, {self._most}"))
        first = text.element("i8", _address(text, "%b", column), behind)
        size = block.columns * FACTORS[product.b[0]]
        return tuple(text.element("i8", first, str(at)) for at in range(0, size, LINE))

    def soon(self, start: str, k: str, down: str) -> None:
        """In the loop over ``k`` of the first block, asks for a row of B, whose row 0 is at ``start``."""
        text, row = self._text, self._behind(start, self._text.add(k, _AHEAD), down)
        for at in range(0, self._block.columns * FACTORS[self._product.b[0]], LINE):
            text.prefetch(text.element("i8", row, str(at)), _NEAREST)

    def next_rows(self, lines: tuple[str, ...], down: str, number: str | None, k: str) -> None:
        """In the loop over ``k`` of a block that begins ``number`` rows behind the first, asks for a share of the rows
        that are packed next. The shares are equal, so that the last are of rows behind those: what is not there is not
        brought. The first block, None, asks for them only if it is the only one."""
        text, block = self._text, self._block
        others = -(-self._product.m // block.rows) - 1
        if not lines or (number is None) == bool(others):
            return
        if number is None:
            for line in lines:
                text.prefetch(self._behind(line, k, down), _LEVEL)
            return
        share = 1
        while share * others < self._steps * len(lines):
            share *= 2
        apart = max(len(lines) // share, 1)
        turn = text.value(f"udiv exact i64 {k}, {self._steps}")
        if number != "0":
            past = text.value(f"udiv exact i64 {number}, {block.rows}")
            turn = text.sum(turn, text.times(past, self._most // self._steps))
        # Share number `turn` has some of a row's lines, or all of some rows.
        place = text.value(f"udiv i64 {turn}, {apart}") if apart > 1 else turn
        rows = max(share // len(lines), 1)
        for each in range(rows):
            at = text.value(f"mul i64 {text.add(text.times(place, rows), each)}, {down}")
            if apart > 1:
                at = text.sum(at, text.times(text.value(f"urem i64 {turn}, {apart}"), share * LINE))
            for line in lines[: min(share, len(lines))]:
                text.prefetch(text.element("i8", line, at), _LEVEL)

    def next_block(self, row: str, rows: int, behind: str) -> tuple[str, str]:
        """The first row of the block behind this, and how far it is behind its address: the first block's next k follow
        the last block."""
        text, m = self._text, self._product.m
        following = text.add(row, rows)
        most = self._most * FACTORS[self._product.a[0]]
        if following.isdigit():
            again = int(following) >= m
            return "0" if again else following, text.add(behind, most) if again else behind
        more = text.value(f"icmp ult i64 {following}, {m}")
        return (
            text.value(f"select i1 {more}, i64 {following}, i64 0"),
            text.value(f"select i1 {more}, i64 {behind}, i64 {text.add(behind, most)}"),
        )

    def rows_of_a(self, following: tuple[str, str], k: str, steps: int) -> None:
        """In the loop over ``k``, asks for lines of a row of A of the next block: the rows take turns."""
        text, (first, behind), product = self._text, following, self._product
        turns = _power(self._block.rows)
        size, together = FACTORS[product.a[0]], turns * steps
        turn = text.value(f"and i64 {text.value(f'udiv i64 {k}, {steps}') if steps > 1 else k}, {turns - 1}")
        row = text.intrinsic("umin", "i64", text.sum(first, turn), str(product.m - 1))
        along = text.times(text.value(f"and i64 {k}, {-together}"), size)
        place = text.element("i8", _address(text, "%a", text.times(row, product.a[1])), text.sum(behind, along))
        for line in range(-(-together * size // LINE)):
            text.prefetch(text.element("i8", place, str(line * LINE)), _NEAREST)
