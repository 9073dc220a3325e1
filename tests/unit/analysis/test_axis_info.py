"""Claims of the axis analysis against values computed with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.analysis.axis_info import MAX_DIVISOR, AxisInfo, AxisInfoAnalysis
from triton.backends.spirv.analysis.axis_info.signs import never_negative
from triton.backends.spirv.ttgir.ir import Block, DenseAttr, Function, Operation, Region, Value
from triton.backends.spirv.ttgir.types import FunctionType, IntegerType, PointerType, TensorType, Type

from tests.claims import check_claims

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


def vector_add_offsets(builder: Builder, size: int = 1024) -> tuple[Value, Value]:
    """``pid * size + arange(size)``, and ``< n`` of the first argument."""
    tensor = TensorType((size,), I32)
    pid = builder.value("tt.get_program_id", [], I32, axis=0)
    block = builder.value("arith.constant", [], I32, value=size)
    start = builder.value("arith.muli", [pid, block], I32)
    line = builder.value("tt.make_range", [], tensor, start=0, end=size)
    offsets = builder.value("arith.addi", [builder.value("tt.splat", [start], tensor), line], tensor)
    n = builder.value("tt.splat", [builder.arguments[0]], tensor)
    return offsets, builder.value("arith.cmpi", [offsets, n], TensorType((size,), I1), predicate="slt")


def test_vector_add() -> None:
    builder = Builder([(I32, {"tt.divisibility": 16}), (PointerType(I32), {"tt.divisibility": 16})])
    offsets, mask = vector_add_offsets(builder)
    pointers = TensorType((1024,), PointerType(I32))
    base = builder.value("tt.splat", [builder.arguments[1]], pointers)
    pointer = builder.value("tt.addptr", [base, offsets], pointers)
    loaded = builder.value("tt.load", [pointer, mask], TensorType((1024,), I32))
    analysis = builder.analysis()
    assert analysis[offsets] == AxisInfo((1024,), (1024,), (1,))
    assert analysis[mask].constancy == (16,)
    assert analysis[pointer] == AxisInfo((1024,), (16,), (1,))
    assert analysis[loaded] == AxisInfo((1,), (1,), (1,))


def test_offsets_that_may_wrap_inside_a_block_are_not_contiguous_pointers() -> None:
    """arange + 1 may pass 2^31 in the middle of a block; a 64-bit offset cannot."""
    for width, contiguity in ((I32, 1), (I64, 64)):
        tensor, pointers = TensorType((64,), width), TensorType((64,), PointerType(I32))
        builder = Builder([(width, {}), (PointerType(I32), {"tt.divisibility": 16})])
        line = builder.value("tt.make_range", [], TensorType((64,), I32), start=0, end=64)
        if width == I64:
            line = builder.value("arith.extsi", [line], tensor)
        start = builder.value("tt.splat", [builder.arguments[0]], tensor)
        offsets = builder.value("arith.addi", [line, start], tensor)
        base = builder.value("tt.splat", [builder.arguments[1]], pointers)
        pointer = builder.value("tt.addptr", [base, offsets], pointers)
        info = builder.analysis()[pointer]
        assert (info.contiguity, info.divisibility) == ((contiguity,), (4,))


def test_remainder_keeps_the_blocks_of_a_matmul() -> None:
    """(pid * 64 + arange(64)) % M with M a multiple of 16, as the matmul tutorial computes rows."""
    builder = Builder([(I32, {"tt.divisibility": 16})])
    offsets, _ = vector_add_offsets(builder, 64)
    modulus = builder.value("tt.splat", [builder.arguments[0]], TensorType((64,), I32))
    rows = builder.value("arith.remsi", [offsets, modulus], TensorType((64,), I32))
    column = builder.value("tt.expand_dims", [rows], TensorType((64, 1), I32), axis=1)
    row = builder.value("tt.expand_dims", [rows], TensorType((1, 64), I32), axis=0)
    analysis = builder.analysis()
    assert analysis[rows] == AxisInfo((16,), (16,), (1,))
    assert analysis[column] == AxisInfo((16, 1), (16, 1), (1, 1))
    assert analysis[row] == AxisInfo((1, 16), (1, 16), (1, 1))


@pytest.mark.parametrize(
    "hint, expected",
    [
        (8, ((1,), (8,), (1,))),
        (DenseAttr(TensorType((1,), I32), (8,), True), ((1,), (8,), (1,))),
        (24, ((1,), (8,), (1,))),
    ],
)
def test_hints(hint: Any, expected: tuple[tuple[int, ...], ...]) -> None:
    builder = Builder([(TensorType((16,), I32), {})])
    promised = builder.value(
        "arith.addi", [builder.arguments[0]] * 2, TensorType((16,), I32), **{"tt.divisibility": hint}
    )
    assert builder.analysis()[promised] == AxisInfo(*expected)  # type: ignore[arg-type]
    assert builder.analysis()[builder.arguments[0]] == AxisInfo((1,), (1,), (1,))


def test_hints_on_several_results_are_of_none() -> None:
    """Nothing says which of them the user means."""
    builder = Builder([(TensorType((8, 2), I32), {})])
    hint = {"tt.contiguity": DenseAttr(TensorType((1,), I32), (8,), True)}
    split = builder.op("tt.split", builder.arguments, [TensorType((8,), I32)] * 2, **hint)
    assert all(builder.analysis()[result] == AxisInfo((1,), (1,), (1,)) for result in split.results)


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


def test_pointers_carried_through_a_loop_stay_vectorisable() -> None:
    """``a += 32 * stride`` with a stride that is a multiple of 16, as in a matmul's loop over K."""
    pointers = TensorType((64,), PointerType(I32))
    builder = Builder([(PointerType(I32), {"tt.divisibility": 16}), (I32, {"tt.divisibility": 16}), (I32, {})])
    line = builder.value("tt.make_range", [], TensorType((64,), I32), start=0, end=64)
    base = builder.value("tt.splat", [builder.arguments[0]], pointers)
    first = builder.value("tt.addptr", [base, line], pointers)
    move = builder.value("tt.splat", [builder.arguments[1]], TensorType((64,), I32))
    carried: list[Value] = []

    def body(arguments: list[Value]) -> list[Value]:
        carried.append(arguments[1])
        return [builder.value("tt.addptr", [arguments[1], move], pointers)]

    zero, one = (builder.value("arith.constant", [], I32, value=number) for number in (0, 1))
    region = builder.region([I32, pointers], body)
    loop = builder.op("scf.for", [zero, builder.arguments[2], one, first], [pointers], [region])
    analysis = builder.analysis()
    assert analysis[carried[0]] == analysis[loop.result] == AxisInfo((64,), (16,), (1,))


def test_a_loop_that_keeps_losing_ends() -> None:
    """Halving in every round would take 62 rounds to know nothing."""
    builder = Builder([(I32, {})])
    zero, two = (builder.value("arith.constant", [], I32, value=number) for number in (0, 2))
    region = builder.region([I32, I32], lambda arguments: [builder.value("arith.divsi", [arguments[1], two], I32)])
    start = builder.value("arith.shli", [builder.arguments[0], builder.value("arith.constant", [], I32, value=30)], I32)
    loop = builder.op("scf.for", [zero, builder.arguments[0], two, start], [I32], [region])
    analysis = builder.analysis()
    assert analysis[start].divisibility == (1 << 30,)
    assert analysis[loop.result].divisibility == (1,)


def test_if_and_while() -> None:
    builder = Builder([(I1, {}), (I32, {"tt.divisibility": 16}), (I32, {"tt.divisibility": 8})])
    condition, left, right = builder.arguments
    either = builder.op(
        "scf.if", [condition], [I32], [builder.region([], lambda _: [left]), builder.region([], lambda _: [right])]
    )

    def after(arguments: list[Value]) -> list[Value]:
        return [builder.value("arith.addi", [arguments[0], right], I32)]

    before = builder.region([I32], lambda arguments: [condition, arguments[0]], "scf.condition")
    loop = builder.op("scf.while", [left], [I32], [before, builder.region([I32], after)])
    analysis = builder.analysis()
    assert analysis[either.result].divisibility == (8,)
    assert analysis[loop.result].divisibility == (8,)


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


def test_pointer_bitcast_changes_the_step() -> None:
    """Elements of four bytes seen as bytes are no longer consecutive."""
    words, octets = TensorType((16,), PointerType(I32)), TensorType((16,), PointerType(IntegerType(8)))
    builder = Builder([(words, {"tt.contiguity": 16, "tt.divisibility": 16})])
    same = builder.value("tt.bitcast", [builder.arguments[0]], TensorType((16,), PointerType(IntegerType(32))))
    other = builder.value("tt.bitcast", [builder.arguments[0]], octets)
    analysis = builder.analysis()
    assert analysis[same] == AxisInfo((16,), (16,), (1,))
    assert analysis[other] == AxisInfo((1,), (4,), (1,))


def test_a_reshape_that_may_reorder_keeps_no_runs() -> None:
    """Upstream gives it an encoding of its own, by which elements come in another order."""
    builder = Builder([(TensorType((256,), I32), {"tt.contiguity": 256, "tt.divisibility": 16})])
    square = TensorType((16, 16), I32)
    kept = builder.value("tt.reshape", [builder.arguments[0]], square)
    mixed = builder.value("tt.reshape", [builder.arguments[0]], square, allow_reorder=None)
    analysis = builder.analysis()
    assert analysis[kept].contiguity == (1, 16) and analysis[mixed] == AxisInfo((1, 1), (1, 1), (1, 1))
