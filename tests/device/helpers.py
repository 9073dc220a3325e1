"""What the device tests share: element types, inputs with the values that go wrong, outputs between guard bands."""

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.measuring.measured import capabilities_of

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)

#: Bytes before and after a guarded output, and what they hold.
GUARD_BYTES = 256
GUARD = 0xA5

#: Formats whose subnormal numbers a device may take for zero (bfloat16 is computed in f32), and their smallest normal
#: number.
FLUSHED = (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16))
SMALLEST_NORMAL = 2.0**-126

#: Drivers (VkDriverId) some of whose versions compute with subnormal numbers without a promise that they do.
COMPUTING_WITH_SUBNORMALS = frozenset({"mesa_llvmpipe"})

#: Values of a float format at which arithmetic is special; the smallest subnormal is added by special_floats.
SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, -2.75, np.inf, -np.inf, np.nan)


def host_memory() -> str:
    """How CPU tensors reach the device: zero-copy, imported or staged."""
    return str(current().host_memory)


def device_capabilities() -> Capabilities:
    """What the device can do, with what was measured."""
    capabilities = capabilities_of(current().device)
    assert capabilities is not None
    return capabilities


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of that name; bfloat16 is ml_dtypes'."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def to_torch(array: np.ndarray) -> torch.Tensor:
    """A CPU tensor with the array's values; always contiguous and its own memory."""
    array = np.array(array, order="C", copy=True)
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's values; bfloat16 as ml_dtypes' type."""
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()


class Guarded:
    """A tensor whose neighbouring bytes are known, ``offset`` elements past an aligned address: ``values()`` fails
    where something was written next to it."""

    def __init__(self, shape: int | Sequence[int], dtype: str, offset: int = 0, fill: int = GUARD) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self._dtype = numpy_dtype(dtype)
        count, size = int(np.prod(shape)), self._dtype.itemsize
        self._before = GUARD_BYTES + offset * size
        self._bytes = torch.full((self._before + count * size + GUARD_BYTES,), GUARD, dtype=torch.uint8)
        self._after = self._before + count * size
        self._bytes[self._before : self._after] = fill
        self._shape = shape
        self.tensor = self._bytes[self._before : self._after].view(getattr(torch, dtype)).view(shape)

    def values(self) -> np.ndarray:
        """What was written, as NumPy values."""
        data = self._bytes.numpy()
        for name, part in (("before", data[: self._before]), ("after", data[self._after :])):
            touched = np.flatnonzero(part != GUARD)
            assert touched.size == 0, f"{touched.size} bytes {name} the output were written, at {touched[:8]}"
        return data[self._before : self._after].copy().view(self._dtype).reshape(self._shape)


def special_floats(dtype: str) -> np.ndarray:
    """Values at which arithmetic of the format is special."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    return np.array(
        [
            *SPECIAL,
            float(info.max),
            -float(info.max),
            float(info.smallest_normal),
            -float(info.smallest_normal),
            3.0,
            1 / 3,
        ],
        numpy_dtype(dtype),
    )


def special_integers(dtype: str) -> np.ndarray:
    """Values at which integer arithmetic is special."""
    info = np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.bits - 1}
    if info.min:
        values |= {-1, -2, -3, -7}
    return np.array(sorted(values), dtype)


def inputs(dtype: str, size: int, seed: int = 0) -> np.ndarray:
    """``size`` values: the special ones of the format, then random ones."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
        special = special_integers(dtype)
    else:
        values = (rng.standard_normal(size) * 4).astype(numpy_dtype(dtype))
        special = special_floats(dtype)
    values[: min(size, special.size)] = special[:size]
    return values


def pairs(dtype: str, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two operands of ``size`` values: every pair of special values first, as far as they fit, then random ones."""
    a, b = inputs(dtype, size, seed), inputs(dtype, size, seed + 1)
    if dtype == "bool":
        return a, b
    special = special_integers(dtype) if dtype in INTEGERS else special_floats(dtype)
    combined = list(itertools.product(special, special))[:size]
    if len(combined) < size or size > 200:
        a[: len(combined)] = [left for left, _ in combined]
        b[: len(combined)] = [right for _, right in combined]
    return a, b


def same(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays hold the same number: NaN is NaN whatever its bits, and the zeros differ by their sign."""
    if actual.dtype.kind not in "fV" and actual.dtype != ml_dtypes.bfloat16:
        return np.asarray(actual == expected)
    wide, wanted = actual.astype(np.float64), expected.astype(np.float64)
    both_nan = np.isnan(wide) & np.isnan(wanted)
    return np.asarray(both_nan | ((wide == wanted) & (np.signbit(wide) == np.signbit(wanted))))


def assert_same(actual: np.ndarray, expected: np.ndarray, what: object = "", *operands: np.ndarray) -> None:
    """Fails, showing the first elements that differ with the operands they came from."""
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (what, actual.dtype, expected.dtype)
    wrong = np.argwhere(~same(actual, expected))
    shown = [
        (
            tuple(map(int, at)),
            *(operand[tuple(at)] for operand in operands),
            "got",
            actual[tuple(at)],
            "wanted",
            expected[tuple(at)],
        )
        for at in wrong[:6]
    ]
    assert wrong.size == 0, f"{what}: {len(wrong)} of {actual.size} differ: {shown}"


def computes_with_subnormals() -> bool:
    """Whether the device is known to take subnormal f32 numbers for what they are, and not for zero."""
    capabilities = device_capabilities()
    return capabilities.has("preserve_denormals32") or (
        capabilities.driver in COMPUTING_WITH_SUBNORMALS and halves_the_smallest_normal("float32")
    )


@triton.jit
def _half_kernel(source, out):
    tl.store(out, tl.load(source) * 0.5)


@cache
def halves_the_smallest_normal(dtype: str) -> bool:
    """Whether the device's half of the smallest normal number of a format is not zero."""
    smallest = torch.full((1,), np.finfo(dtype).tiny, dtype=getattr(torch, dtype))
    out = torch.full_like(smallest, -1)
    _half_kernel[(1,)](smallest, out)
    return out.item() != 0


def may_be_flushed(dtype: np.dtype) -> bool:
    """Whether the device may take subnormal numbers of a format for zero. Of f64 that is measured: few do."""
    if dtype in FLUSHED:
        return not computes_with_subnormals()
    return dtype == np.float64 and device_capabilities().has("float64") and not halves_the_smallest_normal("float64")


def flushed(values: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
    """``values`` with a zero of their sign for those that are subnormal in the format: f64, or f32 (and bfloat16)."""
    smallest = np.finfo(np.float64).tiny if dtype == np.float64 else SMALLEST_NORMAL
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = values.astype(np.longdouble)
    return np.where(np.abs(wide) < smallest, np.copysign(0, wide), wide).astype(values.dtype)


def accepted(reference: Callable[..., np.ndarray], *operands: np.ndarray, result: Any = None) -> list[np.ndarray]:
    """What a device may compute for ``reference`` of the operands: each element of one of these arrays.

    The first is the reference's. It is the only one on a device that computes with subnormal numbers, and for results
    and operands of formats that no device flushes. Elsewhere each operand that is subnormal may count as zero,
    and a result that is subnormal may be zero; elements without subnormal numbers are the same in all arrays.
    ``result``: the format of the results, by default that of the first operand.
    """
    ways = [[x, flushed(x, x.dtype)] if may_be_flushed(x.dtype) else [x] for x in operands]
    ways = [[x, *(other for other in others if np.any(other != x))] for x, *others in ways]
    found = [reference(*choice) for choice in itertools.product(*ways)]
    if may_be_flushed(of_result := np.dtype(operands[0].dtype if result is None else result)):
        found += [flushed(values, of_result) for values in found]
    return found


def assert_one_of(actual: np.ndarray, expected: list[np.ndarray], *operands: np.ndarray, what: str = "") -> None:
    """Fails where an element is that of none of the ``expected`` arrays (accepted): NaN is NaN, and the zeros
    differ by their sign."""
    fine = np.any([same(actual, values) for values in expected], axis=0)
    at = np.flatnonzero(~fine)[:4]
    assert fine.all(), (
        f"{what}: {np.count_nonzero(~fine)} of {fine.size} differ: {[x[at] for x in operands]} give "
        f"{actual[at]}, wanted one of {[values[at] for values in expected]}"
    )


def assert_ulp(actual: np.ndarray, expected: np.ndarray, dtype: str, ulp: float, what: object = "") -> None:
    """Fails where ``actual``, of format ``dtype``, is more than ``ulp`` units in the last place of ``expected``
    (float64) away. Infinities and NaN must be equal; the result may overflow where the tolerance reaches past the
    largest number."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    wide = actual.astype(np.float64)
    expected = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(expected), float(info.smallest_normal))))
        unit = np.exp2(np.where(np.isfinite(exponent), exponent, 0) - info.nmant)
        overflow = np.abs(expected) > float(info.max) + unit / 2
        expected = np.where(overflow, np.copysign(np.inf, expected), expected)
        wide = np.where(
            np.isinf(wide) & np.isfinite(expected) & (np.abs(expected) + ulp * unit > float(info.max)), expected, wide
        )
        close = (wide == expected) | (np.isnan(wide) & np.isnan(expected)) | (np.abs(wide - expected) <= ulp * unit)
    wrong = np.argwhere(~close)
    shown = [(tuple(map(int, at)), "got", wide[tuple(at)], "wanted", expected[tuple(at)]) for at in wrong[:6]]
    assert wrong.size == 0, f"{what}: {len(wrong)} of {actual.size} are more than {ulp} ULP off: {shown}"
