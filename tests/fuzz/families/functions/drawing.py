"""Shapes, and numbers with those among them at which a type ends or a function changes."""

import ml_dtypes
import numpy as np

from tests.fuzz.steps import Array, Writer

Dtype = np.dtype[np.generic]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
EIGHTS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
NUMBERS = INTEGERS + FLOATS
WIDE = ("int32", "int64", "uint32", "uint64")
LONG = ("float32", "float64")
#: Every type that memory holds.
ALL = ("bool", *NUMBERS, *EIGHTS)

#: No axis is longer than 256, no tile larger than 512.
SHAPES = (
    *((2,), (16,), (64,), (128,), (256,)),
    *((1, 64), (8, 8), (4, 32), (16, 16), (32, 4), (2, 128), (128, 1)),
    *((2, 4, 8), (4, 8, 4), (1, 16, 8), (2, 2, 64)),
)


def dtype_of(name: str) -> Dtype:
    """NumPy's type of that name, or ml_dtypes'."""
    return np.dtype(getattr(ml_dtypes, name, name))


def is_float(dtype: Dtype) -> bool:
    """Whether numbers of the type are floating-point ones."""
    return dtype.kind in "fV"


def of_bits(bits: Array, dtype: Dtype) -> Array:
    """Unsigned integers as numbers of the type with these bits."""
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


def edges(dtype: Dtype) -> Array:
    """Numbers at which a type ends, or where rounding, a sign or a conversion changes."""
    if dtype.kind == "b":
        return np.array([False, True])
    if not is_float(dtype):
        info = np.iinfo(dtype)
        powers = [2**power + step for power in range(info.bits) for step in (-1, 0, 1)]
        found = {info.min, info.min + 1, info.max, info.max - 1, 0, *powers, *(-power for power in powers)}
        return np.array(sorted(one for one in found if info.min <= one <= info.max), dtype)
    info = ml_dtypes.finfo(dtype)
    smallest, normal, epsilon = (float(part) for part in (info.smallest_subnormal, info.smallest_normal, info.eps))
    found = [0.0, smallest, 3 * smallest, normal - smallest, normal, normal + smallest, float(info.max)]
    found += [1 - epsilon / 2, 1.0, 1 + epsilon, 1.5, 2.0, 2.5, 3.0, 0.5, 1 / 3, np.pi, 100.0, np.inf, np.nan]
    found += [2.0**power + step for power in (7, 8, 15, 16, 31, 32, 63, 64) for step in (-1, -0.5, 0, 0.5, 1)]
    found += [2.0 ** (info.nmant + step) + half for step in (-1, 0, 1) for half in (0, 0.5)]
    # Halfway between neighbours of narrower formats, and beside that.
    near = (0, 2.0**-30, -(2.0**-30))
    found += [1 + 2.0**-bits + step for bits in (3, 4, 8, 9, 11, 12, 24, 25, 53) for step in near]
    found += [scale * one for one in (1.0, 1.5, 1.25, 1.75) for scale in (65504.0, 57344.0, 448.0, 240.0, 2.0**-24)]
    found += [scale * one for one in (1.0, 1.5, 1.25) for scale in (2.0**-6, 2.0**-9, 2.0**-14, 2.0**-16, 2.0**-133)]
    with np.errstate(all="ignore"):
        return np.array([*found, *(-one for one in found)]).astype(dtype)


def numbers(writer: Writer, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Any numbers: of edges, of random bits, and moderate ones."""
    random = writer.numbers
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    kind = random.random(shape)
    there = edges(dtype)
    special = there[random.integers(0, len(there), shape)]
    bits = (
        random.integers(0, 1 << 8 * dtype.itemsize, shape, np.uint64, endpoint=False)
        if dtype.itemsize < 8
        else (random.integers(0, (1 << 64) - 1, shape, np.uint64, endpoint=True))
    )
    anything = of_bits(bits, dtype)
    with np.errstate(all="ignore"):
        usual = moderate(writer, shape, dtype)
    return np.where(kind < 0.4, special, np.where(kind < 0.7, anything, usual))


def moderate(writer: Writer, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Numbers of a few units, without NaN and infinities."""
    found = writer.numbers.standard_normal(shape) * 4
    return (np.abs(found) if dtype.kind == "u" else found).astype(dtype)


def without_nan(array: Array) -> Array:
    """The same with 1 for NaN."""
    return np.where(np.isnan(array.astype(np.float64)), array.dtype.type(1), array) if is_float(array.dtype) else array


def shape_of(writer: Writer, rank: int | None = None) -> tuple[int, ...]:
    """A random shape, of that many axes."""
    return writer.rng.choice([shape for shape in SHAPES if rank in (None, len(shape))])
