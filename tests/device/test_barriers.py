"""Loops in which barriers that upstream inserted are gone or of a subgroup: results against NumPy."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.decode import instruction_words
from triton.backends.spirv.spirv.opcodes import Scope
from triton.runtime import driver

from tests.device.helpers import assert_same, to_torch
from tests.device.test_convert_layout import COLUMNS, ROWS, addresses, blocked

PAIRS = blocked([2, 1], [1, 8], [4, 1], [1, 0])

#: Each round stores a tile in one layout, reads it in another and adds it up; the next round's tile is twice as large.
LOOP = """
#source = {source}
#target = {target}
#shared = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "spirv:vulkan1.3",
    "ttg.threads-per-warp" = 8 : i32}} {{
  tt.func public @rounds(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) attributes {{noinline = false}} {{
{address_source}
{address_target}
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %count = arith.constant 5 : i32
    %none = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #target>
    %value = tt.load %ps : tensor<16x16x!tt.ptr<f32>, #source>
    %m = ttg.local_alloc : () -> !ttg.memdesc<16x16xf32, #shared, #ttg.shared_memory, mutable>
    %r:2 = scf.for %i = %zero to %count step %one iter_args(%v = %value, %total = %none) -> (tensor<16x16xf32, #source>, tensor<16x16xf32, #target>) : i32 {{
      ttg.local_store %v, %m : tensor<16x16xf32, #source> -> !ttg.memdesc<16x16xf32, #shared, #ttg.shared_memory, mutable>
      %l = ttg.local_load %m : !ttg.memdesc<16x16xf32, #shared, #ttg.shared_memory, mutable> -> tensor<16x16xf32, #target>
      %sum = arith.addf %total, %l : tensor<16x16xf32, #target>
      %twice = arith.addf %v, %v : tensor<16x16xf32, #source>
      scf.yield %twice, %sum : tensor<16x16xf32, #source>, tensor<16x16xf32, #target>
    }}
    tt.store %pt, %r#1 : tensor<16x16x!tt.ptr<f32>, #target>
    tt.return
  }}
}}
"""  # noqa: E501


def barriers(spirv: bytes) -> list[int]:
    """The execution scope of each barrier of a module."""
    constants: dict[int, int] = {}
    found = []
    for opcode, words in instruction_words(spirv):
        if opcode == op.Constant:
            constants[words[1]] = words[2]
        elif opcode == op.ControlBarrier:
            found.append(constants[words[0]])
    return found


@pytest.mark.only_on("Vulkan", "the layouts are for such subgroups", subgroup_size=8)
@pytest.mark.parametrize(
    ("target", "scopes"), [(ROWS, []), (PAIRS, [Scope.Subgroup] * 2), (COLUMNS, [Scope.Workgroup] * 2)]
)
def test_buffer_that_is_written_and_read_in_each_round(target, scopes, tmp_path):
    path = tmp_path / "rounds.ttgir"
    path.write_text(
        LOOP.format(
            source=ROWS,
            target=target,
            address_source=addresses("%x", "s", "#source", (16, 16), "f32"),
            address_target=addresses("%y", "t", "#target", (16, 16), "f32"),
        )
    )
    kernel = triton.compile(str(path), target=driver.active.get_current_target(), options={"num_warps": 4})
    assert barriers(kernel.asm["spv"]) == scopes
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    out = np.zeros_like(x)
    given, taken = to_torch(x), to_torch(out)
    for _ in range(20):
        kernel[(64, 1, 1)](given, taken)
    assert_same(taken.numpy(), x * 31)


@triton.jit
def sorted_rounds(x_ptr, out_ptr, rounds, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for number in range(rounds):
        total += tl.sort(tl.load(x_ptr + number * BLOCK + places))
        total += tl.sum(total) / BLOCK
    tl.store(out_ptr + places, total)


def test_sort_and_sum_in_a_loop():
    rounds, block = 5, 512
    x = np.random.default_rng(3).integers(-50, 50, (rounds, block)).astype(np.float32)
    expected = np.zeros(block)
    for row in x:
        expected += np.sort(row)
        expected += expected.sum() / block
    out = torch.zeros(block)
    sorted_rounds[(1,)](to_torch(x), out, rounds, BLOCK=block)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-3)


@triton.jit
def products(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + r[:, None] * K + k + r[None, :])
        b = tl.load(b_ptr + (k + r)[:, None] * BLOCK + r[None, :])
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(out_ptr + r[:, None] * BLOCK + r[None, :], total)


@pytest.mark.only_on("Vulkan", "emulated", "the CPU device multiplies tiles in memory of the thread, without barriers")
def test_workgroup_of_one_subgroup():
    rng, k = np.random.default_rng(4), 128
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((16, k), (k, 16)))
    out = torch.zeros(16, 16)
    kernel = products[(1,)](to_torch(a), to_torch(b), out, k, BLOCK=16, num_warps=1)
    assert set(barriers(kernel.asm["spv"])) == {Scope.Subgroup}
    assert_same(out.numpy(), a @ b)
