"""Integers of every width, signed and unsigned: arithmetic with Triton's promotion, casts, reductions, scans."""

import numpy as np

from tests.fuzz.steps import TYPES, Array, Family, Value, Writer

SIGNED = tuple(np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
UNSIGNED = tuple(np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
INTEGERS = SIGNED + UNSIGNED
#: Tiles that a kernel starts with.
LOADED = 4
FLOATS = ("float16", "bfloat16", "float32", "float64")


def random_integers(writer: Writer, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Any of the type, with its ends, zero and one among them."""
    info = np.iinfo(dtype)
    found = writer.numbers.integers(info.min, info.max, shape, dtype, endpoint=True)
    special = np.array([info.min, info.max, 0, 1, info.max - 1], dtype)
    chosen = special[writer.numbers.integers(0, len(special), shape)]
    return np.where(writer.numbers.random(shape) < 0.3, chosen, found)


def promoted(a: np.dtype[np.generic], b: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Of two integers (docs of ``tl``, "Type Promotion"): the wider one, and unsigned where both are as wide."""
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    unsigned, signed = (a, b) if a.kind == "u" else (b, a)
    return unsigned if unsigned.itemsize >= signed.itemsize else signed


def truncated(a: Array, b: Array) -> Array:
    """Quotients as Triton has them: towards zero."""
    quotients = [
        abs(int(x)) // abs(int(y)) * (1 if (int(x) < 0) == (int(y) < 0) else -1)
        for x, y in zip(a.ravel(), b.ravel(), strict=True)
    ]
    return np.array(quotients, object).reshape(a.shape).astype(a.dtype)


def _high(a: Array, b: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    products = [
        ((int(x) % (1 << bits)) * (int(y) % (1 << bits))) >> bits for x, y in zip(a.ravel(), b.ravel(), strict=True)
    ]
    wide = np.array(products, object).reshape(a.shape)
    return wide.astype(np.uint64).astype(a.dtype)


def _stirred(writer: Writer, text: str, result: Array) -> None:
    """The expression, or the exclusive or with a tile that was loaded: comparisons and quotients leave few bits."""
    if writer.rng.random() < 0.5:
        loaded = writer.rng.choice(writer.values[:LOADED])
        text, result = f"{text} ^ {loaded.name}.to({TYPES[result.dtype]})", result ^ loaded.array.astype(result.dtype)
    writer.add(text, result)


def _start(writer: Writer) -> None:
    rows, columns = writer.rng.choice(((1, 64), (8, 8), (4, 32), (16, 16), (32, 4), (2, 128)))
    for _ in range(LOADED):
        writer.load(random_integers(writer, (rows, columns), np.dtype(writer.rng.choice(INTEGERS))))


def _mixed(writer: Writer, a: Value, b: Value) -> None:
    """An operation of two types."""
    common = promoted(a.array.dtype, b.array.dtype)
    x, y = a.array.astype(common), b.array.astype(common)
    sign = writer.rng.choice(("+", "-", "*", "&", "|", "^", "<", "==", ">=", "minimum", "maximum"))
    functions = {
        "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or,
        "^": np.bitwise_xor, "<": np.less, "==": np.equal, ">=": np.greater_equal, "minimum": np.minimum,
        "maximum": np.maximum,
    }  # fmt: skip
    result = functions[sign](x, y)
    text = f"tl.{sign}({a.name}, {b.name})" if sign.isalpha() else f"{a.name} {sign} {b.name}"
    if result.dtype == bool:
        dtype = np.dtype(writer.rng.choice(INTEGERS))
        text, result = f"({text}).to({TYPES[dtype]})", result.astype(dtype)
    _stirred(writer, f"({text})", result)


def _same(writer: Writer, a: Value, other: Value) -> None:
    """An operation of one type."""
    dtype, type_, x = a.array.dtype, a.type, a.array
    b = f"{other.name}.to({type_})"
    y, bits = other.array.astype(dtype), 8 * dtype.itemsize
    axis = writer.rng.randint(0, 1)
    shift, small = y & dtype.type(bits - 1), (y & dtype.type(7)) + dtype.type(1)
    rows: list[tuple[str, Array]] = [
        (f"{a.name} >> ({b} & {bits - 1})", x >> shift),
        (f"{a.name} << ({b} & {bits - 1})", x << shift),
        (f"{a.name} // (({b} & 7) + 1)", truncated(x, small)),
        (f"{a.name} % (({b} & 7) + 1)", (x - truncated(x, small) * small).astype(dtype)),
        (f"~{a.name} + {b}", ~x + y),
        (f"tl.where({a.name} > {b}, {b}, -{a.name})" if dtype.kind == "i" else f"tl.where({a.name} > {b}, {b}, 1)",
         np.where(x > y, y, -x if dtype.kind == "i" else dtype.type(1)).astype(dtype)),
        (f"tl.sum({a.name}, {axis}, keep_dims=True).to({type_}) + {b}",
         x.sum(axis, keepdims=True, dtype=np.int64 if dtype.kind == "i" else np.uint64).astype(dtype) + y),
        (f"tl.max({a.name}, {axis}, keep_dims=True).to({type_}) - {b}", x.max(axis, keepdims=True) - y),
        (f"tl.min({a.name}, {axis}, keep_dims=True).to({type_}) ^ {b}", x.min(axis, keepdims=True) ^ y),
        (f"tl.xor_sum({a.name}, {axis}, keep_dims=True).to({type_}) + {b}",
         np.bitwise_xor.reduce(x, axis, keepdims=True) + y),
        (f"tl.argmax({a.name}, {axis}, keep_dims=True).to({type_}) + {b}",
         x.argmax(axis, keepdims=True).astype(dtype) + y),
        (f"tl.argmin({a.name}, {axis}, keep_dims=True).to({type_}) + {b}",
         x.argmin(axis, keepdims=True).astype(dtype) + y),
        (f"tl.cumsum({a.name}, {axis}).to({type_})", np.cumsum(x, axis, dtype)),
        (f"tl.cumsum({a.name}, {axis}, reverse=True).to({type_})",
         np.flip(np.cumsum(np.flip(x, axis), axis, dtype), axis)),
        (f"tl.cumprod({a.name} | 1, {axis}).to({type_})", np.cumprod(x | dtype.type(1), axis, dtype)),
        (f"tl.sort({a.name}, 1)", np.sort(x, 1)),
        (f"tl.sort({a.name}, 1, descending=True)", np.flip(np.sort(x, 1), 1)),
    ]  # fmt: skip
    if dtype.kind == "u":
        rows += [
            (f"{a.name} // ({b} | 1)", x // (y | dtype.type(1))),
            (f"{a.name} % ({b} | 1)", x % (y | dtype.type(1))),
        ]
    else:
        rows.append((f"tl.abs({a.name})", np.abs(x)))
    if bits >= 32:
        rows.append((f"tl.umulhi({a.name}, {b})", _high(x, y)))
    text, result = writer.rng.choice(rows[:5] if writer.rng.random() < 0.4 else rows)
    _stirred(writer, f"({text}).to({type_})", result)


def _converted(writer: Writer, a: Value) -> None:
    """An integer of another type, on the way through a float where one holds it."""
    rng, dtype = writer.rng, np.dtype(writer.rng.choice(INTEGERS))
    choice = rng.random()
    if choice < 0.4:
        writer.add(f"{a.name}.to({TYPES[dtype]})", a.array.astype(dtype))
    elif choice < 0.6:
        other = np.dtype(f"{'u' if a.array.dtype.kind == 'i' else ''}int{8 * a.array.dtype.itemsize}")
        writer.add(f"{a.name}.to({TYPES[other]}, bitcast=True)", a.array.view(other))
    elif choice < 0.8:
        small = a.array & a.array.dtype.type(63)
        writer.add(f"({a.name} & 63).to(tl.{rng.choice(FLOATS)}).to({TYPES[dtype]})", small.astype(dtype))
    else:
        width = rng.choice((np.float32, np.float64))
        b = writer.pick() or a
        equal = a.array.astype(width) < b.array.astype(width)
        type_ = f"tl.{np.dtype(width).name}"
        writer.add(f"({a.name}.to({type_}) < {b.name}.to({type_})).to({TYPES[dtype]})", equal.astype(dtype))


def _step(writer: Writer) -> None:
    a, b = writer.pick(), writer.pick()
    assert a is not None and b is not None
    choice = writer.rng.random()
    if choice < 0.35:
        _mixed(writer, a, b)
    elif choice < 0.75:
        _same(writer, a, b)
    else:
        _converted(writer, a)


FAMILY = Family("integers", _start, _step, most_steps=24)
