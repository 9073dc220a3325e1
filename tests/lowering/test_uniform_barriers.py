"""The check that barriers are in uniform control flow finds one that is not."""

from collections.abc import Callable

import pytest
from triton.backends.spirv.errors import LoweringError
from triton.backends.spirv.lowering import registry
from triton.backends.spirv.lowering.lowering import Lowering
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.ttgir.ir import Operation

from tests import uniform_barriers
from tests.lowering.harness import compile_body

#: A sum across subgroups, which waits, in a loop and a branch of the kernel.
BODY = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %x = arith.constant dense<1.0> : tensor<256xf32, #one>
    scf.for %i = %zero to %n step %one : i32 {
      %positive = arith.cmpi sgt, %i, %zero : i32
      scf.if %positive {
        %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
        ^bb0(%a: f32, %b: f32):
          %both = arith.addf %a, %b : f32
          tt.reduce.return %both : f32
        }) : (tensor<256xf32, #one>) -> f32
        tt.store %p, %sum : !tt.ptr<f32>
      }
    }"""
ARGUMENTS = "%p: !tt.ptr<f32>, %n: i32"


def in_a_branch(rule: registry.Rule) -> registry.Rule:
    """The rule, carried out by the first lane only."""

    def carry_out(ctx: Lowering, operation: Operation) -> None:
        def then() -> list[int]:
            rule(ctx, operation)
            return []

        ctx.f.if_(ctx.f.compare(op.IEqual, ctx.lane, ctx.module.uint(0)), then)

    return carry_out


def own_barrier(rule: registry.Rule) -> registry.Rule:
    """The rule, and then a barrier in its own branch."""

    def carry_out(ctx: Lowering, operation: Operation) -> None:
        rule(ctx, operation)

        def then() -> list[int]:
            ctx.barrier()
            return []

        ctx.f.if_(ctx.f.compare(op.IEqual, ctx.lane, ctx.module.uint(0)), then)

    return carry_out


def test_branches_and_loops_of_the_kernel_are_uniform() -> None:
    with uniform_barriers.checked():
        compile_body(BODY, ARGUMENTS)


@pytest.mark.parametrize("change", [in_a_branch, own_barrier])
def test_branches_of_a_rule_are_not(
    change: Callable[[registry.Rule], registry.Rule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.RULES, "tt.reduce", change(registry.RULES["tt.reduce"]))
    with uniform_barriers.checked(), pytest.raises(LoweringError, match="has a barrier in control flow of its own"):
        compile_body(BODY, ARGUMENTS)
