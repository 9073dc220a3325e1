"""Every operation that upstream defines is lowered, rewritten or refused by name: docs/internals/operations.md."""

import pytest
from triton.backends.spirv.lowering.errors import UnsupportedOperation
from triton.backends.spirv.lowering.refusals import (
    REFUSED,
    REGION_ENDS,
    REWRITTEN,
    REWRITTEN_BY_PASS,
    STRUCTURE,
    refusal,
)
from triton.backends.spirv.lowering.registry import RULES
from triton.backends.spirv.ttgir.ir import Location, Operation
from triton.backends.spirv.ttgir.operations import OPERATIONS

from docs.generate_operations import DEFINITIONS, PAGE, defined, operations, outcomes, page
from tests.lowering.harness import compile_body


@pytest.mark.parametrize("dialect", list(DEFINITIONS))
def test_definitions_are_found(dialect: str) -> None:
    names = defined(dialect)
    assert {
        "tt": {"tt.load", "tt.dot", "tt.call", "tt.scan.return"},
        "ttg": {"ttg.convert_layout", "ttg.warp_id", "ttg.mask.return"},
    }[dialect] <= names
    assert len(names) >= {"tt": 54, "ttg": 28}[dialect]


def test_every_operation_is_in_one_table() -> None:
    found = {name: list(outcomes(name)) for name in operations()}
    assert {name: tables for name, tables in found.items() if len(tables) != 1} == {}


#: Operations of this backend's own, which one of its rewrites makes.
OWN = frozenset(name for name in OPERATIONS if name.startswith("spirv."))


def test_tables_name_known_operations() -> None:
    known = operations()
    for table in (RULES, REWRITTEN, REFUSED, REGION_ENDS, REWRITTEN_BY_PASS, STRUCTURE):
        assert set(table) - known - OWN == set()


def test_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.generate_operations"


@pytest.mark.parametrize("name", [*REFUSED, *REWRITTEN_BY_PASS, *REGION_ENDS, "other.operation"])
def test_refusal_names_operation_place_and_remedy(name: str) -> None:
    place = Location("kernel.py", 12, 3)
    error = refusal(Operation(name, [], [], {}, [], [], (), place, None))
    reason, _, instead = str(error).partition("; ")
    assert reason.startswith(f"kernel.py:12:3: the SPIR-V backend cannot compile '{name}': ")
    assert len(reason.rpartition(": ")[2]) > 20 and len(instead) > 10


def test_assembly_of_more_than_arithmetic_is_refused() -> None:
    body = (
        '    %0 = tt.elementwise_inline_asm "bar.sync 0;" {constraints = "=r,r", packed_element = 1 : i32, '
        "pure = true} %x : i32 -> i32"
    )
    with pytest.raises(
        UnsupportedOperation, match="tt.elementwise_inline_asm.*inline assembly.*waits for other threads"
    ):
        compile_body(body, "%x: i32")
