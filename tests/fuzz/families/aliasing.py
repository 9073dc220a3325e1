"""Arguments that are one tensor, or views of one: tiles are loaded through some of them and stored through others, with
a wait of all invocations between."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.steps import Array, Family, Writer, place

_MEMORY = "p0"
_SHAPES = ((64,), (512,), (512,), (2048,), (2048,), (8, 16), (32, 64))
_LENGTH = 2048 + 128

#: Instructions of element-by-element code past which it is cut in strips: the driver's own, and fewer.
_STRIPS = (4000, 400, 64, 64)


@dataclass(frozen=True)
class _Loaded:
    name: str
    array: Array


def _start(writer: Writer) -> None:
    rng = writer.rng
    writer.pointer(writer.numbers.integers(-50, 50, _LENGTH).astype(np.int32))
    for _ in range(rng.randint(1, 3)):
        writer.view(_MEMORY, rng.choice((0, 0, 1, 3, 16, 64)))
    writer.traits["unrolled_elementwise"] = rng.choice(_STRIPS)


def pointer_of(writer: Writer) -> tuple[str, int]:
    """One of the arguments, and where it is in the memory."""
    return writer.rng.choice(((_MEMORY, 0), *((name, behind) for name, (_, behind) in writer.views.items())))


def _offsets(writer: Writer, shape: tuple[int, ...]) -> tuple[str, Array]:
    """Places of the elements of a tile: as they lie in memory, moved on, turned, or some of them several times."""
    rng, size = writer.rng, int(np.prod(shape))
    at = np.arange(size).reshape(shape)
    kind = rng.choice(("along", "along", "round", "back"))
    if kind == "round":
        step = rng.choice((1, size - 1, size // 2))
        return f"({place(shape)} + {step}) % {size}", (at + step) % size
    if kind == "back":
        return f"{size - 1} - {place(shape)}", size - 1 - at
    return place(shape), at


def _load(writer: Writer, shape: tuple[int, ...]) -> _Loaded:
    (pointer, behind), (text, at) = pointer_of(writer), _offsets(writer, shape)
    first = writer.rng.randrange(32)
    array = writer.expected[_MEMORY][behind + first + at]
    (value,) = writer.add(f"tl.load({pointer} + {first} + {text})", array)
    return _Loaded(value.name, array)


def _store(writer: Writer, shape: tuple[int, ...], text: str, array: Array) -> None:
    (pointer, behind), (to_text, to) = pointer_of(writer), _offsets(writer, shape)
    first = writer.rng.randrange(32)
    writer.line(f"tl.store({pointer} + {first} + {to_text}, {text})", kept=True)
    writer.expected[_MEMORY][behind + first + to] = array


def wait(writer: Writer, value: str, array: Array) -> tuple[str, Any]:
    """A wait of all invocations, and what it gives: a sum of a tile, or a number that is there."""
    kind = writer.rng.choice(("barrier", "sum", "sum", "largest"))
    if kind == "barrier":
        writer.line("tl.debug_barrier()", kept=True)
        return "n", writer.scalar
    more = writer.named  # no two reductions are the same one
    whole, tile = f"tl.reshape({value}, [{array.size}]) + {more}", array + more
    text, number = ("tl.sum", tile.sum(dtype=array.dtype)) if kind == "sum" else ("tl.max", tile.max())
    return writer.add(f"{text}({whole}, 0)", number)[0].name, number


def _step(writer: Writer) -> None:
    rng = writer.rng
    shape = rng.choice(_SHAPES)
    tiles = [_load(writer, shape) for _ in range(rng.randint(1, 3))]
    sums = []
    for _ in range(rng.randint(1, 2)):
        tile = rng.choice(tiles)
        name, number = wait(writer, tile.name, tile.array)
        sums.append((name, number))
        one, other = rng.choice(tiles), rng.choice(tiles)
        text, array = f"{one.name} * 3 - {other.name}", one.array * 3 - other.array
        if rng.random() < 0.5:
            text, array = f"{text} + {name}", array + number
        _store(writer, shape, f"(({text}) & 1023).to(tl.int32)", (array & 1023).astype(np.int32))
    writer.line("tl.debug_barrier()", kept=True)
    for number, (name, _) in enumerate(sums):  # used, or there is no wait
        writer.line(f"tl.store({_MEMORY} + {_LENGTH - 1 - number}, {name})", kept=True)
        writer.expected[_MEMORY][_LENGTH - 1 - number] = sums[number][1]
    writer.line("tl.debug_barrier()", kept=True)


FAMILY = Family("aliasing", _start, _step, most_steps=3)
