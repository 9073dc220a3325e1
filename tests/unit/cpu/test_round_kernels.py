"""Products of rounds of a loop, with factors in device memory, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.abi.tile_products import RoundsProduct, TileProduct
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.micro_kernels import block_of
from triton.backends.spirv.cpu.round_kernels import define_rounds

from .kernels import PROFILES_HERE, run_text

_DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_GUARD = 16


def run(one: RoundsProduct, profile: str, c: Any, a: Any, b: Any, down: int, rounds: int) -> None:
    """``a``, ``b``: addresses."""
    text, declarations = define_rounds(one, host_of(PROFILES[profile].processor))
    loads = [
        f"  %p{name} = getelementptr i8, ptr %arguments, i64 {place}\n  %{name} = load ptr, ptr %p{name}, align 8"
        for name, place in (("c", 0), ("a", 8), ("b", 16))
    ]
    head = "define void @run(ptr %arguments, i64 %first, i64 %last, ptr %grid, ptr %scratch, ptr %stop) {"
    numbers = f"ptr inttoptr (i64 {down} to ptr), ptr inttoptr (i64 {rounds} to ptr)"
    call = f"  call void @{one.name}(ptr %c, ptr %a, ptr %b, {numbers})\n  ret void\n}}"
    run_text("\n".join([*sorted(declarations), text, head, *loads, call]), profile, "run", [c, a, b])


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize(
    ("element", "a", "b"), [("f32", "f32", "f32"), ("f32", "f16", "f32"), ("f32", "f16", "f16"), ("f64", "f64", "f64")]
)
@pytest.mark.parametrize("columns", ["together", "apart", "turned"])
@pytest.mark.parametrize(
    ("shape", "rounds"), [((64, 64, 32), 11), ((1, 64, 16), 3), ((8, 16, 4), 5), ((32, 128, 1024), 2), ((16, 32, 8), 0)]
)
def test_rounds(
    shape: tuple[int, int, int], rounds: int, columns: str, element: str, a: str, b: str, profile: str
) -> None:
    m, n, k = shape
    rng, total = np.random.default_rng(0), k * rounds + 3
    left = rng.standard_normal((m, total)).astype(_DTYPES[a])
    right = rng.standard_normal((total, n + 5)).astype(_DTYPES[b])
    order, columns_at = rng.permutation(m), np.arange(n)
    if columns == "apart":
        columns_at = (np.arange(n) + n // 2 + 1) % (n + 5)
    memory = np.asfortranarray(right) if columns == "turned" else right
    steps = 1 if columns == "together" else 16
    c_step = n + (0 if n > 16 else 16)
    guarded = rng.standard_normal(m * c_step + 2 * _GUARD).astype(_DTYPES[element])
    before, c = guarded.copy(), guarded[_GUARD : _GUARD + m * c_step]
    a_at, b_at = np.zeros(16 * m, np.uint64), np.zeros(steps * n, np.uint64)
    a_at[::16] = left.ctypes.data + order * left.strides[0]
    b_at[::steps] = memory.ctypes.data + columns_at * memory.strides[1]
    one = RoundsProduct(element, m, n, k, c_step, (a, 16), (b, steps), columns == "turned")
    assert RoundsProduct.parse(one.name) == one
    run(one, profile, c, a_at, b_at, memory.strides[0], rounds)
    result = guarded[_GUARD : _GUARD + m * c_step].reshape(m, c_step)
    initial = before[_GUARD : _GUARD + m * c_step].reshape(m, c_step)
    wide_a, wide_b = left[order, : k * rounds].astype(float), right[: k * rounds, columns_at].astype(float)
    bound = (np.abs(wide_a) @ np.abs(wide_b) + np.abs(initial[:, :n])) * (k * rounds + 1) * np.finfo(c.dtype).eps
    assert (np.abs(result[:, :n] - initial[:, :n] - wide_a @ wide_b) <= bound).all()
    np.testing.assert_array_equal(result[:, n:], initial[:, n:])
    np.testing.assert_array_equal(guarded[:_GUARD], before[:_GUARD])
    np.testing.assert_array_equal(guarded[-_GUARD:], before[-_GUARD:])


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("b", ["f16", "f32"])
@pytest.mark.parametrize("m", [4, 8, 32, 64, 128])
def test_rows_of_b_that_are_packed_next_are_all_asked_for_meanwhile(m: int, b: str, profile: str) -> None:
    host = host_of(PROFILES[profile].processor)
    one = RoundsProduct("f32", m, 64, 32, 64, ("f32", 16), (b, 1), False)
    text, _ = define_rounds(one, host)
    block = block_of(TileProduct("f32", 1, m, 64, 32, True, (0, 0, 0), (0, 0, 0), (0, 0, 0)), host)
    rows = (32 << 10) // (4 * block.columns)  # that are packed at a time
    kinds, blocks = 1 + bool(m % block.rows and m > block.rows), -(-m // block.rows)
    asked = text.count("call void @llvm.prefetch") // kinds * (rows // 4) * blocks
    lines = rows * block.columns * {"f16": 2, "f32": 4}[b] // 64
    assert lines <= asked <= 2 * lines + blocks * (rows // 4)
    turned, _ = define_rounds(replace(one, turned=True), host)
    assert "prefetch" not in turned
