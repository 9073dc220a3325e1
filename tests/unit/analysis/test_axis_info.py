"""Claims of the axis analysis against values computed with NumPy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.spirv.analysis.axis_info import MAX_DIVISOR, AxisInfo, AxisInfoAnalysis
from triton.backends.spirv.ttgir.ir import Block, Function, Operation, Region, Value
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import FunctionType, IntegerType, TensorType, Type

from tests.claims import check_claims
from tests.filecheck import check, sections, title

I32 = IntegerType(32)


class Builder:
    """A function of one block, its operations built one by one."""

    def __init__(self, arguments: list[tuple[Type, dict[str, Any]]]) -> None:
        self.block = Block()
        self.arguments = [self.argument(type_) for type_, _ in arguments]
        self.attributes = [attributes for _, attributes in arguments]

    def argument(self, type_: Type) -> Value:
        value = Value(type_, self.block, len(self.block.arguments))
        self.block.arguments.append(value)
        return value

    def op(
        self,
        name: str,
        operands: list[Value],
        results: list[Type],
        regions: list[Region] | None = None,
        **attributes: Any,
    ) -> Operation:
        operation = Operation(name, operands, [], attributes, regions or [])
        operation.results = [Value(type_, operation, index) for index, type_ in enumerate(results)]
        self.block.operations.append(operation)
        return operation

    def value(self, name: str, operands: list[Value], type_: Type, **attributes: Any) -> Value:
        return self.op(name, operands, [type_], **attributes).result

    def region(
        self, arguments: list[Type], fill: Callable[[list[Value]], list[Value]], end: str = "scf.yield"
    ) -> Region:
        outer, self.block = self.block, Block()
        results = fill([self.argument(type_) for type_ in arguments])
        self.op(end, results, [])
        inner, self.block = self.block, outer
        return Region([inner])

    def function(self) -> Function:
        return Function(
            "f",
            FunctionType(tuple(v.type for v in self.arguments), ()),
            self.attributes,
            {},
            True,
            Region([self.block]),
        )

    def analysis(self) -> AxisInfoAnalysis:
        return AxisInfoAnalysis(self.function())


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(1, 6))
def test_loops(lower: int, step: int, start: int, advance: int, rounds: int) -> None:
    """A carried value that grows by a multiple of the counter: checked in every round."""
    builder = Builder([])
    scalars = [
        builder.value("arith.constant", [], I32, value=number)
        for number in (4 << lower, (4 << lower) + (rounds << step), 1 << step, 16 << start, 1 << advance)
    ]
    inner: list[Value] = []

    def body(arguments: list[Value]) -> list[Value]:
        counter, carried, other = arguments
        grown = builder.value("arith.muli", [counter, scalars[4]], I32)
        total = builder.value("arith.addi", [carried, grown], I32)
        inner.extend([counter, carried, other, grown, total])
        return [total, carried]

    region = builder.region([I32, I32, I32], body)
    loop = builder.op("scf.for", [*scalars[:3], scalars[3], scalars[3]], [I32, I32], [region])
    analysis = builder.analysis()
    carried = other = 16 << start
    for counter in range(4 << lower, (4 << lower) + (rounds << step), 1 << step):
        grown = counter << advance
        for value, held in zip(inner, (counter, carried, other, grown, carried + grown), strict=True):
            check_claims(analysis[value], np.array(held, np.int32))
        carried, other = carried + grown, carried
    for value, held in zip(loop.results, (carried, other), strict=True):
        check_claims(analysis[value], np.array(held, np.int32))


def test_what_is_not_analysed_has_no_claims() -> None:
    builder = Builder([(I32, {"tt.divisibility": 16})])
    called = builder.value("tt.call", [builder.arguments[0]], I32, callee="g")
    loaded = builder.value("tt.load", [builder.arguments[0]], TensorType((4, 8), I32), isVolatile=True)
    analysis = builder.analysis()
    assert analysis[called] == AxisInfo((1,), (1,), (1,))
    assert analysis[loaded] == AxisInfo((1, 1), (1, 1), (1, 1))
    assert analysis[builder.value("arith.constant", [], I32, value=0)].divisibility == (1,)  # added after the analysis
    zero = Builder([])
    value = zero.value("arith.constant", [], I32, value=0)
    assert zero.analysis()[value] == AxisInfo((1,), (MAX_DIVISOR,), (1,), 0)


def _facts(function: Function) -> Iterator[str]:
    """A line for each argument and result, in the order of the text."""
    analysis = AxisInfoAnalysis(function)
    assert function.body is not None
    for owner in (function, *function.walk()):
        if isinstance(owner, Operation):
            values = [(owner.name, value) for value in owner.results]
            bodies = [region.entry for region in owner.regions]
        else:
            values, bodies = [], [function.body.entry]
        values += [("argument", value) for body in bodies for value in body.arguments]
        for name, value in values:
            info = analysis[value]
            found = {"contiguity": info.contiguity, "divisibility": info.divisibility, "constancy": info.constancy}
            yield " ".join([name, *(f"{what}={','.join(map(str, of))}" for what, of in found.items())])


TEXTS = {title(section): section for _, several in sections(Path(__file__).parent / "text") for section in several}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_claimed(text: str) -> None:
    """What FileCheck wants of the claims about each function of text/axis_info.ttgir."""
    check("\n".join(_facts(parse_module(f"module {{\n{text}}}\n").functions["k"])), text)
