"""How much a launch moves and computes, by the rows of its operations."""

import pytest
from triton.backends.spirv.analysis.pointer_roots import pointer_roots
from triton.backends.spirv.analysis.work import Work, launch_work
from triton.backends.spirv.ttgir.parser import parse_module

KERNEL = """
#one = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}}>
#rows = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [8, 1], warpsPerCTA = [1, 1], order = [1, 0]}}>
module attributes {{"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32}} {{
  tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %v = arith.constant 1.0 : f32
    %x = arith.constant dense<1.0> : tensor<32xf32, #one>
    %m = arith.constant dense<1.0> : tensor<16x8xf32, #rows>
    %k = arith.constant dense<1.0> : tensor<8x4xf32, #rows>
    %c = arith.constant dense<1.0> : tensor<16x4xf32, #rows>
    {body}
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%y = tt.load %p : !tt.ptr<f32>", Work(moved=4)),
        ("tt.store %p, %v : !tt.ptr<f32>", Work(moved=4)),
        ("%y = tt.atomic_load relaxed, gpu, %p : (!tt.ptr<f32>) -> f32", Work(moved=4)),
        ("tt.atomic_store relaxed, gpu, %p, %v : !tt.ptr<f32>", Work(moved=4)),
        ("%y = tt.atomic_rmw fadd, relaxed, gpu, %p, %v : (!tt.ptr<f32>, f32) -> f32", Work(moved=8)),
        ("%y = arith.addf %x, %x : tensor<32xf32, #one>", Work(operations=32)),
        ("%y = math.fma %x, %x, %x : tensor<32xf32, #one>", Work(operations=64)),
        ("%y = arith.addi %n, %n : i32", Work()),
        (
            "%y = tt.dot %m, %k, %c : tensor<16x8xf32, #rows> * tensor<8x4xf32, #rows> -> tensor<16x4xf32, #rows>",
            Work(operations=2 * 16 * 8 * 4),
        ),
        ("scf.for %i = %zero to %n step %one : i32 { %y = tt.load %p : !tt.ptr<f32> }", Work(moved=20)),
        ("tt.call @kernel(%p, %n) : (!tt.ptr<f32>, i32) -> ()", None),
    ],
)
def test_the_work_of_a_launch(body: str, expected: Work | None) -> None:
    kernel = parse_module(KERNEL.format(body=body)).functions["kernel"]
    assert launch_work(kernel, [0, 5], (3,)) == (None if expected is None else expected.times(3))


@pytest.mark.parametrize(
    ("body", "moved", "distinct"),
    [
        ("scf.for %i = %zero to %n step %one : i32 { %y = tt.load %p : !tt.ptr<f32> }", 60, 8),
        ("%y = tt.load %p : !tt.ptr<f32>\n tt.store %p, %y : !tt.ptr<f32>", 24, 16),
        ("%a = tt.ptr_to_int %p : !tt.ptr<f32> -> i64\n %y = tt.load %p : !tt.ptr<f32>", 12, 12),
    ],
    ids=["read again", "read and written", "of unknown origin"],
)
def test_bytes_that_are_moved_again_are_told_apart(body: str, moved: int, distinct: int) -> None:
    """Three programs on a tensor of two elements."""
    kernel = parse_module(KERNEL.format(body=body)).functions["kernel"]
    work = launch_work(kernel, [0, 5], (3,), pointer_roots(kernel))
    assert work is not None and (work.moved, work.distinct([8, 0])) == (moved, distinct)
