"""libdevice's integer functions and bit casts against Python integers."""

import numpy as np
import pytest

from tests.device.math.harness import apply

RNG = np.random.default_rng(9)
WORDS = {
    32: RNG.integers(0, 1 << 32, 1000, dtype=np.uint64).astype(np.uint32),
    64: RNG.integers(0, 1 << 64, 1000, dtype=np.uint64),
}
for _width, _words in WORDS.items():
    _words[:6] = [0, 1, (1 << _width) - 1, 1 << (_width - 1), (1 << (_width - 1)) - 1, 1 << (_width // 2)]

COUNTS = {
    "clz": lambda x, width: width - x.bit_length(),
    "popc": lambda x, width: x.bit_count(),
    "ffs": lambda x, width: (x & -x).bit_length(),
}
AVERAGES = {
    "mulhi": lambda a, b, width: (a * b) >> width,
    "hadd": lambda a, b, width: (a + b) >> 1,
    "rhadd": lambda a, b, width: (a + b + 1) >> 1,
}


def signs(width: int) -> tuple[type, type]:
    """The unsigned and the signed type."""
    return (np.uint32, np.int32) if width == 32 else (np.uint64, np.int64)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", COUNTS)
def test_counts(name, width):
    words = WORDS[width]
    wanted = [COUNTS[name](int(x), width) for x in words]
    for dtype in signs(width):
        actual = apply(f"libdevice.{name}(a)", words.view(dtype), dtype=np.int32)
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("width", [32, 64])
def test_reversed_bits(width):
    wanted = [int(f"{int(x):0{width}b}"[::-1], 2) for x in WORDS[width]]
    np.testing.assert_array_equal(apply("libdevice.brev(a)", WORDS[width]), np.array(wanted, WORDS[width].dtype))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("name", "width"), [("mulhi", 32), ("mulhi", 64), ("hadd", 32), ("rhadd", 32)])
def test_wide_intermediates(name, width, signed):
    a = WORDS[width].view(signs(width)[signed])
    b = np.roll(a, 7)
    wanted = [AVERAGES[name](int(x), int(y), width) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(apply(f"libdevice.{name}(a, b)", a, b), np.array(wanted, a.dtype))


@pytest.mark.parametrize("signed", [False, True])
def test_mul24_and_sad(signed):
    dtype = np.int32 if signed else np.uint32
    a = WORDS[32].view(dtype)
    b, c = np.roll(a, 7), np.roll(WORDS[32], 13)

    def low(x: int) -> int:
        return (((x & 0xFFFFFF) ^ 0x800000) - 0x800000) if signed else x & 0xFFFFFF

    wanted = [low(int(x)) * low(int(y)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(apply("libdevice.mul24(a, b)", a, b).view(np.uint32), wanted)
    wanted = [abs(int(x) - int(y)) + int(z) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(apply("libdevice.sad(a, b, c)", a, b, c).view(np.uint32), wanted)


def test_bytes_by_selector():
    a = WORDS[32].view(np.int32)
    b, selector = np.roll(a, 7), np.roll(a, 13)
    wanted = []
    for x, y, s in zip(a.view(np.uint32), b.view(np.uint32), selector.view(np.uint32), strict=True):
        pool = int(x).to_bytes(4, "little") + int(y).to_bytes(4, "little")
        wanted.append(int.from_bytes(bytes(pool[int(s) >> 4 * i & 7] for i in range(4)), "little"))
    np.testing.assert_array_equal(apply("libdevice.byte_perm(a, b, c)", a, b, selector).view(np.uint32), wanted)


def test_bit_casts_and_halves():
    words, wide = WORDS[32], WORDS[64]
    np.testing.assert_array_equal(
        apply("libdevice.float_as_int(libdevice.int_as_float(a & 0x7F7FFFFF))", words.view(np.int32)),
        words.view(np.int32) & 0x7F7FFFFF,
    )
    number = (wide & np.uint64(0xFFEFFFFFFFFFFFFF)).view(np.float64)
    np.testing.assert_array_equal(
        apply("libdevice.double_as_longlong(a)", number, dtype=np.int64), number.view(np.int64)
    )
    np.testing.assert_array_equal(
        apply("libdevice.hiloint2double(libdevice.double2hiint(a), libdevice.double2loint(a))", number), number
    )


@pytest.mark.parametrize("width", [32, 64])
def test_classes(width):
    real = np.float32 if width == 32 else np.float64
    x = np.concatenate([WORDS[width].view(real), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-310], real)])
    finite = "finitef" if width == 32 else "isfinited"
    for name, reference in (("isnan", np.isnan), ("isinf", np.isinf), (finite, np.isfinite)):
        actual = apply(f"libdevice.{name}(a).to(tl.int32)", x, dtype=np.int32)
        np.testing.assert_array_equal(np.abs(actual), reference(x), name)
    np.testing.assert_array_equal(apply("libdevice.signbit(a)", x, dtype=np.int32) != 0, np.signbit(x))
