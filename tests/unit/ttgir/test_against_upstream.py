"""Whole modules, printed by upstream, read here and compared with upstream's own reader operation by operation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import triton
from triton._C.libtriton import ir
from triton.backends.spirv.ttgir.attributes import AttributeReader
from triton.backends.spirv.ttgir.ir import Module, Operation
from triton.backends.spirv.ttgir.lexer import Tokens
from triton.backends.spirv.ttgir.operations import OPERATIONS
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import Type

FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())


def inner_first(operation: Operation) -> Iterator[Operation]:
    """The order of upstream's walk: an operation after those inside it."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from inner_first(inner)
    yield operation


def operations(module: Module) -> list[Operation]:
    found: list[Operation] = []
    for function in module.functions.values():
        for block in function.body.blocks if function.body else ():
            for operation in block.operations:
                found += inner_first(operation)
    return found


def upstream_operations(path: Path) -> tuple[Any, list[Any]]:
    """What upstream reads from ``path``; the first part keeps the module and its context alive."""
    context = ir.context()
    ir.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    found: list[Any] = []
    module.walk(found.append)
    return (module, context), [op for op in found if op.get_name() not in ("tt.func", "builtin.module")]


def read_type(text: str) -> Type:
    return AttributeReader().type(Tokens(text))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_operations_values_and_types(path: Path) -> None:
    ours = operations(parse_module(path.read_text(), path.name))
    keep, theirs = upstream_operations(path)
    assert [op.name for op in ours] == [op.get_name() for op in theirs]
    values: dict[int, Any] = {}
    for op, upstream in zip(ours, theirs, strict=True):
        assert len(op.operands) == upstream.get_num_operands(), op.name
        assert len(op.results) == upstream.get_num_results(), op.name
        assert len(op.regions) == upstream.get_num_regions(), op.name
        for index, operand in enumerate(op.operands):
            assert values.setdefault(upstream.get_operand(index).id(), operand) is operand, (op.name, index)
        for index, result in enumerate(op.results):
            assert values.setdefault(upstream.get_result(index).id(), result) is result, (op.name, index)
            assert read_type(str(upstream.get_result(index).get_type())) == result.type, op.name
            assert (result.owner, result.index) == (op, index)
    assert len(set(map(id, values.values()))) == len(values)
    assert keep


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_uses_are_exactly_the_operands(path: Path) -> None:
    ours = operations(parse_module(path.read_text(), path.name))
    expected: dict[int, list[Operation]] = {}
    for op in ours:
        for operand in op.operands:
            expected.setdefault(id(operand), []).append(op)
    for op in ours:
        assert sum(op.segments) == len(op.operands), op.name
        for value in [*op.operands, *op.results]:
            given = sorted(map(id, value.uses))
            assert given == sorted(map(id, expected.get(id(value), []))), (op.name, value.name)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_blocks_and_regions_point_back(path: Path) -> None:
    for function in parse_module(path.read_text(), path.name).functions.values():
        assert function.body is None or function.body.parent is None
        for op in (
            inner
            for block in (function.body.blocks if function.body else ())
            for outer in block.operations
            for inner in outer.walk()
        ):
            assert op.block is not None and op in op.block.operations
            for region in op.regions:
                assert region.parent is op
                for block in region.blocks:
                    assert block.parent is region
                    assert all(argument.owner is block for argument in block.arguments)


def test_every_operation_of_the_table_is_read_from_upstreams_print() -> None:
    seen = {op.name for path in FIXTURES for op in operations(parse_module(path.read_text(), path.name))}
    assert {name for name in OPERATIONS if not name.startswith("spirv.")} - seen == set()


def test_both_printed_forms_read_the_same() -> None:
    path = Path(__file__).parent / "fixtures" / "matmul.ttgir"
    (module, _context), _ = upstream_operations(path)
    plain, located = parse_module(module.str_nodebug()), parse_module(path.read_text())
    for bare, full in zip(operations(plain), operations(located), strict=True):
        assert (bare.name, bare.attributes, bare.segments) == (full.name, full.attributes, full.segments)
        assert [value.type for value in bare.results] == [value.type for value in full.results]
        assert bare.location.file == ""
        assert full.location.file == "kernels.py" or full.name != "tt.load"


def definitions() -> set[str]:
    """The operations that the .td files of the installed Triton define."""
    found: set[str] = set()
    root = Path(triton.__file__).parent / "include" / "triton" / "Dialect"
    for path, prefix, base in (
        ("Triton/IR/TritonOps.td", "tt", "TT_Op"),
        ("TritonGPU/IR/TritonGPUOps.td", "ttg", "TTG_Op"),
    ):
        text = (root / path).read_text()
        found |= {f"{prefix}.{name}" for name in re.findall(rf'^def\s+\w+\s*:\s*{base}\s*<\s*"([\w.]+)"', text, re.M)}
    return found


def test_every_operation_of_the_td_files_can_be_read() -> None:
    defined = definitions()
    assert {"tt.load", "tt.reduce.return", "tt.approx_divf", "ttg.barrier", "ttg.warp_specialize"} <= defined
    assert len(defined) > 80
    assert defined - OPERATIONS.keys() == {"tt.func"}
