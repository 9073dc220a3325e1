"""Products of the rounds of a loop (abi/tile_products.py) as LLVM IR for a host: its factors are in device memory.

As many rows of B as fit in half of the nearest cache are packed, for the columns that a block of C has: row by row, in
the type that is added in. Blocks of rows of C are multiplied with them, each in registers for all of these k. Where the
columns' elements are neighbours in memory, the first block multiplies with B where it is, and packs what it reads: that
takes no time of its own, because a processor stores while it multiplies. Else columns are packed before, by vectors,
by transposed blocks, or one by one. A is read in place, one element of each row after the other; narrower elements are
widened in memory of the function's own before. While a block is multiplied, the rows of A that the next one takes are
brought nearer, and a share of the rows of B that are packed next.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..abi.tile_products import ELEMENTS, FACTORS, RoundsProduct, TileProduct
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import TYPES, RegisterBlock, block_of
from .round_lines import NUMBERS, FactorLines
from .round_prefetches import LINE, Prefetches
from .transposes import Panel, transposed

#: LLVM's types of elements in memory.
_MEMORY = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}

#: Bytes of rows of B that are packed at a time.
_PACKED = 32 << 10

#: Steps of k in the body of the loop over k.
_STEPS = 4


def define_rounds(product: RoundsProduct, host: Host) -> tuple[str, frozenset[str]]:
    """The text of the function ``product.name``, and the declarations that it needs. The shape is of powers of two, N
    no less than a vector has elements, and K no less than four."""
    text, nowhere, attribute = FunctionText(), (0, 0, 0), ""
    if product.element == "i32":
        from .byte_rounds import byte_rounds

        attribute = byte_rounds(text, product, host).attribute
    else:
        from .pair_rounds import PairRounds, suits

        whole = TileProduct(product.element, 1, product.m, product.n, product.k, True, nowhere, nowhere, nowhere)
        block = block_of(whole, host)
        if suits(product, block, host):
            attribute = PairRounds(text, product, block).write()
        else:
            _Rounds(text, product, block).emit()
    numbers = ", ".join(f"ptr %{name}" for name in NUMBERS)
    parameters = f"ptr noalias %c, ptr readonly %a, ptr readonly %b, {numbers}"
    head = f"define internal void @{product.name}({parameters}) noinline nounwind{attribute}"
    return text.define(head), frozenset(text.declarations)


@dataclass(frozen=True)
class _Part:
    """``count`` k from ``start`` on, of the columns from ``column`` on: the first row of B is ``offset`` bytes behind
    the addresses, and rows are ``down`` bytes apart. ``unrolled``: how many k are a multiple of ``_STEPS``; ``lines``:
    where the lines begin of the row of B behind these, empty where its elements are not beside each other."""

    column: str
    start: str
    count: str
    offset: str
    down: str
    unrolled: str
    lines: tuple[str, ...]


class _Rounds:
    """The text of one product."""

    def __init__(self, text: FunctionText, product: RoundsProduct, block: RegisterBlock) -> None:
        self._text, self._product, self._block = text, product, block
        self._type, self._bytes = TYPES[product.element], ELEMENTS[product.element] // 8
        self._vector = f"<{block.lanes} x {self._type}>"
        #: Rows of B that are packed at a time.
        self._most = max(_PACKED // (block.columns * self._bytes), _STEPS)

    def emit(self) -> None:
        """Everything between the function's head and its return."""
        text, product, block = self._text, self._product, self._block
        self._packed = text.alloca(f"[{self._most * block.columns} x {self._type}]", 64)
        widens = product.a[0] != product.element
        self._widened = text.alloca(f"[{block.rows * self._most} x {self._type}]", 64) if widens else ""
        zeros = max(self._most * FACTORS[product.a[0]], block.lanes * FACTORS[product.b[0]], LINE)
        self._zeros = text.alloca(f"[{zeros} x i8]", 64)
        text.fill(self._zeros, zeros)
        self._lines = FactorLines(text, product, block.lanes, self._zeros)
        down, steps = self._lines.numbers["down"], self._lines.numbers["steps"]
        self._ask = Prefetches(text, product, block, self._most, _STEPS)

        def columns(column: str, _: list[str]) -> None:
            together = self._lines.are_together(column, block.columns)

            def part(start: str, _: list[str]) -> None:
                left = text.value(f"sub i64 {steps}, {start}")
                count = text.intrinsic("umin", "i64", left, str(self._most))
                offset = text.value(f"mul i64 {start}, {down}")
                unrolled = text.value(f"and i64 {count}, {-_STEPS}")
                lines = self._ask.rows_of_b(column, offset, down)
                self._part(_Part(column, start, count, offset, down, unrolled, lines), together)

            text.counted(steps, self._most, part)

        text.loop(product.n, block.columns, columns)
        self._lines.add_zeros()

    def _part(self, part: _Part, together: str | None) -> None:
        """All blocks of rows, for the k of a part: whole ones, and what is left of the last where it is needed."""
        text, rows = self._text, self._block.rows
        whole = self._product.m // rows * rows
        needed = self._lines.numbers["needed"]
        # The blocks with rows that are needed, but one at least: the first packs.
        end = text.value(f"udiv i64 {text.add(needed, rows - 1)}, {rows}")
        end = text.intrinsic("umin", "i64", text.times(end, rows), str(whole))
        end = text.intrinsic("umax", "i64", end, str(rows))
        if together is None:
            self._pack_apart(part)
            text.counted(end, rows, lambda row, _: self._rows(part, row, row, rows))
        else:
            alone = text.value(f"icmp ule i64 {needed}, 1")

            def first() -> None:
                text.either(alone, lambda: self._rows(part, "0", None, 1), lambda: self._rows(part, "0", None, rows))

            text.either(together, first, lambda: self._pack_apart(part))
            done = text.value(f"select i1 {together}, i64 {rows}, i64 0")
            left = text.value(f"sub i64 {end}, {done}")
            text.counted(left, rows, lambda number, _: self._rows(part, text.sum(number, done), number, rows))
        if rest := self._product.m - whole:
            is_needed = text.value(f"icmp ugt i64 {needed}, {whole}")
            text.either(is_needed, lambda: self._rows(part, str(whole), str(whole - rows), rest), lambda: None)

    def _load(self, memory: str, lanes: int, pointer: str, mask: str = "") -> str:
        """``lanes`` elements of a factor of the type ``memory``, in the type that is added in; 0 where a ``mask`` says
        so."""
        text, aligned = self._text, FACTORS[memory]
        types = [f"<{lanes} x {one}>" if lanes > 1 else one for one in (_MEMORY[memory], self._type)]
        if mask:
            numbers = [("ptr", f"align {aligned} {pointer}"), (f"<{lanes} x i1>", mask), (types[0], "zeroinitializer")]
            value = text.call(f"llvm.masked.load.v{lanes}{memory}.p0", types[0], numbers)
        else:
            value = text.value(f"load {types[0]}, ptr {pointer}, align {aligned}")
        return value if memory == self._product.element else text.value(f"fpext {types[0]} {value} to {types[1]}")

    # -- B -----------------------------------------------------------------------------------------------------------
    def _pack_apart(self, part: _Part) -> None:
        """Packs the rows of B where neighbouring columns need not have neighbouring addresses: a vector of columns at a
        time."""
        text, lanes = self._text, self._block.lanes

        def vector(number: str, _: list[str]) -> None:
            column = text.sum(part.column, number)
            if self._product.turned:
                squares = text.value(f"and i64 {part.count}, {-lanes}")
                self._pack_transposed(part, column, number, squares)
                self._pack_each(part, column, number, squares)
            elif (neighbours := self._lines.are_neighbours(column, lanes)) is None:
                self._pack_each(part, column, number, "0")
            else:
                text.either(
                    neighbours,
                    lambda: self._pack_vectors(part, column, number),
                    lambda: self._pack_each(part, column, number, "0"),
                )

        text.loop(self._block.columns, lanes, vector)

    def _pack_vectors(self, part: _Part, column: str, number: str) -> None:
        """Packs a vector of each row, whose elements are neighbours in memory; zeros for columns that are not there."""
        text, there = self._text, self._lines.are_there(column)
        start = text.element("i8", self._lines.address("%b", 1, column), part.offset)

        def row(k: str, _: list[str]) -> None:
            place = self._behind(start, k, part.down)
            self._store(k, number, self._load(self._product.b[0], self._block.lanes, place, there))

        text.counted(part.count, 1, row)

    def _pack_each(self, part: _Part, column: str, number: str, done: str) -> None:
        """Packs a vector's elements one by one, of all rows but ``done``."""
        text, product = self._text, self._product

        def row(rest: str, _: list[str]) -> None:
            k = text.sum(rest, done)
            behind = text.sum(part.offset, text.value(f"mul i64 {k}, {part.down}"))

            def each(lane: str, _: list[str]) -> None:
                value = self._load(product.b[0], 1, self._lines.line("%b", text.sum(column, lane), behind))
                place = self._place(k, text.sum(number, lane))
                text.do(f"store {self._type} {value}, ptr {place}, align {self._bytes}")

            text.loop(self._block.lanes, 1, each)

        text.counted(part.count if done == "0" else text.value(f"sub i64 {part.count}, {done}"), 1, row)

    def _pack_transposed(self, part: _Part, column: str, number: str, count: str) -> None:
        """Packs a vector of ``count`` rows, where neighbours in a column are neighbours in memory: square by square."""
        text, product, lanes = self._text, self._product, self._block.lanes
        panel = Panel(self._packed, self._most, self._block.columns, lanes, self._type, self._bytes)

        def square(k: str, _: list[str]) -> None:
            behind = text.sum(part.offset, text.times(k, FACTORS[product.b[0]]))
            vectors = []
            for lane in range(lanes):
                vectors.append(self._load(product.b[0], lanes, self._lines.line("%b", text.add(column, lane), behind)))
            for step, vector in enumerate(transposed(text, vectors, panel, lanes)):
                self._store(text.add(k, step), number, vector)

        text.counted(count, lanes, square)

    def _behind(self, start: str, k: str, down: str) -> str:
        return self._text.element("i8", start, self._text.value(f"mul i64 {k}, {down}"))

    def _place(self, k: str, column: str) -> str:
        """Where an element of the packed rows is."""
        text = self._text
        return text.element(self._type, self._packed, text.sum(text.times(k, self._block.columns), column))

    def _store(self, k: str, column: str, vector: str) -> None:
        """Stores a vector of the packed row ``k``."""
        place = self._place(k, column)
        self._text.do(f"store {self._vector} {vector}, ptr {place}, align {self._bytes * self._block.lanes}")

    # -- C -----------------------------------------------------------------------------------------------------------
    def _rows(self, part: _Part, row: str, number: str | None, rows: int) -> None:
        """The block of ``rows`` rows that begins at ``row``, for the k of a part; ``number``: how many rows there are
        between the first block and this, None for the first, which packs what it reads of B, unless that is one row:
        then no other is needed."""
        text, product, block, vector = self._text, self._product, self._block, self._vector
        places = [(i, j) for i in range(rows) for j in range(block.vectors)]
        c = text.element(self._type, "%c", text.sum(text.times(row, product.row), part.column))
        behind = text.times(part.start, FACTORS[product.a[0]])
        left = [self._lines.line("%a", text.add(row, i), behind) for i in range(rows)]
        if product.a[0] != product.element:
            left = self._wide(left, part.count)
        right = text.element("i8", self._lines.address("%b", 1, part.column), part.offset) if number is None else ""
        pointers = [text.element(self._type, c, str(i * product.row + j * block.lanes)) for i, j in places]
        totals = [text.value(f"load {vector}, ptr {pointer}, align {self._bytes}") for pointer in pointers]
        following = self._ask.next_block(row, rows, behind)

        def step(k: str, totals: list[str]) -> list[str]:
            below = self._vectors(right, k, part.down)
            found = []
            for i, one in enumerate(left):
                value = self._spread(text.element(self._type, one, k))
                for j, other in enumerate(below):
                    found.append(text.intrinsic("fma", vector, value, other, totals[i * block.vectors + j]))
            if right and rows > 1:
                for j, other in enumerate(below):
                    self._store(k, str(j * block.lanes), other)
            return found

        # LLVM does all loads of several steps before the multiply-adds where there are stores between them.
        steps = 1 if right else _STEPS

        def body(k: str, totals: list[str]) -> list[str]:
            if rows > 1:
                self._ask.next_rows(part.lines, part.down, number, k)
                self._ask.rows_of_a(following, k, steps)
            if right and rows > 1:
                self._ask.soon(right, k, part.down)
            for offset in range(steps):
                totals = step(text.add(k, offset), totals)
            return totals

        def last(k: str, totals: list[str]) -> list[str]:
            return step(text.sum(k, part.unrolled), totals)

        def carried() -> list[tuple[str, str]]:
            return [(vector, total) for total in totals]

        totals = text.counted(part.count if right else part.unrolled, steps, body, carried())
        if not right:
            totals = text.counted(text.value(f"sub i64 {part.count}, {part.unrolled}"), 1, last, carried())
        for pointer, total in zip(pointers, totals, strict=True):
            text.do(f"store {vector} {total}, ptr {pointer}, align {self._bytes}")

    def _vectors(self, start: str, k: str, down: str) -> list[str]:
        """The vectors of row ``k`` of B: read where they are, if row 0 is at ``start``, else packed ones."""
        text, block, memory = self._text, self._block, self._product.b[0]
        numbers = [str(number) for number in range(0, block.columns, block.lanes)]
        if start:
            row = self._behind(start, k, down)
            places = [text.element(_MEMORY[memory], row, number) for number in numbers]
            return [self._load(memory, block.lanes, place) for place in places]
        places = [self._place(k, number) for number in numbers]
        aligned = self._bytes * block.lanes
        return [text.value(f"load {self._vector}, ptr {place}, align {aligned}") for place in places]

    def _wide(self, sources: list[str], count: str) -> list[str]:
        """Rows of A in the type that is added in."""
        text, memory, lanes = self._text, self._product.a[0], self._block.lanes
        targets = [text.element(self._type, self._widened, str(i * self._most)) for i in range(len(sources))]

        def copy(lanes: int, k: str) -> None:
            type_ = self._vector if lanes > 1 else self._type
            for source, target in zip(sources, targets, strict=True):
                value = self._load(memory, lanes, text.element(_MEMORY[memory], source, k))
                text.do(f"store {type_} {value}, ptr {text.element(self._type, target, k)}, align {self._bytes}")

        vectors = text.value(f"and i64 {count}, {-lanes}")
        text.counted(vectors, lanes, lambda k, _: copy(lanes, k))
        text.counted(text.value(f"sub i64 {count}, {vectors}"), 1, lambda k, _: copy(1, text.sum(k, vectors)))
        return targets

    def _spread(self, pointer: str) -> str:
        scalar = self._text.value(f"load {self._type}, ptr {pointer}, align {self._bytes}")
        return self._text.spread(self._vector, scalar)
