"""A device's best figures: bytes per second of a copy, and operations per second of multiply-adds.

They are the two lines of a roofline (Williams, Waterman, Patterson: Roofline, CACM 52, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

#: 4-byte elements of the copy, more than caches hold; programs, and multiply-adds of each element, of the other.
COPIED, PROGRAMS, STEPS = 1 << 24, 2048, 256
BLOCK, CHAINS, RUNS = 1024, 8, 5


@dataclass(frozen=True)
class Peaks:
    """Measured on a device: ``bytes_a_second``, and f32 ``operations_a_second``, of which a multiply-add is two."""

    device: str
    bytes_a_second: float
    operations_a_second: float


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = x, of 4 bytes an element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@triton.jit
def multiply_adds(out, factor, steps, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """8 chains of ``steps`` multiply-adds for each element."""
    i = tl.arange(0, BLOCK)
    a = i.to(tl.float32)
    b, c, d, e, f, g, h = a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7
    for _ in range(steps):
        a, b, c, d = a * factor + 1, b * factor + 1, c * factor + 1, d * factor + 1
        e, f, g, h = e * factor + 1, f * factor + 1, g * factor + 1, h * factor + 1
    tl.store(out + i, a + b + c + d + e + f + g + h)


def measured() -> Peaks:
    """Measures the current device: some tenths of a second. Raises DeviceUnavailable."""
    from ..runtime import context
    from ..runtime.buffer import zeros

    x, out = zeros(COPIED, "int32"), zeros(COPIED, "int32")
    copied = _fastest(lambda: copy[(COPIED // BLOCK,)](x, out, BLOCK=BLOCK))
    result = zeros(BLOCK, "float32")
    computed = _fastest(lambda: multiply_adds[(PROGRAMS,)](result, 0.5, STEPS, BLOCK=BLOCK))
    operations = 2 * CHAINS * STEPS * BLOCK * PROGRAMS
    return Peaks(context.current().device.name, 8 * COPIED / copied, operations / computed)


def _fastest(launch: Any) -> float:
    """Seconds of the fastest of RUNS launches, after one that compiles."""
    from ..runtime.streams import make_event

    launch()
    times = []
    for _ in range(RUNS):
        begin, end = make_event(enable_timing=True), make_event(enable_timing=True)
        begin.record()
        launch()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return max(min(times), 1e-9)
