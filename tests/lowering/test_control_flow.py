"""Control flow: what SPIR-V it becomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.errors import UnsupportedOperation

from tests.lowering.harness import compile_body, disassemble

Check = Callable[[str, str], None]


def test_a_return_is_a_selection_and_one_return(filecheck: Check) -> None:
    text = disassemble(
        compile_body(
            """
    %c = arith.cmpi sgt, %n, %n : i32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    tt.store %p, %n : !tt.ptr<i32>""",
            "%p: !tt.ptr<i32>, %n: i32",
        )
    )
    filecheck(
        text,
        """
CHECK: [[C:%[0-9]+]] = OpSGreaterThan
CHECK: OpSelectionMerge [[MERGE:%[0-9]+]] None
CHECK-NEXT: OpBranchConditional [[C]] [[THEN:%[0-9]+]] [[ELSE:%[0-9]+]]
CHECK-NEXT: [[THEN]] = OpLabel
CHECK-NEXT: OpBranch [[MERGE]]
CHECK-NEXT: [[ELSE]] = OpLabel
CHECK: OpStore
CHECK: OpBranch [[MERGE]]
CHECK-NEXT: [[MERGE]] = OpLabel
CHECK-NEXT: OpReturn
CHECK-NOT: OpReturn{{$}}
""",
    )


def test_a_branch_back_is_a_loop(filecheck: Check) -> None:
    text = disassemble(
        compile_body(
            """
    %one = arith.constant 1 : i32
    cf.br ^bb1(%n : i32)
  ^bb1(%i: i32):
    %next = arith.subi %i, %one : i32
    %c = arith.cmpi sgt, %next, %one : i32
    cf.cond_br %c, ^bb1(%next : i32), ^bb2
  ^bb2:
    tt.store %p, %next : !tt.ptr<i32>""",
            "%p: !tt.ptr<i32>, %n: i32",
        )
    )
    filecheck(
        text,
        """
CHECK: OpPhi
CHECK-NEXT: OpLoopMerge
CHECK: OpISub
CHECK: OpSGreaterThan
CHECK: OpReturn
""",
    )


FOR = """
    %zero = arith.constant 0 : i32
    %step = arith.constant {step} : i32
    scf.for{unsigned} %i = %zero to %n step %step : i32 {{
      tt.store %p, %i : !tt.ptr<i32>
    }}"""


def test_a_step_of_one_carries_the_counter(filecheck: Check) -> None:
    text = disassemble(compile_body(FOR.format(step=1, unsigned=""), "%p: !tt.ptr<i32>, %n: i32"))
    filecheck(
        text,
        """
CHECK-NOT: OpSelect{{ }}
CHECK: [[I:%[0-9]+]] = OpPhi
CHECK: OpSLessThan %{{[0-9]+}} [[I]]
CHECK: OpStore %{{[0-9]+}} [[I]]
""",
    )


def test_a_larger_step_counts_rounds_so_that_it_cannot_wrap(filecheck: Check) -> None:
    text = disassemble(compile_body(FOR.format(step=4, unsigned=""), "%p: !tt.ptr<i32>, %n: i32"))
    filecheck(
        text,
        """
CHECK: OpShiftRightLogical
CHECK: [[ROUNDS:%[0-9]+]] = OpSelect
CHECK: [[ROUND:%[0-9]+]] = OpPhi
CHECK: OpULessThan %{{[0-9]+}} [[ROUND]] [[ROUNDS]]
CHECK: [[I:%[0-9]+]] = OpShiftLeftLogical %{{[0-9]+}} [[ROUND]]
CHECK: OpStore %{{[0-9]+}} [[I]]
""",
    )


def test_an_unsigned_loop_compares_unsigned(filecheck: Check) -> None:
    text = disassemble(compile_body(FOR.format(step=1, unsigned=" unsigned"), "%p: !tt.ptr<i32>, %n: i32"))
    filecheck(text, "CHECK: OpLoopMerge\nCHECK: OpULessThan\nCHECK-NOT: OpSLessThan\n")


def test_a_refusal_names_the_branch_and_its_line() -> None:
    with pytest.raises(UnsupportedOperation, match=r"k.py:3:1: .*'cf.cond_br'.*never left; give the loop an end"):
        compile_body(
            """
    %c = arith.cmpi sgt, %n, %n : i32
    cf.cond_br %c, ^bb1, ^bb2 loc("k.py":3:1)
  ^bb1:
    cf.br ^bb1
  ^bb2:""",
            "%n: i32",
        )


def nested(depth: int) -> str:
    """A store under ``depth`` branches."""
    return (
        "%c = arith.cmpi sgt, %n, %n : i32\n"
        + "scf.if %c {\n" * depth
        + "tt.store %p, %n : !tt.ptr<i32>\n"
        + "}\n" * depth
    )


@pytest.mark.parametrize(("profile", "limit"), [("lavapipe", 72), ("nvidia-hopper", 120)])
def test_nesting_that_the_driver_does_not_follow_is_refused(profile: str, limit: int) -> None:
    compile_body(nested(limit), "%p: !tt.ptr<i32>, %n: i32", capabilities=PROFILES[profile])
    with pytest.raises(UnsupportedOperation, match=f"nested more than {limit} deep here; .*merge their conditions"):
        compile_body(nested(limit + 1), "%p: !tt.ptr<i32>, %n: i32", capabilities=PROFILES[profile])
