"""Reductions, scans and sorts."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.families.functions import drawing, judging
from tests.fuzz.families.functions.drawing import EIGHTS, INTEGERS, NUMBERS, Dtype, is_float
from tests.fuzz.families.functions.row import Row
from tests.fuzz.steps import TYPES, Array, Judge, Writer

#: In a fold of floats each step rounds once.
_ROUNDED = "half a unit in the last place of the sum of magnitudes a step"


def _widened(dtype: Dtype, signed: bool = False) -> Dtype:
    """Of a sum: integers below 32 bits have 32."""
    if is_float(dtype) or dtype.itemsize >= 4:
        return dtype
    return np.dtype("uint32" if dtype.kind == "u" and not signed else "int32")


def _selected(dtype: Dtype) -> Dtype:
    """Of a minimum or maximum: numbers below 32 bits become int32 or f32."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype("float32" if is_float(dtype) else "int32")


def _axis(writer: Writer, shape: tuple[int, ...], whole: bool = True) -> int | None:
    """One of the shape's, counted from either end; None for all at once."""
    if whole and writer.rng.random() < 0.15:
        return None
    axis = writer.rng.randrange(len(shape))
    return axis - len(shape) if writer.rng.random() < 0.3 else axis


def _near(writer: Writer, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Moderate floats, or now and then one that is infinite or NaN; any integers."""
    if not is_float(dtype):
        return drawing.numbers(writer, shape, dtype)
    values = drawing.moderate(writer, shape, dtype)
    if writer.rng.random() < 0.2:
        special = writer.rng.choice((np.inf, -np.inf, np.nan))
        values = np.where(writer.numbers.random(shape) < 0.02, dtype.type(special), values)
    return values


def _folded_within(steps: int, magnitude: Array, into: Dtype, wanted: Array) -> Judge:
    """Sums of floats; those of integers are the same."""
    if not is_float(into):
        return judging.exact(wanted.astype(into))
    unit = float(ml_dtypes.finfo(into).eps) * steps / 2
    return judging.within(unit * 1.01 * magnitude, wanted)


def _write_sum(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    values, axis = _near(writer, shape, dtype), _axis(writer, shape)
    into, option = _widened(dtype), ""
    if writer.rng.random() < 0.3:
        into = np.dtype("float64" if is_float(dtype) else writer.rng.choice(("int64", "uint32", "int32")))
        option = f", dtype={TYPES[into]}"
    keep = bool(writer.rng.random() < 0.5)
    wide = values.astype(np.longdouble) if is_float(dtype) else values.astype(into)
    with np.errstate(all="ignore"):
        total = np.asarray(wide.sum(axis, keepdims=keep, dtype=wide.dtype))
        magnitude = np.asarray(np.abs(wide).sum(axis, keepdims=keep, dtype=wide.dtype))
    steps = values.size if axis is None else shape[axis]
    text = f"tl.sum({writer.load(values).name}, {axis}, keep_dims={keep}{option})"
    writer.add_judged(text, (total.astype(into), _folded_within(steps, magnitude, into, total)))


def _write_selection(name: str) -> Callable[[Writer, Dtype], None]:
    """``max`` or ``min``."""

    def write(writer: Writer, dtype: Dtype) -> None:
        shape = drawing.shape_of(writer)
        values, axis, keep = drawing.numbers(writer, shape, dtype), _axis(writer, shape), writer.rng.random() < 0.5
        if is_float(dtype):
            wide = values.astype(np.float64)
            neutral = -np.inf if name == "max" else np.inf
            found = getattr(np, name)(np.where(np.isnan(wide), neutral, wide), axis, keepdims=keep)
            found = np.where(np.isnan(wide).all(axis, keepdims=keep), np.nan, found)
        else:
            found = getattr(np, name)(values, axis, keepdims=keep)
        wanted = np.asarray(found).astype(_selected(dtype))
        text = f"tl.{name}({writer.load(values).name}, {axis}, keep_dims={bool(keep)})"
        writer.add_judged(text, (wanted, judging.either_zero(wanted)))

    return write


def _tied(writer: Writer, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Numbers without NaN, many of them equal."""
    values = drawing.without_nan(drawing.numbers(writer, shape, dtype))
    few = values.reshape(-1)[writer.numbers.integers(0, min(3, values.size), shape)]
    return np.asarray(few if writer.rng.random() < 0.6 else values)


def _write_place(name: str, values_too: bool) -> Callable[[Writer, Dtype], None]:
    """The place of the first or last of the largest or smallest elements, with its value or alone."""

    def write(writer: Writer, dtype: Dtype) -> None:
        shape = drawing.shape_of(writer)
        values, left, keep = _tied(writer, shape, dtype), writer.rng.random() < 0.5, writer.rng.random() < 0.5
        axis = _axis(writer, shape, whole=False)
        assert axis is not None
        wide = values.astype(np.float64) if is_float(dtype) else values
        find: Any = np.argmax if name == "max" else np.argmin
        places = find(wide, axis)
        if not left:
            places = shape[axis] - 1 - find(np.flip(wide, axis), axis)
        places = np.expand_dims(places, axis)
        there = np.take_along_axis(values, places, axis).astype(_selected(dtype))
        places = places.astype(np.int32)
        if not keep:
            there, places = there.squeeze(axis), places.squeeze(axis)
        loaded = writer.load(values).name
        if values_too:
            text = f"tl.{name}({loaded}, {axis}, return_indices=True, return_indices_tie_break_left={bool(left)}, "
            text += f"keep_dims={bool(keep)})"
            writer.add_judged(text, (there, judging.exact(there)), (places, judging.exact(places)))
        else:
            text = f"tl.arg{name}({loaded}, {axis}, tie_break_left={bool(left)}, keep_dims={bool(keep)})"
            writer.add_judged(text, (places, judging.exact(places)))

    return write


def _write_bits(name: str, function: Any) -> Callable[[Writer, Dtype], None]:
    def write(writer: Writer, dtype: Dtype) -> None:
        shape = drawing.shape_of(writer)
        values, axis, keep = drawing.numbers(writer, shape, dtype), _axis(writer, shape), writer.rng.random() < 0.5
        wanted = np.asarray(function.reduce(values, axis, keepdims=keep))
        text = f"tl.{name}({writer.load(values).name}, {axis}, keep_dims={bool(keep)})"
        writer.add_judged(text, (wanted, judging.exact(wanted)))

    return write


def _scanned(function: Any, values: Array, axis: int, reverse: bool) -> Array:
    turned = np.flip(values, axis) if reverse else values
    with np.errstate(all="ignore"):
        found = function.accumulate(turned, axis, dtype=values.dtype)
    return np.flip(found, axis) if reverse else found


def _write_scan(name: str, function: Any) -> Callable[[Writer, Dtype], None]:
    def write(writer: Writer, dtype: Dtype) -> None:
        shape = drawing.shape_of(writer)
        axis, reverse = _axis(writer, shape, whole=False), writer.rng.random() < 0.4
        assert axis is not None
        if name == "cumprod" and is_float(dtype):  # of products that stay far from the largest number
            values = np.exp2(writer.numbers.uniform(-1, 1, shape) * 12 / shape[axis]).astype(dtype)
            values = np.where(writer.numbers.random(shape) < 0.5, -values, values)
        else:
            values = _near(writer, shape, dtype)
        into = _widened(dtype)
        wide = values.astype(np.longdouble) if is_float(dtype) else values.astype(into)
        total = _scanned(function, wide, axis, reverse)
        magnitude = _scanned(function, np.abs(wide), axis, reverse)
        text = f"tl.{name}({writer.load(values).name}, {axis}, reverse={bool(reverse)})"
        judge = _folded_within(shape[axis], magnitude, into, total)
        writer.add_judged(text, (total.astype(into), judge))

    return write


def _compared(writer: Writer, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Numbers but NaN; of 8-bit floats no infinities, which a comparison makes the largest number."""
    if dtype.name in EIGHTS:
        return drawing.moderate(writer, shape, dtype)
    return drawing.without_nan(drawing.numbers(writer, shape, dtype))


def _write_largest_so_far(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    axis, reverse = _axis(writer, shape, whole=False), bool(writer.rng.random() < 0.4)
    assert axis is not None
    values = _compared(writer, shape, dtype)
    wide = values.astype(np.float64) if is_float(dtype) else values
    wanted = _scanned(np.maximum, wide, axis, reverse).astype(dtype)
    text = f"tl.associative_scan({writer.load(values).name}, {axis}, larger, reverse={reverse})"
    writer.add_judged(text, (wanted, judging.either_zero(wanted)))


def _write_reduced(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    axis = _axis(writer, shape)
    values = _compared(writer, shape, dtype)
    wide = values.astype(np.float64) if is_float(dtype) else values
    wanted = np.asarray(wide.max(axis)).astype(dtype)
    text = f"tl.reduce({writer.load(values).name}, {axis}, larger)"
    writer.add_judged(text, (wanted, judging.either_zero(wanted)))


def _rows(writer: Writer) -> tuple[int, ...]:
    """Whose last axis can be sorted."""
    return writer.rng.choice([shape for shape in drawing.SHAPES if shape[-1] > 1])


def _ascending(values: Array) -> Array:
    wide = values.astype(np.float64) if is_float(values.dtype) else values
    return np.take_along_axis(values, np.argsort(wide, -1, kind="stable"), -1)


def _write_sort(writer: Writer, dtype: Dtype) -> None:
    values, down = _tied(writer, _rows(writer), dtype), bool(writer.rng.random() < 0.5)
    wanted = _ascending(values)
    wanted = wanted[..., ::-1] if down else wanted
    text = f"tl.sort({writer.load(values).name}, descending={down})"
    writer.add_judged(text, (wanted, judging.either_zero(wanted)))


def _write_top(writer: Writer, dtype: Dtype) -> None:
    values, down = _tied(writer, _rows(writer), dtype), bool(writer.rng.random() < 0.7)
    length = values.shape[-1]
    count = writer.rng.choice([1 << power for power in range(length.bit_length()) if 1 << power <= length])
    wanted = _ascending(values)
    wanted = (wanted[..., ::-1] if down else wanted)[..., :count]
    wanted = wanted.astype(dtype if count == length else _selected(dtype))
    text = f"tl.topk({writer.load(values).name}, {count}, descending={down})"
    writer.add_judged(text, (wanted, judging.either_zero(wanted)))


def _write_merge(writer: Writer, dtype: Dtype) -> None:
    """Of rows that ascend and then descend."""
    values, down = _tied(writer, _rows(writer), dtype), bool(writer.rng.random() < 0.5)
    ascending, half = _ascending(values), values.shape[-1] // 2
    bitonic = np.concatenate([ascending[..., ::2], ascending[..., 1::2][..., ::-1]], -1)
    assert bitonic.shape[-1] == 2 * half
    wanted = ascending[..., ::-1] if down else ascending
    text = f"tl.bitonic_merge({writer.load(bitonic).name}, descending={down})"
    writer.add_judged(text, (wanted, judging.either_zero(wanted)))


def _write_softmax(writer: Writer, dtype: Dtype) -> None:
    shape = drawing.shape_of(writer)
    values, axis = drawing.moderate(writer, shape, dtype) * dtype.type(3), _axis(writer, shape, whole=False)
    assert axis is not None
    wide = values.astype(np.longdouble)
    powers = np.exp(wide - wide.max(axis, keepdims=True))
    wanted = powers / powers.sum(axis, keepdims=True)
    # Of e^z: 4 units and the magnitude of z, as z is rounded; then a sum of so many, and a quotient.
    bound = wanted * float(ml_dtypes.finfo(dtype).eps) * (13 + np.abs(wide).max() * 2 + shape[axis] / 2)
    axis %= len(shape)
    text = f"tl.softmax({writer.load(values).name}, {axis})"
    writer.add_judged(text, (wanted.astype(dtype), judging.within(bound + 1e-37, wanted)))


def _write_histogram(writer: Writer, dtype: Dtype) -> None:
    shape, bins = drawing.shape_of(writer, 1), writer.rng.choice((1, 2, 8, 64, 256))
    values = writer.numbers.integers(0, bins + bins // 8 + 1, shape).astype(dtype)
    kept = writer.numbers.random(shape) < writer.rng.choice((0.5, 1.0))
    counted = values[kept & (values < bins)]
    wanted = np.bincount(counted, minlength=bins).astype(np.int32)
    mask = "" if kept.all() else f", mask={writer.load(kept.astype(np.int8)).name} != 0"
    if not mask:
        wanted = np.bincount(values[values < bins], minlength=bins).astype(np.int32)
    text = f"tl.histogram({writer.load(values).name}, {bins}{mask})"
    writer.add_judged(text, (wanted, judging.exact(wanted)))


_MANY = NUMBERS + EIGHTS

FOLDING = [
    Row("sum", _MANY, "the sum along an axis; integers below 32 bits become 32-bit ones, and wrap", _write_sum,
        _ROUNDED, "floats of a few units, some infinite or NaN"),
    Row("max", _MANY, "the largest number, NaN where there is no other", _write_selection("max"), "of zeros either"),
    Row("min", _MANY, "the smallest number, NaN where there is no other", _write_selection("min"), "of zeros either"),
    Row("max", _MANY, "the first or last of the largest, with its place", _write_place("max", True),
        domain="numbers but NaN"),
    Row("min", _MANY, "the first or last of the smallest, with its place", _write_place("min", True),
        domain="numbers but NaN"),
    Row("argmax", _MANY, "the place of the first or last of the largest", _write_place("max", False),
        domain="numbers but NaN"),
    Row("argmin", _MANY, "the place of the first or last of the smallest", _write_place("min", False),
        domain="numbers but NaN"),
    Row("xor_sum", INTEGERS, "the exclusive or of all", _write_bits("xor_sum", np.bitwise_xor)),
    Row("reduce_or", INTEGERS, "the bits that any has", _write_bits("reduce_or", np.bitwise_or)),
    Row("reduce", _MANY, "the largest, by a function of the kernel's", _write_reduced, "of zeros either",
        "numbers but NaN"),
    Row("associative_scan", _MANY, "the largest so far, by a function of the kernel's", _write_largest_so_far,
        "of zeros either", "numbers but NaN"),
    Row("cumsum", _MANY, "sums so far; integers below 32 bits become 32-bit ones, and wrap",
        _write_scan("cumsum", np.add), _ROUNDED, "floats of a few units, some infinite or NaN"),
    Row("cumprod", _MANY, "products so far; integers below 32 bits become 32-bit ones, and wrap",
        _write_scan("cumprod", np.multiply), _ROUNDED, "floats whose products are from 2^-12 to 2^12"),
    Row("sort", _MANY, "the last axis in ascending or descending order", _write_sort, "of zeros either",
        "numbers but NaN, axes of two elements or more"),
    Row("topk", _MANY, "the largest or smallest of the last axis, in order", _write_top, "of zeros either",
        "numbers but NaN, axes of two elements or more"),
    Row("bitonic_merge", _MANY, "a last axis that ascends, then descends, in order", _write_merge, "of zeros either",
        "numbers but NaN, axes of two elements or more"),
    Row("softmax", ("float32", "float64"), "e^(x - m) by their sum, m the largest x", _write_softmax,
        "relative: 13 units, a unit for the sizes of x, half a unit an element", "numbers of tens"),
    Row("histogram", ("int32", "uint32"), "how many elements have each number", _write_histogram,
        domain="numbers without a bin are not counted"),
]  # fmt: skip
