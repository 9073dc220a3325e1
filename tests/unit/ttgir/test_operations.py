"""The table of what is known of operations: no operation without a row, nothing harmless by default."""

import ast
import re
from pathlib import Path

import pytest
from triton.backends.spirv.analysis.lazy_loads import lazy_loads
from triton.backends.spirv.analysis.pointer_range import pointer_bases
from triton.backends.spirv.analysis.pointer_roots import written_arguments
from triton.backends.spirv.lowering import families  # noqa: F401  (fills the table of rules)
from triton.backends.spirv.lowering.refusals import REFUSED, REGION_ENDS, REWRITTEN, REWRITTEN_BY_PASS
from triton.backends.spirv.lowering.registry import RULES
from triton.backends.spirv.planning.kernel_plan import PLANNERS
from triton.backends.spirv.planning.memory_effects import _RULES
from triton.backends.spirv.ttgir.ir import Operation, Region
from triton.backends.spirv.ttgir.operations import (
    ANYTHING,
    FAMILIES,
    OPERATIONS,
    TOUCHES_SHARED,
    WORST,
    Effect,
    End,
    Layouts,
    Memory,
    Pointers,
    definition_of,
    in_loop,
)
from triton.backends.spirv.ttgir.parser import parse_module


def test_every_operation_of_the_table_is_lowered_or_its_row_says_what_becomes_of_it():
    """A view of the table for each outcome: docs/internals/operations.md, tests/lowering/test_coverage.py."""
    outcomes = RULES.keys() | REFUSED.keys() | REGION_ENDS.keys() | REWRITTEN.keys() | REWRITTEN_BY_PASS.keys()
    assert outcomes == OPERATIONS.keys()


def test_each_row_is_in_one_module():
    names = [name for family in FAMILIES for name in re.findall(r"(?<![\w.])[a-z]+\.[a-z_.0-9]+", _first_words(family))]
    assert sorted(names) == sorted(OPERATIONS)


def _first_words(family) -> str:
    """The first argument of each row of a module."""
    tree = ast.parse(Path(family.__file__).read_text(encoding="utf-8"))
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return " ".join(ast.literal_eval(call.args[0]) for call in calls)


def test_what_an_access_moves_is_named_by_its_syntax():
    moving = {name: row for name, row in OPERATIONS.items() if row.moves}
    assert {"tt.load", "tt.store", "tt.atomic_cas"} <= moving.keys()
    for name, row in moving.items():
        there = {word for word, _ in (*row.syntax.operands, *row.syntax.results)}
        assert set(row.moves) <= there and row.pointers is Pointers.ACCESSED, name
    lowered = {name for name, row in OPERATIONS.items() if row.pointers is Pointers.ACCESSED} & RULES.keys()
    assert lowered <= moving.keys()


def test_an_operation_without_a_row_may_do_everything():
    unknown = definition_of(Operation("other.thing", [], [], {}))
    assert unknown is WORST and unknown.effects == ANYTHING == ~Effect(0)
    assert unknown.pointers is Pointers.UNKNOWN and unknown.memory is Memory.SCRATCH and unknown.loop
    assert unknown.layouts is Layouts.OWN and unknown.unbounded
    assert not (unknown.repeatable or unknown.by_layout or unknown.view or unknown.commutative or unknown.associative)
    assert not unknown.elementwise


def test_rows_agree_with_themselves():
    for name, row in OPERATIONS.items():
        assert not row.repeatable or (row.effects == Effect.NOTHING and row.memory is Memory.NONE), name
        assert row.pointers is not Pointers.ACCESSED or row.effects & (Effect.READS_GLOBAL | Effect.WRITES_GLOBAL), name
        assert not row.elementwise or row.effects == Effect.NOTHING, name
        assert not row.by_layout or row.effects & TOUCHES_SHARED, name
        assert not row.yielded_by or row.yielded_by in (row.ended_by or OPERATIONS), name
        assert all(OPERATIONS[end].end is End.LEAVE for end in row.ended_by), name


def test_the_first_operand_of_an_access_is_its_pointer():
    for name, row in OPERATIONS.items():
        if row.pointers is Pointers.ACCESSED:
            assert row.syntax.operands[0][0] in ("ptr", "src"), name


def test_every_lowered_access_of_shared_memory_has_a_footprint():
    touching = {name for name, row in OPERATIONS.items() if row.effects & TOUCHES_SHARED} & RULES.keys()
    assert touching <= _RULES.keys()
    scratch = {name for name, row in OPERATIONS.items() if row.memory is Memory.SCRATCH} & RULES.keys()
    assert scratch <= PLANNERS.keys()


KERNEL = """
module attributes {{"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32}} {{
  tt.func public @kernel(%p: !tt.ptr<f32> {{tt.pointer_range = 32 : i32}}, %q: !tt.ptr<f32>, %n: i32) {{
    %one = arith.constant 1 : i32
    %x = tt.load %p : !tt.ptr<f32>
    tt.store %q, %x : !tt.ptr<f32>
    {body}
    tt.return
  }}
}}
"""


def function(body: str):
    """The function of KERNEL around ``body``."""
    return parse_module(KERNEL.format(body=body)).functions["kernel"]


def test_a_write_of_unknown_place_counts_for_every_argument():
    assert written_arguments(function("")) == [1]
    assert written_arguments(function('"other.thing"() : () -> ()')) is None
    assert written_arguments(function('"other.thing"(%p) : (!tt.ptr<f32>) -> ()')) is None


def test_a_pointer_that_an_unknown_operation_has_is_held_in_64_bits():
    assert pointer_bases(function(""))
    assert not pointer_bases(function('"other.thing"(%p) : (!tt.ptr<f32>) -> ()'))


@pytest.mark.parametrize(("owner", "inside"), [("scf.for", True), ("scf.if", False), ("other.thing", True)])
def test_a_region_of_an_unknown_operation_may_be_a_loop(owner, inside):
    inner = function("").body.entry.operations[0]
    region = Region([inner.block], Operation(owner, [], [], {}))
    inner.block.parent = region
    assert in_loop(inner) is inside


LAZY = """
#blocked = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [8, 1], warpsPerCTA = [1, 1], order = [1, 0]}}>
#shared = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}}>
#a = #ttg.dot_op<{{opIdx = 0, parent = #blocked}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #blocked}}>
module attributes {{"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32}} {{
  tt.func public @kernel(%x: tensor<16x16xf32, #blocked>, %y: tensor<16x16xf32, #b>, %z: tensor<16x16xf32, #blocked>) {{
    %m = ttg.local_alloc %x {{allocation.offset = 0 : i32}} : (tensor<16x16xf32, #blocked>) -> !ttg.memdesc<16x16xf32, #shared, #ttg.shared_memory>
    %l = ttg.local_load %m : !ttg.memdesc<16x16xf32, #shared, #ttg.shared_memory> -> tensor<16x16xf32, #a>
    {body}
    %d = tt.dot %l, %y, %z : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #blocked>
    tt.return
  }}
}}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("", 1),
        ("%s = arith.addf %z, %z : tensor<16x16xf32, #blocked>", 1),
        ("ttg.barrier local", 0),
        ('"other.thing"() : () -> ()', 0),
        ("ttg.local_dealloc %m : !ttg.memdesc<16x16xf32, #shared, #ttg.shared_memory>", 0),
    ],
)
def test_a_load_is_not_left_to_its_dot_over_what_may_write_shared_memory(body, count):
    assert len(lazy_loads(parse_module(LAZY.format(body=body)).functions["kernel"])) == count
