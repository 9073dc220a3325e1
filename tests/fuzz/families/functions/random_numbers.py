"""Philox, and what is made of its words."""

from collections.abc import Callable

import numpy as np

from tests.fuzz.families.functions import drawing, judging
from tests.fuzz.families.functions.drawing import Dtype
from tests.fuzz.families.functions.row import Row
from tests.fuzz.steps import Array, Writer

#: Multipliers and steps of the key, of each width (Salmon et al. 2011, tables 2 and 3).
_CONSTANTS = {
    32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    64: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}


def philox(counters: list[Array], keys: list[Array], rounds: int, width: int) -> list[Array]:
    """The four words that follow from four counters and two keys."""
    left, right, one, other = _CONSTANTS[width]
    mask = (1 << width) - 1
    unsigned = f"u{width // 8}"
    c0, c1, c2, c3, k0, k1 = (part.astype(unsigned).astype(object) for part in (*counters, *keys))
    for _ in range(rounds):
        a, b = c0 * left, c2 * right
        c0, c1, c2, c3 = (b >> width) ^ c1 ^ k0, b & mask, (a >> width) ^ c3 ^ k1, a & mask
        k0, k1 = (k0 + one) & mask, (k1 + other) & mask
    return [part.astype(np.uint64).astype(unsigned) for part in (c0, c1, c2, c3)]


def uniform(words: Array) -> Array:
    """Words as f32 from 0 to below 1: the signed word, or its complement, times just under a power of two."""
    signed = words.view(f"i{words.dtype.itemsize}")
    scale = np.float32(4.6566127342e-10 if words.dtype.itemsize == 4 else 1.0842020432385337e-19)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * scale


def _words(seed: int, offsets: Array, rounds: int) -> list[Array]:
    """Of a seed of 64 bits, and of counters whose low and high halves are the offset's."""
    wide = offsets.astype(np.int64)
    high = (wide >> 32) if offsets.dtype.itemsize > 4 else wide * 0
    nothing = np.zeros_like(wide)
    keys = [np.full_like(nothing, seed & 0xFFFFFFFF), np.full_like(nothing, (seed >> 32) & 0xFFFFFFFF)]
    counters = [wide.astype(np.uint64) & np.uint64(0xFFFFFFFF), high.astype(np.uint64) & np.uint64(0xFFFFFFFF)]
    return philox([*counters, nothing, nothing], keys, rounds, 32)


def _drawn(name: str, give: Callable[[list[Array]], list[Array]]) -> Callable[[Writer, Dtype], None]:
    """A call by a seed, which is a constant or loaded, and offsets."""

    def write(writer: Writer, dtype: Dtype) -> None:
        offsets = drawing.numbers(writer, drawing.shape_of(writer), dtype)
        seed = int(writer.rng.choice((0, 1, 7, 2**31 - 1, 2**32, writer.rng.getrandbits(63))))
        text = str(seed)
        if writer.rng.random() < 0.5:
            text = writer.load(np.array(seed, np.int64)).name
        rounds = writer.rng.choice((10, 10, 6, 1))
        arrays = give(_words(seed, offsets, rounds))
        call = f"tl.{name}({text}, {writer.load(offsets).name}, n_rounds={rounds})"
        writer.add_judged(call, *((array, judging.exact(array)) for array in arrays))

    return write


def _write_philox(writer: Writer, dtype: Dtype) -> None:
    shape, width, rounds = drawing.shape_of(writer), 8 * dtype.itemsize, writer.rng.choice((10, 7, 1))
    counters = [drawing.numbers(writer, shape, dtype) for _ in range(4)]
    seed = writer.rng.getrandbits(63)
    high = 0 if width == 64 else seed >> 32
    keys = [np.full(shape, part & ((1 << width) - 1), np.uint64) for part in (seed, high)]
    arrays = philox(counters, keys, rounds, width)
    names = ", ".join(writer.load(part).name for part in counters)
    writer.add_judged(
        f"tl.philox({seed}, {names}, n_rounds={rounds})", *((part, judging.exact(part)) for part in arrays)
    )


def _write_rounds(writer: Writer, dtype: Dtype) -> None:
    shape, rounds = drawing.shape_of(writer), writer.rng.choice((10, 7, 1))
    parts = [drawing.numbers(writer, shape, dtype) for _ in range(6)]
    arrays = philox(parts[:4], parts[4:], rounds, 8 * dtype.itemsize)
    names = ", ".join(writer.load(part).name for part in parts)
    writer.add_judged(f"tl.philox_impl({names}, n_rounds={rounds})", *((part, judging.exact(part)) for part in arrays))


def _write_uniform(writer: Writer, dtype: Dtype) -> None:
    words = drawing.numbers(writer, drawing.shape_of(writer), dtype)
    wanted = uniform(words)
    writer.add_judged(f"tl.uint_to_uniform_float({writer.load(words).name})", (wanted, judging.exact(wanted)))


def _normal(first: Array, second: Array) -> list[tuple[Array, Array]]:
    """Box and Muller's two numbers, and how far off they may be: some units of the radius, as the angle is rounded."""
    radius = np.sqrt(-2 * np.log(np.maximum(np.float32(1e-7), first).astype(np.longdouble)))
    angle = np.float32(6.283185307179586) * second
    wide = angle.astype(np.longdouble)
    return [(radius * part, 4 * np.spacing(np.float32(1)) * radius) for part in (np.cos(wide), np.sin(wide))]


def _write_pair(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    pair = [uniform(drawing.numbers(writer, shape, np.dtype("uint32"))) for _ in range(2)]
    text = f"tl.pair_uniform_to_normal({', '.join(writer.load(part).name for part in pair)})"
    results = [(np.zeros(shape, np.float32), judging.within(bound, number)) for number, bound in _normal(*pair)]
    writer.add_judged(text, *results)


def _write_normal(count: int) -> Callable[[Writer, Dtype], None]:
    def write(writer: Writer, dtype: Dtype) -> None:
        offsets = drawing.numbers(writer, drawing.shape_of(writer), dtype)
        seed = writer.rng.getrandbits(63)
        parts = [uniform(part) for part in _words(seed, offsets, 10)]
        numbers = [*_normal(*parts[:2]), *_normal(*parts[2:])][:count]
        text = f"tl.randn{'4x' if count == 4 else ''}({seed}, {writer.load(offsets).name})"
        results = [(np.zeros(offsets.shape, np.float32), judging.within(bound, number)) for number, bound in numbers]
        writer.add_judged(text, *results)

    return write


_OFFSETS = ("int32", "uint32", "int64", "uint64")
_SOURCE = "Philox-4x32 (Salmon et al. 2011)"
_RADIUS = "4 units of the radius"

RANDOM_NUMBERS = [
    Row("randint", _OFFSETS, f"{_SOURCE}: its first word", _drawn("randint", lambda words: words[:1])),
    Row("randint4x", _OFFSETS, f"{_SOURCE}: its four words", _drawn("randint4x", lambda words: words)),
    Row("rand", _OFFSETS, "the first word from 0 to below 1", _drawn("rand", lambda words: [uniform(words[0])])),
    Row("rand4x", _OFFSETS, "the words from 0 to below 1", _drawn("rand4x", lambda words: [*map(uniform, words)])),
    Row("randn", _OFFSETS, "the first of Box and Muller's numbers", _write_normal(1), _RADIUS),
    Row("randn4x", _OFFSETS, "Box and Muller's numbers of two pairs", _write_normal(4), _RADIUS),
    Row("pair_uniform_to_normal", ("float32",), "Box and Muller's two numbers", _write_pair, _RADIUS, "from 0 to 1"),
    Row("philox", _OFFSETS, "Philox-4x32 or 4x64 of a seed and four counters", _write_philox),
    Row("philox_impl", ("uint32", "uint64"), "Philox-4x32 or 4x64 of four counters and two keys", _write_rounds),
    Row("uint_to_uniform_float", _OFFSETS, "a word, or its complement, as f32 from 0 to below 1", _write_uniform),
]
