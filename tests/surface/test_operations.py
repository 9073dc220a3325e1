"""Every operation of the tables comes from a kernel or a text that upstream's compiler accepts, in the form in which
upstream prints it; what docs/internals/operations.md calls lowered was compiled to a valid module here."""

import warnings

import pytest
from triton.backends.spirv.lowering.errors import UnsupportedOperation
from triton.backends.spirv.ttgir.ir import Operation
from triton.backends.spirv.ttgir.parser import parse_module

from docs.generate_operations import evidence, operations, outcomes
from tests.spirv_val import validated
from tests.surface import operation_kernels, operation_texts
from tests.surface.compiling import compile_case, compile_text, read_text
from tests.surface.operation_kernels import Case
from tests.surface.operation_texts import SCALAR, Text, scalar_module


def _nested(operation: Operation) -> list[str]:
    names = [operation.name]
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                names += _nested(inner)
    return names


def _read(text: str) -> set[str]:
    """The operations that the reader finds in a text."""
    module = parse_module(text)
    bodies = [function.body for function in module.functions.values() if function.body is not None]
    return {
        name
        for body in bodies
        for block in body.blocks
        for operation in block.operations
        for name in _nested(operation)
    }


@pytest.mark.parametrize("case", operation_kernels.CASES, ids=lambda case: case.name)
def test_kernel(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # tl.cat(can_reorder=True) is deprecated
        compiled = compile_case(case)
    assert set(case.makes.split()) <= set(compiled.written)
    assert set(case.passes.split()) <= set(compiled.passed)
    assert _read(compiled.source) | {"builtin.module", "tt.func"} == set(compiled.written) | {"builtin.module"}
    validated(compiled.spirv)


@pytest.mark.parametrize("name", SCALAR)
def test_scalar_operation(name: str) -> None:
    compiled = compile_text(scalar_module(name))
    assert name in compiled.written and name in _read(compiled.source) and name in compiled.passed
    validated(compiled.spirv)


@pytest.mark.parametrize("text", operation_texts.MODULES, ids=lambda text: text.makes)
def test_module(text: Text) -> None:
    compiled = compile_text(text.module, text.stage)
    assert set(text.makes.split()) <= set(compiled.written) & _read(compiled.source)
    validated(compiled.spirv)


@pytest.mark.parametrize("text", operation_texts.REFUSED, ids=lambda text: text.makes)
def test_text_is_refused_by_the_operation(text: Text) -> None:
    names = set(text.makes.split())
    assert names <= _read(read_text(text.module, text.stage))
    with pytest.raises(UnsupportedOperation) as error:
        compile_text(text.module, text.stage)
    assert any(f"'{name}'" in str(error.value) for name in names)


def test_every_operation_has_its_evidence() -> None:
    assert operations() - evidence().keys() == set(), "add a kernel to tests/surface/operation_kernels.py"
    assert evidence().keys() - operations() == set()


def test_evidence_is_of_what_became_of_the_operation() -> None:
    refused = {name for entry in operation_texts.REFUSED for name in entry.makes.split()}
    assert {name for name in operations() if next(outcomes(name))[0] == "refused"} == refused


def test_an_operation_stands_with_one_kernel_or_text() -> None:
    named = [name for entry in operation_kernels.CASES for name in (entry.makes + " " + entry.passes).split()]
    named += [name for text in (*operation_texts.MODULES, *operation_texts.REFUSED) for name in text.makes.split()]
    named += SCALAR
    assert sorted(named) == sorted(set(named))
