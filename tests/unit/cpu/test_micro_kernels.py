"""Products of whole tiles by the micro-kernels of each host, against NumPy in float64."""

import itertools
import platform
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.abi.tile_products import Strides, TileProduct
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.byte_kernels import write_bytes
from triton.backends.spirv.cpu.host import Host, host_of, level_of, runs
from triton.backends.spirv.cpu.machine import assemble
from triton.backends.spirv.cpu.micro_kernels import define

from .kernels import FEATURES_HERE, PROFILES_HERE, run_text

_DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
#: Hosts that multiply integers of 8 bits by other instructions: with a feature, and without.
_BYTE_HOSTS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "x86-64-v3+avxvnni", "x86-64-v4+avx512vnni"]
_BYTE_HOSTS += ["aarch64+dotprod", "x86-64-v4+amx-int8"]
_GUARD = 16
SHAPES = [(64, 64, 32), (16, 16, 16), (1, 64, 16), (64, 1, 8), (2, 4, 2), (32, 8, 64), (4, 128, 1), (1, 1, 1)]


def strides(order: str, batches: int, rows: int, columns: int) -> Strides:
    """Of ``batches`` matrices one behind the other, row by row ('n') or column by column ('t')."""
    return (rows * columns if batches > 1 else 0, *((columns, 1) if order == "n" else (1, rows)))


def product(element: str, shape: tuple[int, int, int], orders: str, batches: int, adds: bool) -> TileProduct:
    m, n, k = shape
    c, a, b = zip(orders, (m, m, k), (n, k, n), strict=True)
    return TileProduct(element, batches, m, n, k, adds, *(strides(one[0], batches, *one[1:]) for one in (c, a, b)))


def text_of(one: TileProduct, host: Host) -> str:
    """A module with the product, and the entry of a kernel that calls it on the arrays of its argument block."""
    text, declarations = define(one, host, write_bytes) if one.factor else define(one, host)
    loads = [
        f"  %p{name} = getelementptr i8, ptr %arguments, i64 {place}\n  %{name} = load ptr, ptr %p{name}, align 8"
        for name, place in (("c", 0), ("a", 8), ("b", 16))
    ]
    head = "define void @run(ptr %arguments, i64 %first, i64 %last, ptr %grid, ptr %scratch, ptr %stop) {"
    call = f"  call void @{one.name}(ptr %c, ptr %a, ptr %b)\n  ret void\n}}"
    return "\n".join([*sorted(declarations), text, head, *loads, call])


def run(one: TileProduct, profile: str, c: Any, a: Any, b: Any) -> None:
    host = host_of(PROFILES[profile].processor)
    run_text(text_of(one, host), host, "run", [c, a, b])


def viewed(memory: Any, batches: int, rows: int, columns: int, steps: Strides) -> Any:
    return np.lib.stride_tricks.as_strided(memory, (batches, rows, columns), [step * memory.itemsize for step in steps])


def check(one: TileProduct, profile: str) -> None:
    rng, dtype = np.random.default_rng(0), _DTYPES[one.element]

    def drawn(count: int) -> Any:
        low = np.iinfo(np.int32).min
        whole = rng.integers(low, -low, count) if dtype is np.int32 else rng.standard_normal(count)
        return whole.astype(dtype)

    guarded = drawn(one.batches * one.m * one.n + 2 * _GUARD)
    before, c = guarded.copy(), guarded[_GUARD:-_GUARD]
    a, b = drawn(one.batches * one.m * one.k), drawn(one.batches * one.k * one.n)
    wide = np.int64 if dtype is np.int32 else np.float64
    left = viewed(a, one.batches, one.m, one.k, one.a).astype(wide)
    right = viewed(b, one.batches, one.k, one.n, one.b).astype(wide)
    results = viewed(c, one.batches, one.m, one.n, one.c)
    expected = left @ right + (results.astype(wide) if one.adds else 0)
    run(one, profile, c, a, b)
    if dtype is np.int32:
        np.testing.assert_array_equal(results, expected.astype(np.int32))
    else:
        bound = np.abs(left) @ np.abs(right) + np.abs(viewed(before[_GUARD:], one.batches, one.m, one.n, one.c))
        assert (np.abs(results - expected) <= bound * (one.k + 1) * np.finfo(dtype).eps).all()
    np.testing.assert_array_equal(guarded[:_GUARD], before[:_GUARD])
    np.testing.assert_array_equal(guarded[-_GUARD:], before[-_GUARD:])


@pytest.mark.parametrize("profile", ["cpu-x86-64-v3", "cpu-x86-64-v4", "cpu-aarch64"])
@pytest.mark.parametrize("element", _DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_every_order(shape: tuple[int, int, int], element: str, profile: str) -> None:
    """What this machine cannot run is compiled, at least."""
    orders = ["nnn"] if shape[0] * shape[1] > 1024 else map("".join, itertools.product("nt", repeat=3))
    for order, adds in zip(orders, itertools.cycle([True, False, True]), strict=False):
        one = product(element, shape, order, 2 if adds else 1, adds)
        assert TileProduct.parse(one.name) == one
        host = host_of(PROFILES[profile].processor)
        if profile in PROFILES_HERE:
            check(one, profile)
        elif host.arch == platform.machine():
            assert assemble(text_of(one, host), host).startswith(b"\x7fELF")


@pytest.mark.parametrize("order", ["nnt", "ntn", "ntt", "tnn", "ttt"])
def test_large_products_of_transposed_operands(order: str) -> None:
    for profile in PROFILES_HERE:
        check(product("f32", (64, 128, 64), order, 1, True), profile)


def test_k_ascends_with_one_rounding_for_each() -> None:
    """2^24 + 1 - 2^24 is 0 in this order only; a product of floats that has 48 bits is not rounded by itself."""
    one = product("f32", (8, 16, 4), "nnn", 1, False)
    a = np.tile(np.array([1.0, 1.0, 1.0, 1 + 2.0**-23], np.float32), (8, 1))
    b = np.repeat(np.array([2.0**24, 1.0, -(2.0**24), 1 - 2.0**-23], np.float32)[:, None], 16, axis=1).copy()
    for profile in PROFILES_HERE:
        c = np.full((8, 16), np.nan, np.float32)
        run(one, profile, c, a, b)
        np.testing.assert_array_equal(c, np.float32((1 + 2.0**-23) * (1 - 2.0**-23)))
        b[:3] = 0
        a[:, 2], b[2] = 1, -1
        run(one, profile, c, a, b)
        np.testing.assert_array_equal(c, np.float32(-(2.0**-46)))
        b[:3] = np.array([2.0**24, 1.0, -(2.0**24)], np.float32)[:, None]


@pytest.mark.parametrize(
    "name", ["sin", "tile_product_add_f32_1x2", "tile_product_add_f16_1x2x2x2_c0_2_1_a0_2_1_b0_2_1"]
)
def test_other_names_are_no_products(name: str) -> None:
    assert TileProduct.parse(name) is None


def check_bytes(one: TileProduct, host: Host) -> None:
    """All results of extreme and of random factors, which wrap around in C, and what lies beside C."""
    rng = np.random.default_rng(1)

    def factors(count: int) -> Any:
        extreme = rng.choice(np.array([-128, 127, -1, 0], np.int8), count)
        return np.where(rng.random(count) < 0.5, extreme, rng.integers(-128, 128, count)).astype(np.int8)

    guarded = rng.integers(-(2**31), 2**31, one.batches * one.m * one.n + 2 * _GUARD).astype(np.int32)
    before, c = guarded.copy(), guarded[_GUARD:-_GUARD]
    a, b = factors(one.batches * one.m * one.k), factors(one.batches * one.k * one.n)
    left = viewed(a, one.batches, one.m, one.k, one.a).astype(np.int64)
    right = viewed(b, one.batches, one.k, one.n, one.b).astype(np.int64)
    results = viewed(c, one.batches, one.m, one.n, one.c)
    expected = left @ right + (results.astype(np.int64) if one.adds else 0)
    run_text(text_of(one, host), host, "run", [c, a, b])
    np.testing.assert_array_equal(results, expected.astype(np.int32))
    np.testing.assert_array_equal(guarded[:_GUARD], before[:_GUARD])
    np.testing.assert_array_equal(guarded[-_GUARD:], before[-_GUARD:])


@pytest.mark.parametrize("processor", _BYTE_HOSTS)
@pytest.mark.parametrize(
    "shape", [*SHAPES, (8, 4, 4), (16, 128, 128), (4, 4, 64), (4, 256, 64), (64, 16, 128)], ids=str
)
def test_products_of_bytes(shape: tuple[int, int, int], processor: str) -> None:
    """What this machine cannot run is compiled, at least."""
    host, (level, feature) = host_of(processor), level_of(processor)
    orders = ["nnn", "nnt", "ntn"] if shape[0] * shape[1] > 1024 else map("".join, itertools.product("nt", repeat=3))
    for order, adds in zip(orders, itertools.cycle([True, False, True]), strict=False):
        one = replace(product("i32", shape, order, 2 if adds else 1, adds), factor="i8")
        assert TileProduct.parse(one.name) == one
        if runs(level, PROFILES[PROFILES_HERE[-1]].processor) and feature in ("", *FEATURES_HERE):
            check_bytes(one, host)
        elif host.arch == platform.machine():
            assert assemble(text_of(one, host), host).startswith(b"\x7fELF")
