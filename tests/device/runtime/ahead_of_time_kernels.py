"""Kernels that test_runtime_ahead_of_time.py compiles to files."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr = 256):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, at < n) * factor, at < n)


@triton.jit
def every_type(out, a, b, c, d, e, f, g, SUFFIX: tl.constexpr, NOTHING: tl.constexpr):
    value = a.to(tl.float64) + b + c + d + e + f + g
    if SUFFIX == "twice":
        value *= 2
    if NOTHING is None:
        tl.store(out, value)


@triton.jit
def copy_block(source, target, row, column):
    target.store([row, column], source.load([row, column]))


@triton.jit
def report(out, n):
    at = tl.program_id(0)
    tl.device_print("program", at)
    tl.device_assert(at < n, "past the end")
    tl.store(out + at, at)


@triton.jit
def collatz(out, n):
    """Steps until 1: a loop whose end no constant tells."""
    steps = 0
    while n != 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(out, steps)


@triton.jit
def many(p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, out):
    """19 pointers: 152 bytes, more than the 128 that every device has for push constants."""
    total = tl.load(p0) + tl.load(p1) + tl.load(p2) + tl.load(p3) + tl.load(p4) + tl.load(p5) + tl.load(p6)
    total += tl.load(p7) + tl.load(p8) + tl.load(p9) + tl.load(p10) + tl.load(p11) + tl.load(p12) + tl.load(p13)
    tl.store(out, total + tl.load(p14) + tl.load(p15) + tl.load(p16) + tl.load(p17))


@triton.jit
def narrow(out, x):
    """Needs float64, which not every device has."""
    tl.store(out, tl.load(x).to(tl.float64) * 2)


@triton.jit
def refused(x):
    tl.store(x, tl.inline_asm_elementwise("bar.sync 0;", "=r,r", [tl.load(x)], tl.int32, True, 1))


def no_kernel(x):
    return x
