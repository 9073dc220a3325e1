"""Loads at indices that are computed of numbers of either sign: quotients, remainders, shifts and choices of blocks
beginning at multiples of their size. There vectors are loaded where the compiler knows of runs."""

from collections.abc import Callable

import numpy as np

from tests.fuzz.steps import Array, Family, Writer

_MEMORY = "p0"
_LENGTH, _MIDDLE = 8192, 4096
_SIZES = (32, 256, 1024)
_NUMBERS = (2, 4, 8, 16, 32, 64, 5, 12, -16)

#: A number of a kernel, and what it is; the argument ``n`` is 3.
_STARTS: tuple[tuple[str, int], ...] = (
    *(("0", 0), ("n * 64", 192), ("(n - 3) * 64", 0), ("(n - 4) * 64", -64), ("(n - 9) * 32", -192), ("-1024", -1024)),
    *(("-n", -3), ("tl.program_id(0) * 64", 0), ("tl.program_id(0) - 128", -128), ("tl.maximum(n - 4, 0) * 64", 0)),
)


def _divided(i: Array, by: int) -> Array:
    """Towards zero."""
    return (i - np.fmod(i, by)) // by


def _unsigned(function: Callable[[Array, int], Array]) -> Callable[[Array, int], Array]:
    return lambda i, by: function(i.astype(np.int64) & 0xFFFFFFFF, by & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)


#: An operation on an index and a number, and what it gives.
_OPERATIONS: dict[str, Callable[[Array, int], Array]] = {
    "({i} // {c})": _divided,
    "({i} % {c})": np.fmod,
    "({i} // {c} * {c})": lambda i, c: i - np.fmod(i, c),
    "({i} + {c})": np.add,
    "({i} - {c})": np.subtract,
    "({i} & {c})": np.bitwise_and,
    "tl.maximum({i}, {c})": np.maximum,
    "tl.minimum({i}, {c})": np.minimum,
    "tl.where({i} < {c}, {i} % 32, 64)": lambda i, c: np.where(i < c, np.fmod(i, 32), 64),
    "({i} >> 4)": lambda i, c: i >> 4,
    "({i}.to(tl.uint32) // {c}).to(tl.int32)": _unsigned(np.floor_divide),
    "({i}.to(tl.uint32) % {c}).to(tl.int32)": _unsigned(np.remainder),
}


def _start(writer: Writer) -> None:
    writer.pointer(writer.numbers.integers(-50, 50, _LENGTH).astype(np.int32), aligned=True)


def _step(writer: Writer) -> None:
    rng = writer.rng
    (start, first), size = rng.choice(_STARTS), rng.choice(_SIZES)
    text, index = f"(tl.arange(0, {size}) + {start})", np.arange(size, dtype=np.int32) + np.int32(first)
    for _ in range(rng.randint(1, 3)):
        operation, number = rng.choice([*_OPERATIONS]), rng.choice(_NUMBERS)
        found = _OPERATIONS[operation](index, number)
        if "uint32" in operation and number < 0:
            continue
        if abs(found.astype(np.int64)).max() < _MIDDLE:
            text, index = operation.format(i=text, c=number), found.astype(np.int32)
    writer.add(f"tl.load({_MEMORY} + {_MIDDLE} + {text})", writer.memory[_MEMORY][_MIDDLE + index])


FAMILY = Family("indices", _start, _step, most_steps=6)
