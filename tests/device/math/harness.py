"""Runs one expression over arrays as a kernel, and measures results in units in the last place."""

import hashlib
import math
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import triton
from triton.backends.spirv.runtime.arrays import array

from tests.device.helpers import device_capabilities
from tests.device.math.bounds import BOUNDS, NATIVE
from tests.written import written

mpmath.mp.dps = 40
NAMES = "abcd"

_SOURCE = """import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as nv
from triton.language.extra.hip import libdevice as amd


@triton.jit
def kernel({pointers}, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
{loads}
    tl.store(out + at, {expression}, mask)
"""


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="triton-spirv-math-"))


@cache
def _module(expression: str, operands: int) -> ModuleType:
    names = NAMES[:operands]
    source = _SOURCE.format(
        pointers=", ".join(f"{name}_ptr" for name in names),
        expression=expression,
        loads="\n".join(f"    {name} = tl.load({name}_ptr + at, mask)" for name in names),
    )
    return written(_folder() / f"kernel_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py", source)


#: Without what was compiled: for tests that change what is known of the driver.
forget = _module.cache_clear


def apply(expression: str, *operands: np.ndarray, dtype: Any = None, block: int = 128) -> np.ndarray:
    """``expression`` of a, b, c, d (one an operand) for every element; ``dtype`` is the result's, by default a's."""
    kernel = _module(expression, len(operands)).kernel
    result = np.zeros(operands[0].size, dtype or operands[0].dtype)
    kernel[(triton.cdiv(result.size, block),)](
        *(array(np.ascontiguousarray(operand)) for operand in operands), array(result), result.size, BLOCK=block
    )
    return result


def exactly(function: Callable[..., Any], *operands: np.ndarray) -> np.ndarray:
    """An mpmath function of every element, as long doubles; complex results are NaN, poles the
    infinity of the first operand's sign."""
    values = []
    for row in zip(*operands, strict=True):
        try:
            value = function(*(mpmath.mpf(float(x)) for x in row))
        except (ZeroDivisionError, ValueError):  # a pole
            value = math.copysign(math.inf, row[0])
        values.append(np.nan if isinstance(value, mpmath.mpc) else np.longdouble(mpmath.nstr(value, 25)))
    return np.array(values, np.longdouble)


def ulps(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The distance of each result from the long double expected, in units of its format's last place there. NaN for
    NaN and the infinity that the expected rounds to count 0."""
    info = np.finfo(actual.dtype)
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected) & (expected != 0)
        exponent = np.frexp(np.where(finite, expected, 1))[1] - 1
        exponent = np.where(finite, np.maximum(exponent, info.minexp), info.minexp)
        unit = np.ldexp(np.longdouble(1), (exponent - info.nmant).astype(np.int32))
        distance = np.abs(actual.astype(np.longdouble) - expected) / unit
        rounded = expected.astype(actual.dtype)
    same = (np.isnan(actual) & np.isnan(rounded)) | (np.isinf(actual) & (actual == rounded))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance)).astype(np.float64)


def device_bound(name: str, width: int) -> float:
    """The bound of BOUNDS on this device, in ULP: what is built on a device's own instruction is as exact as that."""
    bound, capabilities = BOUNDS[name], device_capabilities()
    if width == 64:
        return bound.double
    if name in NATIVE and capabilities.native_math:
        return NATIVE[name]
    # Vulkan's root is that of a division by an inverse root, 2.5 and 2 units off (Vulkan specification, precision).
    return bound.single + (4.5 if name == "sqrt" and not capabilities.traits.exact_division else 0)


def assert_ulps(actual: np.ndarray, expected: list[np.ndarray], bound: float, *operands: np.ndarray) -> None:
    """Fails, naming the worst operand, where a result is more than ``bound`` off each of the ``expected`` ones
    (helpers.accepted)."""
    distance = np.min([ulps(actual, values) for values in expected], axis=0)
    worst = int(np.argmax(distance))
    assert distance[worst] <= bound, (
        f"{distance[worst]:.4g} ULP at {[x[worst] for x in operands]}: "
        f"{actual[worst]!r}, exactly {[values[worst] for values in expected]!r}"
    )
