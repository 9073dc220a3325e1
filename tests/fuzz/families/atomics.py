"""Atomic operations of several programs on shared places and on places of their own."""

import numpy as np

from tests.fuzz.steps import TYPES, Array, Family, Writer, place

_INTEGERS = tuple(np.dtype(name) for name in ("int32", "uint32", "int64", "uint64"))
_FLOATS = tuple(np.dtype(name) for name in ("float32",))
_OPERATIONS = {
    "add": np.add, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_ORDERS = ("", ', sem="relaxed"', ', sem="acquire"', ', sem="release"', ', sem="acq_rel"')
_SCOPES = ("", ', scope="gpu"', ', scope="cta"', ', scope="sys"')


def _start(writer: Writer) -> None:
    writer.programs = writer.rng.randint(1, 5)
    writer.line("pid = tl.program_id(0)")


def _numbers(writer: Writer, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    low = 0 if dtype.kind == "u" else -50
    return writer.numbers.integers(low, 50, shape).astype(dtype)


def _each(writer: Writer, array: Array) -> str:
    """The name of a row of the array, that of the program."""
    pointer, name = writer.pointer(array.reshape(-1)), writer.name()
    shape = array.shape[1:]
    writer.line(f"{name} = tl.load({pointer} + pid * {int(np.prod(shape))} + {place(shape)})")
    return name


def _step(writer: Writer) -> None:
    rng, programs = writer.rng, writer.programs
    shape = rng.choice(((16,), (64,), (8, 8), (4, 32), (256,)))
    size = int(np.prod(shape))
    dtype = rng.choice(_INTEGERS if rng.random() < 0.75 else _FLOATS)
    mask = writer.numbers.random((programs, *shape)) < rng.choice((0.5, 1.0))
    values = _numbers(writer, (programs, *shape), dtype)
    options = rng.choice(_ORDERS) + rng.choice(_SCOPES)
    alone = rng.random() < 0.5
    if alone:
        places = writer.numbers.permutation(programs * size).reshape(programs, *shape).astype(np.int32)
        length = programs * size
    else:
        length = rng.choice((1, 3, 32))
        places = writer.numbers.integers(0, length, (programs, *shape)).astype(np.int32)
    before = _numbers(writer, (length,), dtype)
    pointer = writer.pointer(before)
    after = writer.expected[pointer]
    names = [_each(writer, part) for part in (places, values, mask.astype(np.int8))]
    kinds = [kind for kind in _OPERATIONS if dtype.kind in "iu" or kind in ("add", "max", "min")]
    kind = rng.choice([*kinds, "xchg", "cas"] if alone else kinds)
    old = writer.name()
    if kind == "cas":
        compared = np.where(writer.numbers.random(values.shape) < 0.5, before[places], values)
        other = _each(writer, compared)
        text = f"tl.atomic_cas({pointer} + {names[0]}, {other}, {names[1]}{options})"
        after[places] = np.where(before[places] == compared, values, before[places])
        mask[:] = True
    else:
        text = f"tl.atomic_{kind}({pointer} + {names[0]}, {names[1]}, mask={names[2]} != 0{options})"
        if kind == "xchg":
            after[places[mask]] = values[mask]
        else:
            _OPERATIONS[kind].at(after, places[mask], values[mask])
    writer.line(f"{old} = {text}", kept=True)
    if alone:
        kept = np.where(mask, before[places], dtype.type(7))
        result = writer.pointer(np.zeros(kept.size, dtype))
        writer.expected[result] = kept.reshape(-1)
        where = f"{result} + pid * {size} + {place(shape)}"
        filled = f"tl.where({names[2]} != 0, {old}, 7)" if kind != "cas" else old
        writer.line(f"tl.store({where}, {filled}.to({TYPES[dtype]}))", kept=True)


FAMILY = Family("atomics", _start, _step, most_steps=3)
