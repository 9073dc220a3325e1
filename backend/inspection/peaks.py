"""A device's best figures: bytes per second of a copy, and operations per second of multiply-adds.

They are the two lines of a roofline (Williams, Waterman, Patterson: Roofline, CACM 52, 2009). A processor has a third
one, of a copy that its caches hold (Ilic, Pratas, Sousa: Cache-aware Roofline Model, IEEE CAL 13, 2014).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import triton
import triton.language as tl

RUNS = 5


@dataclass(frozen=True)
class Sizes:
    """``copied``: 4-byte elements of the copy, more than caches hold, which ``copy_programs`` share in blocks of
    ``copy_block``. ``programs`` of multiply-adds, of ``steps`` for each of ``block`` elements of the chains."""

    copied: int = 1 << 24
    copy_programs: int = 1 << 14
    copy_block: int = 1024
    programs: int = 2048
    steps: int = 256
    block: int = 1024


#: What suits a GPU, whose threads hide latencies; and a processor, whose registers hold the chains of a program.
_GPU = Sizes()
_PROCESSOR = Sizes(copied=1 << 25, copy_programs=64, copy_block=4096, programs=64, steps=1 << 17, block=32)
CHAINS = 8
#: Elements of each program's copy within a cache: 64 KiB are read and as many written.
_IN_CACHE = 1 << 14


@dataclass(frozen=True)
class Peaks:
    """Measured on a device: ``bytes_a_second``, and f32 ``operations_a_second``, of which a multiply-add is two. Of a
    processor the same of one thread, and the bytes of all threads' copies within their own caches; else None."""

    device: str
    bytes_a_second: float
    operations_a_second: float
    bytes_of_a_thread: float | None = None
    operations_of_a_thread: float | None = None
    bytes_of_caches: float | None = None

    def describe(self) -> str:
        """One line."""
        text = (
            f"at best {self.bytes_a_second / 1e9:,.1f} GB/s of a copy and "
            f"{self.operations_a_second / 1e9:,.1f} GFLOP/s of f32 multiply-adds on {self.device}"
        )
        if self.bytes_of_a_thread is None or self.operations_of_a_thread is None or self.bytes_of_caches is None:
            return text
        return (
            f"{text}; one thread at best {self.bytes_of_a_thread / 1e9:,.1f} GB/s and "
            f"{self.operations_of_a_thread / 1e9:,.1f} GFLOP/s; caches at best {self.bytes_of_caches / 1e9:,.1f} GB/s"
        )


@triton.jit
def copy(x, out, blocks, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = x, of 4 bytes an element: so many blocks each program."""
    first = tl.program_id(0) * blocks * BLOCK + tl.arange(0, BLOCK)
    for block in range(blocks):
        i = first + block * BLOCK
        tl.store(out + i, tl.load(x + i))


@triton.jit
def copy_again(x, out, rounds, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out = x, of 4 bytes an element, so many times: the same blocks of each program."""
    first = tl.program_id(0) * BLOCKS * BLOCK + tl.arange(0, BLOCK)
    for _ in range(rounds):
        for block in range(BLOCKS):
            i = first + block * BLOCK
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
    """Measures the current device: some tenths of a second, and of a processor some seconds. Raises
    DeviceUnavailable."""
    from ..runtime import context

    current = context.current()
    sizes = _PROCESSOR if current.capabilities.processor else _GPU
    memory, operations = _rates(sizes, sizes.copy_programs, sizes.programs)
    if not current.capabilities.processor:
        return Peaks(current.device.name, memory, operations)
    # One program runs on one thread. It is no faster than all: where it is, others used the processor meanwhile.
    alone = _rates(replace(sizes, steps=8 * sizes.steps), 1, 1)
    return Peaks(current.device.name, max(memory, alone[0]), max(operations, alone[1]), *alone, _rate_of_caches(sizes))


def _rate_of_caches(sizes: Sizes) -> float:
    """Bytes a second of all threads' copies, each within the L2 of its core."""
    from ..runtime.buffer import zeros

    blocks, rounds = _IN_CACHE // sizes.copy_block, 512
    x, out = (zeros(_IN_CACHE * sizes.programs, "int32") for _ in range(2))
    seconds = _fastest(lambda: copy_again[(sizes.programs,)](x, out, rounds, BLOCKS=blocks, BLOCK=sizes.copy_block))
    return 8 * _IN_CACHE * sizes.programs * rounds / seconds


def _rates(sizes: Sizes, copy_programs: int, programs: int) -> tuple[float, float]:
    """Bytes of a copy and operations of multiply-adds a second, by so many programs each."""
    from ..runtime.buffer import zeros

    x, out = zeros(sizes.copied, "int32"), zeros(sizes.copied, "int32")
    blocks = sizes.copied // sizes.copy_block // copy_programs
    copied = _fastest(lambda: copy[(copy_programs,)](x, out, blocks, BLOCK=sizes.copy_block))
    result = zeros(sizes.block, "float32")
    # Fused, whatever Triton's default is: it is half of what the device does otherwise.
    choices = {"BLOCK": sizes.block, "enable_fp_fusion": True}
    computed = _fastest(lambda: multiply_adds[(programs,)](result, 0.5, sizes.steps, **choices))
    return 8 * sizes.copied / copied, 2 * CHAINS * sizes.steps * sizes.block * programs / computed


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
