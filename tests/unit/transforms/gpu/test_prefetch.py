"""Loads of dot operands move one iteration ahead, and only where that is the same program."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.gpu.prefetch import prefetch_dot_operands
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Operation, Value
from triton.backends.spirv.ttgir.parser import parse_module

MODULE = """
#acc = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
#in = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%p: tensor<16x16x!tt.ptr<f32>, #in>, %q: tensor<16x16x!tt.ptr<f32>, #in>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<16> : tensor<16x16xi32, #in>
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p, %total = %zero) -> (tensor<16x16x!tt.ptr<f32>, #in>, tensor<16x16xf32, #acc>) : i32 {
      %x = tt.load %a : tensor<16x16x!tt.ptr<f32>, #in>
      %m = ttg.local_alloc %x {allocation.offset = 0 : i32} : (tensor<16x16xf32, #in>) -> !ttg.memdesc<16x16xf32, #shared, #smem>
      %l = ttg.local_load %m : !ttg.memdesc<16x16xf32, #shared, #smem> -> tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #acc}>>
      %k = ttg.local_load %m : !ttg.memdesc<16x16xf32, #shared, #smem> -> tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #acc}>>
      %d = tt.dot %l, %k, %total : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #acc}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #acc}>> -> tensor<16x16xf32, #acc>
      EXTRA
      %next = tt.addptr %a, %step : tensor<16x16x!tt.ptr<f32>, #in>, tensor<16x16xi32, #in>
      scf.yield %next, %d : tensor<16x16x!tt.ptr<f32>, #in>, tensor<16x16xf32, #acc>
    }
    tt.return
  }
}
"""  # noqa: E501


def run(extra: str = "", behind: bool = False, text: str = MODULE) -> tuple[list[Operation], Operation]:
    """The operations before the loop, and the loop, after the rewrite."""
    module = parse_module(text.replace("EXTRA", extra))
    function = module.functions["k"]
    prefetch_dot_operands(function, behind=behind)
    verify(module)
    operations = function.body.entry.operations
    place = next(index for index, operation in enumerate(operations) if operation.name == "scf.for")
    return operations[:place], operations[place]


def test_first_load_is_before_the_loop_and_guarded_by_its_bound():
    before, loop = run()
    (load,) = [operation for operation in before if operation.name == "tt.load"]
    assert load.segments == (1, 1, 0)
    compare = load.operands[1].owner.operands[0].owner
    assert compare.name == "arith.cmpi" and compare.attributes["predicate"] == "slt"
    assert compare.operands == [loop.operands[0], loop.operands[1]]


@pytest.mark.parametrize("behind", [False, True])
def test_next_load_is_for_the_following_iteration_and_is_carried(behind: bool):
    _, loop = run(behind=behind)
    body = loop.regions[0].entry
    names = [operation.name for operation in body.operations]
    assert names.count("tt.load") == 1
    assert (names.index("ttg.local_alloc") < names.index("tt.load")) == behind  # in the same registers, else in others
    assert names.index("tt.load") < names.index("tt.dot")
    load = body.operations[names.index("tt.load")]
    assert load.segments[1] == 0  # no mask: a branch of its own costs more than loading the last tiles twice
    assert load.operands[0].owner.name == "tt.addptr"
    today, distance = load.operands[0].owner.operands
    assert today is body.arguments[1] and distance.owner.name == "arith.select"
    _check_inside(distance.owner.operands[0], loop)
    assert body.terminator.operands[0] is load.operands[0]  # nothing uses the pointers after the loop
    assert names.count("tt.addptr") == 1
    stored = body.operations[names.index("ttg.local_alloc")].operands[0]
    assert stored is body.arguments[-1]
    assert body.terminator.operands[-1] is load.result
    assert len(loop.results) == 3 and loop.segments == (1, 1, 1, 3)


def _check_inside(condition: Value, loop: Operation) -> None:
    """Whether the following iteration is one."""
    left, step = condition.owner.operands
    assert condition.owner.attributes["predicate"] == "ugt" and step is loop.operands[2]
    assert left.owner.name == "arith.subi"
    assert left.owner.operands == [loop.operands[1], loop.regions[0].entry.arguments[0]]


def test_pointers_that_are_used_after_the_loop_go_on():
    read = "%last = tt.load %r#0 : tensor<16x16x!tt.ptr<f32>, #in>"
    store = "tt.store %q, %last : tensor<16x16x!tt.ptr<f32>, #in>"
    _, loop = run(text=MODULE.replace("    tt.return", f"    {read}\n    {store}\n    tt.return"))
    body = loop.regions[0].entry
    (load,) = [operation for operation in body.operations if operation.name == "tt.load"]
    carried = body.terminator.operands[0]
    assert carried is not load.operands[0]
    assert carried.owner.name == "tt.addptr" and carried.owner.operands[0] is body.arguments[1]


def test_pointers_that_do_not_grow_by_a_step_are_chosen():
    _, loop = run(text=MODULE.replace("%next = tt.addptr %a, %step", "%next = tt.addptr %q, %step"))
    body = loop.regions[0].entry
    (load,) = [operation for operation in body.operations if operation.name == "tt.load"]
    inside, following, today = load.operands[0].owner.operands
    _check_inside(inside, loop)
    assert following.owner.name == "tt.addptr" and today is body.arguments[1]


@pytest.mark.parametrize(
    "extra", ["tt.store %a, %x : tensor<16x16x!tt.ptr<f32>, #in>", "ttg.barrier all"], ids=["store", "global barrier"]
)
def test_loop_that_may_write_is_left_alone(extra):
    before, loop = run(extra)
    assert not [operation for operation in before if operation.name == "tt.load"]
    assert len(loop.results) == 2


def test_value_with_another_use_is_left_alone():
    before, loop = run("%other = arith.addf %x, %x : tensor<16x16xf32, #in>")
    assert not [operation for operation in before if operation.name == "tt.load"]
    assert len(loop.results) == 2


def test_address_that_is_divided_by_a_product_is_repeated():
    """As positions are divided in kernels of convolutions."""
    load = "%x = tt.load %a : tensor<16x16x!tt.ptr<f32>, #in>"
    divided = """%high = tt.mulhiui %i, %n : i32
      %far = tt.splat %high : i32 -> tensor<16x16xi32, #in>
      %b = tt.addptr %a, %far : tensor<16x16x!tt.ptr<f32>, #in>, tensor<16x16xi32, #in>
      """
    assert load in MODULE
    before, loop = run(text=MODULE.replace(load, divided + load.replace("%a", "%b")))
    assert [operation.name for operation in before].count("tt.load") == 1
    assert [operation.name for operation in before].count("tt.mulhiui") == 1
    assert len(loop.results) == 3
