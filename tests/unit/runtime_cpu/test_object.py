"""Loading machine code: what an object may hold, and that a damaged one is an error."""

import ctypes
import math
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from triton.backends.spirv.runtime.native_module import native

from .objects import X86, compiled

_native = native()


def function(ir: str, name: str, prototype: object) -> Callable:
    loaded = _native.CpuObject(compiled(ir))
    found = prototype(loaded.function(name))  # type: ignore[operator]
    found.loaded = loaded
    return found


UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def test_constants_tables_and_calls_within_an_object() -> None:
    ir = """
@table = internal constant [4 x double] [double 1.0, double 2.5, double -3.0, double 7.25]
@pointers = internal constant [2 x ptr] [ptr @twice, ptr @half]
define internal double @twice(double %x) noinline { %r = fmul double %x, 2.0
  ret double %r }
define internal double @half(double %x) noinline { %r = fmul double %x, 0.5
  ret double %r }
define double @f(double %x) {
  %i = fptosi double %x to i64
  %e = getelementptr double, ptr @table, i64 %i
  %v = load double, ptr %e
  %parity = and i64 %i, 1
  %slot = getelementptr ptr, ptr @pointers, i64 %parity
  %called = load ptr, ptr %slot
  %r = call double %called(double %v)
  ret double %r
}"""
    f = function(ir, "f", UNARY)
    assert [f(float(i)) for i in range(4)] == [2.0, 1.25, -6.0, 3.625]


def test_a_global_of_another_module_s_kind_is_reached_through_the_table_of_addresses() -> None:
    """Code that is position independent loads the address of a global that may be elsewhere."""
    ir = """
@shared = global double 3.0
define double @f(double %x) {
  %old = load double, ptr @shared
  store double %x, ptr @shared
  ret double %old
}"""
    f = function(ir, "f", UNARY)
    assert [f(1.0), f(2.0), f(5.0)] == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("name", ["fmod", "pow", "atan2", "hypot", "remainder"])
def test_functions_of_the_mathematical_library(name: str) -> None:
    ir = f"""
declare double @{name}(double, double)
define double @f(double %x) {{ %r = call double @{name}(double %x, double 3.25)
  ret double %r }}"""
    expected = math.remainder if name == "remainder" else getattr(math, name)
    assert function(ir, "f", UNARY)(7.5) == expected(7.5, 3.25)


def test_conversions_that_the_processor_lacks() -> None:
    """x86-64-v2 has no half at all: each step is a call of compiler support."""
    ir = """
define i16 @round(double %x) { %h = fptrunc double %x to half
  %i = bitcast half %h to i16
  ret i16 %i }
define i16 @roundf(float %x) { %h = fptrunc float %x to half
  %i = bitcast half %h to i16
  ret i16 %i }
define float @widen(i16 %i) { %h = bitcast i16 %i to half
  %x = fpext half %h to float
  ret float %x }
define i16 @brain(double %x) { %h = fptrunc double %x to bfloat
  %i = bitcast bfloat %h to i16
  ret i16 %i }"""
    loaded = _native.CpuObject(compiled(ir))
    to_half = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_double)(loaded.function("round"))
    to_half_f = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_float)(loaded.function("roundf"))
    to_float = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(loaded.function("widen"))
    to_brain = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_double)(loaded.function("brain"))
    for bits in range(1 << 16):
        value = np.uint16(bits).view(np.float16)
        found = np.float32(to_float(bits))
        assert found == np.float32(value) or (np.isnan(found) and np.isnan(value))
    import ml_dtypes

    generator = np.random.default_rng(0)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = halves[np.isfinite(halves)]
    ties = (np.sort(halves)[1:] + np.sort(halves)[:-1]) / 2
    near = generator.choice(ties, 4000)
    with np.errstate(over="ignore"):
        random_values = generator.standard_normal(4000) * 10.0 ** generator.integers(-12, 7, 4000)
        values = [*near, *np.nextafter(near, 1e9), *np.nextafter(near, -1e9), *random_values]
        values += [
            0.0,
            -0.0,
            65504.0,
            65519.99,
            65520.0,
            -1e30,
            math.inf,
            -math.inf,
            2.0**-25,
            2.0**-25 * 1.0001,
            1e-300,
        ]
        for value in values:
            assert to_half(value) == np.float64(value).astype(np.float16).view(np.uint16), value
            assert to_half_f(value) == np.float32(value).astype(np.float16).view(np.uint16), value
            once = np.float32(value)
            if once == value:  # ml_dtypes rounds a double twice
                assert to_brain(value) == once.astype(ml_dtypes.bfloat16).view(np.uint16), value
    assert to_half(math.nan) & 0x7C00 == 0x7C00 and to_half(math.nan) & 0x3FF
    assert to_brain(math.nan) & 0x7F80 == 0x7F80 and to_brain(math.nan) & 0x7F
    assert to_brain(1e300) == 0x7F80 and to_brain(2.0**-133) == 1 and to_brain(2.0**-134) == 0


def test_wide_integers() -> None:
    ir = """
define i64 @f(i64 %high, i64 %low, i64 %by) {
  %h = sext i64 %high to i128
  %s = shl i128 %h, 64
  %l = zext i64 %low to i128
  %n = or i128 %s, %l
  %b = sext i64 %by to i128
  %q = sdiv i128 %n, %b
  %r = trunc i128 %q to i64
  ret i64 %r
}"""
    divide = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_int64)
    f = function(ir, "f", divide)
    assert [f(0, 100, 7), f(-1, 2**64 - 100, 7), f(1, 0, 3)] == [14, -14, 2**64 // 3]


def test_functions_that_kernels_may_not_call() -> None:
    ir = "declare i32 @system(ptr)\ndefine i32 @f(ptr %x) { %r = call i32 @system(ptr %x)\n ret i32 %r }"
    with pytest.raises(ValueError, match="needs the function 'system', which kernels cannot call"):
        _native.CpuObject(compiled(ir))


THREAD = """
@v = thread_local global i32 1
declare ptr @llvm.threadlocal.address(ptr)
define ptr @f() { %p = call ptr @llvm.threadlocal.address(ptr @v)
  ret ptr %p }"""
COMMON = """
@v = common global i32 0
define i32 @f() { %r = load i32, ptr @v
  ret i32 %r }"""
CONSTRUCTOR = """
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]
define void @f() { ret void }"""
CHOSEN = """
@i = ifunc void (), ptr @r
define ptr @r() { ret ptr null }
define void @f() { call void @i()
  ret void }"""


@pytest.mark.parametrize(
    ("ir", "words"),
    [
        (THREAD, "thread"),
        (COMMON, "common"),
        (CONSTRUCTOR, "runs code when it is loaded"),
        (CHOSEN, "chosen when it is loaded"),
    ],
)
def test_what_an_object_may_not_hold(ir: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _native.CpuObject(compiled(ir))


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="it has no function 'g'"):
        _native.CpuObject(compiled("define void @f() { ret void }")).function("g")


def test_files_that_are_no_objects() -> None:
    good = compiled("define void @f() { ret void }")
    for file, words in (
        (b"", "reaches past the end|not an ELF"),
        (b"\x7fELF", "reaches past the end of the file"),
        (b"\x03\x02\x23\x07" * 40, "this is not an ELF file"),
        (good[:4] + b"\x01" + good[5:], "ELF file of 64 bits"),
        (good[:16] + struct.pack("<H", 3) + good[18:], "not a relocatable object"),
        (good[:18] + struct.pack("<H", 183 if X86 else 62) + good[20:], "its code is for .*, and this processor is"),
        (good[:60] + struct.pack("<H", 0) + good[62:], "no sections"),
    ):
        with pytest.raises(ValueError, match=words):
            _native.CpuObject(file)


RICH = """
@table = constant [4 x double] [double 1.0, double 2.5, double -3.0, double 7.25]
@pointers = global [2 x ptr] [ptr @f, ptr @g]
@zeros = global [100 x i32] zeroinitializer
declare double @fmod(double, double)
define double @f(double %x) { %r = call double @fmod(double %x, double 3.25)
  ret double %r }
define double @g(double %x) {
  %i = fptosi double %x to i64
  %e = getelementptr double, ptr @table, i64 %i
  %v = load double, ptr %e
  %s = getelementptr ptr, ptr @pointers, i64 %i
  %c = load ptr, ptr %s
  %r = call double %c(double %v)
  ret double %r }"""


def test_truncated_objects_are_errors() -> None:
    good = compiled(RICH)
    _native.CpuObject(good)
    for length in range(len(good) - 1):
        with pytest.raises(ValueError):
            _native.CpuObject(good[:length])


def test_damaged_objects_load_or_are_errors() -> None:
    """Every header field gets extreme values, and random bytes change: nothing crashes, and nothing is read outside."""
    good = compiled(RICH)
    chance = random.Random(0)
    outcomes = {"loaded": 0, "refused": 0}

    def attempt(file: bytes) -> None:
        try:
            _native.CpuObject(file)
            outcomes["loaded"] += 1
        except ValueError:
            outcomes["refused"] += 1

    (sections,) = struct.unpack_from("<Q", good, 40)
    (count,) = struct.unpack_from("<H", good, 60)
    interesting = [
        0,
        1,
        7,
        24,
        64,
        0xFF,
        0x7FFF_FFFF,
        0xFFFF_FFFF,
        1 << 40,
        (1 << 63) - 1,
        (1 << 64) - 1,
        len(good),
        len(good) - 1,
    ]
    headers = [*range(16, 64, 2), *range(sections, sections + 64 * count, 4)]
    for at in headers:
        for value in interesting:
            for width in (2, 4, 8):
                changed = bytearray(good)
                changed[at : at + width] = (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
                attempt(bytes(changed[: len(good)]))
    for _ in range(20_000):
        changed = bytearray(good)
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(len(good))
            changed[at] = changed[at] ^ (1 << chance.randrange(8)) if chance.random() < 0.7 else chance.randrange(256)
        attempt(bytes(changed))
    assert outcomes["loaded"] > 1000 and outcomes["refused"] > 1000


def test_memory_is_never_writable_code_and_goes_back() -> None:
    loaded = _native.CpuObject(compiled(RICH))
    begin, end = loaded.address, loaded.address + loaded.bytes

    def rows() -> list[str]:
        found = []
        for line in Path("/proc/self/maps").read_text().splitlines():
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if low < end and high > begin:
                found.append(line.split()[1])
        return found

    assert [row for row in rows() if row.startswith("r-x")], rows()
    assert not [row for row in rows() if "w" in row and "x" in row]
    del loaded
    assert not [row for row in rows() if row.startswith("r-x")]
