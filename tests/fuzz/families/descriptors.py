"""Tensor descriptors of one to five dimensions: blocks partly outside, rows that are gathered, atomic stores."""

import itertools
import operator

import numpy as np

from tests.fuzz.steps import TYPES, Array, Family, Writer

_TYPES = tuple(np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint32", "float16", "float32"))
#: What one line of a block has at least, and what strides are multiples of.
_BYTES = 16
MOST_ELEMENTS = 1024


def _sizes(writer: Writer, dtype: np.dtype[np.generic]) -> tuple[list[int], list[int], list[int]]:
    """Extents, strides and the block of a descriptor."""
    rng, aligned = writer.rng, _BYTES // dtype.itemsize
    rank = rng.randint(1, 5)
    block = [1] * (rank - 1) + [aligned * rng.choice((1, 1, 2, 4))]
    for _ in range(6):
        axis = rng.randrange(rank)
        if 2 * int(np.prod(block)) <= MOST_ELEMENTS and rng.random() < 0.6:
            block[axis] *= 2
    extents = [rng.randint(1, min(2 * size + 1, 24)) for size in block]
    strides = [1]
    for extent in reversed(extents[1:]):
        stride = strides[0] * extent + rng.randint(0, 3)
        strides.insert(0, -(-stride // aligned) * aligned)
    return extents, strides, block


def _indices(extents: list[int], offsets: list[int], block: list[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Places in the block with those in the tensor, of what lies inside."""
    found = []
    for place in itertools.product(*(range(size) for size in block)):
        where = tuple(map(operator.add, offsets, place))
        if all(0 <= at < extent for at, extent in zip(where, extents, strict=True)):
            found.append((place, where))
    return found


def _described(writer: Writer, memory: Array, sizes: tuple[list[int], list[int], list[int]]) -> tuple[str, str]:
    """The names of a descriptor and of its pointer."""
    extents, strides, block = sizes
    pointer, name = writer.pointer(memory, aligned=True), writer.name()
    writer.line(f"{name} = tl.make_tensor_descriptor({pointer}, {extents}, {strides}, {block})")
    return name, pointer


def _offsets(writer: Writer, extents: list[int], block: list[int]) -> list[int]:
    return [writer.rng.randint(-size, extent) for extent, size in zip(extents, block, strict=True)]


def _start(writer: Writer) -> None:
    """Each step has its own descriptor."""


def _loaded(writer: Writer) -> None:
    dtype = writer.rng.choice(_TYPES)
    sizes = extents, strides, block = _sizes(writer, dtype)
    memory = writer.numbers.integers(1, 100, strides[0] * extents[0] + 8).astype(dtype)
    name, _ = _described(writer, memory, sizes)
    offsets, found = _offsets(writer, extents, block), np.zeros(block, dtype)
    for place, where in _indices(extents, offsets, block):
        found[place] = memory[sum(map(operator.mul, where, strides))]
    text = ", ".join(
        f"n - {writer.scalar - offset}" if writer.rng.random() < 0.5 else str(offset) for offset in offsets
    )
    writer.add(f"{name}.load([{text}])", found)


def _gathered(writer: Writer) -> None:
    """Rows of a matrix."""
    dtype = writer.rng.choice([dtype for dtype in _TYPES if dtype.itemsize <= 4])
    columns, extents = 2 * _BYTES // dtype.itemsize * writer.rng.choice((1, 2)), [writer.rng.randint(8, 20), 64]
    memory = writer.numbers.integers(1, 100, extents[0] * 64).astype(dtype)
    name, _ = _described(writer, memory, (extents, [64, 1], [1, columns]))
    rows = writer.load(writer.numbers.integers(0, extents[0], writer.rng.choice((8, 16, 32))).astype(np.int32))
    first = writer.rng.choice((0, 16, 32))
    whole = np.zeros((extents[0], 64 + columns), dtype)
    whole[:, :64] = memory.reshape(extents)
    writer.add(f"{name}.gather({rows.name}, {first})", whole[rows.array, first : first + columns])


def _stored(writer: Writer) -> None:
    """A block into memory, whole or by atomic operations."""
    rng, before = writer.rng, None
    atomic = rng.random() < 0.4
    dtype = np.dtype(rng.choice((np.int32, np.uint32)) if atomic else rng.choice(_TYPES))
    sizes = extents, strides, block = _sizes(writer, dtype)
    memory = writer.numbers.integers(1, 100, strides[0] * extents[0] + 8).astype(dtype)
    shape = tuple(block)
    before = writer.pick(lambda value: value.array.shape == shape and value.array.dtype != bool)
    value = before or writer.load(writer.numbers.integers(1, 100, shape).astype(dtype))
    name, pointer = _described(writer, memory, sizes)
    offsets, source = _offsets(writer, extents, block), value.array.astype(dtype)
    kinds = {
        "add": np.add, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    kind = rng.choice(list(kinds)) if atomic else ""
    method = f"atomic_{kind}" if atomic else "store"
    expected = writer.expected[pointer]
    for place, where in _indices(extents, offsets, block):
        at = sum(map(operator.mul, where, strides))
        expected[at] = kinds[kind](expected[at], source[place]) if atomic else source[place]
    writer.line(f"{name}.{method}({offsets}, {value.name}.to({TYPES[dtype]}))", kept=True)


def _step(writer: Writer) -> None:
    choice = writer.rng.random()
    (_loaded if choice < 0.45 else _gathered if choice < 0.6 else _stored)(writer)


FAMILY = Family("descriptors", _start, _step, most_steps=4)
