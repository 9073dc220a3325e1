"""Numbers of bfloat16 and fp8 in the interpreter, whose arrays hold their bits as unsigned integers.

``widened`` makes the builder compute with their values, in float32 as GPUs without such arithmetic do, and round each
result once. Conversions round once as well, to nearest even or towards zero. Past the largest number of a format is
infinity (float16, bfloat16), or the largest number itself: PTX's ``cvt.rn.satfinite``, which has the infinities of fp8
formats saturate, too. Rounding towards zero keeps an infinity where the format has one.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton.language as tl

from .._C.libtriton import interpreter as _interpreter  # type: ignore
from .._C.libtriton import ir as _ir  # type: ignore


@dataclass(frozen=True)
class Format:
    """A format's bits. ``largest``: of the largest number. ``nan``: of the NaN that conversions give; None: there is
    none, and NaN becomes the largest number. ``infinity``: None where there is none. ``saturates``: numbers past the
    largest become it. ``signed_zero`` is False where the sign bit alone is the NaN."""

    mantissa: int
    bias: int
    largest: int
    nan: int | None
    infinity: int | None = None
    saturates: bool = True
    signed_zero: bool = True


FORMATS = {
    "fp16": Format(10, 15, 0x7BFF, 0x7E00, 0x7C00, saturates=False),
    "bf16": Format(7, 127, 0x7F7F, 0x7FFF, 0x7F80, saturates=False),
    "fp8e5": Format(2, 15, 0x7B, 0x7F, 0x7C),
    "fp8e4nv": Format(3, 7, 0x7E, 0x7F),
    "fp8e4b15": Format(3, 15, 0x7F, None),
    "fp8e5b16": Format(2, 16, 0x7F, 0x80, signed_zero=False),
    "fp8e4b8": Format(3, 8, 0x7F, 0x80, signed_zero=False),
}


def is_narrow(dtype: tl.dtype) -> bool:
    """Whether arrays of a scalar type hold bits instead of numbers."""
    return dtype.name in FORMATS and dtype != tl.float16


@functools.cache
def _numbers(name: str) -> np.ndarray:
    """The float32 of each code of an fp8 format."""
    form, codes = FORMATS[name], np.arange(256)
    sizes = codes & 0x7F
    exponent, fraction = sizes >> form.mantissa, sizes & ((1 << form.mantissa) - 1)
    significand = np.where(exponent > 0, fraction + (1 << form.mantissa), fraction)
    values = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - form.bias - form.mantissa)
    values[sizes > form.largest] = np.nan
    if form.infinity is not None:
        values[sizes == form.infinity] = np.inf
    values = np.where(codes > 0x7F, -values, values)
    if not form.signed_zero:
        values[0x80] = np.nan
    return values.astype(np.float32)


def decode(bits: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    """The float32 values of the codes of a narrow type: exact."""
    if dtype == tl.bfloat16:
        return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _numbers(dtype.name)[bits]


def encode(values: np.ndarray, dtype: tl.dtype, towards_zero: bool = False) -> np.ndarray:
    """The codes of numbers in a type of FORMATS, as unsigned integers, rounded once."""
    form, width = FORMATS[dtype.name], dtype.primitive_bitwidth
    values = np.asarray(values)
    if dtype == tl.float8e4b15:
        return _e4b15(values)
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        wide = values.astype(np.float64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        wide = _rounded_to_odd(values, wide)
    size, finite = np.abs(wide), np.isfinite(wide)
    size = np.where(finite, size, 0)
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - form.bias), 1 - form.bias)
    units = np.ldexp(size, form.mantissa - exponent)
    units = np.floor(units) if towards_zero else np.rint(units)
    # The leading one of the units, where there is one, adds one to the exponent, and so does a carry.
    past = form.largest if form.saturates or towards_zero else form.infinity
    codes = np.minimum(units, 2**40).astype(np.int64) + ((exponent + form.bias - 1).astype(np.int64) << form.mantissa)
    codes = np.where(codes > form.largest, past, codes)
    infinite = form.infinity if form.infinity is not None and (towards_zero or not form.saturates) else form.largest
    codes = np.where(np.isinf(wide), infinite, codes)
    nan = np.isnan(wide)
    codes = np.where(nan, form.largest if form.nan is None else form.nan, codes)
    signs = np.signbit(wide) & ~nan
    if not form.signed_zero:
        signs &= codes != 0
    return (codes | (signs.astype(np.int64) << (width - 1))).astype(f"uint{width}")


def _e4b15(values: np.ndarray) -> np.ndarray:
    """Codes of fp8e4b15 as CUDA's backend converts to it (language/extra/cuda/utils.py): float16 first, towards zero,
    then the nearest, of two the larger size; at most 1.75, which NaN becomes, too."""
    half = values.view(np.uint16) if values.dtype == np.float16 else encode(values, tl.float16, towards_zero=True)
    size = np.minimum(half & 0x7FFF, 0x3F00)
    return (((size * 2 + 0x80) >> 8) | (half >> 8 & 0x80)).astype(np.uint8)


def _rounded_to_odd(values: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """64-bit integers as float64s whose last bit stands for all that is lost, so that one more rounding is right."""
    back = wide.astype(object)
    lost = np.frompyfunc(lambda near, value: int(near) - int(value), 2, 1)(back, values.astype(object))
    inexact, bits = lost.astype(bool), np.atleast_1d(wide).view(np.int64).reshape(wide.shape)
    away = (lost > 0) == (wide > 0)
    odd = np.where(inexact & (bits & 1 == 0), bits + np.where(away, -1, 1), bits)
    return np.atleast_1d(odd).view(np.float64).reshape(wide.shape)


def numbers(handle: Any) -> np.ndarray:
    """A handle's numbers: float32 for the types whose arrays hold bits, else the array."""
    dtype = handle.dtype.scalar
    return decode(handle.data, dtype) if is_narrow(dtype) else handle.data


def from_front(axis: int | None, values: tuple[Any, ...]) -> int | None:
    """An axis of tensors, of which a negative one counts from the end."""
    return None if axis is None else axis % len(values[0].shape)


def quiet(values: np.ndarray) -> np.ndarray:
    """With quiet NaNs: NumPy's minima and maxima forget what is before a signalling one."""
    return values * np.ones((), values.dtype)


def atomic_rmw(operation: Any, pointers: np.ndarray, values: np.ndarray, *how: Any) -> np.ndarray:
    """The interpreter's, which also exchanges what is no integer: by its bits."""
    bits = values.view(f"u{values.itemsize}") if operation == _interpreter.RMW_OP.XCHG else values
    return _interpreter.atomic_rmw(operation, pointers, bits, *how).view(values.dtype)


def nans(shape: tuple[int, ...], dtype: tl.dtype, array_type: np.dtype) -> np.ndarray:
    """An array of NaN as handles of ``dtype`` hold it."""
    values = np.full(shape, np.nan)
    return encode(values, dtype) if is_narrow(dtype) else values.astype(array_type)


def _wide(argument: Any) -> Any:
    """A handle of float32 for one of a narrow type; whatever else there is as it is."""
    if isinstance(argument, list):
        return [_wide(one) for one in argument]
    dtype = getattr(argument, "dtype", None)
    if dtype is None or not hasattr(argument, "data") or not is_narrow(dtype.scalar):
        return argument
    return type(argument)(decode(argument.data, dtype.scalar), tl.float32)


def _narrow_type(arguments: tuple[Any, ...]) -> tl.dtype | None:
    dtypes = [argument.dtype.scalar for argument in arguments if hasattr(argument, "dtype")]
    return next((dtype for dtype in dtypes if is_narrow(dtype)), None)


def _computing(method: Any, rounds: bool = True) -> Any:
    """A method of the builder, on the values of narrow operands; its results are rounded to their type if it
    ``rounds``, and have a type of their own if it does not."""

    @functools.wraps(method)
    def computed(self: Any, *arguments: Any, **keywords: Any) -> Any:
        narrow = _narrow_type(arguments)
        if narrow is None and rounds:
            return method(self, *arguments, **keywords)
        result = method(self, *(_wide(argument) for argument in arguments), **keywords)
        if not rounds or result.data.dtype.kind != "f":  # comparisons give booleans
            return result
        return type(result)(encode(result.data, narrow), narrow)

    return computed


def convert(handle: Any, target: tl.dtype, rounding_mode: Any = None) -> np.ndarray | None:
    """A handle's numbers as those of ``target``, rounded once; None where its array is not of a format of this file."""
    target = target.scalar
    source = handle.dtype.scalar
    towards_zero = rounding_mode == _ir.ROUNDING_MODE.RTZ
    if is_narrow(target) or (target == tl.float16 and towards_zero):
        bits = encode(numbers(handle), target, towards_zero)
        return bits if is_narrow(target) else bits.view(np.float16)
    return decode(handle.data, source) if is_narrow(source) else None


def _converting(method: Any) -> Any:
    """``cast_impl`` or ``create_fp_to_fp``, for narrow types by the rules of this file."""

    @functools.wraps(method)
    def converted(self: Any, source: Any, target: tl.dtype, *rounding_mode: Any) -> Any:
        values = convert(source, target, *rounding_mode)
        if values is None:
            # float16, float32 and float64 are NumPy's own.
            return method(self, source, target)
        if is_narrow(target.scalar) or target.scalar == tl.float16 and values.dtype == np.float16:
            return type(source)(values, target.scalar)
        return self.cast_impl(type(source)(values, tl.float32), target)

    return converted


def _adding(method: Any) -> Any:
    """``create_atomic_rmw``, which also adds numbers of bfloat16."""

    @functools.wraps(method)
    def added(self: Any, operation: Any, pointers: Any, values: Any, mask: Any, sem: Any, scope: Any) -> Any:
        dtype = values.dtype.scalar
        if operation != _ir.ATOMIC_OP.FADD or not is_narrow(dtype):
            return method(self, operation, pointers, values, mask, sem, scope)
        order = self.ir_sem_to_interpreter_sem[sem]
        olds = np.zeros(values.data.shape, values.data.dtype)
        for index in np.ndindex(values.data.shape):
            if not np.broadcast_to(mask.data, olds.shape)[index]:
                continue
            pointer = np.broadcast_to(pointers.data, olds.shape)[index].reshape(1)
            seen = _interpreter.load(pointer, np.ones(1, bool), np.zeros(1, olds.dtype), olds.dtype)
            while True:
                old = seen
                new = encode(decode(old, dtype) + decode(values.data[index].reshape(1), dtype), dtype)
                seen = _interpreter.atomic_cas(pointer, old, new, order)
                if seen[0] == old[0]:
                    break
            olds[index] = old[0]
        return type(values)(olds, dtype)

    return added


#: Methods of the builder that compute: from and to their operands' type, and with a result of another type.
_ROUNDED = """fadd fsub fmul fdiv frem fneg fabs precise_divf approx_divf minimumf minnumf maximumf maxnumf clampf fma
    cos sin exp exp2 log log2 sqrt precise_sqrt rsqrt erf floor ceil""".split()
_COMPARED = [f"fcmp{order}{relation}" for order in "OU" for relation in ("LT", "GT", "LE", "GE", "EQ", "NE")]


def widened(builder: type) -> type:
    """The builder's class, with methods that compute with the values of narrow floats."""
    for name in _ROUNDED + _COMPARED:
        setattr(builder, f"create_{name}", _computing(getattr(builder, f"create_{name}")))
    for name in ("create_dot", "create_print"):
        setattr(builder, name, _computing(getattr(builder, name), rounds=False))
    for name in ("cast_impl", "create_fp_to_fp"):
        setattr(builder, name, _converting(getattr(builder, name)))
    builder.create_atomic_rmw = _adding(builder.create_atomic_rmw)  # type: ignore[attr-defined]
    return builder


def reducing(method: Any) -> Any:
    """A reduction or scan of whole arrays, on the values of a narrow tensor; what it returns is rounded once."""

    @functools.wraps(method)
    def reduced(self: Any, input: Any, *arguments: Any, **keywords: Any) -> Any:
        dtype = input.dtype.scalar
        if not is_narrow(dtype):
            return method(self, input, *arguments, **keywords)
        results = method(
            self, tl.core.tensor(_wide(input.handle), input.type.with_element_ty(tl.float32)), *arguments, **keywords
        )
        return _each(results, lambda tensor: _rounded(tensor, dtype))

    return reduced


def _each(results: Any, apply: Any) -> Any:
    return type(results)(apply(one) for one in results) if isinstance(results, (list, tuple)) else apply(results)


def _rounded(tensor: Any, dtype: tl.dtype) -> Any:
    if tensor.dtype.scalar != tl.float32:  # where the largest is
        return tensor
    handle = type(tensor.handle)(encode(tensor.handle.data, dtype), dtype)
    return tl.core.tensor(handle, tensor.type.with_element_ty(dtype) if tensor.type.is_block() else dtype)
