"""Tiles of one to five dimensions: what moves elements, and booleans among them."""

import numpy as np

from tests.fuzz.steps import TYPES, Family, Value, Writer

_TYPES = tuple(np.dtype(name) for name in ("int8", "int32", "int64", "float16", "float32", "uint16", "bool"))
MOST_ELEMENTS, MOST_AXES = 1024, 5


def _factors(writer: Writer, size: int) -> tuple[int, ...]:
    """A shape of so many elements, a power of two."""
    shape = [1] * writer.rng.randint(1, MOST_AXES)
    for _ in range(size.bit_length() - 1):
        shape[writer.rng.randrange(len(shape))] *= 2
    return tuple(shape)


def _tile(writer: Writer, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Value:
    numbers = writer.numbers.integers(0, 2 if dtype.kind == "b" else 40, shape)
    if dtype.kind == "b":
        loaded = writer.load(numbers.astype(np.int8))
        return writer.add(f"{loaded.name} != 0", numbers != 0)[0]
    return writer.load(numbers.astype(dtype))


def _start(writer: Writer) -> None:
    size = 1 << writer.rng.randint(3, 9)
    for _ in range(3):
        _tile(writer, _factors(writer, size), writer.rng.choice(_TYPES))


def _moved(writer: Writer, a: Value) -> None:
    """Other places for the same elements."""
    rng, x, shape = writer.rng, a.array, a.array.shape
    axis = rng.randrange(len(shape))
    order = list(range(len(shape)))
    rng.shuffle(order)
    other = _factors(writer, x.size)
    rows = [
        (f"tl.reshape({a.name}, {list(other)})", x.reshape(other)),
        (f"tl.permute({a.name}, {tuple(order)})" if len(order) > 1 else f"tl.ravel({a.name})", x.transpose(order)),
        (f"tl.flip({a.name}, {axis})", np.flip(x, axis)),
        (f"tl.ravel({a.name})", x.reshape(-1)),
    ]
    if len(shape) < MOST_AXES:
        where = rng.randint(0, len(shape))
        index = ", ".join("None" if place == where else ":" for place in range(len(shape) + 1))
        rows.append((f"{a.name}[{index}]", np.expand_dims(x, where)))
        rows.append((f"tl.expand_dims({a.name}, {where})", np.expand_dims(x, where)))
    writer.add(*rng.choice(rows))


def _joined(writer: Writer, a: Value) -> None:
    """Two tiles of a shape as one, or a tile as two."""
    rng, x = writer.rng, a.array
    b = writer.pick(lambda value: value.array.shape == x.shape and value.array.dtype == x.dtype) or a
    y = b.array
    if x.shape[-1] == 2 and x.ndim > 1 and rng.random() < 0.5:
        writer.add(f"tl.split({a.name})", x[..., 0], x[..., 1])
    elif 2 * x.size <= MOST_ELEMENTS and x.ndim < MOST_AXES:
        axis = rng.randrange(x.ndim)
        stacked = np.stack((x, y), -1)
        writer.add(
            *rng.choice(
                (
                    (f"tl.join({a.name}, {b.name})", stacked),
                    (f"tl.interleave({a.name}, {b.name})", stacked.reshape((*x.shape[:-1], -1))),
                    (f"tl.cat({a.name}, {b.name}, dim={axis})", np.concatenate((x, y), axis)),
                )
            )
        )
    else:
        _moved(writer, a)


def _combined(writer: Writer, a: Value) -> None:
    """A tile and one that broadcasts to it."""
    rng, x, type_ = writer.rng, a.array, a.type
    axis = rng.randrange(x.ndim)
    b = writer.pick(lambda value: value.array.shape == x.shape and value.array.dtype != bool) or a
    c = writer.pick(lambda value: value.array.shape == x.shape and value.array.dtype == bool)
    if x.dtype == bool:
        same = writer.pick(lambda value: value.array.shape == x.shape and value.array.dtype == bool) or a
        sign, apply = rng.choice((("&", np.logical_and), ("|", np.logical_or), ("^", np.logical_xor)))
        writer.add(f"{a.name} {sign} {same.name}", apply(x, same.array))
        return
    if c is not None and rng.random() < 0.5:
        writer.add(f"tl.where({c.name}, {a.name}, {b.name}.to({type_}))", np.where(c.array, x, b.array.astype(x.dtype)))
        return
    index = f"({b.name}.to(tl.int32) & {x.shape[axis] - 1})"
    places = b.array.astype(np.int32) & (x.shape[axis] - 1)
    largest = np.broadcast_to(x.max(axis, keepdims=True), x.shape)
    rows = [
        (f"tl.gather({a.name}, {index}, {axis})", np.take_along_axis(x, places.astype(np.int64), axis)),
        (f"tl.broadcast_to(tl.max({a.name}, {axis}, keep_dims=True), {list(x.shape)}).to({type_})", largest),
        (f"{a.name} >= {b.name}.to({type_})", x >= b.array.astype(x.dtype)),
        (f"tl.sort({a.name}, {x.ndim - 1}).to({type_})", np.sort(x, -1)),  # wider where the axis has one element
        (f"tl.maximum({a.name}, tl.min({a.name}, {axis}, keep_dims=True) + 1).to({type_})",
         np.maximum(x, x.min(axis, keepdims=True) + x.dtype.type(1))),
    ]  # fmt: skip
    writer.add(*rng.choice(rows))


def _converted(writer: Writer, a: Value) -> None:
    dtype = writer.rng.choice([other for other in _TYPES if other.kind != "b"])
    writer.add(f"{a.name}.to({TYPES[dtype]})", a.array.astype(dtype))


def _step(writer: Writer) -> None:
    a = writer.pick()
    assert a is not None
    choice = writer.rng.random()
    step = _moved if choice < 0.35 else _joined if choice < 0.6 else _combined if choice < 0.9 else _converted
    step(writer, a)


FAMILY = Family("shapes", _start, _step, most_steps=14)
