"""Claims of the axis analysis against values computed with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.analysis.axis_info import MAX_DIVISOR, AxisInfo, AxisInfoAnalysis
from triton.backends.spirv.analysis.axis_info.signs import never_negative
from triton.backends.spirv.ttgir.ir import Block, DenseAttr, Function, Operation, Region, Value
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import FunctionType, IntegerType, TensorType, Type

from tests.claims import check_claims
from tests.filecheck import check, sections, title

I1, I32, I64 = IntegerType(1), IntegerType(32), IntegerType(64)
WIDTHS: dict[Type, Any] = {I1: np.int8, I32: np.int32, I64: np.int64}


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


BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.divsi": lambda a, b: (a - np.fmod(a, b)) // b,
    "arith.remsi": np.fmod,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
}
UNSIGNED = {
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.divui": np.floor_divide,
    "arith.remui": np.remainder,
    "arith.shrui": np.right_shift,
}
PREDICATES: dict[str, Any] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


class Drawn:
    """A random expression DAG over one tensor shape, with the value of every node (None if undefined)."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.shape = data.draw(st.sampled_from([(32,), (8, 16), (4, 32), (16, 1)]))
        divisors = data.draw(st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=2, max_size=2))
        self.builder = Builder([(I32, {"tt.divisibility": d} if d > 1 else {}) for d in divisors])
        self.values: dict[Value, np.ndarray | None] = {}
        self.nodes: dict[Type, list[Value]] = {I1: [], I32: [], I64: []}
        #: Values that the assumptions of signs.py do not hold for: what wrapped around, or was divided by a negative
        #: number, and what is computed of it.
        self.beyond: set[Value] = set()
        for argument, divisor in zip(self.builder.arguments, divisors, strict=True):
            self.values[argument] = np.array(
                divisor * data.draw(st.integers(-(1 << 20), 1 << 20) | st.integers(0, 40)), np.int32
            )
            self.add(I32, "tt.splat", [argument], np.broadcast_to(self.values[argument], self.shape))  # type: ignore
        for dim, extent in enumerate(self.shape):
            self.range(dim, extent)
        for _ in range(2):
            number = data.draw(st.sampled_from([0, 1, 2, 3, 4, 8, 12, 16, 32, -1, -8, 2**31 - 16]))
            self.add(
                I32,
                "arith.constant",
                [],
                np.full(self.shape, number, np.int32),
                value=DenseAttr(TensorType(self.shape, I32), (number,), True),
            )

    def tensor(self, element: Type, shape: tuple[int, ...] | None = None) -> TensorType:
        return TensorType(self.shape if shape is None else shape, element)

    def add(
        self, element: Type, name: str, operands: list[Value], result: np.ndarray | None, **attributes: Any
    ) -> None:
        value = self.builder.value(name, operands, self.tensor(element), **attributes)
        self.values[value] = None if result is None else result.astype(WIDTHS[element])
        self.nodes[element].append(value)
        if any(operand in self.beyond for operand in operands) or self.leaves(name, operands, result):
            self.beyond.add(value)

    def leaves(self, name: str, operands: list[Value], result: np.ndarray | None) -> bool:
        """Whether this operation is not as the assumptions are."""
        held = [self.values[operand] for operand in operands]
        if result is None or any(one is None for one in held):
            return True
        if name in ("arith.divsi", "arith.remsi"):
            return bool((held[1] < 0).any())  # type: ignore[operator]
        if name not in ("arith.addi", "arith.muli", "arith.shli"):
            return False
        exact = BINARY[name](*(one.astype(object) for one in held))  # type: ignore[union-attr]
        return bool((exact != result.astype(object)).any())

    def range(self, dim: int, extent: int) -> None:
        start = self.data.draw(st.sampled_from([0, 0, 4, 5]))
        line = self.builder.value("tt.make_range", [], self.tensor(I32, (extent,)), start=start, end=start + extent)
        held = np.arange(start, start + extent, dtype=np.int32)
        self.values[line] = held
        for axis in range(len(self.shape)):
            if axis != dim:
                held = np.expand_dims(held, axis)
                line = self.builder.value("tt.expand_dims", [line], self.tensor(I32, held.shape), axis=axis)
                self.values[line] = held
        self.add(I32, "tt.broadcast", [line], np.broadcast_to(held, self.shape))

    def step(self) -> None:
        draw = self.data.draw
        kind = draw(st.sampled_from([*BINARY, *UNSIGNED, "cmp", "select", "extsi", "extui", "trunci", "reshape"]))
        element = draw(st.sampled_from([t for t in (I32, I64) if self.nodes[t]]))
        a, b = (draw(st.sampled_from(self.nodes[element])) for _ in range(2))
        left, right = self.values[a], self.values[b]
        known = left is not None and right is not None
        unsigned = np.uint32 if element == I32 else np.uint64
        if kind in BINARY or kind in UNSIGNED:
            result = None
            assumed = kind in ("arith.divsi", "arith.remsi") and never_negative(a)
            if assumed and left is not None and (left < 0).any():
                assert a in self.beyond
            elif known and self.defined(kind, element, left, right):  # type: ignore[arg-type]
                if kind in BINARY:
                    result = BINARY[kind](left, right)  # type: ignore[arg-type]
                else:
                    result = UNSIGNED[kind](left.astype(unsigned), right.astype(unsigned))  # type: ignore[union-attr]
            self.add(element, kind, [a, b], result)
        elif kind == "cmp":
            predicate = draw(st.sampled_from(["eq", "ne", *(s + p for s in "su" for p in ("lt", "le", "gt", "ge"))]))
            if known and predicate[0] == "u":
                left, right = left.astype(unsigned), right.astype(unsigned)  # type: ignore[union-attr]
            compare = PREDICATES[predicate if predicate in PREDICATES else predicate[1:]]
            self.add(I1, "arith.cmpi", [a, b], compare(left, right) if known else None, predicate=predicate)
        elif kind == "select" and self.nodes[I1]:
            condition = draw(st.sampled_from(self.nodes[I1]))
            chosen = self.values[condition]
            self.add(
                element,
                "arith.select",
                [condition, a, b],
                np.where(chosen, left, right) if known and chosen is not None else None,
            )  # type: ignore[arg-type]
        elif kind in ("extsi", "extui") and element == I32:
            wide = left if kind == "extsi" or left is None else left.astype(np.uint32)
            self.add(I64, f"arith.{kind}", [a], wide)
        elif kind == "trunci" and element == I64:
            self.add(I32, "arith.trunci", [a], left)
        elif kind == "reshape":
            flat = self.builder.value("tt.reshape", [a], self.tensor(element, (int(np.prod(self.shape)),)))
            self.values[flat] = None if left is None else left.reshape(-1)
            self.add(element, "tt.reshape", [flat], left)

    @staticmethod
    def defined(kind: str, element: Type, left: np.ndarray, right: np.ndarray) -> bool:
        """Whether the operation has a defined result everywhere."""
        if kind in ("arith.divui", "arith.remui"):
            return bool((right != 0).all())
        if kind in ("arith.divsi", "arith.remsi"):
            least = np.iinfo(left.dtype).min
            return bool((right != 0).all() and not ((left == least) & (right == -1)).any())
        if kind in ("arith.shli", "arith.shrsi", "arith.shrui"):
            return bool((right >= 0).all() and (right < (32 if element == I32 else 64)).all())
        return True


@settings(max_examples=400)
@given(st.data(), st.integers(1, 14))
def test_random_expressions(data: st.DataObject, steps: int) -> None:
    drawn = Drawn(data)
    with np.errstate(over="ignore"):
        for _ in range(steps):
            drawn.step()
    analysis = drawn.builder.analysis()
    for value, held in drawn.values.items():
        if held is not None:
            check_claims(analysis[value], held)


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
