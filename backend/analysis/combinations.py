"""Whether the combination of a reduction commutes: then elements may be combined in any order.

Proved by cases: where two numbers are compared, one is less, both are equal, or one is greater, and in each case the
region gives the same for operands that are exchanged. Of floating-point numbers that leaves out NaN, which is neither,
and zeros that are equal and differ in sign: for those, lanes that combine in orders of their own may not agree.

Sums, products and quotients of floating-point numbers are the same in a case if they are the same rational function,
which their exact values at random points tell: two that differ are equal at a point with a probability of their degree
by the number of points (Schwartz 1980, Zippel 1979). A sum of floats counts as unequal to every constant. So Welford's
means commute, up to rounding: of two sets whose counts add up to 0, the mean may be either's.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from ..ttgir.ir import Operation, Region, Value
from ..ttgir.operations import definition_of

#: Choices of one of two numbers that commute but for zeros of both signs, and NaNs: it is open which one they give.
_CHOICES = frozenset({"arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf"})

#: Pairs of numbers that are compared: three cases each.
_MOST_PAIRS = 4

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
#: Points at which rational functions are compared, of 2⁶⁴ numbers in each argument.
_POINTS = 2
_ARITHMETIC: dict[str, Callable[..., Fraction]] = {
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.divf": operator.truediv,
    "arith.negf": operator.neg,
}

#: A number as an expression of the region's arguments: a tuple, its name first.
Term = tuple[Any, ...]

#: Two terms → whether the first is less (-1), equal (0) or greater (1). First by which order: of ``signed`` or
#: ``unsigned`` integers, or of ``float``s.
Pair = tuple[str, Term, Term]
Case = Mapping[Pair, int]


class _Open(Exception):
    """A pair whose order is not part of the case."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self.pair = pair


def commutes(region: Region) -> bool:
    """Whether a combination gives the same for ``(b, a)`` as for ``(a, b)``, up to NaN, the sign of a zero, and
    rounding. False where that is not proved."""
    return _proved(region, True)


def agrees(region: Region) -> bool:
    """Whether lanes that combine in orders of their own have the same bits: the combination commutes for all numbers.
    A minimum or maximum of floating-point numbers does not: of zeros of both signs it may be either."""
    return _proved(region, False)


def _proved(region: Region, floats: bool) -> bool:
    block = region.entry
    if any(one.regions or not definition_of(one).repeatable for one in block.operations[:-1]):
        return False
    half = len(block.arguments) // 2
    there: list[Term] = [("argument", number) for number in range(2 * half)]
    exchanged = there[half:] + there[:half]

    def alike(case: Case) -> bool:
        try:
            one, other = (
                _results(block.operations, dict(zip(block.arguments, terms, strict=True)), case, floats)
                for terms in (there, exchanged)
            )
        except _Open as open_:
            orders = (-1, 1) if _is_sum_and_constant(open_.pair) else (-1, 0, 1)
            return len(case) < _MOST_PAIRS and all(alike({**case, open_.pair: order}) for order in orders)
        return one == other or floats and all(map(_is_same, block.arguments, one, other))

    return alike({})


def _is_sum_and_constant(pair: Pair) -> bool:
    """Whether a pair is a sum of floats, such as of counts, and a constant: they are taken for unequal."""
    kind, *terms = pair
    return kind == "float" and {term[0] for term in terms} == {"arith.addf", "constant"}


def _is_same(argument: Value, one: Term, other: Term) -> bool:
    """Whether two terms for the same part of a result are equal: of a float, as functions of real numbers."""
    if one == other or str(argument.type) not in _FLOATS:
        return one == other
    try:
        return all(_at(one, point, {}) == _at(other, point, {}) for point in range(_POINTS))
    except (ZeroDivisionError, ValueError):
        return False


def _at(term: Term, point: int, known: dict[Term, Fraction]) -> Fraction:
    """The exact value of a term at a point, which gives a random number to all that is not arithmetic: equal operations
    on equal numbers have equal ones. Raises ZeroDivisionError, ValueError for a constant that is no finite number."""
    if term not in known:
        name, *rest = term
        if name == "constant" and rest[1] in _FLOATS:
            known[term] = Fraction(float(rest[0]))
        elif name in _ARITHMETIC:
            known[term] = _ARITHMETIC[name](*(_at(operand, point, known) for operand in rest[3:]))
        else:
            parts = [_at(part, point, known) if isinstance(part, tuple) else part for part in rest]
            drawn = hashlib.sha256(repr((name, point, parts)).encode()).digest()
            known[term] = Fraction(int.from_bytes(drawn[:8]))
    return known[term]


def _results(operations: list[Operation], terms: dict[Value, Term], case: Case, floats: bool) -> list[Term]:
    same = {second: first for (_, first, second), order in case.items() if not order}
    terms = {value: same.get(term, term) for value, term in terms.items()}

    def known(value: Value) -> Term:
        """The term of a value, which may be one of those around the region."""
        owner = value.owner
        if value not in terms:
            constant = isinstance(owner, Operation) and owner.name == "arith.constant"
            terms[value] = _constant(owner) if constant else ("outside", id(value))  # type: ignore[arg-type]
        return terms[value]

    for operation in operations[:-1]:
        operands = [known(operand) for operand in operation.operands]
        for index, result in enumerate(operation.results):
            term = _term(operation, index, operands, case, floats)
            terms[result] = same.get(term, term)
    return [known(value) for value in operations[-1].operands]


def _term(operation: Operation, index: int, operands: list[Term], case: Case, floats: bool) -> Term:
    name, type_ = operation.name, str(operation.results[index].type)
    if name == "arith.cmpi" or name == "arith.cmpf" and floats:
        return _truth(_compared(operation, operands[0], operands[1], case))
    if name == "arith.constant":
        return _constant(operation)
    if name == "arith.select":
        condition, true, false = operands
        if condition in _TRUTHS:
            return true if condition == _truth(True) else false
        if true == false:
            return true
    elif name in _BITS and all(one in _TRUTHS for one in operands):
        return _truth(_BITS[name](*(one == _truth(True) for one in operands)))
    if (definition_of(operation).commutative or floats and name in _CHOICES) and not _may_be_fused(name, operands):
        operands.sort(key=repr)
    return name, index, repr(sorted(operation.attributes.items())), type_, *operands


def _constant(operation: Operation) -> Term:
    value, type_ = operation.attribute("value"), str(operation.result.type)
    return _truth(value) if type_ == "i1" else ("constant", repr(value), type_)


def _may_be_fused(name: str, operands: list[Term]) -> bool:
    """Whether one of two products in a sum may be added without being rounded."""
    return name == "arith.addf" and any(one[0] == "arith.mulf" for one in operands)


def _truth(value: object) -> Term:
    return ("constant", "true" if value else "false", "i1")


_TRUTHS = (_truth(False), _truth(True))
_BITS: dict[str, Callable[[bool, bool], bool]] = {
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
}


def _compared(operation: Operation, one: Term, other: Term, case: Case) -> bool:
    """Whether a comparison holds of two integers, or of two floating-point numbers neither of which is NaN."""
    predicate = operation.attribute("predicate")
    if predicate in _CONSTANT:
        return _CONSTANT[predicate]
    comparison = _COMPARISONS[predicate[-2:]]
    if one == other:
        return comparison(0, 0)
    first, second = sorted((one, other), key=repr)
    kind = "float" if operation.name == "arith.cmpf" else "unsigned" if predicate[0] == "u" else "signed"
    if predicate in ("eq", "ne") and ("unsigned", first, second) in case:
        kind = "unsigned"
    pair: Pair = (kind, first, second)
    if pair not in case:
        raise _Open(pair)
    order = case[pair] if first == one else -case[pair]
    return comparison(order, 0)


#: Of floating-point numbers.
_CONSTANT = {"true": True, "false": False, "ord": True, "uno": False}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
