"""Integer operations that only TTGIR can ask for: division rounded otherwise, carries, borrows and high halves."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import triton
from triton.runtime import driver

from tests.device.helpers import inputs, pairs, to_numpy, to_torch

SIZE = 128
TEXT = """
#layout = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [{lanes}], warpsPerCTA = [4], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3",
                    "ttg.threads-per-warp" = {lanes} : i32}} {{
  tt.func public @k(%x: !tt.ptr<i{width}>, %y: !tt.ptr<i{width}>, %first: !tt.ptr<i{width}>,
                    %second: !tt.ptr<i{width}>) attributes {{noinline = false}} {{
    %places = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32, #layout>
    %xs = tt.splat %x : !tt.ptr<i{width}> -> tensor<128x!tt.ptr<i{width}>, #layout>
    %ys = tt.splat %y : !tt.ptr<i{width}> -> tensor<128x!tt.ptr<i{width}>, #layout>
    %firsts = tt.splat %first : !tt.ptr<i{width}> -> tensor<128x!tt.ptr<i{width}>, #layout>
    %seconds = tt.splat %second : !tt.ptr<i{width}> -> tensor<128x!tt.ptr<i{width}>, #layout>
    %xp = tt.addptr %xs, %places : tensor<128x!tt.ptr<i{width}>, #layout>, tensor<128xi32, #layout>
    %yp = tt.addptr %ys, %places : tensor<128x!tt.ptr<i{width}>, #layout>, tensor<128xi32, #layout>
    %fp = tt.addptr %firsts, %places : tensor<128x!tt.ptr<i{width}>, #layout>, tensor<128xi32, #layout>
    %sp = tt.addptr %seconds, %places : tensor<128x!tt.ptr<i{width}>, #layout>, tensor<128xi32, #layout>
    %a = tt.load %xp : tensor<128x!tt.ptr<i{width}>, #layout>
    %b = tt.load %yp : tensor<128x!tt.ptr<i{width}>, #layout>
{body}
    tt.store %fp, %u : tensor<128x!tt.ptr<i{width}>, #layout>
    tt.store %sp, %v : tensor<128x!tt.ptr<i{width}>, #layout>
    tt.return
  }}
}}
"""
INTEGERS = "tensor<128xi{width}, #layout>"
FLAGS = "tensor<128xi1, #layout>"


def run(tmp_path: Path, width: int, body: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both results of ``body``, which computes %u and %v from %a and %b."""
    lanes = driver.active.get_current_target().warp_size
    path = tmp_path / "k.ttgir"
    path.write_text(TEXT.format(lanes=lanes, width=width, body=body.format(width=width)))
    kernel = triton.compile(str(path))
    signed = f"int{width}"  # the signature of a .ttgir file is one of signed integers
    first, second = (to_torch(np.zeros_like(a.view(signed))) for _ in range(2))
    kernel[(1, 1, 1)](to_torch(a.view(signed)), to_torch(b.view(signed)), first, second)
    return to_numpy(first).view(a.dtype), to_numpy(second).view(a.dtype)


def exact(a: np.ndarray, b: np.ndarray, of: Callable[[int, int], int], dtype: str) -> np.ndarray:
    """``of`` in unbounded integers, wrapped around to the dtype."""
    mask = (1 << np.iinfo(dtype).bits) - 1
    values = [of(int(x), int(y)) & mask for x, y in zip(a, b, strict=True)]
    return np.array(values, dtype=f"uint{np.iinfo(dtype).bits}").astype(dtype)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_divisions(tmp_path: Path, width: int) -> None:
    signed = f"int{width}"
    a, b = pairs(signed, SIZE)
    b[b == 0] = 3
    body = f"    %u = arith.ceildivsi %a, %b : {INTEGERS}\n    %v = arith.floordivsi %a, %b : {INTEGERS}"
    up, down = run(tmp_path, width, body, a, b)
    assert np.array_equal(up, exact(a, b, lambda x, y: -(-x // y), signed))
    assert np.array_equal(down, exact(a, b, lambda x, y: x // y, signed))


@pytest.mark.parametrize("width", [8, 32, 64])
def test_unsigned_division(tmp_path: Path, width: int) -> None:
    unsigned = f"uint{width}"
    a, b = inputs(unsigned, SIZE), inputs(unsigned, SIZE, seed=1)
    b[b == 0] = 3
    body = f"    %u = arith.ceildivui %a, %b : {INTEGERS}\n    %v = arith.addi %u, %u : {INTEGERS}"
    up, _ = run(tmp_path, width, body, a, b)
    assert np.array_equal(up, exact(a, b, lambda x, y: -(-x // y), unsigned))


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["u", "s"])
def test_wide_products(tmp_path: Path, width: int, sign: str) -> None:
    dtype = f"{'u' if sign == 'u' else ''}int{width}"
    a, b = pairs(dtype, SIZE)
    low, high = run(tmp_path, width, f"    %u, %v = arith.mul{sign}i_extended %a, %b : {INTEGERS}", a, b)
    assert np.array_equal(low, exact(a, b, lambda x, y: x * y, dtype))
    assert np.array_equal(high, exact(a, b, lambda x, y: x * y >> width, dtype))


@pytest.mark.parametrize("width", [8, 32, 64])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_carries(tmp_path: Path, width: int, name: str) -> None:
    dtype = f"uint{width}"
    a, b = inputs(dtype, SIZE), inputs(dtype, SIZE, seed=1)
    body = (
        f"    %u, %c = arith.{name}ui_extended %a, %b : {INTEGERS}, {FLAGS}\n"
        f"    %v = arith.extui %c : {FLAGS} to {INTEGERS}"
    )
    total, carry = run(tmp_path, width, body, a, b)
    of = (lambda x, y: x + y) if name == "add" else (lambda x, y: x - y)
    assert np.array_equal(total, exact(a, b, of, dtype))
    assert np.array_equal(carry, exact(a, b, lambda x, y: of(x, y) >> width & 1, dtype))
