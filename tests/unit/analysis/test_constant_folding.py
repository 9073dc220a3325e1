"""Integer arithmetic on known numbers, against NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.analysis.axis_info import constant_folding
from triton.backends.spirv.analysis.axis_info.info import wrapped
from triton.backends.spirv.ttgir.ir import Operation, Value
from triton.backends.spirv.ttgir.types import IntegerType

INT8 = IntegerType(8)


def operation(name: str, **attributes: Any) -> Operation:
    made = Operation(name, [], [], attributes)
    made.operands = [Value(INT8, made, 0)] * 2
    made.results = [Value(INT8, made, 0)]
    return made


def numpy_rule(function: Any, kind: type) -> Callable[[int, int], int]:
    return lambda a, b: int(function(np.array(a).astype(kind), np.array(b).astype(kind)))


BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.addi": numpy_rule(np.add, np.int8),
    "arith.subi": numpy_rule(np.subtract, np.int8),
    "arith.muli": numpy_rule(np.multiply, np.int8),
    "arith.andi": numpy_rule(np.bitwise_and, np.int8),
    "arith.ori": numpy_rule(np.bitwise_or, np.int8),
    "arith.xori": numpy_rule(np.bitwise_xor, np.int8),
    "arith.maxsi": numpy_rule(np.maximum, np.int8),
    "arith.minsi": numpy_rule(np.minimum, np.int8),
    "arith.maxui": numpy_rule(np.maximum, np.uint8),
    "arith.minui": numpy_rule(np.minimum, np.uint8),
    "arith.divsi": lambda a, b: int(np.trunc(a / b)),
    "arith.remsi": lambda a, b: int(np.fmod(a, b)),
    "arith.ceildivsi": lambda a, b: int(np.ceil(a / b)),
    "arith.floordivsi": lambda a, b: int(np.floor(a / b)),
    "arith.divui": numpy_rule(np.floor_divide, np.uint8),
    "arith.remui": numpy_rule(np.remainder, np.uint8),
    "arith.ceildivui": lambda a, b: int(np.ceil((a & 255) / (b & 255))),
    "arith.shli": numpy_rule(np.left_shift, np.int8),
    "arith.shrsi": numpy_rule(np.right_shift, np.int8),
    "arith.shrui": numpy_rule(np.right_shift, np.uint8),
}
NUMBERS = st.integers(-128, 127)


@pytest.mark.parametrize("name", BINARY)
@given(a=NUMBERS, b=NUMBERS)
def test_two_numbers(name: str, a: int, b: int) -> None:
    found = constant_folding.binary(operation(name), a, b)
    if ("div" in name or "rem" in name) and b == 0 or "sh" in name and not 0 <= b < 8:
        assert found is None
    else:
        assert found is not None and wrapped(found, INT8) == wrapped(BINARY[name](a, b), INT8)


@pytest.mark.parametrize("kind", ["eq", "ne", "lt", "le", "gt", "ge"])
@given(a=NUMBERS, b=NUMBERS)
def test_comparisons(kind: str, a: int, b: int) -> None:
    rule = {"eq": np.equal, "ne": np.not_equal}.get(kind) or getattr(
        np, {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}[kind]
    )
    for sign, type_ in (("", np.int8),) if kind in ("eq", "ne") else (("s", np.int8), ("u", np.uint8)):
        wanted = bool(rule(np.array(a).astype(type_), np.array(b).astype(type_)))
        assert constant_folding.compare(operation("arith.cmpi", predicate=sign + kind), a, b) == wanted


def test_other_operations_have_no_result() -> None:
    assert constant_folding.binary(operation("arith.addf"), 1, 2) is None
