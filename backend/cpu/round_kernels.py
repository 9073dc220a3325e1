"""Products of the rounds of a loop (abi/tile_products.py) as LLVM IR for a host: its factors are in device memory.

As many rows of B as fit in half of the nearest cache are packed, for the columns that a block of C has: row by row, in
the type that is added in. Blocks of rows of C are then multiplied with them, each in registers for all of these k. A is
read in place, one element of each row after the other; narrower elements are widened in memory of the function's own
before. While they are, the rows of B that are packed next are brought nearer. Columns of B whose addresses are
neighbours are packed by vectors; those whose elements are neighbours by transposed blocks; all others one by one.
"""

from __future__ import annotations

from ..abi.tile_products import ELEMENTS, FACTORS, RoundsProduct, TileProduct
from .host import Host
from .ir_text import FunctionText
from .micro_kernels import TYPES, RegisterBlock, block_of
from .transposes import Panel, transposed

#: LLVM's types of elements in memory.
_MEMORY = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}

#: Bytes of rows of B that are packed at a time.
_PACKED = 32 << 10

#: Steps of k in the body of the loop over k.
_STEPS = 4

#: Bytes of a cache's line, and the level that lines of the rows of B that are packed next are brought to, as
#: llvm.prefetch counts them: with the second, products of 1024³ in tiles of 64×64×32 are 6 to 11% faster on a Sapphire
#: Rapids, and those of 512³ 5%; with the nearest, 9 to 23% and 0%.
_LINE, _LEVEL = 64, 2


def define_rounds(product: RoundsProduct, host: Host) -> tuple[str, frozenset[str]]:
    """The text of the function ``product.name``, and the declarations that it needs. The shape is of powers of two, N
    no less than a vector has elements, and K no less than four."""
    text, nowhere = FunctionText(), (0, 0, 0)
    whole = TileProduct(product.element, 1, product.m, product.n, product.k, True, nowhere, nowhere, nowhere)
    _Rounds(text, product, block_of(whole, host)).emit()
    parameters = "ptr noalias %c, ptr readonly %a, ptr readonly %b, ptr %down, ptr %rounds"
    head = f"define internal void @{product.name}({parameters}) noinline nounwind"
    return text.define(head), frozenset(text.declarations)


class _Rounds:
    """The text of one product."""

    def __init__(self, text: FunctionText, product: RoundsProduct, block: RegisterBlock) -> None:
        self._text, self._product, self._block = text, product, block
        self._type, self._bytes = TYPES[product.element], ELEMENTS[product.element] // 8
        self._vector = f"<{block.lanes} x {self._type}>"
        #: Rows of B that are packed at a time, and what their number is a multiple of.
        self._most = max(_PACKED // (block.columns * self._bytes), _STEPS)
        self._multiple = min(self._most, product.k)

    def emit(self) -> None:
        """Everything between the function's head and its return."""
        text, product, block = self._text, self._product, self._block
        down, rounds = (text.value(f"ptrtoint ptr %{name} to i64") for name in ("down", "rounds"))
        total = text.times(rounds, product.k)
        self._packed = text.alloca(f"[{self._most * block.columns} x {self._type}]", 64)
        widens = product.a[0] != product.element
        self._widened = text.alloca(f"[{block.rows * self._most} x {self._type}]", 64) if widens else ""

        def columns(column: str, _: list[str]) -> None:
            together = self._are_together(column)

            def part(start: str, _: list[str]) -> None:
                left = text.value(f"sub i64 {total}, {start}")
                count = text.call("i64", "llvm.umin.i64", [("i64", left), ("i64", str(self._most))])
                offset = text.value(f"mul i64 {start}, {down}")
                self._pack(column, offset, down, count, together)
                self._following = self._next_rows(column, offset, down)
                whole = product.m // block.rows * block.rows
                text.loop(whole, block.rows, lambda row, _: self._rows(row, block.rows, column, start, count))
                if whole < product.m:
                    self._rows(str(whole), product.m - whole, column, start, count)

            text.counted(total, self._most, part)

        text.loop(product.n, block.columns, columns)

    def _address(self, table: str, step: int, number: str) -> str:
        """An address of a table, as a pointer."""
        place = self._text.element("i64", table, self._text.times(number, step))
        return self._text.value(f"load ptr, ptr {place}, align 8")

    def _are_together(self, column: str) -> str | None:
        """Whether the columns of each vector begin at neighbouring addresses; None if they never do."""
        text, product, block = self._text, self._product, self._block
        if product.turned or product.b[1] != 1:
            return None
        vector, size = f"<{block.lanes} x i64>", FACTORS[product.b[0]]
        apart = ", ".join(f"i64 {lane * size}" for lane in range(block.lanes))
        found = ""
        for number in range(block.vectors):
            place = text.element("i64", "%b", text.sum(column, str(number * block.lanes)) if number else column)
            addresses = text.value(f"load {vector}, ptr {place}, align 8")
            same = f"<{block.lanes} x i32> zeroinitializer"
            first = text.value(f"shufflevector {vector} {addresses}, {vector} poison, {same}")
            expected = text.value(f"add {vector} {first}, <{apart}>")
            equal = text.value(f"icmp eq {vector} {addresses}, {expected}")
            every = text.call("i1", f"llvm.vector.reduce.and.v{block.lanes}i1", [(f"<{block.lanes} x i1>", equal)])
            found = text.value(f"and i1 {found}, {every}") if found else every
        return found

    def _load(self, memory: str, lanes: int, pointer: str) -> str:
        """``lanes`` elements of a factor of the type ``memory``, in the type that is added in."""
        text = self._text
        types = [f"<{lanes} x {one}>" if lanes > 1 else one for one in (_MEMORY[memory], self._type)]
        value = text.value(f"load {types[0]}, ptr {pointer}, align {FACTORS[memory]}")
        return value if memory == self._product.element else text.value(f"fpext {types[0]} {value} to {types[1]}")

    def _place(self, k: str, column: str) -> str:
        """Where an element of the packed rows is."""
        text = self._text
        return text.element(self._type, self._packed, text.sum(text.times(k, self._block.columns), column))

    # -- B -----------------------------------------------------------------------------------------------------------
    def _pack(self, column: str, offset: str, down: str, count: str, together: str | None) -> None:
        """Packs ``count`` rows of B, the first of which begins ``offset`` bytes behind the addresses."""
        lanes = self._block.lanes

        def one_by_one() -> None:
            if self._product.turned and self._multiple % lanes == 0:
                self._pack_transposed(column, offset, count)
            else:
                self._pack_each(column, offset, down, count)

        if together is None:
            one_by_one()
        else:
            self._text.either(together, lambda: self._pack_vectors(column, offset, down, count), one_by_one)

    def _pack_vectors(self, column: str, offset: str, down: str, count: str) -> None:
        text, product, block = self._text, self._product, self._block
        starts = []
        for number in range(block.vectors):
            at = str(number * block.lanes)
            starts.append(self._address("%b", 1, text.sum(column, at) if number else column))

        def rows(k: str, _: list[str]) -> None:
            for step in range(_STEPS):
                row = text.add(k, step)
                behind = text.sum(offset, text.value(f"mul i64 {row}, {down}"))
                for number, start in enumerate(starts):
                    value = self._load(product.b[0], block.lanes, text.element("i8", start, behind))
                    place = self._place(row, str(number * block.lanes))
                    text.do(f"store {self._vector} {value}, ptr {place}, align {self._bytes * block.lanes}")

        text.counted(count, _STEPS, rows)

    def _pack_each(self, column: str, offset: str, down: str, count: str) -> None:
        text, product, block = self._text, self._product, self._block

        def rows(k: str, _: list[str]) -> None:
            behind = text.sum(offset, text.value(f"mul i64 {k}, {down}"))

            def each(number: str, _: list[str]) -> None:
                start = self._address("%b", product.b[1], text.sum(column, number))
                value = self._load(product.b[0], 1, text.element("i8", start, behind))
                text.do(f"store {self._type} {value}, ptr {self._place(k, number)}, align {self._bytes}")

            text.loop(block.columns, 1, each)

        text.counted(count, 1, rows)

    def _pack_transposed(self, column: str, offset: str, count: str) -> None:
        text, product, block = self._text, self._product, self._block
        lanes = block.lanes
        panel = Panel(self._packed, self._most, block.columns, lanes, self._type, self._bytes)

        def square(k: str, number: str) -> None:
            behind = text.sum(offset, text.times(k, FACTORS[product.b[0]]))
            vectors = []
            for lane in range(lanes):
                start = self._address("%b", product.b[1], text.add(text.sum(column, number), lane))
                vectors.append(self._load(product.b[0], lanes, text.element("i8", start, behind)))
            for step, vector in enumerate(transposed(text, vectors, panel, lanes)):
                place = self._place(text.add(k, step), number)
                text.do(f"store {self._vector} {vector}, ptr {place}, align {self._bytes * lanes}")

        def rows(k: str, _: list[str]) -> None:
            text.loop(block.columns, lanes, lambda number, _: square(k, number))

        text.counted(count, lanes, rows)

    def _next_rows(self, column: str, offset: str, down: str) -> tuple[list[str], str]:
        """Where the lines begin of the row of B behind those that are packed, and how far the rows are apart. Empty
        where the columns' elements are not beside each other."""
        text, product, block = self._text, self._product, self._block
        if product.turned or product.b[1] != 1:
            return [], down
        behind = text.sum(offset, text.value(f"mul i64 {down}, {self._most}"))
        first = text.element("i8", self._address("%b", 1, column), behind)
        size = block.columns * FACTORS[product.b[0]]
        return [text.element("i8", first, str(at)) for at in range(0, size, _LINE)], down

    def _fetch(self, row: str, k: str) -> None:
        """In the loop over ``k`` of the block at ``row``, asks for a share of the rows that are packed next. The shares
        are equal, so that the last are of rows behind those: what is not there is not brought."""
        text, block, (lines, down) = self._text, self._block, self._following
        if not lines:
            return
        blocks = -(-self._product.m // block.rows)
        share = 1
        while share * blocks < _STEPS * len(lines):
            share *= 2
        apart = max(len(lines) // share, 1)
        turn = text.value(f"udiv exact i64 {k}, {_STEPS}")
        if row != "0":
            turn = text.sum(turn, text.times(text.value(f"udiv exact i64 {row}, {block.rows}"), self._most // _STEPS))
        # Share number `turn` has some of a row's lines, or all of some rows.
        number = text.value(f"udiv i64 {turn}, {apart}") if apart > 1 else turn
        rows = max(share // len(lines), 1)
        for each in range(rows):
            at = text.value(f"mul i64 {text.add(text.times(number, rows), each)}, {down}")
            if apart > 1:
                at = text.sum(at, text.times(text.value(f"urem i64 {turn}, {apart}"), share * _LINE))
            for line in lines[: min(share, len(lines))]:
                text.prefetch(text.element("i8", line, at), _LEVEL)

    # -- C -----------------------------------------------------------------------------------------------------------
    def _rows(self, row: str, rows: int, column: str, start: str, count: str) -> None:
        """The block of ``rows`` rows that begins at (``row``, ``column``), for ``count`` k from ``start`` on."""
        text, product, block, vector = self._text, self._product, self._block, self._vector
        places = [(i, j) for i in range(rows) for j in range(block.vectors)]
        c = text.element(self._type, "%c", text.sum(text.times(row, product.row), column))
        behind = text.times(start, FACTORS[product.a[0]])
        left = []
        for i in range(rows):
            address = self._address("%a", product.a[1], text.add(row, i))
            left.append(text.element("i8", address, behind))
        if product.a[0] != product.element:
            left = self._wide(left, count)
        pointers = [text.element(self._type, c, str(i * product.row + j * block.lanes)) for i, j in places]
        initial = [text.value(f"load {vector}, ptr {pointer}, align {self._bytes}") for pointer in pointers]

        def body(k: str, totals: list[str]) -> list[str]:
            self._fetch(row, k)
            for step in range(_STEPS):
                at = text.add(k, step)
                below = [self._place(at, str(j * block.lanes)) for j in range(block.vectors)]
                right = [text.value(f"load {vector}, ptr {one}, align {self._bytes * block.lanes}") for one in below]
                spread = [self._spread(text.element(self._type, one, at)) for one in left]
                suffix = f"v{block.lanes}{product.element}"
                totals = [
                    text.call(vector, f"llvm.fma.{suffix}", [(vector, spread[i]), (vector, right[j]), (vector, total)])
                    for (i, j), total in zip(places, totals, strict=True)
                ]
            return totals

        totals = text.counted(count, _STEPS, body, [(vector, value) for value in initial])
        for pointer, total in zip(pointers, totals, strict=True):
            text.do(f"store {vector} {total}, ptr {pointer}, align {self._bytes}")

    def _wide(self, sources: list[str], count: str) -> list[str]:
        """Rows of A in the type that is added in."""
        text, product = self._text, self._product
        lanes = self._block.lanes if self._multiple % self._block.lanes == 0 else 1
        type_ = self._vector if lanes > 1 else self._type
        targets = [text.element(self._type, self._widened, str(i * self._most)) for i in range(len(sources))]

        def each(k: str, _: list[str]) -> None:
            for source, target in zip(sources, targets, strict=True):
                value = self._load(product.a[0], lanes, text.element(_MEMORY[product.a[0]], source, k))
                text.do(f"store {type_} {value}, ptr {text.element(self._type, target, k)}, align {self._bytes}")

        text.counted(count, lanes, each)
        return targets

    def _spread(self, pointer: str) -> str:
        text, vector = self._text, self._vector
        scalar = text.value(f"load {self._type}, ptr {pointer}, align {self._bytes}")
        first = text.value(f"insertelement {vector} poison, {self._type} {scalar}, i64 0")
        same = f"<{self._block.lanes} x i32> zeroinitializer"
        return text.value(f"shufflevector {vector} {first}, {vector} poison, {same}")
