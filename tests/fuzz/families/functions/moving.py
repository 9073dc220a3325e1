"""What moves elements or makes them: shapes, gathers, constants, places, memory. All of it is exact, bits included."""

from collections.abc import Callable

import numpy as np

from tests.device.helpers import accepted, flushed
from tests.fuzz.families.functions import drawing, judging
from tests.fuzz.families.functions.drawing import ALL, NUMBERS, Dtype, is_float
from tests.fuzz.families.functions.row import Row
from tests.fuzz.steps import TYPES, Array, Writer, place

#: What a call gives: its text, and the arrays.
Call = tuple[str, list[Array]]


def _loaded(writer: Writer, array: Array) -> str:
    name = writer.load(array).name
    return f"{name}.to(tl.int1)" if array.dtype.kind == "b" else name


def _row(names: str, definition: str, call: Callable[[Writer, Dtype], Call], types: tuple[str, ...] = ALL,
         domain: str = "all numbers") -> Row:  # fmt: skip
    def write(writer: Writer, dtype: Dtype) -> None:
        text, arrays = call(writer, dtype)
        writer.add_judged(text, *((array, judging.exact(array)) for array in arrays))

    return Row(names, types, definition, write, domain=domain)


def _tile(writer: Writer, dtype: Dtype, rank: int | None = None) -> tuple[str, Array]:
    array = drawing.numbers(writer, drawing.shape_of(writer, rank), dtype)
    return _loaded(writer, array), array


def _two(writer: Writer, dtype: Dtype, rank: int | None = None) -> tuple[str, Array, str, Array]:
    shape = drawing.shape_of(writer, rank)
    a, b = drawing.numbers(writer, shape, dtype), drawing.numbers(writer, shape, dtype)
    return _loaded(writer, a), a, _loaded(writer, b), b


def _shaped(writer: Writer, size: int) -> list[int]:
    """Axes that have so many elements."""
    shape, left = [], size.bit_length() - 1
    while left and len(shape) < 3:
        shape.append(1 << (axis := writer.rng.randint(0, left)))
        left -= axis
    return [*shape, 1 << left] if left or not shape else shape


def _reshape(writer: Writer, dtype: Dtype) -> Call:
    name, array = _tile(writer, dtype)
    shape = _shaped(writer, array.size)
    return f"tl.reshape({name}, {shape})", [array.reshape(shape)]


def _ravel(writer: Writer, dtype: Dtype) -> Call:
    name, array = _tile(writer, dtype)
    return f"tl.ravel({name})", [array.reshape(-1)]


def _view(writer: Writer, dtype: Dtype) -> Call:
    """It may move elements, all of which are therefore sorted."""
    name, array = _tile(writer, dtype)
    return f"tl.sort(tl.view({name}, [{array.size}]))", [np.sort(array.reshape(-1))]


def _permute(name: str) -> Callable[[Writer, Dtype], Call]:
    def call(writer: Writer, dtype: Dtype) -> Call:
        value, array = _tile(writer, dtype, writer.rng.choice((2, 3)))
        order = list(range(array.ndim))
        writer.rng.shuffle(order)
        return f"tl.{name}({value}, {', '.join(map(str, order))})", [array.transpose(order)]

    return call


def _expand(name: str) -> Callable[[Writer, Dtype], Call]:
    def call(writer: Writer, dtype: Dtype) -> Call:
        value, array = _tile(writer, dtype)
        axis = writer.rng.randint(0, array.ndim)
        return f"tl.{name}({value}, {axis})", [np.expand_dims(array, axis)]

    return call


def _squeeze(writer: Writer, dtype: Dtype) -> Call:
    array = drawing.numbers(writer, writer.rng.choice(((1, 64), (128, 1), (1, 16, 8))), dtype)
    axis = array.shape.index(1)
    return f"tl.squeeze({_loaded(writer, array)}, {axis})", [array.squeeze(axis)]


def _broadcast_to(writer: Writer, dtype: Dtype) -> Call:
    array = drawing.numbers(writer, writer.rng.choice(((1, 64), (16, 1), (1, 16, 8), (4, 1, 1))), dtype)
    shape = [length if length > 1 else writer.rng.choice((1, 2, 8)) for length in array.shape]
    return f"tl.broadcast_to({_loaded(writer, array)}, {shape})", [np.broadcast_to(array, shape)]


def _broadcast(writer: Writer, dtype: Dtype) -> Call:
    a, b = drawing.numbers(writer, (1, 16), dtype), drawing.numbers(writer, (8, 1), dtype)
    text = f"tl.broadcast({_loaded(writer, a)}, {_loaded(writer, b)})"
    return text, [np.broadcast_to(part, (8, 16)) for part in (a, b)]


def _join(writer: Writer, dtype: Dtype) -> Call:
    one, a, other, b = _two(writer, dtype)
    return f"tl.join({one}, {other})", [np.stack([a, b], -1)]


def _split(writer: Writer, dtype: Dtype) -> Call:
    array = drawing.numbers(writer, (*drawing.shape_of(writer, writer.rng.choice((1, 2))), 2), dtype)
    return f"tl.split({_loaded(writer, array)})", [array[..., 0], array[..., 1]]


def _interleave(writer: Writer, dtype: Dtype) -> Call:
    one, a, other, b = _two(writer, dtype)
    return f"tl.interleave({one}, {other})", [np.stack([a, b], -1).reshape(*a.shape[:-1], -1)]


def _cat(writer: Writer, dtype: Dtype) -> Call:
    one, a, other, b = _two(writer, dtype)
    axis = writer.rng.randrange(a.ndim)
    return f"tl.cat({one}, {other}, dim={axis})", [np.concatenate([a, b], axis)]


def _flip(writer: Writer, dtype: Dtype) -> Call:
    name, array = _tile(writer, dtype)
    axis = writer.rng.randrange(array.ndim) - writer.rng.choice((0, array.ndim))
    return f"tl.flip({name}, {axis})", [np.flip(array, axis)]


def _gather(writer: Writer, dtype: Dtype) -> Call:
    name, array = _tile(writer, dtype)
    axis = writer.rng.randrange(array.ndim)
    shape = list(array.shape)
    shape[axis] = writer.rng.choice((1, 2, 16, 64)) if array.size // array.shape[axis] <= 16 else shape[axis]
    index = writer.numbers.integers(0, array.shape[axis], shape).astype(writer.rng.choice(("int32", "int64")))
    return f"tl.gather({name}, {_loaded(writer, index)}, {axis})", [np.take_along_axis(array, index, axis)]


def _arange(writer: Writer, dtype: Dtype) -> Call:
    start, length = writer.rng.randint(0, (1 << 31) - 600), writer.rng.choice((1, 2, 64, 512))
    return f"tl.arange({start}, {start + length})", [np.arange(start, start + length, dtype=np.int32)]


def _full(writer: Writer, dtype: Dtype) -> Call:
    shape = drawing.shape_of(writer)
    number = drawing.numbers(writer, (), dtype)[()]
    text = f"float('{number}')" if is_float(dtype) else str(int(number))
    return f"tl.full({list(shape)}, {text}, {TYPES[dtype]})", [np.full(shape, number)]


def _zeros(writer: Writer, dtype: Dtype) -> Call:
    shape = drawing.shape_of(writer)
    return f"tl.zeros({list(shape)}, {TYPES[dtype]})", [np.zeros(shape, dtype)]


def _zeros_like(writer: Writer, dtype: Dtype) -> Call:
    name, array = _tile(writer, dtype)
    return f"tl.zeros_like({name})", [np.zeros(array.shape, dtype)]


def _swizzle(writer: Writer, dtype: Dtype) -> Call:
    """By the drawing of upstream's documentation: groups of rows, each a column at a time."""
    rows, columns, group = (writer.rng.randint(1, 12) for _ in range(3))
    places = writer.numbers.integers(0, rows * columns, 64).astype(dtype)
    i, j = places // columns, places % columns
    cells = [
        (row, column)
        for first in range(0, rows, group)
        for column in range(columns)
        for row in range(first, min(first + group, rows))
    ]
    there = np.array(cells)[places]
    text = f"tl.swizzle2d({_loaded(writer, i)}, {_loaded(writer, j)}, {rows}, {columns}, {group})"
    return text, [there[:, 0].astype(dtype), there[:, 1].astype(dtype)]


def _load(writer: Writer, dtype: Dtype) -> Call:
    shape = drawing.shape_of(writer)
    array, other = drawing.numbers(writer, shape, dtype), drawing.numbers(writer, shape, dtype)
    mask = writer.numbers.random(shape) < 0.5
    pointer = writer.pointer(array.reshape(-1))
    filled = _loaded(writer, other)
    text = f"tl.load({pointer} + {place(shape)}, mask={_loaded(writer, mask)}, other={filled})"
    return text, [np.where(mask, array, other)]


def _store(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    before, values = drawing.numbers(writer, shape, dtype), drawing.numbers(writer, shape, dtype)
    mask = writer.numbers.random(shape) < 0.5
    pointer = writer.pointer(before.reshape(-1))
    writer.expected[pointer] = np.where(mask, values, before).reshape(-1)
    writer.judges[pointer] = judging.exact(writer.expected[pointer])
    name, kept = writer.load(values).name, _loaded(writer, mask)
    writer.line(f"tl.store({pointer} + {place(shape)}, {name}, mask={kept})", kept=True)


_ATOMICS = {
    "add": np.add, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "xchg": lambda a, b: b,
}  # fmt: skip


def _atomic(name: str) -> Callable[[Writer, Dtype], None]:
    """Each element at a place of its own, so that its old value is known."""

    def write(writer: Writer, dtype: Dtype) -> None:
        shape = drawing.shape_of(writer)
        before, values = (drawing.without_nan(drawing.numbers(writer, shape, dtype)) for _ in range(2))
        mask = writer.numbers.random(shape) < 0.7
        with np.errstate(all="ignore"):
            ways = accepted(_ATOMICS[name], before, values) if name == "add" else [_ATOMICS[name](before, values)]
            if name == "add" and is_float(dtype):  # an atomic unit may know no subnormal numbers where others do
                ways.append(flushed(_ATOMICS[name](flushed(before), flushed(values))))
        after = [np.where(mask, way, before) for way in ways]
        pointer = writer.pointer(before.reshape(-1))
        writer.expected[pointer] = after[0].reshape(-1)
        writer.judges[pointer] = (judging.either_zero if name in ("max", "min") else judging.exact)(*after)
        old, loaded, kept = writer.name(), writer.load(values).name, _loaded(writer, mask)
        writer.line(f"{old} = tl.atomic_{name}({pointer} + {place(shape)}, {loaded}, mask={kept})", kept=True)
        known = np.where(mask, before, dtype.type(0))
        writer.add_judged(f"tl.where({kept}, {old}, 0)", (known, judging.exact(known)))

    return write


def _compare_and_swap(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    before, values = (drawing.numbers(writer, shape, dtype) for _ in range(2))
    compared = np.where(writer.numbers.random(shape) < 0.6, before, drawing.numbers(writer, shape, dtype))
    bits = f"u{dtype.itemsize}"
    equal = before.view(bits) == np.ascontiguousarray(compared).view(bits)
    pointer = writer.pointer(before.reshape(-1))
    writer.expected[pointer] = np.where(equal, values, before).reshape(-1)
    writer.judges[pointer] = judging.exact(writer.expected[pointer])
    names = [writer.load(part).name for part in (compared, values)]
    old = writer.name()
    writer.line(f"{old} = tl.atomic_cas({pointer} + {place(shape)}, {names[0]}, {names[1]})", kept=True)
    writer.add_judged(f"{old}", (before, judging.exact(before)))


_COUNTED = ("int32", "uint32", "int64", "uint64")
_NO_NAN = "numbers but NaN, each at a place of its own"

MOVING = [
    _row("reshape", "another shape, in the same order", _reshape),
    _row("view", "another shape, in any order", _view, ("int8", "uint16", "int32", "uint64")),
    _row("ravel", "one axis", _ravel),
    _row("permute", "axes in another order", _permute("permute")),
    _row("trans", "axes in another order", _permute("trans")),
    _row("expand_dims", "a further axis of one element", _expand("expand_dims")),
    _row("unsqueeze", "a further axis of one element", _expand("unsqueeze")),
    _row("squeeze", "an axis less", _squeeze),
    _row("broadcast_to", "axes of one element, repeated", _broadcast_to),
    _row("broadcast", "two tiles, of one shape", _broadcast),
    _row("join", "a further axis, of two tiles", _join),
    _row("split", "the halves of the last axis", _split),
    _row("interleave", "elements of two tiles in turn", _interleave),
    _row("cat", "one tile behind the other", _cat),
    _row("flip", "an axis from its end", _flip, ALL[1:]),
    _row("gather", "elements of an axis by their places", _gather, domain="places inside"),
    _row("arange", "whole numbers in a row", _arange, ("int32",)),
    _row("full", "one number", _full, NUMBERS),
    _row("zeros", "zeros", _zeros),
    _row("zeros_like", "zeros", _zeros_like),
    _row("swizzle2d", "places in groups of rows, each a column at a time", _swizzle, ("int32", "int64"),
         "places inside"),
    _row("load", "memory where a mask is set, else the other value", _load),
    Row("store", ALL[1:], "memory changes where a mask is set", _store),
    *(Row(f"atomic_{name}", (*_COUNTED, "float32"), "the old value; memory has the result", _atomic(name),
          "of zeros either", _NO_NAN) for name in ("max", "min")),
    Row("atomic_add", (*_COUNTED, "float32"), "the old value; memory has the sum", _atomic("add"),
        "zero for a subnormal sum", _NO_NAN),
    *(Row(f"atomic_{name}", _COUNTED, "the old value; memory has the result", _atomic(name), domain=_NO_NAN)
      for name in ("and", "or", "xor")),
    Row("atomic_xchg", (*_COUNTED, "float32", "float64"), "the old value; memory has the other", _atomic("xchg"),
        domain=_NO_NAN),
    Row("atomic_cas", (*_COUNTED, "float32", "float64"), "the old value; memory changes where its bits are compared to",
        _compare_and_swap),
]  # fmt: skip
