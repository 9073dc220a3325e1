"""The table of Khronos' grammar: what is an id, what a literal, and what is not known."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.encode import live, string_words
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.grammar import (
    UnknownInstruction,
    enumerants,
    extended,
    id_places,
    ids,
    is_mask,
    shape,
    walk,
)
from triton.backends.spirv.spirv.module import ModuleBuilder

from tests.unit.spirv.derive_grammar import generate

BACKEND = Path(__file__).parents[3] / "backend"


def used(path: Path) -> Iterator[tuple[object, str]]:
    """(what has it, name) of each name of opcodes.py that a file uses."""
    imported: dict[str, object] = {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == "opcodes" and not (node.module or "").endswith("grammar"):
                imported[alias.asname or alias.name] = op
            elif (node.module or "").endswith("opcodes"):
                imported[alias.asname or alias.name] = getattr(op, alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield imported[node.value.id], node.attr


def test_every_name_that_is_used_is_in_the_grammar():
    names = [(path.name, *one) for path in BACKEND.rglob("*.py") for one in used(path)]
    assert len(names) > 700
    assert [(file, name) for file, namespace, name in names if not hasattr(namespace, name)] == []
    with pytest.raises(AttributeError, match="no instruction Nothing"):
        op.Nothing  # noqa: B018


def test_the_capabilities_that_are_written_out_are_those_of_the_grammar():
    written = {name: number for name, number in vars(op.Capability_).items() if type(number) is int}
    assert written.items() <= {entry.name: number for number, entry in enumerants("Capability").items()}.items()


def test_there_are_two_sets_of_extended_instructions():
    assert extended("NonSemantic.Shader.DebugInfo.100")[103] == "DebugLine"
    assert extended("another set") == {}


@pytest.mark.parametrize(
    ("name", "opcode", "kinds"),
    [
        ("TypeCooperativeMatrixKHR", 4456, "IdRef IdScope IdRef IdRef IdRef"),
        ("CooperativeMatrixLoadKHR", 4457, "IdRef IdRef IdRef? MemoryAccess?"),
        ("CooperativeMatrixStoreKHR", 4458, "IdRef IdRef IdRef IdRef? MemoryAccess?"),
        ("CooperativeMatrixMulAddKHR", 4459, "IdRef IdRef IdRef CooperativeMatrixOperands?"),
        ("CooperativeMatrixLengthKHR", 4460, "IdRef"),
        ("CooperativeMatrixPerElementOpEXT", 5369, "IdRef IdRef IdRef*"),
        ("ReadClockKHR", 5056, "IdScope"),
        ("TypeFloat", 22, "LiteralInteger FPEncoding?"),
    ],
)
def test_the_grammar_has_what_matrix_units_and_clocks_need(name, opcode, kinds):
    found = shape(opcode)
    assert found.name == name
    assert " ".join(operand.kind + operand.quantifier for operand in found.operands) == kinds


def test_the_grammar_has_the_8_and_16_bit_formats():
    assert {"BFloat16KHR", "Float8E4M3EXT", "Float8E5M2EXT"} <= {
        entry.name for entry in enumerants("FPEncoding").values()
    }
    assert is_mask("MemoryAccess") and not is_mask("StorageClass")


@pytest.mark.parametrize(
    ("instruction", "places"),
    [
        ([op.Load, 1, 9, 7], (3,)),
        ([op.Load, 1, 9, 7, 2, 16], (3,)),
        ([op.Load, 1, 9, 7, 0x2 | 0x10 | 0x20, 16, 8], (3, 6)),
        ([op.Store, 0, 0, 7, 8, 0x8, 6], (3, 4, 6)),
        ([op.ExtInst, 1, 9, 2, 50, 5, 6, 7], (3, 5, 6, 7)),
        ([op.CompositeExtract, 1, 9, 7, 0, 1], (3,)),
        ([op.CompositeInsert, 1, 9, 7, 8, 0], (3, 4)),
        ([op.VectorShuffle, 1, 9, 7, 8, 0, 1], (3, 4)),
        ([op.Phi, 1, 9, 5, 6, 7, 8], (3, 4, 5, 6)),
        ([op.LoopMerge, 0, 0, 5, 6, 0], (3, 4)),
        ([op.LoopMerge, 0, 0, 5, 6, 8, 4], (3, 4)),
        ([op.SelectionMerge, 0, 0, 5, 0], (3,)),
        ([op.BranchConditional, 0, 0, 5, 6, 7, 1, 2], (3, 4, 5)),
        ([op.Function, 1, 9, 0, 5], (4,)),
        ([op.Constant, 1, 9, 5, 0], ()),
        ([op.Decorate, 0, 0, 5, op.Decoration.Offset, 4], (3,)),
        ([op.EntryPoint, 0, 0, 5, 4, *string_words("main"), 6, 7], (4, 7, 8)),
        ([op.EntryPoint, 0, 0, 5, 4, *string_words("a"), 6, 7], (4, 6, 7)),
        ([52, 1, 9, op.CompositeExtract, 5, 6], (4,)),
        ([251, 0, 0, 5, 6, 7, 8, 9, 10], (3, 4, 6, 8)),
    ],
)
def test_ids_and_literals_are_told_apart(instruction, places):
    for _ in range(2):  # the second time from what was found the first
        assert id_places(instruction) == places
        assert list(ids(instruction)) == [instruction[place] for place in places]


def test_an_unknown_opcode_is_refused():
    with pytest.raises(UnknownInstruction, match="has no instruction 60000"):
        shape(60000)
    module = ModuleBuilder()
    f = FunctionBuilder(module, module.void)
    f.do(60000)
    f.return_()
    with pytest.raises(UnknownInstruction):
        f.finish()


@pytest.mark.parametrize(
    ("opcode", "operands", "message"),
    [
        (op.IAdd, [5], "OpIAdd ends before its operand of kind IdRef"),
        (op.IAdd, [5, 6, 7], "OpIAdd has 1 words too many"),
        (op.Load, [5, 2], "OpLoad ends before its operand of kind LiteralInteger"),
        (op.Phi, [5, 6, 7], "OpPhi ends before its operand of kind IdRef"),
        (op.Name, [5, 0x61616161], "string has no end"),
    ],
)
def test_words_that_do_not_fit_are_refused(opcode, operands, message):
    with pytest.raises(ValueError, match=message):
        list(walk(opcode, operands))


def test_a_literal_that_equals_an_id_keeps_nothing():
    unused = [op.IAdd, 1, 16, 7, 7]
    load, store = [op.Load, 1, 10, 5, 2, 16], [op.Store, 0, 0, 6, 10, 2, 16]
    assert live([unused, load, store]) == [load, store]


def test_the_generator_writes_a_row_an_entry():
    core = {
        "major_version": 1,
        "minor_version": 6,
        "revision": 9,
        "instructions": [
            {"opname": "OpB", "opcode": 7, "operands": [{"kind": "IdResult"}, {"kind": "Mask", "quantifier": "?"}]},
            {"opname": "OpA", "opcode": 3},
            {"opname": "OpSubgroupThingINTEL", "opcode": 5},
        ],
        "operand_kinds": [
            {"category": "Id", "kind": "IdRef"},
            {
                "category": "BitEnum",
                "kind": "Mask",
                "enumerants": [
                    {"enumerant": "High", "value": "0x0010", "parameters": [{"kind": "IdScope"}]},
                    {"enumerant": "None", "value": "0x0000"},
                ],
            },
            {"category": "Composite", "kind": "Pair", "bases": ["IdRef", "IdRef"]},
        ],
    }
    sets = {"Set": {"instructions": [{"opname": "Round", "opcode": 1}]}}
    head, *tables = generate(core, sets).split("\n\n")
    assert "version 1.6 revision\n# 9" in head
    assert tables == [
        "3 A\n7 B IdResult Mask?",
        "mask Mask\n0 None\n16 High IdScope\ncomposite Pair IdRef IdRef",
        "set Set\n1 Round",
    ]
