"""Reductions and scans with functions of the kernel's own, on tuples of types that differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.families.integers import random_integers
from tests.fuzz.steps import TYPES, Array, Family, Writer

FUNCTIONS = """@triton.jit
def largest(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def chosen(a, i, b, j):
    if a > b or (a == b and i < j):
        key, place = a, i
    else:
        key, place = b, j
    return key, place


@triton.jit
def greatest_first(a, i, b, j):
    return tl.where(b > a, b, a), tl.where(b > a, j, i)


@triton.jit
def greatest_last(a, i, b, j):
    if b >= a:
        key, place = b, j
    else:
        key, place = a, i
    return key, place


@triton.jit
def least_last(a, i, b, j):
    return tl.minimum(a, b), tl.where(b <= a, j, i)


@triton.jit
def bounds(low, high, total, low_other, high_other, total_other):
    return tl.minimum(low, low_other), tl.maximum(high, high_other), total + total_other


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def product(a, b, c, d, e, f, g, h):
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


@triton.jit
def last_nonzero(a, b):
    return tl.where(b != 0, b, a)


@triton.jit
def first(a, b):
    return a


@triton.jit
def overlay(bits, mask, bits_above, mask_above):
    return (bits & ~mask_above) | (bits_above & mask_above), mask | mask_above


@triton.jit
def both(a, b):
    return a | b


"""


def _where(condition: Any, a: Any, b: Any) -> Array:
    return np.where(condition, a, b)


def _largest(a: Array, i: Array, b: Array, j: Array) -> tuple[Array, ...]:
    first = (a > b) | ((a == b) & (i < j))
    return _where(first, a, b), _where(first, i, j)


@dataclass(frozen=True)
class Function:
    """``parts``: a letter for each part of the tuple; parts of one letter have one type, and keys (``k``) are often
    equal. All are associative, and some commute."""

    name: str
    parts: str
    apply: Callable[..., tuple[Array, ...]]


_FUNCTIONS = (
    Function("largest", "ki", _largest),
    Function("chosen", "ki", _largest),
    Function("greatest_first", "ki", lambda a, i, b, j: (_where(b > a, b, a), _where(b > a, j, i))),
    Function("greatest_last", "ki", lambda a, i, b, j: (_where(b >= a, b, a), _where(b >= a, j, i))),
    Function("least_last", "ki", lambda a, i, b, j: (np.minimum(a, b), _where(b <= a, j, i))),
    Function("bounds", "kjt", lambda a, b, c, d, e, f: (np.minimum(a, d), np.maximum(b, e), (c + f).astype(c.dtype))),
    Function("affine", "tt", lambda a, b, c, d: (a * c, b * c + d)),
    Function(
        "product", "tttt", lambda a, b, c, d, e, f, g, h: (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)
    ),
    Function("last_nonzero", "t", lambda a, b: (_where(b != 0, b, a),)),
    Function("first", "t", lambda a, b: (a,)),
    Function("overlay", "tt", lambda a, m, b, n: ((a & ~n) | (b & n), m | n)),
    Function("both", "t", lambda a, b: (a | b,)),
)
_TYPES = tuple(np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"))


def folded(parts: list[Array], axis: int, function: Function, reverse: bool) -> list[list[Array]]:
    """What each place along the axis has come to."""
    slices = [[part.take(place, axis) for part in parts] for place in range(parts[0].shape[axis])]
    if reverse:
        slices.reverse()
    found = [slices[0]]
    for following in slices[1:]:
        before, now = found[-1], following
        combined = function.apply(*before, *now)
        found.append([each.astype(like.dtype) for each, like in zip(combined, now, strict=True)])
    return found[::-1] if reverse else found


def _start(writer: Writer) -> None:
    shape = writer.rng.choice(((64,), (1024,), (8, 16), (32, 4), (1, 32), (16, 16), (4, 128), (4, 8, 4)))
    for _ in range(3):
        writer.load(random_integers(writer, shape, writer.rng.choice(_TYPES)))


def _step(writer: Writer) -> None:
    rng = writer.rng
    function = rng.choice(_FUNCTIONS)
    types = {letter: rng.choice(_TYPES) for letter in function.parts}
    texts, parts = [], []
    for letter in function.parts:
        value = writer.pick(lambda value: value.array.ndim > 0)
        assert value is not None
        text, array = f"{value.name}.to({TYPES[types[letter]]})", value.array.astype(types[letter])
        if letter == "k" and rng.random() < 0.7:
            text, array = f"({text} & 3)", array & array.dtype.type(3)
        texts.append(text)
        parts.append(array)
    tuple_ = f"({', '.join(texts)})" if len(texts) > 1 else texts[0]
    axis = rng.randrange(parts[0].ndim)
    if rng.random() < 0.4:
        reverse = rng.random() < 0.4
        rows = folded(parts, axis, function, reverse)
        results = [np.stack([row[part] for row in rows], axis) for part in range(len(parts))]
        writer.add(f"tl.associative_scan({tuple_}, {axis}, {function.name}, reverse={reverse})", *results)
    else:
        shape, whole = parts[0].shape, rng.random() < 0.2
        if whole:
            parts = [part.reshape(-1) for part in parts]
        last = folded(parts, 0 if whole else axis, function, False)[-1]
        found = [np.broadcast_to(each if whole else np.expand_dims(each, axis), shape) for each in last]
        names = [writer.name() for _ in found]
        text = f"tl.reduce({tuple_}, {None if whole else axis}, {function.name}, keep_dims=True)"
        writer.line(f"{', '.join(names)} = {text}")
        for name, array in zip(names, found, strict=True):
            writer.add(f"tl.broadcast_to({name}, {list(shape)})", array)


FAMILY = Family("combining", _start, _step, FUNCTIONS, most_steps=5)
