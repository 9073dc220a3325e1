"""Products in tf32 become one of f16, with a branch for other tiles."""

from __future__ import annotations

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.transforms.gpu.halves import multiply_halves
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module, Operation
from triton.backends.spirv.ttgir.parser import parse_module

UNITS = PROFILES["nvidia-hopper"].matrices

MODULE = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
#x = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.dot-precision" = "PRECISION", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: tensor<64x64xf32, #x>, %q: tensor<64x64xf32, #a>, %start: tensor<64x64xf32, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%total = %START) -> (tensor<64x64xf32, #mma>) : i32 {
      %y = arith.addf %x, %x : tensor<64x64xf32, #x>
      %sa = ttg.local_alloc %y : (tensor<64x64xf32, #x>) -> !ttg.memdesc<64x64xf32, #shared, #smem>
      %l = ttg.local_load %sa : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #a>
      %sb = ttg.local_alloc %x : (tensor<64x64xf32, #x>) -> !ttg.memdesc<64x64xf32, #shared, #smem>
      %m = ttg.local_load %sb : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #b>
      %sum = SUM
      %d = tt.dot %LEFT, %m, %sum, inputPrecision = ALLOWED : tensor<64x64xf32, #a> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    %s = arith.addf %r, %r : tensor<64x64xf32, #mma>
    tt.return
  }
}
"""  # noqa: E501
SAME = "arith.addf %total, %zero : tensor<64x64xf32, #mma>"


def module(
    left: str = "l", total: str = "", start: str = "zero", precision: str = "tf32", allowed: str = "tf32"
) -> Module:
    text = MODULE.replace("LEFT", left).replace("START", start).replace("PRECISION", precision)
    text = text.replace("ALLOWED", allowed)
    if total:
        return parse_module(text.replace("SUM", total))
    return parse_module(text.replace("      %sum = SUM\n", "").replace("%sum", "%total"))


def rewritten(source: Module) -> tuple[Operation, list[str]]:
    """The loop, and the names in its body."""
    assert multiply_halves(source, UNITS, padded=True)
    verify(source)
    loop = next(one for one in source.walk() if one.name == "scf.for")
    return loop, [one.name for one in loop.regions[0].entry.operations]


def test_tiles_are_stored_as_halves_and_parts_are_in_a_branch() -> None:
    loop, names = rewritten(module())
    assert names.count("scf.if") == names.count("spirv.beyond_halves") == names.count("tt.dot") == 1
    stores = [one.result.memdesc for one in loop.regions[0].entry.operations if one.name == "ttg.local_alloc"]
    assert [str(one.element) for one in stores] == ["f16", "f16"]
    branch = next(one for one in loop.walk() if one.name == "scf.if")
    inside = branch.regions[0].entry.operations
    dots = [one for one in inside if one.name == "tt.dot"]
    assert [str(one.operands[0].tensor.element) for one in dots] == ["bf16"] * 4
    assert "ttg.barrier" in [one.name for one in inside[inside.index(dots[-1]) :]], "only the branch waits for itself"
    assert [one.name for one in branch.regions[1].entry.operations] == ["scf.yield"]


def test_a_loops_own_accumulator_is_multiplied_and_the_loop_carries_by_what() -> None:
    loop, _ = rewritten(module())
    assert [str(one.type) for one in loop.results[1:]] == ["i32", "i32"]
    dot = next(one for one in reversed(loop.regions[0].entry.operations) if one.name == "tt.dot")
    assert not dot.flag("spirv.halves")
    assert [use.name for use in loop.results[0].uses] == ["arith.mulf"]


def test_an_accumulator_that_is_not_zero_is_asked_how_large_it_is() -> None:
    loop, _ = rewritten(module(start="start"))
    before = [one.name for one in loop.block.operations[: loop.block.operations.index(loop)]]  # type: ignore[union-attr]
    assert before.count("spirv.greatest") == 1 and before[-1] == "arith.mulf"


def test_other_accumulators_get_each_product_divided() -> None:
    loop, _ = rewritten(module(total=SAME))
    assert len(loop.results) == 1
    dot = next(one for one in reversed(loop.regions[0].entry.operations) if one.name == "tt.dot")
    assert dot.flag("spirv.halves")


def test_an_operand_of_before_the_loop_is_rounded_there() -> None:
    loop, names = rewritten(module(left="q"))
    before = [one.name for one in loop.block.operations[: loop.block.operations.index(loop)]]  # type: ignore[union-attr]
    assert before.count("spirv.beyond_halves") == before.count("arith.truncf") == 1
    assert names.count("spirv.beyond_halves") == names.count("arith.truncf") == names.count("arith.ori") == 1
    assert len(loop.results) == 2, "only the power of the other tile changes"


@pytest.mark.parametrize("precision, allowed", [("bf16x6", "tf32"), ("tf32", "ieee")])
def test_what_asks_for_more_stays(precision: str, allowed: str) -> None:
    assert not multiply_halves(module(precision=precision, allowed=allowed), UNITS, padded=True)


@pytest.mark.parametrize("missing", ("f16", "bf16"))
def test_both_types_of_matrices_are_needed(missing: str) -> None:
    units = [one for one in UNITS if one.a != missing]
    assert not multiply_halves(module(), units, padded=True)
