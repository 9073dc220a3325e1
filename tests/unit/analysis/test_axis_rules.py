"""Every rule of the axis analysis, on all lines of eight small integers that begin anywhere and go on in equal steps.

A line is a base and a step, or blocks of equal numbers: all bases of six bits. For all claims that are true of lines,
strong ones and weak ones, the rule says what it claims of the result; that has to be true of the results of all lines
which those claims are true of. A rule without a case here fails (``test_every_rule_has_a_case``).
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.analysis.axis_info.info import MAX_DIVISOR, AxisInfo, power_of_two_divisor
from triton.backends.spirv.analysis.axis_info.rule_table import RULES
from triton.backends.spirv.analysis.axis_info.signs import never_negative
from triton.backends.spirv.ttgir.ir import Block, DenseAttr, Operation, Value
from triton.backends.spirv.ttgir.types import IndexType, IntegerType, PointerType, TensorType, Type

LENGTH = 8
BLOCKS = (1, 2, 4, 8)
#: Elements of pointers have two bytes.
POINTEE = 2

Array = np.ndarray[Any, np.dtype[np.int64]]


def signed(values: Array, width: int) -> Array:
    """Numbers of so many bits, as signed ones; one bit is 0 or 1."""
    values = values & (1 << width) - 1
    return values if width == 1 else np.where(values >> width - 1 & 1, values - (1 << width), values)


def trailing(values: Array) -> Array:
    """The largest power of two that divides each number, MAX_DIVISOR of 0."""
    return np.where(values == 0, MAX_DIVISOR, values & -values)


@dataclass
class Facts:
    """What is true of lines, the last axis of an array of signed numbers of ``width`` bits: for each size of blocks,
    whether elements of a block are equal, count up by ``step``, and what divides the first ones."""

    values: Array
    width: int = 6
    step: int = 1

    def __post_init__(self) -> None:
        extent = self.values.shape[-1]
        self.equal, self.counts, self.divides = {}, {}, {}
        for block in (one for one in BLOCKS if one <= extent):
            parts = self.values.reshape(*self.values.shape[:-1], extent // block, block)
            first = parts[..., :1]
            self.equal[block] = (parts == first).all((-1, -2))
            expected = first + self.step * np.arange(block)
            if self.width < 64:
                expected = signed(expected, self.width)
            self.counts[block] = (parts == expected).all((-1, -2))
            self.divides[block] = trailing(first[..., 0]).min(-1)

    def true(self, claims: tuple[int, int, int]) -> Array:
        """Of which lines contiguity, divisibility and constancy are true."""
        contiguity, divisibility, constancy = claims
        return self.counts[contiguity] & (self.divides[contiguity] >= divisibility) & self.equal[constancy]


@cache
def lines(width: int, bases: int = 1) -> Array:
    """All lines of ``width`` bits that begin at multiples of ``bases``."""
    places = np.arange(LENGTH)
    steps = [
        0 * places,
        places,
        -places,
        2 * places,
        3 * places,
        places // 2,
        places // 4,
        places % 4,
        4 * (places // 4),
    ]
    base = np.arange(0, 1 << width, bases)[:, None, None]
    return signed((base + np.array(steps)).reshape(-1, LENGTH), width)


def claims_of(facts: Facts, divisors: tuple[int, ...]) -> list[tuple[tuple[int, int, int], Array]]:
    """Claims that are true of some lines, with the numbers of those lines."""
    found = []
    for contiguity, constancy in [(one, 1) for one in BLOCKS] + [(1, one) for one in BLOCKS[1:]]:
        for divisor in divisors:
            chosen = np.flatnonzero(facts.true((contiguity, divisor, constancy)))
            if chosen.size:
                found.append(((contiguity, divisor, constancy), chosen))
    return found


DIVISORS = (1, 2, 4, 8, 16, 32, MAX_DIVISOR)


@dataclass
class Operand:
    """A set of lines, and the claims to make of them; ``natural``: only those without a negative number, and the value
    shows it."""

    values: Array
    type_: Type
    width: int
    natural: bool = False
    step: int = 1
    divisors: tuple[int, ...] = DIVISORS

    def __post_init__(self) -> None:
        if self.natural:
            self.values = self.values[(self.values >= 0).all(-1)]
        self.facts = Facts(self.values, self.width, self.step)

    def claims(self) -> Iterator[tuple[AxisInfo, Array]]:
        for claims, chosen in claims_of(self.facts, self.divisors):
            yield AxisInfo(*((one,) for one in claims)), chosen
        if self.step == 1:
            for place in np.flatnonzero(self.facts.equal[LENGTH]):
                number = int(self.values[place, 0])
                yield AxisInfo((1,), (power_of_two_divisor(number),), (LENGTH,), number), np.array([place])

    def value(self) -> Value:
        """A value of which nothing is known but its sign."""
        unknown = Value(self.type_, Block(), 0)
        if not self.natural:
            return unknown
        return Operation.make("tt.make_range", [], [self.type_], {"start": 0, "end": LENGTH}, ()).result


def hold(name: str, operands: list[Operand], result: Array, type_: Type, width: int, **attributes: Any) -> int:
    """Checks all claims of the rule; ``result``: of the lines of all operands together, an axis each. How many elements
    they were about. Claims of results that are not defined, NaN, are not checked."""
    facts = Facts(result, width, POINTEE if isinstance(type_.element, PointerType) else 1)
    operation = Operation.make(name, [one.value() for one in operands], [type_], attributes, (1,) * len(operands))
    checked: dict[tuple[Any, ...], bool] = {}
    elements = 0
    for chosen in itertools.product(*(list(one.claims()) for one in operands)):
        made = RULES[name](operation, [info for info, _ in chosen])
        places = np.ix_(*(where for _, where in chosen))
        claims = made.contiguity[0], made.divisibility[0], made.constancy[0]
        if made.constant is not None:
            assert (result[places] == made.constant).all(), (name, attributes, chosen, made)
        if claims != (1, 1, 1):
            if claims not in checked:
                checked[claims] = facts.true(claims)  # type: ignore[assignment]
            true = checked[claims][places]  # type: ignore[index]
            assert true.all(), (name, attributes, [info for info, _ in chosen], made)
            elements += true.size * LENGTH
    return elements


def vector(element: Type) -> TensorType:
    return TensorType((LENGTH,), element)


def truncated(a: Array, b: Array) -> Array:
    """The quotient towards zero; b is not 0."""
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient)


def _unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: function(a & 63, b & 63)


#: Operation → its result on signed numbers of six bits.
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.divsi": truncated,
    "arith.divui": _unsigned(np.floor_divide),
    "arith.remsi": lambda a, b: a - b * truncated(a, b),
    "arith.remui": _unsigned(np.remainder),
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": lambda a, b: (a & 63) >> b,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
}
#: Operations → which second operands they are defined for.
DEFINED: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("arith.divsi", "arith.divui", "arith.remsi", "arith.remui"), lambda b: b != 0),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), lambda b: (b >= 0) & (b < 6)),
}
WRAPS = ("arith.addi", "arith.muli", "arith.shli")
SIX = vector(IntegerType(6))


@pytest.mark.parametrize("natural", [False, True])
@pytest.mark.parametrize("name", sorted(BINARY))
def test_two_operands(name: str, natural: bool) -> None:
    right = lines(6)
    if name in DEFINED:
        right = right[DEFINED[name](right).all(-1)]
    operands = [Operand(lines(6), SIX, 6, natural), Operand(right, SIX, 6)]
    left, right = operands[0].values[:, None], operands[1].values[None]
    assert hold(name, operands, signed(BINARY[name](left, right), 6), SIX, 6) > 10**5


@pytest.mark.parametrize("natural", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("name", sorted(BINARY))
def test_what_is_never_negative(name: str, natural: tuple[bool, bool]) -> None:
    """As signs.py assumes: no sum, product or shift wraps around, and nothing is divided by a negative number."""
    operands = [Operand(lines(6), SIX, 6, one).value() for one in natural]
    shown = never_negative(Operation.make(name, operands, [SIX], {}, (1, 1)).result)
    assert shown or not all(natural) or name == "arith.subi"
    left, right = (np.arange(-32 * (not one), 32) for one in natural)
    right = right[DEFINED.get(name, np.isfinite)(right) & (name not in ("arith.divsi", "arith.remsi") or right > 0)]
    result = BINARY[name](left[:, None], right[None])
    within = signed(result, 6) == result
    assert not shown or (signed(result, 6)[within | (name not in WRAPS)] >= 0).all()


ORDERS: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("predicate", ["eq", "ne", *(sign + order for sign in "su" for order in ORDERS)])
def test_compare(predicate: str) -> None:
    operands = [Operand(lines(6), SIX, 6), Operand(lines(6), SIX, 6)]
    left, right = operands[0].values[:, None], operands[1].values[None]
    if predicate[0] == "u":
        left, right = left & 63, right & 63
    compare = {"eq": np.equal, "ne": np.not_equal}.get(predicate) or ORDERS[predicate[1:]]
    result = compare(left, right).astype(np.int64)
    assert hold("arith.cmpi", operands, result, vector(IntegerType(1)), 1, predicate=predicate) > 10**6


@pytest.mark.parametrize("scalar", [False, True])
def test_select(scalar: bool) -> None:
    conditions = np.array(list(itertools.product((0, 1), repeat=LENGTH)))
    if scalar:
        conditions = conditions[[0, -1]]
    bit = IntegerType(1)
    four = vector(IntegerType(4))
    divisors = (1, 2, 4, 8, MAX_DIVISOR)
    condition = Operand(conditions, bit if scalar else vector(bit), 1, divisors=(1,))
    sides = [Operand(lines(4, 3 - 2 * scalar), four, 4, divisors=divisors) for _ in range(2)]
    left, right = (side.values for side in sides)
    result = np.where(condition.values[:, None, None], left[None, :, None], right[None, None])
    assert hold("arith.select", [condition, *sides], result, four, 4) > 10**6


CASTS: dict[str, tuple[int, Type, bool]] = {
    "arith.extsi": (9, IntegerType(9), True),
    "arith.extui": (9, IntegerType(9), False),
    "arith.index_cast": (64, IndexType(), True),
    "arith.index_castui": (64, IndexType(), False),
    "arith.trunci": (4, IntegerType(4), True),
}


@pytest.mark.parametrize("name", sorted(CASTS))
def test_cast(name: str) -> None:
    width, element, keeps_sign = CASTS[name]
    operand = Operand(lines(6), SIX, 6)
    result = operand.values if keeps_sign else operand.values & 63
    if width < 64:
        result = signed(result, width)
    assert hold(name, [operand], result, vector(element), width) > 9000
    natural = Operand(lines(6), SIX, 6, True).value()
    shown = never_negative(Operation.make(name, [natural], [vector(element)], {}, (1,)).result)
    assert shown == (name in ("arith.extsi", "arith.extui", "arith.index_cast"))


POINTERS = vector(PointerType(IntegerType(16)))


def pointers() -> Operand:
    """Lines of pointers, at places that their elements' size divides, and others."""
    places = np.concatenate([POINTEE * lines(6), lines(6)])
    return Operand(places + 1024, POINTERS, 64, step=POINTEE)


def test_addptr() -> None:
    operands = [pointers(), Operand(lines(6), SIX, 6)]
    first, offsets = operands
    result = first.values[:, None] + POINTEE * offsets.values[None]
    assert hold("tt.addptr", operands, result, POINTERS, 64) > 10**6


@pytest.mark.parametrize("name", ["tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"])
def test_reinterpreted(name: str) -> None:
    long = vector(IntegerType(64))
    if name == "tt.int_to_ptr":
        operand, type_ = Operand(lines(6) + 1024, long, 64), POINTERS
    else:
        operand, type_ = pointers(), vector(PointerType(IntegerType(8))) if name == "tt.bitcast" else long
    result = operand.values
    elements = hold(name, [operand], result, type_, 64) if name != "tt.bitcast" else _as_bytes(operand, type_)
    assert elements > 7000


def _as_bytes(operand: Operand, type_: Type) -> int:
    """Pointers to bytes, which are one byte apart."""
    operation = Operation.make("tt.bitcast", [operand.value()], [type_], {}, (1,))
    facts, elements = Facts(operand.values, 64), 0
    for info, chosen in operand.claims():
        made = RULES["tt.bitcast"](operation, [info])
        assert facts.true((made.contiguity[0], made.divisibility[0], made.constancy[0]))[chosen].all(), (info, made)
        elements += chosen.size * LENGTH
    return elements


@pytest.mark.parametrize("name", ["ttg.convert_layout", "spirv.spill"])
def test_moved(name: str) -> None:
    operand = Operand(lines(6), SIX, 6)
    assert hold(name, [operand], operand.values, SIX, 6) > 10**4


def test_constant() -> None:
    for number in range(-32, 32):
        for value in (number, DenseAttr(SIX, (number,), True), DenseAttr(SIX, tuple(range(LENGTH)), False)):
            type_ = SIX if isinstance(value, DenseAttr) else IntegerType(6)
            operation = Operation.make("arith.constant", [], [type_], {"value": value}, ())
            made = RULES["arith.constant"](operation, [])
            splat = not isinstance(value, DenseAttr) or value.splat
            expected = (number, power_of_two_divisor(number)) if splat else (None, 1)
            assert (made.constant, made.divisibility[0]) == expected
            assert made.constancy == ((LENGTH if isinstance(value, DenseAttr) else 1) if splat else 1,)


def test_range() -> None:
    for start in range(-32, 32):
        operation = Operation.make("tt.make_range", [], [SIX], {"start": start, "end": start + LENGTH}, ())
        made = RULES["tt.make_range"](operation, [])
        facts = Facts(np.arange(start, start + LENGTH)[None], 64)
        assert made.contiguity == (LENGTH,)
        assert facts.true((made.contiguity[0], made.divisibility[0], made.constancy[0])).all()


def test_poison() -> None:
    """It is no number, so that each claim is true of it."""
    operation = Operation.make("ub.poison", [], [SIX], {}, ())
    made = RULES["ub.poison"](operation, [])
    assert made.divisibility == (MAX_DIVISOR,) and made.constancy == (LENGTH,)


def planes() -> Iterator[tuple[Array, AxisInfo]]:
    """Arrays of 4 × 8 numbers, with all claims that are true of them."""
    rows, columns = np.arange(4)[:, None], np.arange(LENGTH)[None]
    for down, along in itertools.product((0, 1, 2, 8), (0, 1, 3, -1)):
        for base in (0, 1, 4, 8, 12, 31):
            for plane in (base + down * rows + along * columns, base + down * (rows // 2) + along * (columns // 4)):
                facts = [Facts(plane.T, 64), Facts(plane, 64)]
                each = [[claims for claims, chosen in claims_of_plane(one) if chosen] for one in facts]
                for first, second in itertools.product(*each):
                    yield plane, AxisInfo(*zip(first, second, strict=True))


def claims_of_plane(facts: Facts) -> Iterator[tuple[tuple[int, int, int], bool]]:
    blocks = [*facts.equal]
    for contiguity, constancy in [(one, 1) for one in blocks] + [(1, one) for one in blocks[1:]]:
        for divisor in (1, 4, 8, MAX_DIVISOR):
            claims = contiguity, divisor, constancy
            yield claims, bool(facts.true(claims).all())


def plane_holds(made: AxisInfo, result: Array) -> None:
    for dim in range(result.ndim):
        facts = Facts(np.moveaxis(result, dim, -1), 64)
        claims = made.contiguity[dim], made.divisibility[dim], made.constancy[dim]
        assert all(claims[place] in facts.equal for place in (0, 2)) and facts.true(claims).all(), (result, made)


#: Operation → shape of the operand, shape of the result, attributes, and what it does to an array.
LAYS_OUT: dict[str, list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], Callable[[Array], Array]]]] = {
    "tt.trans": [((4, 8), (8, 4), {"order": (1, 0)}, np.transpose)],
    "tt.reshape": [
        ((4, 8), shape, {}, lambda one, shape=shape: one.reshape(shape))
        for shape in ((8, 4), (2, 16), (32,), (2, 4, 4))
    ]
    + [
        ((4, 8), (4, 8), {"allow_reorder": None}, lambda one: one.T.reshape(4, 8)),
        ((4, 8), (8, 4), {"allow_reorder": None}, lambda one: one[::-1].reshape(8, 4)),
    ],
    "tt.expand_dims": [
        ((4, 8), (1, 4, 8), {"axis": 0}, lambda one: one[None]),
        ((4, 8), (4, 1, 8), {"axis": 1}, lambda one: one[:, None]),
        ((4, 8), (4, 8, 1), {"axis": 2}, lambda one: one[:, :, None]),
    ],
    "spirv.strip": [
        ((4, 8), (4, 4), {"dim": 1, "strips": 2}, lambda one: one[:, :4]),
        ((4, 8), (4, 4), {"dim": 1, "strips": 2}, lambda one: one[:, 4:]),
        ((4, 8), (2, 8), {"dim": 0, "strips": 2}, lambda one: one[2:]),
        ((4, 8), (8, 2), {"dim": 1, "strips": 2, "whole": 1}, lambda one: one.reshape(8, 4)[:, 2:]),
    ],
}


@pytest.mark.parametrize("name", sorted(LAYS_OUT))
def test_laid_out(name: str) -> None:
    integer = IntegerType(32)
    checked = 0
    for before, after, attributes, change in LAYS_OUT[name]:
        value = Value(TensorType(before, integer), Block(), 0)
        operation = Operation.make(name, [value], [TensorType(after, integer)], attributes, (1,))
        for plane, info in planes():
            plane_holds(RULES[name](operation, [info]), change(plane))
            checked += 1
    assert checked > 1000


def test_splat_and_broadcast() -> None:
    integer = IntegerType(6)
    for number in range(-32, 32):
        for divisor in (one for one in DIVISORS if one <= power_of_two_divisor(number)):
            operation = Operation.make("tt.splat", [Value(integer, Block(), 0)], [SIX], {}, (1,))
            made = RULES["tt.splat"](operation, [AxisInfo((1,), (divisor,), (1,))])
            assert Facts(np.full((1, LENGTH), number)).true((1, made.divisibility[0], made.constancy[0])).all()
    line = Operand(lines(6), SIX, 6)
    for axis in (0, 1):
        shape = (1, LENGTH) if axis == 0 else (LENGTH, 1)
        value = Value(TensorType(shape, integer), Block(), 0)
        operation = Operation.make("tt.broadcast", [value], [TensorType((LENGTH, LENGTH), integer)], {}, (1,))
        for info, chosen in line.claims():
            single = 1, info.divisibility[0] if info.contiguity == (1,) else 1, 1
            pair = (single, (info.contiguity[0], info.divisibility[0], info.constancy[0]))
            given = AxisInfo(*zip(*(pair if axis == 0 else pair[::-1]), strict=True))
            made = RULES["tt.broadcast"](operation, [given])
            for place in chosen[:: max(1, chosen.size // 8)]:
                row = line.values[place]
                square = np.broadcast_to(row if axis == 0 else row[:, None], (LENGTH, LENGTH))
                for dim in (0, 1):
                    facts = Facts(np.moveaxis(square, dim, -1))
                    assert facts.true((made.contiguity[dim], made.divisibility[dim], made.constancy[dim])).all()


@pytest.mark.parametrize("volatile", [False, True])
def test_load(volatile: bool) -> None:
    """Equal pointers give equal numbers, unless the memory may change between them."""
    operand, half = pointers(), vector(IntegerType(16))
    values = operand.values * 40503 % 65536
    if volatile:
        values = values + np.arange(LENGTH)
    assert hold("tt.load", [operand], values, half, 64, isVolatile=volatile) >= 0


CASES = {
    *BINARY,
    *CASTS,
    *LAYS_OUT,
    *("arith.cmpi", "arith.select", "arith.constant", "tt.make_range", "tt.addptr", "tt.splat", "tt.broadcast"),
    *("tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr", "ttg.convert_layout", "spirv.spill", "tt.load", "ub.poison"),
}


def test_every_rule_has_a_case() -> None:
    assert RULES.keys() == CASES
