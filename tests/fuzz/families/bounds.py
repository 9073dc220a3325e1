"""Loops and branches that data decides: their bounds and conditions are reductions or numbers that were loaded, and
they carry tiles of every type, conditions, pointers and scalars."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.fuzz.families.integers import random_integers
from tests.fuzz.steps import TYPES, Array, Family, Value, Writer, place

_SHAPES = ((16,), (128,), (1024,), (4096,), (8, 32), (64, 64), (16, 256), (2, 1024))
_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float32", "float64")

#: Rounds of a loop and loops in one another at most, reads of a nest, and tiles that its pointers therefore walk over.
_ROUNDS, _DEPTH, _READS = 7, 2, 2
_TILES = _READS * (_ROUNDS**_DEPTH + 1)

#: What the names of a kernel hold, and what a statement or an expression does with it.
Names = dict[str, Any]
Statement = tuple[list[str], Callable[[Names], None]]
Expression = tuple[str, Callable[[Names], Any]]

#: ``a`` and ``b`` of one type, ``c`` conditions: where they are conditions, numbers, and both.
_OF_CONDITIONS: tuple[tuple[str, Callable[..., Array]], ...] = (
    ("{a} | {c}", lambda a, b, c: a | c),
    ("{a} ^ {b}", lambda a, b, c: a ^ b),
    ("{a} & ({b} == {c})", lambda a, b, c: a & (b == c)),
)
_OF_NUMBERS: tuple[tuple[str, Callable[..., Array]], ...] = (
    ("{a} + {b}", lambda a, b, c: a + b),
    ("{a} - {b}", lambda a, b, c: a - b),
    ("tl.maximum({a}, {b})", lambda a, b, c: np.maximum(a, b)),
    ("{a} + {c}.to({t})", lambda a, b, c: a + c.astype(a.dtype)),
    ("{a} + tl.max({b}, 0, keep_dims=True)", lambda a, b, c: a + b.max(0, keepdims=True)),
)
_OF_BOTH: tuple[tuple[str, Callable[..., Array]], ...] = (
    ("tl.where({c}, {a}, {b})", lambda a, b, c: np.where(c, a, b)),
    ("tl.where({c}, {b}, {a})", lambda a, b, c: np.where(c, b, a)),
)


def _indented(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


class _Nest:
    """Writes statements about the names that one nest carries: ``tiles`` with their types, ``scalar`` of int32, and
    ``pointers`` to a tile of ``source``. ``lengths``: a tile of numbers below 8; ``p``: where ``source`` lies."""

    def __init__(self, writer: Writer, lengths: Value, p: str, source: Array) -> None:
        self.writer, self.rng, self.lengths, self.p, self.source = writer, writer.rng, lengths, p, source
        self.tiles: dict[str, np.dtype[Any]] = {}
        self.scalar, self.pointers, self.reads = writer.name(), writer.name(), 0

    def bound(self) -> Expression:
        """A number of rounds."""
        tile, scalar, rng = self.lengths.name, self.scalar, self.rng
        at, bit = rng.randrange(self.source[0].size), rng.choice((1, 2))
        return rng.choice(
            (
                (f"tl.max({tile})", lambda names: names[tile].max()),
                (f"tl.min({tile})", lambda names: names[tile].min()),
                (f"(tl.sum({tile} & {bit}) & 7)", lambda names: (names[tile] & bit).sum() & 7),
                (f"(tl.load({self.p} + {at}) & 7)", lambda names: self.source[0].reshape(-1)[at] & 7),
                (f"({scalar} & 7)", lambda names: names[scalar] & 7),
            )
        )

    def conditions(self, counter: str) -> Expression:
        """A tile of them."""
        tile, bit = self.lengths.name, self.rng.choice((1, 2, 4))
        if not counter or self.rng.random() < 0.3:
            return f"(({tile} & {bit}) != 0)", lambda names: (names[tile] & bit) != 0
        return f"({tile} > {counter})", lambda names: names[tile] > names[counter]

    def update(self, counter: str) -> Statement:
        """A tile becomes another one of its type, or two are exchanged."""
        rng, tile = self.rng, self.rng.choice(list(self.tiles))
        dtype = self.tiles[tile]
        alike = [name for name, other in self.tiles.items() if other == dtype and name != tile]
        other = rng.choice(alike or [tile])
        if alike and rng.random() < 0.3:
            return [f"{tile}, {other} = {other}, {tile}"], lambda names: names.update(
                {tile: names[other], other: names[tile]}
            )
        c, holds = self.conditions(counter)
        text, apply = rng.choice((_OF_CONDITIONS if dtype.kind == "b" else _OF_NUMBERS) + _OF_BOTH)
        text = text.format(a=tile, b=other, c=c, t=TYPES[dtype])
        if dtype.kind == "f":  # whole numbers that every type holds
            text = f"tl.minimum(tl.maximum({text}, -60.0), 60.0)"

        def run(names: Names) -> None:
            found = apply(names[tile], names[other], holds(names))
            names[tile] = (np.clip(found, -60, 60) if dtype.kind == "f" else found).astype(dtype)

        return [f"{tile} = ({text}).to({TYPES[dtype]})"], run

    def read(self, counter: str) -> Statement:
        """The scalar changes by what the pointers point to, and they go on to the next tile."""
        scalar, pointers, (c, holds) = self.scalar, self.pointers, self.conditions(counter)

        def run(names: Names) -> None:
            found = np.where(holds(names), self.source[names[pointers]], 3).sum(dtype=np.int64)
            names[scalar] = np.int32((int(names[scalar]) + int(found) + 2**31) % 2**32 - 2**31)
            names[pointers] += 1

        size = self.source[0].size
        return [f"{scalar} += tl.sum(tl.load({pointers}, mask={c}, other=3))", f"{pointers} += {size}"], run

    def body(self, depth: int, counter: str) -> Statement:
        """Some statements."""
        found = [self.update(counter) for _ in range(self.rng.randint(1, 2))]
        if self.reads < _READS and self.rng.random() < 0.4:
            self.reads += 1
            found.append(self.read(counter))
        if depth < _DEPTH and self.rng.random() < 0.4:
            found.append(self.loop(depth))
        if self.rng.random() < 0.3:
            found.append(self.branch(counter))
        self.rng.shuffle(found)

        def run(names: Names) -> None:
            for _, one in found:
                one(names)

        return [line for lines, _ in found for line in lines], run

    def branch(self, counter: str) -> Statement:
        """One of two, by a reduction."""
        tile, size = self.lengths.name, self.lengths.array.size
        bit, least = self.rng.choice((1, 2, 4)), self.rng.choice((0, size // 2, size))
        (yes, do), (no, otherwise) = self.update(counter), self.update(counter)
        lines = [f"if tl.sum({tile} & {bit}) > {bit * least}:", *_indented(yes), "else:", *_indented(no)]
        return lines, lambda names: (do if (names[tile] & bit).sum() > bit * least else otherwise)(names)

    def loop(self, depth: int) -> Statement:
        """A loop of as many rounds as data says."""
        counter, (bound, number), tile = self.writer.name(), self.bound(), self.lengths.name
        inside, once = self.body(depth + 1, counter)
        kind, first, going = self.rng.choice(("up", "down", "while", "any")), self.rng.choice((0, 0, 1)), counter + "0"
        counted = [*_indented(inside), f"    {counter} += 1"]

        def turns(values: Iterable[int], names: Names) -> None:
            for names[counter] in values:
                once(names)

        def turns_while(names: Names) -> None:
            names[counter] = first
            while names[counter] < number(names):
                once(names)
                names[counter] += 1

        if kind == "up":
            head = f"for {counter} in range({first}, {bound}):"
            return [head, *_indented(inside)], lambda names: turns(range(first, number(names)), names)
        if kind == "down":
            head = f"for {counter} in range({bound}, {first}, -1):"
            return [head, *_indented(inside)], lambda names: turns(range(number(names), first, -1), names)
        if kind == "while":
            return [f"{counter} = {first}", f"while {counter} < {bound}:", *counted], turns_while
        head = f"while tl.max({going}.to(tl.int32)) > 0:"
        last = f"    {going} = {going} & ({tile} > {counter})"
        lines = [f"{counter} = 0", f"{going} = {tile} > 0", head, *counted, last]
        return lines, lambda names: turns(range(names[tile].max()), names)


def _start(writer: Writer) -> None:
    shape, most = writer.rng.choice(_SHAPES), writer.rng.choice((0, 1, 2, 7, 7))
    lengths = writer.numbers.integers(0, most, shape, np.int32, endpoint=True)
    writer.load(lengths if writer.rng.random() < 0.8 else np.full(shape, most, np.int32))
    for name in writer.rng.sample(_TYPES, 3):
        dtype = np.dtype(name)
        if dtype.kind == "b":
            writer.add(f"({writer.values[0].name} & 1) != 0", (writer.values[0].array & 1) != 0)
        elif dtype.kind == "f":
            writer.load(writer.numbers.integers(-60, 60, shape).astype(dtype))
        else:
            writer.load(random_integers(writer, shape, dtype))


def _step(writer: Writer) -> None:
    rng, lengths = writer.rng, writer.values[0]
    shape = lengths.array.shape
    source = writer.numbers.integers(0, 99, (_TILES, *shape), np.int32)
    nest = _Nest(writer, lengths, writer.pointer(source.reshape(-1)), source)
    fitting = [value for value in writer.values if value.array.shape == shape]
    names: Names = {lengths.name: lengths.array}
    firsts = []
    for value in [rng.choice(fitting) for _ in range(rng.randint(1, 3))]:
        for _ in range(rng.randint(1, 2)):
            tile, zeros = writer.name(), rng.random() < 0.4
            nest.tiles[tile] = value.array.dtype
            names[tile] = np.zeros_like(value.array) if zeros else value.array
            firsts.append(f"tl.zeros({list(shape)}, {value.type})" if zeros else value.name)
    first, names[nest.scalar] = rng.choice(
        (("0", 0), ("n", writer.scalar), (f"tl.max({lengths.name})", lengths.array.max()))
    )
    names[nest.pointers], names[nest.scalar] = 0, np.int32(names[nest.scalar])
    lines, run = nest.loop(0)
    run(names)
    carried = ", ".join((*nest.tiles, nest.scalar, nest.pointers))
    writer.line("\n".join([f"{carried} = {', '.join((*firsts, first, f'{nest.p} + {place(shape)}'))}", *lines]))
    for name in (*nest.tiles, nest.scalar):  # under names that the nest does not use, so each is stored
        writer.add(name, np.asarray(names[name]))


FAMILY = Family("bounds", _start, _step, most_steps=3)
