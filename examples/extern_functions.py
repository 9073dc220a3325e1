"""Functions of ``tl.extra.libdevice``: the error function's exact GELU, and angles from coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from examples.harness import Case, device_array, run_alone

BLOCK = 1024


@triton.jit
def gelu_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, 0.5 * x * (1 + libdevice.erf(x * 0.7071067811865476)), mask=inside)


@triton.jit
def polar_kernel(x_ptr, y_ptr, radius_ptr, angle_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(radius_ptr + offsets, libdevice.hypot(x, y), mask=inside)
    tl.store(angle_ptr + offsets, libdevice.atan2(y, x), mask=inside)


def gelu(x: Any, out: Any, size: int) -> None:
    """``x · Φ(x)`` of a contiguous array."""
    gelu_kernel[(triton.cdiv(size, BLOCK),)](x, out, size, BLOCK=BLOCK)


def polar(x: Any, y: Any, radius: Any, angle: Any, size: int) -> None:
    """Cartesian to polar coordinates."""
    polar_kernel[(triton.cdiv(size, BLOCK),)](x, y, radius, angle, size, BLOCK=BLOCK)


def cases() -> list[Case]:
    """Both kernels on one size."""
    size = 100_003
    random = np.random.default_rng(0)
    x, y = (3 * random.standard_normal(size, dtype=np.float32) for _ in range(2))
    smooth, points = np.zeros(size, np.float32), np.zeros((2, size), np.float32)
    device_x, device_y, device_smooth = (device_array(array) for array in (x, y, smooth))
    radius, angle = device_array(points[0]), device_array(points[1])
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    erf = np.array([math.erf(value) for value in wide_x / math.sqrt(2)])
    return [
        Case(
            "GELU with erf",
            f"{size} fp32",
            lambda: gelu(device_x, device_smooth, size),
            smooth,
            0.5 * wide_x * (1 + erf),
            bytes_moved=2 * x.nbytes,
            tolerance=2e-6,
        ),
        Case(
            "hypot and atan2",
            f"{size} fp32",
            lambda: polar(device_x, device_y, radius, angle, size),
            points,
            np.stack([np.hypot(wide_x, wide_y), np.arctan2(wide_y, wide_x)]),
            bytes_moved=4 * x.nbytes,
            tolerance=2e-6,
        ),
    ]


if __name__ == "__main__":
    run_alone(cases)
