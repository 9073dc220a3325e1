"""A load that is left until its dots reads what it would have read: every order of few operations of each kind."""

import itertools
from dataclasses import replace

import pytest
from triton.backends.spirv.analysis.lazy_loads import lazy_loads
from triton.backends.spirv.ttgir.ir import Block, Function, Operation, Region
from triton.backends.spirv.ttgir.operations import OPERATIONS, Effect
from triton.backends.spirv.ttgir.parser import parse_module

TEXT = """
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#right = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%a: !ttg.memdesc<4x4xf32, #shared, #ttg.shared_memory, mutable>,
                    %b: tensor<4x4xf32, #right>, %c: tensor<4x4xf32, #blocked>, %if: i1) {
    %loaded = ttg.local_load %a : !ttg.memdesc<4x4xf32, #shared, #ttg.shared_memory, mutable> -> tensor<4x4xf32, #left>
    %dot = tt.dot %loaded, %b, %c : tensor<4x4xf32, #left> * tensor<4x4xf32, #right> -> tensor<4x4xf32, #blocked>
    ttg.local_store %c, %a : tensor<4x4xf32, #blocked> -> !ttg.memdesc<4x4xf32, #shared, #ttg.shared_memory, mutable>
    ttg.barrier local
    %other = arith.negf %c : tensor<4x4xf32, #blocked>
    scf.if %if {
      ttg.local_store %c, %a : tensor<4x4xf32, #blocked> -> !ttg.memdesc<4x4xf32, #shared, #ttg.shared_memory, mutable>
    }
    tt.return
  }
}
"""
KINDS = ("dot", "store", "wait", "pure", "branch", "another use")


def _function(kinds: tuple[str, ...]) -> tuple[Function, Operation]:
    """A load, then operations of these kinds in one block."""
    function = next(iter(parse_module(TEXT).functions.values()))
    assert function.body is not None
    block = function.body.entry
    load, dot, store, wait, other, branch, end = block.operations
    dot.operands[0].uses.remove(dot)
    block.operations[:] = [load]
    for kind in kinds:
        if kind in ("dot", "another use"):
            template = dot if kind == "dot" else other
            operands = [load.result, *dot.operands[1:]] if kind == "dot" else [load.result]
            types = [result.type for result in template.results]
            block.append(Operation.make(template.name, operands, types, dict(template.attributes), template.segments))
        else:
            block.append(replace({"store": store, "wait": wait, "pure": other, "branch": branch}[kind], block=None))
    block.append(end)
    return function, load


@pytest.mark.parametrize("length", range(1, 6))
def test_every_order_of_operations(length: int) -> None:
    late = 0
    for kinds in itertools.product(KINDS, repeat=length):
        function, load = _function(kinds)
        uses = [at for at, kind in enumerate(kinds) if kind in ("dot", "another use")]
        between = kinds[: max(uses, default=0)]
        unchanged = not {"store", "wait", "branch"} & set(between)
        allowed = bool(uses) and "another use" not in kinds and unchanged
        assert (load in lazy_loads(function)) == allowed, kinds
        late += allowed
    assert late


def test_a_dot_in_another_block_does_not_wait() -> None:
    function, load = _function(("dot",))
    assert load in lazy_loads(function)
    dot = function.body.entry.operations.pop(1)  # type: ignore[union-attr]
    inner = Block()
    inner.append(dot)
    function.body.entry.operations.insert(1, Operation.make("scf.if", [], [], {}, (), [Region([inner])]))  # type: ignore[union-attr]
    assert load not in lazy_loads(function)


def test_what_may_write_shared_memory_says_so() -> None:
    """By the documented meaning of each operation: those that write a buffer, or wait for others who may."""
    writing = {name for name, row in OPERATIONS.items() if row.effects & (Effect.WRITES_SHARED | Effect.WAITS)}
    assert writing >= {"ttg.local_alloc", "ttg.local_store", "ttg.local_scatter", "ttg.local_atomic_scatter_rmw"}
    assert writing >= {"ttg.barrier", "ttg.local_dealloc"}
