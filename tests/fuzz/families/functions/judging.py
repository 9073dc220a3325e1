"""What counts as a right value: the exact number rounded once, or one within so many units in the last place."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tests.device.helpers import same
from tests.fuzz.families.functions.drawing import Dtype
from tests.fuzz.steps import Array, Judge


def exact(*ways: Array) -> Judge:
    """Each element is that of one of the arrays, NaN and the sign of a zero included."""
    wanted = [_stored(way) for way in ways]
    return lambda found: ~np.any([same(found, way) for way in wanted], axis=0)


def either_zero(*ways: Array) -> Judge:
    """The same, where a zero may have either sign."""
    wanted = [_stored(way) for way in ways]

    def wrong(found: Array) -> Array:
        with np.errstate(invalid="ignore"):  # signalling NaN
            return ~np.any([same(found, way) | ((found == 0) & (way == 0)) for way in wanted], axis=0)

    return wrong


def within(bound: Array, wanted: Array) -> Judge:
    """No further from a number than its bound; infinities and NaN are the same."""
    number, bound = wanted.reshape(-1).astype(np.longdouble), np.broadcast_to(bound, wanted.shape).reshape(-1)

    def wrong(found: Array) -> Array:
        with np.errstate(all="ignore"):
            wide = found.astype(np.longdouble)
            near = np.abs(wide - number) <= bound
            return ~(near | (wide == number) | (np.isnan(wide) & np.isnan(number)))

    return wrong


def close(ways: Sequence[Array], dtype: Dtype, units: float) -> Judge:
    """Within so many units in the last place of a long double of one of the ways; what may round past the largest
    number may be infinite."""
    exactly = [way.reshape(-1).astype(np.longdouble) for way in ways]
    return lambda found: np.all([_too_far(found, way, dtype, units) for way in exactly], axis=0)


def _too_far(found: Array, wanted: Array, dtype: Dtype, units: float) -> Array:
    info, wide = ml_dtypes.finfo(dtype), found.astype(np.longdouble)
    largest = np.longdouble(info.max)
    with np.errstate(all="ignore"):
        finite = np.isfinite(wanted) & (wanted != 0)
        exponent = np.maximum(np.frexp(np.where(finite, wanted, 1))[1] - 1, info.minexp)
        unit = np.ldexp(np.longdouble(1), np.where(finite, exponent, info.minexp) - info.nmant)
        unit = np.minimum(unit, np.ldexp(np.longdouble(1), info.maxexp - 1 - info.nmant))
        beyond = np.abs(wanted) > largest - units * unit
        close_ = np.abs(wide - wanted) <= units * unit
        close_ |= np.isinf(wide) & beyond & (np.sign(wide) == np.sign(wanted))
        close_ |= (np.abs(wanted) > largest) & (np.abs(wanted) <= largest + units * unit) & (np.abs(wide) == largest)
        return ~(close_ | (np.isnan(wide) & np.isnan(wanted)))


def _stored(way: Array) -> Array:
    return (way.astype(np.int8) if way.dtype.kind == "b" else way).reshape(-1)


def rounded(number: Array, dtype: Dtype, towards_zero: bool = False) -> Array:
    """Long doubles as the format has them (docs/internals/math.md, "Narrow formats"): rounded once, to nearest even or
    towards zero; past the largest number infinite, in 8 bits the largest one."""
    info = ml_dtypes.finfo(dtype)
    eight, largest = dtype.itemsize == 1, np.longdouble(info.max)
    with np.errstate(all="ignore"):
        finite = np.isfinite(number)
        exponent = np.maximum(np.frexp(np.where(finite & (number != 0), number, 1))[1] - 1, info.minexp)
        unit = np.ldexp(np.longdouble(1), np.where(number == 0, info.minexp, exponent) - info.nmant)
        whole = np.trunc(number / unit) if towards_zero else np.rint(number / unit)
        result = np.where(finite, whole * unit, number)
        past = finite & (np.abs(result) > largest)
        ends = largest if eight or towards_zero else np.inf
        result = np.where(past, np.copysign(ends, number), result)
        keeps = towards_zero and not np.isnan(float(np.array(np.inf).astype(dtype)))
        if eight and not keeps:
            result = np.where(np.isinf(number), np.copysign(largest, number), result)
        return np.where(np.isnan(number), number, np.copysign(result, number)).astype(dtype)
