"""Attributes are read by names that rows declare, and by nothing else; operands may be."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton.backends.spirv.analysis.axis_info import hints
from triton.backends.spirv.ttgir.declared import GROUPS, OF_ANY, OF_ARGUMENTS, OF_MODULES, OWN
from triton.backends.spirv.ttgir.ir import Module, Operation, Value
from triton.backends.spirv.ttgir.operations import OPERATIONS, memory_semantics
from triton.backends.spirv.ttgir.types import IntegerType

BACKEND = Path(__file__).parents[3] / "backend"


def made(name: str, **attributes) -> Operation:
    return Operation(name, [], [], attributes)


def test_flag():
    """A unit attribute is there without a value."""
    assert made("tt.reshape", allow_reorder=None).flag("allow_reorder")
    assert not made("tt.reshape").flag("allow_reorder")
    loop = made("scf.for")
    loop.set_flag("unsignedCmp")
    assert loop.flag("unsignedCmp") and loop.attributes == {"unsignedCmp": None} and not loop.flag("spirv.rolled")


def test_attribute_and_its_default():
    assert made("tt.load", isVolatile=True).attribute("isVolatile") is True
    assert made("tt.load").attribute("isVolatile") is False
    assert made("tt.load").attribute("cache") is None and made("tt.dot").attribute("inputPrecision") == "ieee"
    assert made("tt.load").attribute("tt.divisibility") is None
    load = made("tt.load")
    load.set_attribute("spirv.alike", "same")
    assert load.attribute("spirv.alike") == "same"


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("tt.load", "isVolatil"),
        ("tt.store", "isVolatile"),
        ("tt.reshape", "allow_reorder"),
        ("scf.for", "unsignedCmp"),
        ("tt.load", "tt.divisible"),
        ("tt.unheard_of", "axis"),
    ],
)
def test_attribute_that_the_row_does_not_declare(name, attribute):
    """Neither a misspelt name nor a flag passes for an attribute that is absent."""
    for call in (lambda one: one.attribute(attribute), lambda one: one.set_attribute(attribute, 1)):
        with pytest.raises(AttributeError, match=f"'{name}' declares no such attribute.*'{attribute}'"):
            call(made(name))


@pytest.mark.parametrize("name", ["isVolatile", "allow_reorder", "spirv.role"])
def test_flag_that_the_row_does_not_declare(name):
    with pytest.raises(AttributeError, match=f"'tt.load' declares no flag '{name}'"):
        made("tt.load").flag(name)


def test_attribute_that_has_to_be_there():
    with pytest.raises(AttributeError, match=r"'tt.expand_dims' lacks the attribute 'axis'"):
        made("tt.expand_dims").attribute("axis")
    assert made("spirv.strip", dim=0).missing_attributes() == ["strips"]


def test_attributes_of_modules():
    module = Module({"ttg.num-warps": 4}, {})
    assert module.warps == 4 and module.attribute("ttg.num-ctas") == 1
    with pytest.raises(AttributeError, match="the module lacks the attribute 'ttg.threads-per-warp'"):
        assert module.lanes
    for call in (module.attribute, lambda name: module.set_attribute(name, 1)):
        with pytest.raises(AttributeError, match="the module declares no such attribute.*'ttg.num_warps'"):
            call("ttg.num_warps")


def test_operands_by_the_names_of_the_row():
    first, second, third = (Value(IntegerType(32), None, number) for number in range(3))
    load = Operation("tt.load", [first, second], [], {}, segments=(1, 0, 1))
    assert load["ptr"] is first and load.optional("mask") is None and load.optional("other") is second
    loop = Operation("scf.for", [first, second, third, first, third], [], {}, segments=(1, 1, 1, 2))
    assert loop["step"] is third and loop.operand_group("initArgs") == [first, third]
    for call in (load.__getitem__, load.optional, load.operand_group):
        with pytest.raises(AttributeError, match="'tt.load' has no operand 'pointer'"):
            call("pointer")


def test_semantics_of_operations_that_have_none():
    assert memory_semantics(made("tt.atomic_rmw", sem="acq_rel")) == "acq_rel"
    assert memory_semantics(made("tt.load")) is None and memory_semantics(made("tt.unheard_of")) is None


def test_declarations_are_those_of_the_rows():
    assert OWN.keys() == OPERATIONS.keys()
    for name, row in OPERATIONS.items():
        syntax = row.syntax
        if syntax is not None:
            flags = {one for one, kind in syntax.attributes.items() if kind == "unit"}
            assert OWN[name].flags == flags and OWN[name].values.keys() == syntax.attributes.keys() - flags, name
            assert syntax.defaults.items() <= OWN[name].values.items(), name


def _readers() -> Iterator[tuple[Path, ast.AST]]:
    for path in BACKEND.rglob("*.py"):
        if BACKEND / "ttgir" not in path.parents:
            yield from ((path, node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _is_attributes(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "attributes"


def _looks_up(node: ast.AST) -> bool:
    """Whether a node looks for a name in a dictionary ``….attributes``, or by a literal name in ``attributes``."""
    if isinstance(node, ast.Subscript):
        literal = isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Name)
        return _is_attributes(node.value) or (literal and node.value.id == "attributes")
    if isinstance(node, ast.Compare):
        return any(
            isinstance(kind, ast.In | ast.NotIn) and _is_attributes(value)
            for kind, value in zip(node.ops, node.comparators, strict=True)
        )
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("get", "setdefault") and _is_attributes(called.value)


def test_nothing_outside_the_reader_looks_into_the_dictionaries():
    """``operation.attribute(name)`` and ``operation.flag(name)`` know which names there are."""
    found = [f"{path.relative_to(BACKEND)}:{node.lineno}" for path, node in _readers() if _looks_up(node)]
    assert not found, found


_ATTRIBUTES, _OPERANDS = (*OWN.values(), OF_ANY, OF_MODULES), {name for group in GROUPS.values() for name in group}


@pytest.mark.parametrize(
    ("method", "known"),
    [
        ("attribute", {name for one in _ATTRIBUTES for name in one.values}),
        ("flag", {name for one in _ATTRIBUTES for name in one.flags}),
        ("operand_group", _OPERANDS),
        ("optional", _OPERANDS),
    ],
)
def test_literal_names_are_declared_somewhere(method, known):
    """Also in code that no test runs."""
    asked = {
        (node.args[0].value, f"{path.relative_to(BACKEND)}:{node.lineno}")
        for path, node in _readers()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in (method, f"set_{method}")
        and isinstance(node.args[0], ast.Constant)
    }
    assert asked and not [where for name, where in asked if name not in known]


def test_hints_are_attributes_of_operations_and_arguments():
    assert hints._HINTS.keys() <= OF_ANY.values.keys() & OF_ARGUMENTS.values.keys()


#: Folders and a file whose operands are those of instructions.
_OF_INSTRUCTIONS = ("cpu/", "spirv/", "ptx/", "lowering/assembly/", "inspection/placed_instructions.py")


def test_operands_are_asked_for_by_name():
    """Those of SPIR-V's and PTX's instructions have numbers alone. Left are the first operand or result of operations
    of several families, and of those whose rows have no syntax: lower their number."""
    found = [
        node.lineno
        for path, node in _readers()
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("operands", "results")
        if not path.relative_to(BACKEND).as_posix().startswith(_OF_INSTRUCTIONS)
    ]
    assert len(found) == 28
