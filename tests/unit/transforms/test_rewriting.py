"""Operations are made, copied, moved and erased so that values know their users; nothing else changes uses."""

import ast
from pathlib import Path

import pytest
from triton.backends.spirv.transforms.rewriting import Rewriter, erase_unused
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module, Operation
from triton.backends.spirv.ttgir.parser import parse_module

from tests.meaning import run

from .graphs import function

BACKEND = Path(__file__).parents[3] / "backend"
#: Methods of a list that change it.
_CHANGES = frozenset({"append", "remove", "clear", "extend", "insert", "pop"})

BODY = """
    %two = arith.constant 2 : i32
    %a = arith.addi %seed, %two : i32
    %c = arith.cmpi sgt, %seed, %two : i32
    %r = scf.if %c -> (i32) {
      %m = arith.muli %a, %two : i32
      scf.yield %m : i32
    } else {
      scf.yield %a : i32
    }
    tt.return %r : i32"""


def parsed() -> tuple[Module, dict[str, Operation]]:
    module = parse_module(function(BODY))
    return module, {operation.results[0].name: operation for operation in module.walk() if operation.results}


def result(module: Module, seed: int) -> int:
    verify(module)
    return int(run(module, seed).results[0])


def test_a_copy_has_its_own_regions_and_the_values_that_are_given() -> None:
    module, one = parsed()
    known = {one["a"].result: one["two"].result}
    copy = Rewriter.after(one["r"]).copy(one["r"], known)
    assert known[one["r"].result] is copy.result and copy.regions[0].entry.operations[0] is not one["m"]
    one["r"].block.terminator.replace_operand(one["r"].result, copy.result)  # type: ignore[union-attr]
    assert [result(module, seed) for seed in (1, 3)] == [2, 4]


def test_operations_go_before_and_behind_others_in_the_order_in_which_they_are_made() -> None:
    module, one = parsed()
    for rewriter in (Rewriter.before(one["c"]), Rewriter.after(one["c"])):
        first, last = rewriter.integer(5), rewriter.integer(6)
        rewriter.make("arith.addi", [first, last], [first.type])
    names = [operation.name.partition(".")[2] for operation in one["c"].block.operations]  # type: ignore[union-attr]
    made = ["constant", "constant", "addi"]
    assert names == ["constant", "addi", *made, "cmpi", *made, "if", "return"]
    assert result(module, 3) == 10


def test_segments_follow_from_the_operands_or_are_given() -> None:
    module, one = parsed()
    rewriter = Rewriter.before(one["c"])
    assert rewriter.loop([one["two"].result] * 3, [one["a"].result])[0].segments == (1, 1, 1, 1)
    with pytest.raises(AssertionError, match="tt.load has several groups"):
        rewriter.make("tt.load", [one["a"].result, one["c"].result])


def test_what_is_moved_is_in_its_new_block() -> None:
    module, one = parsed()
    Rewriter.before(one["r"]).move(one["m"])
    assert one["m"].block is one["r"].block and result(module, 3) == 10


def test_what_nothing_uses_goes_with_what_only_that_uses() -> None:
    module, one = parsed()
    inner = one["m"].block
    assert inner is not None
    inner.terminator.set_operands([one["two"].result])
    erase_unused([one["a"], one["m"]])
    assert one["m"] not in inner.operations and result(module, 3) == 2 and result(module, 1) == 3
    with pytest.raises(AssertionError, match=r"arith\.addi"):
        one["a"].erase()


def test_uses_change_in_one_file() -> None:
    """By assignment, or by a method of the list."""
    found = set()
    for path in BACKEND.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
                targets = [node.func.value]
            for target in targets:
                target = target.value if isinstance(target, ast.Subscript) else target
                if isinstance(target, ast.Attribute) and target.attr in ("uses", "segments"):
                    found.add(path.relative_to(BACKEND).as_posix())
    assert found - {"ttgir/formats.py"} == {"ttgir/ir.py"}  # a row's
