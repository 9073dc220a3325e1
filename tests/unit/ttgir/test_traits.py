"""The table of what is known of operations: no operation without a row, nothing harmless by default."""

from __future__ import annotations

import pytest
from triton.backends.spirv.analysis.lazy_loads import lazy_loads
from triton.backends.spirv.analysis.pointer_range import pointer_bases
from triton.backends.spirv.analysis.pointer_roots import written_arguments
from triton.backends.spirv.lowering.registry import RULES
from triton.backends.spirv.planning.footprints import _RULES
from triton.backends.spirv.planning.kernel_plan import PLANNERS
from triton.backends.spirv.transforms import slice_dots, strip_loops
from triton.backends.spirv.ttgir import custom
from triton.backends.spirv.ttgir.assembly import FORMATS
from triton.backends.spirv.ttgir.ir import Operation, Region
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.traits import (
    ANYTHING,
    TOUCHES_SHARED,
    TRAITS,
    WORST,
    Effect,
    End,
    Layouts,
    Memory,
    Pointers,
    in_loop,
    traits,
)

#: Those that are read, and this backend's own, which a rewrite of TTGIR makes.
OPERATIONS = FORMATS.keys() | custom.RULES.keys() | {*strip_loops.OPERATIONS, slice_dots.STORE}


def test_every_operation_that_is_read_has_a_row_and_no_other():
    assert OPERATIONS == TRAITS.keys()


def test_an_operation_without_a_row_may_do_everything():
    unknown = traits(Operation("other.thing", [], [], {}))
    assert unknown is WORST and unknown.effects == ANYTHING == ~Effect(0)
    assert unknown.pointers is Pointers.UNKNOWN and unknown.memory is Memory.SCRATCH and unknown.loop
    assert unknown.layouts is Layouts.OWN and unknown.unbounded
    assert not (unknown.repeatable or unknown.by_layout or unknown.view or unknown.commutative or unknown.associative)
    assert not unknown.elementwise


def test_rows_agree_with_themselves():
    for name, row in TRAITS.items():
        assert not row.repeatable or (row.effects == Effect.NOTHING and row.memory is Memory.NONE), name
        assert row.pointers is not Pointers.ACCESSED or row.effects & (Effect.READS_GLOBAL | Effect.WRITES_GLOBAL), name
        assert not row.elementwise or row.effects == Effect.NOTHING, name
        assert not row.by_layout or row.effects & TOUCHES_SHARED, name
        assert not row.yielded_by or row.yielded_by in (row.ended_by or TRAITS), name
        assert all(TRAITS[end].end is End.LEAVE for end in row.ended_by), name


def test_the_first_operand_of_an_access_is_its_pointer():
    for name, row in TRAITS.items():
        if row.pointers is Pointers.ACCESSED:
            assert FORMATS[name].operands[0][0] in ("ptr", "src"), name


def test_every_lowered_access_of_shared_memory_has_a_footprint():
    touching = {name for name, row in TRAITS.items() if row.effects & TOUCHES_SHARED} & RULES.keys()
    assert touching <= _RULES.keys()
    scratch = {name for name, row in TRAITS.items() if row.memory is Memory.SCRATCH} & RULES.keys()
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
