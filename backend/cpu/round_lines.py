"""The lines of factors in device memory (abi/tile_products.RoundsProduct): rows of A, and columns of B."""

from __future__ import annotations

from ..abi.tile_products import ELEMENTS, FACTORS, RoundsProduct
from .ir_text import FunctionText
from .micro_kernels import TYPES

#: The parameters of a product that are numbers.
NUMBERS = ("down", "steps", "padded", "rows", "columns", "needed")


class FactorLines:
    """Where lines of the tables ``%a`` and ``%b`` are, and the ``numbers`` of NUMBERS. ``zeros``: what is read in place
    of a line that is not there."""

    def __init__(self, text: FunctionText, product: RoundsProduct, lanes: int, zeros: str) -> None:
        self._text, self._product, self._lanes, self._zeros = text, product, lanes, zeros
        self.numbers = {name: text.value(f"ptrtoint ptr %{name} to i64") for name in NUMBERS}

    def address(self, table: str, step: int, number: str) -> str:
        """An address of a table, as a pointer."""
        place = self._text.element("i64", table, self._text.times(number, step))
        return self._text.value(f"load ptr, ptr {place}, align 8")

    def line(self, table: str, number: str, behind: str) -> str:
        """Where a row of A or a column of B goes on, ``behind`` bytes behind its address; zeros for one that is not
        there."""
        text, product = self._text, self._product
        (_, step), limit = (product.a, "rows") if table == "%a" else (product.b, "columns")
        there = text.value(f"icmp ult i64 {number}, {self.numbers[limit]}")
        place = text.element("i8", self.address(table, step, number), behind)
        return text.value(f"select i1 {there}, ptr {place}, ptr {self._zeros}")

    def steady_rows(self) -> tuple[str, str]:
        """Whether all rows of A are there, and equally far apart; how many bytes."""
        text, (_, step), rows = self._text, self._product.a, self._product.m
        places = [text.element("i64", "%a", str(step * number)) for number in range(2)]
        first, second = (text.value(f"load i64, ptr {place}, align 8") for place in places)
        distance = text.value(f"sub i64 {second}, {first}")

        def compare(number: str, found: list[str]) -> list[str]:
            place = text.element("i64", "%a", text.times(text.add(number, 1), step))
            expected = text.value(f"add i64 {first}, {text.value(f'mul i64 {text.add(number, 1)}, {distance}')}")
            equal = text.value(f"icmp eq i64 {expected}, {text.value(f'load i64, ptr {place}, align 8')}")
            return [text.value(f"and i1 {found[0]}, {equal}")]

        there = text.value(f"icmp uge i64 {self.numbers['rows']}, {rows}")
        return text.loop(rows - 1, 1, compare, [("i1", there)])[0], distance

    def are_together(self, column: str, columns: int) -> str | None:
        """Whether so many columns are there, and their addresses are neighbours; None if they never are."""
        neighbours = self.are_neighbours(column, columns)
        if neighbours is None:
            return None
        there = self._text.value(f"icmp ule i64 {self._text.add(column, columns)}, {self.numbers['columns']}")
        return self._text.value(f"and i1 {there}, {neighbours}")

    def are_neighbours(self, column: str, columns: int) -> str | None:
        """Whether the addresses of so many columns are neighbours, those that are not there included; None if they
        never are."""
        text, product, lanes = self._text, self._product, self._lanes
        if product.turned or product.b[1] != 1:
            return None
        vector, size = f"<{lanes} x i64>", FACTORS[product.b[0]]
        first = self._all(text.value(f"load i64, ptr {text.element('i64', '%b', column)}, align 8"))
        found = "true"
        for number in range(0, columns, lanes):
            place = text.element("i64", "%b", text.add(column, number))
            addresses = text.value(f"load {vector}, ptr {place}, align 8")
            apart = ", ".join(f"i64 {(number + lane) * size}" for lane in range(lanes))
            expected = text.value(f"add {vector} {first}, <{apart}>")
            equal = text.value(f"icmp eq {vector} {addresses}, {expected}")
            every = text.call(f"llvm.vector.reduce.and.v{lanes}i1", "i1", [(f"<{lanes} x i1>", equal)])
            found = text.value(f"and i1 {found}, {every}")
        return found

    def are_there(self, column: str) -> str:
        """The mask of a vector of columns: of those that are there."""
        text, lanes = self._text, self._lanes
        left = text.intrinsic("usub.sat", "i64", self.numbers["columns"], column)
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return text.value(f"icmp ult <{lanes} x i64> <{numbers}>, {self._all(left)}")

    def add_zeros(self) -> None:
        """Adds the product of zeros behind the last k to C, where there is one: it makes +0 of -0."""
        text, product, type_ = self._text, self._product, TYPES[self._product.element]
        vector, size = f"<{self._lanes} x {type_}>", ELEMENTS[product.element] // 8

        def row(number: str, _: list[str]) -> None:
            def part(column: str, _: list[str]) -> None:
                place = text.element(type_, "%c", text.sum(text.times(number, product.row), column))
                value = text.value(f"load {vector}, ptr {place}, align {size}")
                value = text.value(f"fadd {vector} {value}, zeroinitializer")
                text.do(f"store {vector} {value}, ptr {place}, align {size}")

            text.loop(product.n, self._lanes, part)

        text.counted(text.times(self.numbers["padded"], product.m), 1, row)

    def _all(self, value: str) -> str:
        """A vector of one i64."""
        return self._text.spread(f"<{self._lanes} x i64>", value)
