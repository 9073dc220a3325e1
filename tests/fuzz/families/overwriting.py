"""Tiles and numbers that are loaded, overwritten where they or others lay, and used afterwards."""

import numpy as np

from tests.fuzz.steps import Array, Family, Value, Writer, place

MEMORY, LENGTH = "p0", 600
_SHAPES = ((8,), (32,), (128,), (4, 8), (16, 16), (2, 64), (64, 1))
#: Of these tiles are cut in strips; they lie in two arguments of their own.
_LARGE, _TURNS = ((1024,), (16, 128), (64, 64), (128, 32)), ("p1", "p2")


def _start(writer: Writer) -> None:
    for length in (LENGTH, 5000, 5000):
        writer.pointer(writer.numbers.integers(-50, 50, length).astype(np.int32))


def _offsets(writer: Writer, shape: tuple[int, ...]) -> tuple[str, Array]:
    """Places of the elements of a tile, no two of them the same: as they lie in memory, turned, or scattered."""
    rng, size = writer.rng, int(np.prod(shape))
    at = np.arange(size).reshape(shape)
    kind = rng.choice(("along", "along", "back", "turned", "scattered"))
    if kind == "back":
        return f"{size - 1} - {place(shape)}", size - 1 - at
    if kind == "turned" and len(shape) == 2:
        return f"tl.trans(tl.reshape({place((size,))}, [{shape[1]}, {shape[0]}]))", at.reshape(shape[::-1]).T
    if kind == "scattered":
        factor = rng.choice((3, 5, 7))
        return f"({place(shape)} * {factor} & {size - 1})", at * factor & (size - 1)
    return place(shape), at


def _number(writer: Writer) -> None:
    """A number that is replaced after it was loaded."""
    rng, memory = writer.rng, writer.expected[MEMORY]
    at, shape, more = rng.randrange(LENGTH), rng.choice(_SHAPES), rng.randint(1, 9)
    (old,) = writer.add(f"tl.load({MEMORY} + {at})", memory[at].copy())
    texts = (
        f"tl.store({MEMORY} + {at}, {old.name} + {more})",
        f'tl.atomic_add({MEMORY} + {at}, {more}, sem="relaxed")',
        f'tl.atomic_add({MEMORY} + {at} + tl.arange(0, 1), {more}, sem="acquire")',
    )
    writer.line(rng.choice(texts), kept=True)
    writer.add(f"{old.name} + tl.zeros({list(shape)}, tl.int32)", np.full(shape, memory[at]))
    memory[at] += more


def _tile(writer: Writer) -> None:
    """A tile that is stored elsewhere, where some of it lies."""
    rng, memory = writer.rng, writer.expected[MEMORY]
    shape = rng.choice(_SHAPES)
    size = int(np.prod(shape))
    first, second = (rng.randrange(min(LENGTH - size, 40)) for _ in range(2))
    (text, at), (to_text, to) = _offsets(writer, shape), _offsets(writer, shape)
    (x,) = writer.add(f"tl.load({MEMORY} + {first} + {text})", memory[first + at])
    axis = rng.randrange(len(shape))
    index = ", ".join("None" if one == axis else ":" for one in range(len(shape) + 1))
    wide = (*shape[:axis], 2, *shape[axis:])
    if rng.random() < 0.5:
        other = rng.choice(("n", f"tl.sum({x.name}, {axis}, keep_dims=True)"))
        array = x.array + (writer.scalar if other == "n" else x.array.sum(axis, keepdims=True))
        stored = writer.add(f"({x.name} + {other}).to(tl.int32)", array.astype(np.int32))[0]
    else:
        stored = x
    inside = stored.array > -20 if rng.random() < 0.3 else np.ones(shape, bool)
    mask = f", mask={stored.name} > -20" if not inside.all() else ""
    writer.line(f"tl.store({MEMORY} + {second} + {to_text}, {stored.name}{mask})", kept=True)
    memory[(second + to)[inside]] = stored.array[inside]
    writer.add(
        f"tl.broadcast_to({x.name}[{index}], {list(wide)})", np.broadcast_to(np.expand_dims(x.array, axis), wide)
    )


def _loop(writer: Writer) -> None:
    """A tile that moves on in each iteration."""
    rng, memory = writer.rng, writer.expected[MEMORY]
    shape, step = rng.choice(_SHAPES), rng.choice((-7, -1, 0, 1, 4))
    size, moves = int(np.prod(shape)), rng.random() < 0.5
    first = rng.randrange(40, LENGTH - size - 40)
    text, at = _offsets(writer, shape)
    start = f"{MEMORY} + {first}" + (" + round" if moves else "")
    tile, body = writer.name(), writer.name()
    writer.line(
        f"{tile} = tl.zeros({list(shape)}, tl.int32)\n"
        "for round in range(n):\n"
        f"    {body} = tl.load({start} + {text})\n"
        f"    tl.store({start} + {step} + {place(shape)}, {body} + 1)\n"
        f"    {tile} = {tile} * 3 + {body}\n"
        "    tl.debug_barrier()",
        kept=True,
    )
    found = np.zeros(shape, np.int32)
    for number in range(writer.scalar):
        base = first + (number if moves else 0)
        loaded = memory[base + at]
        memory[base + step + np.arange(size).reshape(shape)] = loaded + 1
        found = found * 3 + loaded
    writer.add(f"{tile} + 0", found)


def _turns(writer: Writer) -> None:
    """Large tiles and rows' first elements of two arguments, loaded and overwritten turn about."""
    rng, shape = writer.rng, writer.rng.choice(_LARGE)
    at = np.arange(np.prod(shape)).reshape(shape)
    rows = f"tl.arange(0, {shape[0]})[:, None] * {shape[-1]}"
    tiles: list[Value] = []
    written: set[str] = set()
    for _ in range(rng.randint(4, 9)):
        name, first, act = rng.choice(_TURNS), rng.randrange(40), rng.choice(("load", "column", "store", "store"))
        memory = writer.expected[name]
        if name in written:
            writer.line("tl.debug_barrier()", kept=True)
            written.clear()
        if act == "store" and tiles:
            x, y = rng.choice(tiles), rng.choice(tiles)
            total, wide = x.array + y.array, f"tl.broadcast_to({x.name} + {y.name}, {list(shape)})"
            writer.line(f"tl.store({name} + {first} + {place(shape)}, {wide})", kept=True)
            memory[first + at] = total
            written.add(name)
        else:  # of no value of the kernel's, so that it is where its uses are
            column = act == "column" and len(shape) == 2
            text, places = (rows, at[:, :1]) if column else (place(shape), at)
            tiles.append(Value(writer.name(), memory[first + places]))
            writer.line(f"{tiles[-1].name} = tl.load({name} + {first} + {text})", kept=True)


def _step(writer: Writer) -> None:
    writer.rng.choice((_number, _tile, _tile, _loop, _turns))(writer)
    writer.line("tl.debug_barrier()", kept=True)


FAMILY = Family("overwriting", _start, _step, most_steps=6)
