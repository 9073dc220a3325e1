"""The rounds of a loop that multiply tiles from device memory, nothing else, are one operation before the loop.

    %r = scf.for %k = … iter_args(%t = %c, %at = 0)  →  %array = spirv.spill %c
      %a = tt.load %p + %at, %i < %K - %k, 0             spirv.multiply_rounds %array, %p, %q, %down, %steps, …
      %b = tt.load %q + …, %j < %K - %k, 0               scf.for %k = … + %rounds * … iter_args(%t = spirv.collect …)
      scf.yield %t + %a · %b, %at + …                      …

The operation takes all rounds of the loop where masks leave out no more than rows of A, columns of B, and of both the
same k at the end, and where zeros are what is loaded then. Else it takes those at the beginning whose masks are true
everywhere, and the loop does what is left. It takes none where the tiles of a round are not behind those of the one
before. The device's function (abi/tile_products.py) reads A in place, and packs B as is best for it: no tile of A is
copied, and C is read and written once for many rounds.

How addresses are made up is read from the operations: a sum of terms, each a product of scalars, and at most one tensor
along one dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...abi.tile_products import FACTORS
from ...analysis.places import constant, is_zero
from ...layouts.strip_layouts import line_starts, memory_strides
from ...ttgir.ir import Block, Function, Operation, Value
from ...ttgir.operations import definition_of, masks
from ...ttgir.type_reader import PLAIN_TYPES
from ...ttgir.types import IntegerType, PointerType, TensorType
from ..rewriting import Rewriter
from ..strip_loops import MULTIPLY, ROUNDS
from .carried_arrays import collected, spilled
from .loop_stores import store_of

_I1, _I64 = PLAIN_TYPES["i1"], PLAIN_TYPES["i64"]

#: Fewer steps of k than a round's are not worth a loop of their own.
_LEAST = 4


#: Comparison → whether it is of the second operand with the first, and whether it is true of equal ones.
_DIFFERENCES = {"slt": (False, False), "sle": (False, True), "sgt": (True, False), "sge": (True, True)}


class _UnknownError(Exception):
    """What a value is made up of is not known."""


def multiply_rounds(function: Function, lanes: int) -> bool:
    """Rewrites the loops of ``function``, for subgroups of so many lanes. Whether there were any."""
    changed = False
    for loop in [operation for operation in function.walk() if operation.name == "scf.for"]:
        try:
            rounds = _Loop(loop, lanes)
            rounds.check()
        except _UnknownError:
            continue
        rounds.rewrite()
        changed = True
    return changed


@dataclass(frozen=True)
class _Term:
    """``number`` times the ``factors``, which are scalars, times, where there is a ``dim``, a tensor that is the same
    along all others: the index along it, or the ``tensor``."""

    number: int
    factors: tuple[Value, ...] = ()
    dim: int | None = None
    tensor: Value | None = None


#: Terms that are added.
_Sum = tuple[_Term, ...]


@dataclass(frozen=True)
class _Factor:
    """A factor of the product: what loads it, the dimension that k is along there, the scalars that an element is
    multiplied with between neighbours along it, and the terms of what the loop adds to its addresses in a round.
    ``ends``, ``sides``: the sums of terms that are the negated numbers of k, and of rows of A or columns of B, from
    which on there are zeros; each of these numbers counts."""

    load: Operation
    k: int
    down: _Term
    moves: tuple[_Term, ...]
    ends: tuple[_Sum, ...]
    sides: tuple[_Sum, ...]


class _Loop:
    """One loop, and what is known of it."""

    def __init__(self, loop: Operation, lanes: int) -> None:
        self._loop, self._lanes, self._body = loop, lanes, loop.regions[0].entry
        self._step = constant(loop["step"]) or 0
        found = [one for one in self._body.operations if one.name == MULTIPLY]
        if len(found) != 1 or self._step <= 0 or loop.flag("unsignedCmp"):
            raise _UnknownError
        self._multiply = found[0]
        #: Of each mask's conditions: the terms whose sum has to be less than 0.
        self._limits: list[_Sum] = []
        #: Carried number → what is added to it in each round.
        self._moved: dict[Value, Value] = {}
        self._total = -1

    # -- what is known -----------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raises _UnknownError for a loop that is not of this kind."""
        body = self._body
        if any(one.regions or (definition_of(one).effects and one.name != "tt.load") for one in body.operations):
            raise _UnknownError
        array = self._multiply["total"]
        spill = array.owner
        if not isinstance(spill, Operation) or spill.name != "spirv.spill" or not self._multiply.attribute("adds"):
            raise _UnknownError
        for number, (argument, following) in enumerate(zip(body.arguments[1:], body.terminator.operands, strict=True)):
            step = following.owner
            if argument is spill["value"]:
                if not isinstance(step, Operation) or step.name != "spirv.collect" or step["array"] is not array:
                    raise _UnknownError
                self._total = number
            elif (
                isinstance(argument.type, IntegerType)
                and isinstance(step, Operation)
                and step.name == "arith.addi"
                and step["lhs"] is argument
                and self._is_invariant(step["rhs"])
            ):
                self._moved[argument] = step["rhs"]
            else:
                raise _UnknownError
        total = body.arguments[1 + self._total] if self._total >= 0 else None
        if total is None or len(total.uses) != 1 or len(array.uses) != 2:
            raise _UnknownError
        left, right = self._multiply.attribute("turned")
        self._a, self._b = self._factor("left", left[-1]), self._factor("right", right[-2])
        c = memory_strides(array.tensor)
        (_, n), element = array.tensor.shape, str(array.tensor.element)
        k = self._a.load.result.tensor.shape[self._a.k]
        if c is None or c[1] != 1 or n < self._lanes or k < _LEAST:
            raise _UnknownError
        factors = {str(one.load.result.tensor.element) for one in (self._a, self._b)}
        if (element == "i32") != (factors == {"i8"}):
            raise _UnknownError
        if self._a.down != _Term(1) or None in (
            line_starts(one.load["ptr"].tensor, one.k) for one in (self._a, self._b)
        ):
            raise _UnknownError

    def _factor(self, name: str, k: int) -> _Factor:
        spill = self._multiply[name].owner
        if not isinstance(spill, Operation) or spill.name != "spirv.spill" or spill.block is not self._body:
            raise _UnknownError
        load = spill["value"].owner
        while isinstance(load, Operation) and load.name in ("arith.extf", "ttg.convert_layout"):
            load = load["src"].owner
        if (
            not isinstance(load, Operation)
            or load.name != "tt.load"
            or load.block is not self._body
            or load.attribute("isVolatile")
            or load.result.tensor.rank != 2
            or str(load.result.tensor.element) not in FACTORS
        ):
            raise _UnknownError
        pointers, type_ = load["ptr"], load.result.tensor
        assert isinstance(type_, TensorType)
        along, moves = list[_Term](), list[_Term]()
        for term in self._terms(pointers, (0, 1)):
            if term.dim == k:
                along.append(term)
            elif counters := [one for one in term.factors if not self._is_invariant(one)]:
                moves.append(self._moves(term, counters))
        if len(along) != 1 or along[0].tensor is not None or not all(map(self._is_invariant, along[0].factors)):
            raise _UnknownError
        ends, sides = list[_Sum](), list[_Sum]()
        for compare, dims in [found for mask in masks(load) for found in _comparisons(mask, (0, 1))]:
            terms = self._difference(compare, dims)
            numbered = [term for term in terms if term.dim is not None]
            growth, rest = self._growth(terms), tuple(term for term in terms if term.dim is None)
            zeros = all(map(is_zero, load.operand_group("other")))
            counts = zeros and len(numbered) == 1 and numbered[0] == _Term(1, dim=numbered[0].dim)
            if counts and numbered[0].dim == k and growth * self._step == type_.shape[k]:
                ends.append(rest)
            elif counts and numbered[0].dim != k and not growth:
                sides.append(rest)
            else:
                self._limits.append(_largest(terms, type_.shape))
        return _Factor(load, k, replace(along[0], dim=None), tuple(moves), tuple(ends), tuple(sides))

    def _moves(self, term: _Term, counters: list[Value]) -> _Term:
        """What a term that depends on the round grows by in each."""
        rest = [one for one in term.factors if one not in counters]
        if len(counters) != 1 or term.dim is not None:
            raise _UnknownError
        if counters[0] is self._body.arguments[0]:
            return _Term(term.number * self._step, tuple(rest))
        if counters[0] in self._moved:
            return _Term(term.number, (*rest, self._moved[counters[0]]))
        raise _UnknownError

    def _is_invariant(self, value: Value) -> bool:
        owner = value.owner
        return owner is not self._body if isinstance(owner, Block) else not self._body.holds(owner)

    def _stays(self, value: Value) -> bool:
        """Whether a value is the same in all rounds: it may be computed in each."""
        if self._is_invariant(value):
            return True
        owner = value.owner
        if not isinstance(owner, Operation) or owner.regions or definition_of(owner).effects:
            return False
        return all(map(self._stays, owner.operands))

    def _terms(self, value: Value, dims: tuple[int, ...]) -> list[_Term]:
        """The terms of a scalar, or of a tensor whose dimensions are ``dims`` of the factor's."""
        owner, known = value.owner, constant(value)
        if known is not None:
            return [_Term(known)] if known else []
        name = owner.name if isinstance(owner, Operation) else ""
        if isinstance(owner, Operation):
            if name in ("arith.addi", "tt.addptr"):
                return [term for operand in owner.operands for term in self._terms(operand, dims)]
            if name == "arith.subi":
                first, second = (self._terms(operand, dims) for operand in owner.operands)
                return [*first, *(replace(term, number=-term.number) for term in second)]
            if name == "arith.muli":
                first, second = (self._terms(operand, dims) for operand in owner.operands)
                return [_product(one, other) for one in first for other in second]
            if name in ("arith.extsi", "ttg.convert_layout", "tt.broadcast"):
                return self._terms(owner["src"], dims)
            if name == "tt.splat":
                return self._terms(owner["src"], ())
            if (inner := _dims_before(owner, dims)) is not None:
                return self._terms(owner["src"], inner)
            if name == "tt.make_range":
                start = owner.attribute("start")
                return [_Term(1, dim=dims[0]), *([_Term(start)] if start else [])]
        if not isinstance(value.type, TensorType):
            return [_Term(1, (value,))]
        wide = [dim for dim, extent in zip(dims, value.type.shape, strict=True) if extent > 1]
        if len(wide) > 1 or not self._stays(value):
            raise _UnknownError
        return [_Term(1, dim=wide[0] if wide else dims[0], tensor=value)]

    def _difference(self, compare: Operation, dims: tuple[int, ...]) -> _Sum:
        """The terms of a sum that is less than 0 where a comparison is true."""
        first, second = (self._terms(operand, dims) for operand in compare.operands)
        turned, less = _DIFFERENCES[compare.attribute("predicate")]
        if turned:
            first, second = second, first
        return (*first, *(replace(term, number=-term.number) for term in second), *([_Term(-1)] if less else []))

    def _growth(self, terms: _Sum) -> int:
        """What a difference grows by with the loop's counter."""
        counter, growth = self._body.arguments[0], 0
        for term in terms:
            if term.factors == (counter,) and term.dim is None:
                growth += term.number
            elif not all(map(self._is_invariant, term.factors)):
                raise _UnknownError
        return growth

    # -- what is made ------------------------------------------------------------------------------------------------
    def rewrite(self) -> None:
        """Puts the operation before the loop, which begins behind its rounds."""
        loop, rewriter = self._loop, Rewriter.before(self._loop)
        emit = _Arithmetic(rewriter)
        lower, upper = (emit.wide(operand) for operand in (loop["lowerBound"], loop["upperBound"]))
        step = emit.integer(self._step)
        rounds = emit.divided(emit.add(emit.most(emit.subtract(upper, lower), 0), emit.integer(self._step - 1)), step)
        for limit in self._limits:
            rounds = emit.smaller(rounds, self._rounds_of(emit, limit, lower))
        k = self._a.load.result.tensor.shape[self._a.k]
        for factor in (self._a, self._b):
            behind = emit.times(emit.term(factor.down), k)
            moved = emit.integer(0)
            for term in factor.moves:
                moved = emit.add(moved, emit.term(term))
            rounds = emit.where(emit.compare("eq", moved, behind), rounds, emit.integer(0))
        rounds, steps, padded = self._steps(emit, rounds, k, lower)
        rows, columns = (
            self._first(emit, emit.integer(one.load.result.tensor.shape[1 - one.k]), one.sides, lower)
            for one in (self._a, self._b)
        )
        initial = loop.operand_group("initArgs")[self._total]
        array = spilled(rewriter, initial)
        known = {self._body.arguments[0]: loop["lowerBound"]}
        known |= dict(zip(self._body.arguments[1:], loop.operand_group("initArgs"), strict=True))
        pointers = [self._before(factor.load["ptr"], known, rewriter) for factor in (self._a, self._b)]
        element = pointers[1].tensor.element
        assert isinstance(element, PointerType)
        down = emit.times(emit.term(self._b.down), FACTORS[str(element.pointee)])
        attributes = {"turned": self._multiply.attribute("turned"), "neighbours": self._b.down == _Term(1)}
        numbers = [down, steps, padded, rows, columns, self._needed(emit, rewriter, lower)]
        rewriter.make(ROUNDS, [array, *pointers, *numbers], attributes=attributes)
        # Behind the last round the counter may be past the end of its type.
        counter = emit.smaller(emit.add(lower, emit.multiply(rounds, step)), upper)
        done = {0: emit.narrow(counter, loop["lowerBound"])}
        for number, argument in enumerate(self._body.arguments[1:], 3):
            if number == 3 + self._total:
                done[number] = collected(rewriter, array)
            else:
                first, by = loop.operands[number], emit.wide(self._moved[argument])
                done[number] = emit.narrow(emit.add(emit.wide(first), emit.multiply(by, rounds)), first)
        loop.set_operands([done.get(number, operand) for number, operand in enumerate(loop.operands)])

    def _needed(self, emit: _Arithmetic, rewriter: Rewriter, lower: Value) -> Value:
        """How many of the first rows are stored."""
        needed = emit.integer(self._a.load.result.tensor.shape[1 - self._a.k])
        store = store_of(self._loop.results[self._total])
        if store is None:
            return needed
        try:
            found = [found for mask in masks(store) for found in _comparisons(mask, (0, 1))]
            limits = [self._difference(compare, dims) for compare, dims in found]
        except _UnknownError:
            limits = []
        for terms in limits:
            numbered, rest = [term for term in terms if term.dim is not None], [t for t in terms if t.dim is None]
            scalars = [factor for term in rest for factor in term.factors]
            if numbered == [_Term(1, dim=0)] and all(map(rewriter.follows, scalars)):
                needed = self._first(emit, needed, (tuple(rest),), lower)
        return needed

    def _steps(self, emit: _Arithmetic, rounds: Value, k: int, lower: Value) -> tuple[Value, Value, Value]:
        """The rounds that the operation takes, of so many, the k of them all, and whether those of the last are fewer
        than of the others."""
        every = emit.times(rounds, k)
        if not (self._a.ends or self._b.ends):
            return rounds, every, emit.integer(0)
        a, b = (self._first(emit, every, one.ends, lower) for one in (self._a, self._b))
        same = emit.compare("eq", a, b)
        # Where only one of them ends, the other need not be 0 there.
        whole = emit.divided(emit.smaller(a, b), emit.integer(k))
        rounds = emit.where(same, rounds, whole)
        steps = emit.where(same, a, emit.times(whole, k))
        fewer = emit.compare("slt", steps, emit.times(rounds, k))
        return rounds, steps, emit.where(fewer, emit.integer(1), emit.integer(0))

    def _first(self, emit: _Arithmetic, count: Value, ends: tuple[_Sum, ...], lower: Value) -> Value:
        """How many are there, of ``count``, before any of the ``ends`` is reached."""
        for end in ends:
            growth, rest = self._sum(emit, end)
            at = emit.add(rest, emit.times(lower, growth)) if growth else rest
            count = emit.smaller(count, emit.most(emit.subtract(emit.integer(0), at), 0))
        return count

    def _sum(self, emit: _Arithmetic, terms: _Sum) -> tuple[int, Value]:
        """What a sum grows by with the loop's counter, and the rest of it."""
        growth, rest = 0, emit.integer(0)
        for term in terms:
            if term.factors == (self._body.arguments[0],):
                growth += term.number
            else:
                rest = emit.add(rest, emit.term(term))
        return growth, rest

    def _rounds_of(self, emit: _Arithmetic, limit: _Sum, lower: Value) -> Value:
        """The rounds from the first on in which the sum of terms is less than 0."""
        growth, rest = self._sum(emit, limit)
        if growth <= 0:  # then it is largest in the first
            every, first = emit.integer((1 << 62) - 1), emit.add(rest, emit.times(lower, growth)) if growth else rest
            return emit.where(emit.compare("slt", first, emit.integer(0)), every, emit.integer(0))
        # growth · k ≤ -1 - rest: the largest k, where that is not negative, and how many rounds that is from the first.
        room = emit.subtract(emit.integer(-1), rest)
        largest = emit.divided(emit.most(room, 0), emit.integer(growth))
        steps = emit.most(emit.subtract(largest, lower), -self._step)
        count = emit.divided(emit.add(steps, emit.integer(self._step)), emit.integer(self._step))
        return emit.where(emit.compare("slt", room, emit.integer(0)), emit.integer(0), count)

    def _before(self, value: Value, known: dict[Value, Value], rewriter: Rewriter) -> Value:
        """A value of the body in its first round, before the loop."""
        if value in known or self._is_invariant(value):
            return known.get(value, value)
        owner = value.owner
        assert isinstance(owner, Operation) and not definition_of(owner).effects
        operands = [self._before(operand, known, rewriter) for operand in owner.operands]
        rewriter.copy(owner, known, operands=operands)
        return known[value]


def _comparisons(mask: Value, dims: tuple[int, ...]) -> list[tuple[Operation, tuple[int, ...]]]:
    """The conditions of a mask, all of which have to be true, and the dimensions of the factor that each has."""
    owner = mask.owner
    if not isinstance(owner, Operation):
        raise _UnknownError
    if owner.name in ("ttg.convert_layout", "tt.broadcast"):
        return _comparisons(owner["src"], dims)
    if owner.name == "tt.splat":
        return _comparisons(owner["src"], ())
    if (inner := _dims_before(owner, dims)) is not None:
        return _comparisons(owner["src"], inner)
    if owner.name == "arith.andi":
        return [found for operand in owner.operands for found in _comparisons(operand, dims)]
    if owner.name == "arith.cmpi" and owner.attribute("predicate") in _DIFFERENCES:
        return [(owner, dims)]
    raise _UnknownError


def _dims_before(operation: Operation, dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """The dimensions of the operand of an operation that puts in, or takes out, dimensions of one element, or None for
    any other operation; ``dims``: those of the result."""
    if operation.name == "tt.expand_dims":
        axis = operation.attribute("axis")
        return dims[:axis] + dims[axis + 1 :]
    if operation.name != "tt.reshape" or operation.flag("allow_reorder"):
        return None
    before, after = operation["src"].tensor.shape, operation.result.tensor.shape
    wide = [dim for dim, extent in zip(dims, after, strict=True) if extent > 1]
    if [extent for extent in before if extent > 1] != [extent for extent in after if extent > 1]:
        return None
    following = iter(wide)
    return tuple(next(following) if extent > 1 else dims[0] for extent in before)


def _largest(terms: _Sum, shape: tuple[int, ...]) -> _Sum:
    """The terms of a difference where it is largest."""
    found = []
    for term in terms:
        if term.dim is not None:
            if term.tensor is not None or term.factors:
                raise _UnknownError
            term = _Term(max(0, term.number) * (shape[term.dim] - 1))
        found.append(term)
    return tuple(found)


def _product(one: _Term, other: _Term) -> _Term:
    if one.dim is not None and other.dim is not None:
        raise _UnknownError
    dim, tensor = (one.dim, one.tensor) if one.dim is not None else (other.dim, other.tensor)
    return _Term(one.number * other.number, (*one.factors, *other.factors), dim, tensor)


class _Arithmetic:
    """Arithmetic of i64."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    def _make(self, name: str, *operands: Value) -> Value:
        return self._rewriter.make(f"arith.{name}", operands, [operands[-1].type]).result

    def integer(self, value: int) -> Value:
        return self._rewriter.integer(value, _I64)

    def wide(self, value: Value) -> Value:
        return value if value.type == _I64 else self._rewriter.make("arith.extsi", [value], [_I64]).result

    def narrow(self, value: Value, like: Value) -> Value:
        return value if like.type == _I64 else self._rewriter.make("arith.trunci", [value], [like.type]).result

    def add(self, one: Value, other: Value) -> Value:
        return self._make("addi", one, other)

    def subtract(self, one: Value, other: Value) -> Value:
        return self._make("subi", one, other)

    def multiply(self, one: Value, other: Value) -> Value:
        return self._make("muli", one, other)

    def times(self, one: Value, number: int) -> Value:
        return one if number == 1 else self.multiply(one, self.integer(number))

    def divided(self, one: Value, other: Value) -> Value:
        return self._make("divsi", one, other)

    def most(self, one: Value, number: int) -> Value:
        return self._make("maxsi", one, self.integer(number))

    def smaller(self, one: Value, other: Value) -> Value:
        return self._make("minsi", one, other)

    def where(self, condition: Value, one: Value, other: Value) -> Value:
        return self._make("select", condition, one, other)

    def compare(self, predicate: str, one: Value, other: Value) -> Value:
        return self._rewriter.make("arith.cmpi", [one, other], [_I1], {"predicate": predicate}).result

    def term(self, term: _Term) -> Value:
        """A product of scalars."""
        value = self.integer(term.number)
        for factor in term.factors:
            value = self.multiply(value, self.wide(factor))
        return value
