"""Modules that are read, printed, and read again: by upstream, which must see the same module, and here."""

from pathlib import Path
from typing import Any

import pytest
from triton._C.libtriton import ir
from triton.backends.spirv.ttgir.ir import Block, DenseAttr, FloatBits, Function, Location, Module, Region, Value
from triton.backends.spirv.ttgir.operations import OPERATIONS
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module
from triton.backends.spirv.ttgir.types import FloatType, TensorType

FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())


def upstream(path: Path, located: bool) -> str:
    """What upstream prints for the module in a file."""
    context = ir.context()
    ir.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    return str(module) if located else str(module.str_nodebug())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_upstream_reads_the_same_module(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    # Without locations in the text, upstream takes positions in the text itself.
    located = "loc(" in text
    printed = tmp_path / path.name
    printed.write_text(print_module(parse_module(text, path.name)))
    assert upstream(printed, located) == upstream(path, located)


class _Difference:
    """Compares two modules; values and blocks by where they were first seen."""

    def __init__(self) -> None:
        self._pairs: dict[int, Any] = {}

    def _same(self, first: Any, second: Any) -> bool:
        return self._pairs.setdefault(id(first), second) is second

    def values(self, first: list[Value], second: list[Value]) -> None:
        assert [value.type for value in first] == [value.type for value in second]
        assert all(self._same(a, b) for a, b in zip(first, second, strict=True))

    def modules(self, first: Module, second: Module) -> None:
        assert typed(first.attributes) == typed(second.attributes)
        assert (first.name, first.location, first.aliases, first.location_aliases) == (
            second.name,
            second.location,
            second.aliases,
            second.location_aliases,
        )
        assert list(first.functions) == list(second.functions)
        for a, b in zip(first.functions.values(), second.functions.values(), strict=True):
            self.functions(a, b)

    def functions(self, first: Function, second: Function) -> None:
        assert (first.name, first.type, first.visibility, first.location) == (
            second.name,
            second.type,
            second.visibility,
            second.location,
        )
        assert typed(first.argument_attributes) == typed(second.argument_attributes)
        assert typed(first.attributes) == typed(second.attributes)
        assert (first.body is None) == (second.body is None)
        if first.body is not None and second.body is not None:
            self.regions(first.body, second.body)

    def regions(self, first: Region, second: Region) -> None:
        assert len(first.blocks) == len(second.blocks)
        for a, b in zip(first.blocks, second.blocks, strict=True):
            self.blocks(a, b)

    def blocks(self, first: Block, second: Block) -> None:
        assert self._same(first, second)
        self.values(first.arguments, second.arguments)
        assert [argument.location for argument in first.arguments] == [
            argument.location for argument in second.arguments
        ]
        for a, b in zip(first.operations, second.operations, strict=True):
            assert (a.name, a.segments, a.location) == (b.name, b.segments, b.location)
            assert typed(a.attributes) == typed(b.attributes), a.name
            self.values(a.operands, b.operands)
            self.values(a.results, b.results)
            for one, other in zip(a.successors, b.successors, strict=True):
                assert self._same(one.block, other.block)
                self.values(one.arguments, other.arguments)
            for inner, again in zip(a.regions, b.regions, strict=True):
                self.regions(inner, again)


def typed(value: Any) -> Any:
    """An attribute with the class of each part, so that ``1``, ``true`` and ``1 : i64`` differ."""
    if isinstance(value, dict):
        return type(value), {key: typed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [typed(part) for part in value]
    return type(value), value, getattr(value, "type", None), getattr(value, "text", None)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_the_same_module_is_read_again(path: Path) -> None:
    module = parse_module(path.read_text(), path.name)
    text = print_module(module)
    again = parse_module(text, path.name)
    _Difference().modules(module, again)
    assert print_module(again) == text


def test_what_is_read_by_hand_is_printed_by_hand() -> None:
    by_hand = {name for name, row in OPERATIONS.items() if row.write is not None}
    assert {"scf.for", "cf.switch"} < by_hand
    for name in by_hand:
        row = OPERATIONS[name]
        assert row.read is not None and (row.syntax is None or row.read != row.syntax.read), name
    assert {name for name in by_hand if OPERATIONS[name].syntax is None} == {"cf.switch"}


SOURCE = """#loc = loc("k.py":1:2)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func private @f(%a: i32 loc("a"(#loc))) {
    VALUE
    tt.return loc(#loc1)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(callsite("g"("k.py":3:4) at #loc))
"""


@pytest.mark.parametrize(
    "text",
    [
        'tt.print "a\\22b\\0A\\C3\\A9" {hex = true, isSigned = array<i32: 1>, x = [1, 2 : i8, 3 : i64]} : %a : i32',
        'tt.print "" {hex = false, isSigned = array<i32>, x = {y = @f, z = "@f", "a-b"}, v = 1.5 : f16}',
        "cf.switch %a : i32, [ default: ^bb1, -3: ^bb2(%a : i32) ]\n  ^bb2(%b: i32):\n  cf.br ^bb1\n  ^bb1:",
        "%0:2 = scf.if %t -> (i32, i32) { scf.yield %a, %a : i32, i32 } else { scf.yield %a, %a : i32, i32 }",
        'scf.for unsigned %i = %a to %a step %a : i32 { tt.assert %t, "m" : i1 } {tt.num_stages = 2 : i32}',
        '%x = ub.poison : tensor<4x!tt.ptr<f16, "constant">>',
    ],
)
def test_other_forms(text: str, tmp_path: Path) -> None:
    condition = "%t = arith.constant true loc(#loc)\n    "
    lines = "\n    ".join(f"{line}" for line in text.split("\n"))
    path, printed = tmp_path / "given.mlir", tmp_path / "printed.mlir"
    path.write_text(SOURCE.replace("VALUE", condition + lines))
    module = parse_module(path.read_text())
    printed.write_text(print_module(module))
    _Difference().modules(module, parse_module(printed.read_text()))
    assert upstream(printed, False) == upstream(path, False)


@pytest.mark.parametrize("value", [0.1, -0.0, 1e300, 5e-324, 1 / 3, 65504.0])
def test_every_digit_of_a_float_is_printed(value: float) -> None:
    module = parse_module("module { tt.func @f() { %0 = arith.constant 0.0 : f64 tt.return } }")
    body = module.functions["f"].body
    assert body is not None
    body.entry.operations[0].attributes["value"] = value
    again = parse_module(print_module(module)).functions["f"].body
    assert again is not None
    assert again.entry.operations[0].attributes["value"].hex() == value.hex()


def test_a_module_that_was_changed_is_printed_as_it_is() -> None:
    """Values without names, names that occur twice, and locations that were made here."""
    module = parse_module("module { tt.func @f(%x: i32) { %0 = arith.addi %x, %x : i32 tt.return } }")
    body = module.functions["f"].body
    assert body is not None
    block = body.entry
    add = block.operations[0]
    add.location = Location("a.py", 1, 2, "n", Location("b.py", 3, 4))
    type_ = TensorType((2,), FloatType("f32"))
    constant = type(add)(
        "arith.constant", [], [], {"value": DenseAttr(type_, (1.0, FloatBits(0x7FC00000, 32)), False)}, block=block
    )
    constant.results = [Value(type_, constant, 0, "x")]
    block.operations.insert(0, constant)
    text = print_module(module)
    assert "%x_1 = arith.constant dense<[1.000000e+00, 0x7FC00000]> : tensor<2xf32> loc(unknown)" in text
    assert '%0 = arith.addi %x, %x : i32 loc(callsite("n"("a.py":1:2) at "b.py":3:4))' in text
    again = parse_module(text).functions["f"].body
    assert again is not None
    assert again.entry.operations[1].location == add.location
