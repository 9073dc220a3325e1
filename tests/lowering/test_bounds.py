"""Accesses that are checked: what the host is told. What is emitted for them is in text/bounds.ttgir."""

from triton.backends.spirv.lowering.entry_point import LoweredKernel
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAVAPIPE, lower_module, module_text

HINT = "{tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}"
COPY = """
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #vec4>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #vec4>
    %x = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
    %v = tt.load %x : tensor<128x!tt.ptr<f32>, #vec4>
    %t = tt.splat %q : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #vec4>
    %y = tt.addptr %t, %r : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
    tt.store %y, %v : tensor<128x!tt.ptr<f32>, #vec4>"""
POINTERS = f"%p: !tt.ptr<f32> {HINT}, %n: i32, %q: !tt.ptr<f32> {HINT}"


def compiled(body: str, arguments: str, **checks: bool) -> LoweredKernel:
    """The kernel of that body for Mesa's CPU driver."""
    return lower_module(parse_module(module_text(body, arguments)), LAVAPIPE, Options(SPIRVOptions(**checks)))


def test_report_buffer_has_a_row_for_each_argument_that_is_accessed():
    kernel = compiled(COPY, POINTERS, check_bounds=True)
    table, *places = kernel.reports
    assert table == {"kind": "bounds", "file": "", "line": 0, "arguments": [0, 2], "unchecked": 0}
    assert [(place["kind"], place["access"], place["bytes"], place["rows"]) for place in places] == [
        ("access", "load", 4, [0]),
        ("access", "store", 4, [1]),
    ]
    plain = compiled(COPY, POINTERS)
    assert plain.reports == [] and kernel.argument_bytes == plain.argument_bytes + 8
    select = (
        "%e = arith.select %c, %p, %q : !tt.ptr<f32>\n %v = tt.load %e : !tt.ptr<f32>\n tt.store %p, %v : !tt.ptr<f32>"
    )
    either = compiled(select, "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %c: i1", check_bounds=True)
    assert [place["rows"] for place in either.reports[1:]] == [[0, 1], [0]]
    body = (
        "    %u = tt.int_to_ptr %j : i64 -> !tt.ptr<f32>\n    %v = tt.load %u : !tt.ptr<f32>\n"
        "    tt.store %p, %v : !tt.ptr<f32>"
    )
    assert compiled(body, "%p: !tt.ptr<f32>, %j: i64", check_bounds=True).reports[0]["unchecked"] == 1
