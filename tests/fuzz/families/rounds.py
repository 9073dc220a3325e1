"""Loops that load tiles and add them up, between stores that may overlap with what they load, or with such stores."""

from collections.abc import Callable

import numpy as np

from tests.fuzz.families.aliasing import pointer_of, wait
from tests.fuzz.steps import TYPES, Array, Family, Writer

_MEMORY, _LENGTH = "p0", 12_000
#: Rows and columns of what a round loads; strips are of rows, or of columns.
_SHAPES = ((16, 64), (16, 128), (32, 32), (32, 64), (64, 32), (64, 64), (4, 256))
#: What a sum begins with, how it goes on with a tile and a row, and how it is reduced.
_SUMS: tuple[tuple[int, str, Callable[[Array, Array, Array], Array], str], ...] = (
    (0, "{0} + {1}", lambda total, tile, row: total + tile, "sum"),
    (0, "{0} + {1} * {2}", lambda total, tile, row: total + tile * row, "sum"),
    (5, "{2} - {0} + {1}", lambda total, tile, row: row - total + tile, "sum"),
    (-99, "tl.maximum({0}, {1} - {2})", lambda total, tile, row: np.maximum(total, tile - row), "max"),
)
#: Where a round begins, by its counter; what is carried from round to round, and how it goes on.
_WAYS = (
    ("{k}", "", ""),
    ("{last} - {k}", "", ""),
    ("{o}", "{o} = n - 3", "{o} += {C}"),
    ("{o}", "{o} = n - 3", "{o} = {C} + {o}"),
    ("{o} + {k}", "{o} = n * 2", "{o} = 6 - {o} + n * 0"),
)


def _start(writer: Writer) -> None:
    rng = writer.rng
    type_ = rng.choice((np.int32, np.int32, np.float32, np.float32, np.int16, np.float16))
    writer.pointer(writer.numbers.integers(-9, 10, _LENGTH).astype(type_))
    for _ in range(rng.randint(1, 3)):
        writer.view(_MEMORY, rng.choice((0, 1, 3, 16, 64, 67)))
    if rng.random() < 0.2:
        writer.traits["unrolled_elementwise"] = rng.choice((400, 64))


class _Loop:
    """One loop, and what it has done so far to the memory that is expected."""

    def __init__(self, writer: Writer) -> None:
        self.writer, rng = writer, writer.rng
        self.memory, self.tag = writer.expected[_MEMORY], writer.name()
        self.rows, self.columns = rng.choice(_SHAPES)
        self.type = np.float32 if self.memory.dtype.kind == "f" else np.int32
        trips = rng.randint(0, 5)
        self.length = max(0, trips * self.columns - rng.choice((0, 0, 1, 7, self.columns - 1)))
        self.count = rng.choice((self.rows, self.rows, self.rows - 1, self.rows // 2 + 1))
        self.stride = rng.choice((self.columns, self.length, self.length + 3, 131))
        self.stride = min(self.stride, (_LENGTH - 2_000 - self.length) // self.rows)
        row, column = f"tl.arange(0, {self.rows})[:, None]", f"tl.arange(0, {self.columns})[None, :]"
        writer.line(f"r{self.tag}, c{self.tag} = {row}, {column}", kept=True)

    def loads(self, row: bool = False, columns: int = 0) -> tuple[str, Callable[[int], Array]]:
        """A tile or a row that is loaded ``{at}`` elements on: its text, and its values."""
        (pointer, first), tag = pointer_of(self.writer), self.tag
        column, rows = np.arange(columns or self.columns)[None, :], np.arange(1 if row else self.rows)[:, None]
        place = "{at} + " + (f"tl.arange(0, {columns})[None, :]" if columns else f"c{tag}")
        mask = f"({place} < {self.length})" + ("" if row else f" & (r{tag} < {self.count})")
        place += "" if row else f" + r{tag} * {self.stride}"
        other = self.writer.rng.choice((0, 0, 7))

        def values(at: int) -> Array:
            there = (at + column < self.length) & (rows < self.count)
            found = self.memory[np.where(there, first + at + column + rows * self.stride, 0)]
            return np.where(there, found, other).astype(self.type)

        return f"tl.load({pointer} + {place}, mask={mask}, other={other}).to({TYPES[np.dtype(self.type)]})", values

    def stores(self, value: str, place: str, at: Array) -> tuple[str, Callable[[Array], None]]:
        """A statement that stores small numbers of what is computed, and what it does to the memory."""
        pointer, first = pointer_of(self.writer)

        def store(values: Array) -> None:
            self.memory[first + at] = (values.astype(np.int32) & 15).astype(self.memory.dtype)

        type_ = TYPES[self.memory.dtype]
        return f"tl.store({pointer} + {place}, (({value}).to(tl.int32) & 15).to({type_}))", store


def _step(writer: Writer) -> None:
    rng, loop = writer.rng, _Loop(writer)
    tag, shape = loop.tag, (loop.rows, loop.columns)
    sums = rng.sample(_SUMS, rng.choice((1, 1, 2)))
    (tile_text, tile_of), (early_text, early_of) = loop.loads(), loop.loads()
    (row_text, row_of), (part_text, part_of) = loop.loads(row=True), loop.loads(columns=16)
    (early,) = writer.add(early_text.format(at=0), early_of(0))
    first, before, on = rng.choice(_WAYS)
    last = max(0, (loop.length - 1) // loop.columns * loop.columns)
    names = {"k": f"k{tag}", "o": f"o{tag}", "C": loop.columns, "last": last}
    place = f"r{tag} * {loop.columns} + c{tag}"
    at = np.arange(loop.rows)[:, None] * loop.columns + np.arange(loop.columns)
    inside = loop.stores(f"t{tag} + k{tag}", place, at) if rng.random() < 0.25 else None
    product = loop.rows >= 16 and rng.random() < 0.2
    type_ = TYPES[np.dtype(loop.type)]
    lines = [f"s{tag}x{i} = tl.full({list(shape)}, {one[0]}, {type_})" for i, one in enumerate(sums)]
    totals = [np.full(shape, one[0], loop.type) for one in sums]
    lines += [before.format(**names)] * bool(before) + [f"d{tag} = tl.zeros([{loop.rows}, 16], tl.float32)"] * product
    body = [f"t{tag} = {tile_text.format(at='f' + tag)}", f"x{tag} = {row_text.format(at='f' + tag)}"]
    body += [f"s{tag}x{i} = {one[1].format(f's{tag}x{i}', 't' + tag, 'x' + tag)}" for i, one in enumerate(sums)]
    if product:
        part, ones = part_text.format(at="f" + tag), "tl.full([16, 16], 1.0, tl.float32)"
        body.append(f'd{tag} = tl.dot({part}.to(tl.float32), {ones}, d{tag}, input_precision="ieee")')
    if inside:
        body += ["tl.debug_barrier()", inside[0], "tl.debug_barrier()"]
    body += [on.format(**names)] * bool(on)
    lines += [f"for k{tag} in range(0, {loop.length}, {loop.columns}):", f"    f{tag} = {first.format(**names)}"]
    writer.line("\n".join([*lines, *(f"    {one}" for one in body)]), kept=True)
    products, carried = np.zeros((loop.rows, 16), np.float32), 6 if "n * 2" in before else 0
    for number in range(0, loop.length, loop.columns):
        where = {"{k}": number, "{last} - {k}": last - number, "{o}": number}.get(first, carried + number)
        tile, row = tile_of(where), row_of(where)
        totals = [one[2](total, tile, row) for one, total in zip(sums, totals, strict=True)]
        products += part_of(where).sum(1, keepdims=True, dtype=np.float32)
        if inside:
            inside[1](tile + number)
        carried = 6 - carried
    wide, array = "", early.array * 2
    for i, (one, total) in enumerate(zip(sums, totals, strict=True)):
        axis = rng.choice((1, 1, 0))
        (found,) = writer.add(f"tl.{one[3]}(s{tag}x{i}, {axis})", getattr(total, one[3])(axis).astype(loop.type))
        more, number = wait(writer, f"s{tag}x{i} + {early.name}", total + early.array)
        size = found.array.size
        text, store = loop.stores(f"{found.name} + {more}", f"tl.arange(0, {size})", np.arange(size))
        writer.line(text, kept=True)
        store(found.array + number)
        wide += f" + {found.name}" + "[:, None]" * axis
        array = array + (found.array[:, None] if axis else found.array)
    writer.add(f"{early.name} * 2{wide}", array)
    if product:
        writer.add(f"tl.max(d{tag}, 1)", products.max(1))
    more, number = wait(writer, f"{early.name} * 3", early.array * 3)
    text, store = loop.stores(f"{early.name} + {more}", place, at)
    writer.line(f"{text}\ntl.debug_barrier()", kept=True)
    store(early.array + number)


FAMILY = Family("rounds", _start, _step, most_steps=3, without="put rounds into loops over strips")
