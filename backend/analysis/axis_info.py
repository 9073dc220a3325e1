"""What is known of the integers and pointers of a function along each dimension of their tensors.

The claims of an ``AxisInfo`` are those of upstream's analysis of the same name. All numbers are powers of two. For
dimension d of a value, taken along every line in that dimension, cut into aligned blocks:

* contiguity c: in each block of c, element i + 1 is element i plus 1 (for pointers: plus one pointee);
* divisibility v: the first element of each such block is a multiple of v (for pointers: of v bytes);
* constancy k: in each block of k all elements are equal.

Integers are taken modulo 2^width; a claim of contiguity survives a widening only as far as divisibility shows that
no block wraps. Signed division and remainder of a contiguous value are taken to have a dividend that is not negative,
as upstream takes them: without it no ``offsets % M`` could be vectorised. Scalars have one dimension of one element.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ttgir.ir import Block, DenseAttr, Function, Operation, Region, Value
from ..ttgir.types import FloatType, IndexType, IntegerType, PointerType, TensorType, Type

#: The divisibility of 0.
MAX_DIVISOR = 1 << 62

#: After this many rounds over a loop, what still changes is given up.
MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class AxisInfo:
    """Claims about one value, one entry a dimension; ``constant`` is its only value where that is known (signed)."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    constant: int | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions, 1 for a scalar."""
        return len(self.contiguity)


def power_of_two_divisor(value: int) -> int:
    """The largest power of two, up to MAX_DIVISOR, that divides ``value``."""
    return min(value & -value, MAX_DIVISOR) if value else MAX_DIVISOR


def unknown(type_: Type) -> AxisInfo:
    """No claims about a value of ``type_``."""
    ones = (1,) * len(_shape(type_))
    return AxisInfo(ones, ones, ones)


def constant(type_: Type, value: int) -> AxisInfo:
    """All elements of a value of ``type_`` are ``value``."""
    shape = _shape(type_)
    value = _wrap(value, type_)
    return AxisInfo((1,) * len(shape), (power_of_two_divisor(value),) * len(shape), shape, value)


def meet(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    """The claims that hold for a value that may be either of two."""
    contiguity = tuple(map(min, left.contiguity, right.contiguity))
    return AxisInfo(contiguity,
                    tuple(min(_at(left, d, c), _at(right, d, c)) for d, c in enumerate(contiguity)),
                    tuple(map(min, left.constancy, right.constancy)),
                    left.constant if left.constant == right.constant else None)


def _shape(type_: Type) -> tuple[int, ...]:
    return type_.shape if isinstance(type_, TensorType) and type_.shape else (1,)


def _element(type_: Type) -> Type:
    return type_.element if isinstance(type_, TensorType) else type_


def _width(type_: Type) -> int:
    """Bits of an integer, index or pointer type; 64 for what is none of them."""
    element = _element(type_)
    return element.width if isinstance(element, IntegerType) else 64


def _wrap(value: int, type_: Type) -> int:
    """``value`` as a signed integer of the width of ``type_``; an i1 is 0 or 1."""
    width = _width(type_)
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def _unsigned(value: int, type_: Type) -> int:
    return value & ((1 << _width(type_)) - 1)


def _pointee_bytes(type_: Type) -> int:
    element = _element(type_)
    assert isinstance(element, PointerType)
    pointee = element.pointee
    bits = pointee.width if isinstance(pointee, IntegerType | FloatType) else 64
    return max(bits // 8, 1)


def _at(info: AxisInfo, dim: int, block: int, step: int = 1) -> int:
    """What divides the first element of each block of ``block``, where consecutive elements differ by ``step``."""
    divisibility = info.divisibility[dim]
    return divisibility if block >= info.contiguity[dim] else min(divisibility, block * step)


def _every(info: AxisInfo, dim: int, step: int = 1) -> int:
    """What divides every element."""
    return _at(info, dim, 1, step)


def _tamed(info: AxisInfo) -> AxisInfo:
    """``info`` with contiguity only in blocks that begin at a multiple of their size, so that none wraps."""
    return replace(info, contiguity=tuple(map(min, info.contiguity, info.divisibility)))


Rule = Callable[[Operation, Sequence[AxisInfo]], AxisInfo]
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
        return rule
    return register


def _dims(info: AxisInfo, claims: Callable[[int], tuple[int, int, int]]) -> AxisInfo:
    """The value whose (contiguity, divisibility, constancy) along each dimension is ``claims(dim)``."""
    return _columns([claims(dim) for dim in range(info.rank)])


def _columns(claims: Sequence[tuple[int, int, int]]) -> AxisInfo:
    """One (contiguity, divisibility, constancy) a dimension."""
    contiguity, divisibility, constancy = zip(*claims, strict=True)
    return AxisInfo(contiguity, divisibility, constancy)


def _truncating_divide(a: int, b: int) -> int:
    """Integer division that truncates, as the hardware's."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_FOLD: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.divsi": _truncating_divide,
    "arith.remsi": lambda a, b: a - b * _truncating_divide(a, b),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
}
_FOLD_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.maxui": max,
    "arith.minui": min,
    "arith.shrui": lambda a, b: a >> b,
}
_DIVIDES = frozenset({"arith.divsi", "arith.divui", "arith.remsi", "arith.remui"})
_SHIFTS = frozenset({"arith.shli", "arith.shrsi", "arith.shrui"})


def _fold(operation: Operation, left: AxisInfo, right: AxisInfo) -> AxisInfo | None:
    """The result where both operands are constants and the operation is defined on them."""
    if left.constant is None or right.constant is None:
        return None
    name, type_ = operation.name, operation.result.type
    if name in _DIVIDES and right.constant == 0 or name in _SHIFTS and not 0 <= right.constant < _width(type_):
        return None
    if name in _FOLD:
        return constant(type_, _FOLD[name](left.constant, right.constant))
    if name in _FOLD_UNSIGNED:
        return constant(type_, _FOLD_UNSIGNED[name](_unsigned(left.constant, type_), _unsigned(right.constant, type_)))
    return None


@_rule("arith.constant")
def _constant(operation: Operation, _: Sequence[AxisInfo]) -> AxisInfo:
    value: Any = operation.attributes["value"]
    type_ = operation.result.type
    if isinstance(value, DenseAttr):
        if not value.splat:
            return unknown(type_)
        value = value.values[0]
    if isinstance(_element(type_), IntegerType | IndexType) and isinstance(value, int):
        return constant(type_, value)
    return replace(unknown(type_), constancy=_shape(type_))


@_rule("tt.make_range")
def _make_range(operation: Operation, _: Sequence[AxisInfo]) -> AxisInfo:
    start, end = int(operation.attributes["start"]), int(operation.attributes["end"])
    return AxisInfo((power_of_two_divisor(end - start),), (power_of_two_divisor(start),), (1,))


@_rule("arith.addi", "arith.subi")
def _add(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    folded = _fold(operation, left, right)
    if folded:
        return folded
    subtract = operation.name == "arith.subi"

    def claims(dim: int) -> tuple[int, int, int]:
        contiguity = min(left.contiguity[dim], right.constancy[dim])
        if not subtract:
            contiguity = max(contiguity, min(left.constancy[dim], right.contiguity[dim]))
        return (contiguity, min(_at(left, dim, contiguity), _at(right, dim, contiguity)),
                min(left.constancy[dim], right.constancy[dim]))
    return _dims(left, claims)


@_rule("tt.addptr")
def _addptr(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    pointer, offset = operands
    step = _pointee_bytes(operation.result.type)
    if _width(operation.operands[1].type) < 64:
        offset = _tamed(offset)

    def claims(dim: int) -> tuple[int, int, int]:
        contiguity = max(min(pointer.contiguity[dim], offset.constancy[dim]),
                         min(pointer.constancy[dim], offset.contiguity[dim]))
        moved = min(_at(offset, dim, contiguity) * power_of_two_divisor(step), MAX_DIVISOR)
        return (contiguity, min(_at(pointer, dim, contiguity, step), moved),
                min(pointer.constancy[dim], offset.constancy[dim]))
    return _dims(pointer, claims)


@_rule("arith.muli")
def _multiply(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if left.constant == 1:
        return right
    if right.constant == 1:
        return left
    if left.constant == 0 or right.constant == 0:
        return constant(operation.result.type, 0)
    return _fold(operation, left, right) or _dims(left, lambda dim: (
        1, min(_every(left, dim) * _every(right, dim), MAX_DIVISOR), min(left.constancy[dim], right.constancy[dim])))


@_rule("arith.divsi", "arith.divui")
def _divide(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 1:
        return left
    folded = _fold(operation, left, right)
    if folded:
        return folded
    divisor = right.constant
    if divisor is not None:
        divisor = abs(divisor) if operation.name == "arith.divsi" else _unsigned(divisor, operation.result.type)

    def claims(dim: int) -> tuple[int, int, int]:
        both = min(left.constancy[dim], right.constancy[dim])
        block = min(left.contiguity[dim], left.divisibility[dim], right.constancy[dim], _every(right, dim))
        exact = _every(left, dim)
        quotient = 1
        if divisor and divisor & (divisor - 1) == 0 and exact >= divisor:
            quotient = exact // divisor
        return 1, quotient, max(both, block)
    return _dims(left, claims)


@_rule("arith.remsi", "arith.remui")
def _remainder(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 1:
        return constant(operation.result.type, 0)

    def claims(dim: int) -> tuple[int, int, int]:
        block = min(left.contiguity[dim], left.divisibility[dim], right.constancy[dim], _every(right, dim))
        return (block, min(_at(left, dim, block), _every(right, dim)),
                min(left.constancy[dim], right.constancy[dim]))
    return _fold(operation, left, right) or _dims(left, claims)


@_rule("arith.andi", "arith.ori", "arith.xori")
def _bitwise(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if operation.name != "arith.andi":
        if right.constant == 0:
            return left
        if left.constant == 0:
            return right
    combine = max if operation.name == "arith.andi" else min
    return _fold(operation, left, right) or _dims(left, lambda dim: (
        1, combine(_every(left, dim), _every(right, dim)), min(left.constancy[dim], right.constancy[dim])))


@_rule("arith.shli")
def _shift_left(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 0:
        return left
    amount = right.constant if right.constant is not None and 0 <= right.constant < 64 else 0
    return _fold(operation, left, right) or _dims(left, lambda dim: (
        1, min(_every(left, dim) << amount, MAX_DIVISOR), min(left.constancy[dim], right.constancy[dim])))


@_rule("arith.shrsi", "arith.shrui")
def _shift_right(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 0:
        return left
    amount = right.constant

    def claims(dim: int) -> tuple[int, int, int]:
        both = min(left.constancy[dim], right.constancy[dim])
        if amount is None or not 0 < amount < _width(operation.result.type):
            return 1, 1, both
        block = min(left.contiguity[dim], left.divisibility[dim], 1 << amount)
        return 1, max(_every(left, dim) >> amount, 1), max(both, block)
    return _fold(operation, left, right) or _dims(left, claims)


@_rule("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")
def _min_max(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    folded = _fold(operation, *operands)
    return folded or replace(meet(*(_tamed(operand) for operand in operands)), constant=None)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}


@_rule("arith.cmpi")
def _compare(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    predicate = operation.attributes["predicate"]
    kind = predicate if predicate in ("eq", "ne") else predicate[1:]
    if left.constant is not None and right.constant is not None:
        a, b, type_ = left.constant, right.constant, operation.operands[0].type
        if predicate[0] == "u":
            a, b = _unsigned(a, type_), _unsigned(b, type_)
        elif _width(type_) == 1 and predicate[0] == "s":
            a, b = -a, -b
        return constant(operation.result.type, _COMPARE[kind](a, b))

    def claims(dim: int) -> tuple[int, int, int]:
        constancy = min(left.constancy[dim], right.constancy[dim])
        if kind in ("lt", "ge"):  # blocks of the left that cannot step over a multiple of the right
            constancy = max(constancy, _uncrossed(left, right, dim))
        elif kind in ("gt", "le"):
            constancy = max(constancy, _uncrossed(right, left, dim))
        return 1, 1, constancy
    return _dims(left, claims)


def _uncrossed(counting: AxisInfo, fixed: AxisInfo, dim: int) -> int:
    """Blocks in which ``counting`` counts up from a multiple of their size, and ``fixed`` is another such multiple."""
    return min(counting.contiguity[dim], counting.divisibility[dim], fixed.constancy[dim], _every(fixed, dim))


@_rule("arith.select")
def _select(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    condition, left, right = operands
    if condition.constant is not None:
        return left if condition.constant else right
    if not isinstance(operation.operands[0].type, TensorType):
        return meet(left, right)
    blocks = tuple(map(min, condition.constancy, left.contiguity, right.contiguity))
    return AxisInfo(blocks, tuple(min(_at(left, d, block), _at(right, d, block)) for d, block in enumerate(blocks)),
                    tuple(map(min, condition.constancy, left.constancy, right.constancy)),
                    left.constant if left.constant == right.constant else None)


@_rule("arith.extsi", "arith.extui", "arith.index_cast", "arith.index_castui")
def _extend(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    source, type_ = operation.operands[0].type, operation.result.type
    if info.constant is not None:
        signed = operation.name in ("arith.extsi", "arith.index_cast")
        value = -info.constant if signed and _width(source) == 1 else info.constant
        return constant(type_, value if signed else _unsigned(value, source))
    return _tamed(info)


@_rule("arith.trunci")
def _truncate(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    return info if info.constant is None else constant(operation.result.type, info.constant)


@_rule("ttg.convert_layout")
def _same(_: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    return operands[0]


@_rule("tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int")
def _reinterpret(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    steps = []
    for type_ in (operation.operands[0].type, operation.result.type):
        element = _element(type_)
        if isinstance(element, FloatType):
            return replace(unknown(operation.result.type), constancy=info.constancy)
        steps.append(_pointee_bytes(type_) if isinstance(element, PointerType) else 1)
    if steps[0] == steps[1]:
        return replace(info, constant=None)
    return _dims(info, lambda dim: (1, _every(info, dim, power_of_two_divisor(steps[0])), info.constancy[dim]))


def _step(type_: Type) -> int:
    """How far apart consecutive elements are, in the unit of divisibility."""
    return power_of_two_divisor(_pointee_bytes(type_)) if isinstance(_element(type_), PointerType) else 1


def _everywhere(info: AxisInfo, type_: Type) -> int:
    """What divides every element, as the best of all dimensions says."""
    step = _step(type_)
    return max(_every(info, dim, step) for dim in range(info.rank))


@_rule("tt.splat")
def _splat(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    shape = _shape(operation.result.type)
    return AxisInfo((1,) * len(shape), info.divisibility[:1] * len(shape), shape, info.constant)


@_rule("tt.broadcast")
def _broadcast(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    before, after = _shape(operation.operands[0].type), _shape(operation.result.type)
    return AxisInfo(info.contiguity, info.divisibility,
                    tuple(extent if old == 1 else constancy
                          for old, extent, constancy in zip(before, after, info.constancy, strict=True)), info.constant)


@_rule("tt.expand_dims")
def _expand_dims(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    axis = int(operation.attributes["axis"])
    everywhere = _everywhere(info, operation.operands[0].type)

    def insert(entries: tuple[int, ...], entry: int) -> tuple[int, ...]:
        return entries[:axis] + (entry,) + entries[axis:]
    return AxisInfo(insert(info.contiguity, 1), insert(info.divisibility, everywhere), insert(info.constancy, 1),
                    info.constant)


@_rule("tt.trans")
def _transpose(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    order = operation.attributes["order"]
    order = order.values if isinstance(order, DenseAttr) else order
    return replace(_columns([(info.contiguity[dim], info.divisibility[dim], info.constancy[dim]) for dim in order]),
                   constant=info.constant)


@_rule("tt.reshape")
def _reshape(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    before, after = operation.operands[0].type, operation.result.type
    if info.constant is not None:
        return replace(unknown(after), divisibility=info.divisibility[:1] * len(_shape(after)),
                       constancy=_shape(after), constant=info.constant)
    everywhere = _everywhere(info, before)
    rank = len(_shape(after))
    claims = [(1, everywhere, 1)] * rank
    if not operation.attributes.get("allow_reorder"):  # row-major: lines of the last dimension are cut or joined
        extent = min(_shape(before)[-1], _shape(after)[-1])
        contiguity = min(info.contiguity[-1], extent)
        claims[-1] = contiguity, _at(info, info.rank - 1, contiguity, _step(before)), min(info.constancy[-1], extent)
    return _columns(claims)


@_rule("tt.load")
def _load(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    if operation.attributes.get("isVolatile") or operation.operands[0].type == operation.result.type:
        return unknown(operation.result.type)
    pointer = operands[0]
    if pointer.rank != len(_shape(operation.result.type)):
        return unknown(operation.result.type)
    return replace(unknown(operation.result.type),
                   constancy=tuple(map(min, *(operand.constancy for operand in operands), pointer.constancy)))


@_rule("ub.poison")
def _poison(operation: Operation, _: Sequence[AxisInfo]) -> AxisInfo:
    shape = _shape(operation.result.type)
    return AxisInfo((1,) * len(shape), (MAX_DIVISOR,) * len(shape), shape)


_HINTS = {"tt.contiguity": "contiguity", "tt.divisibility": "divisibility", "tt.constancy": "constancy"}


def with_hints(info: AxisInfo, attributes: dict[str, Any]) -> AxisInfo:
    """``info`` with what the user promised in ``tt.contiguity``, ``tt.divisibility`` and ``tt.constancy``.

    A promise is one number, or one a dimension; what was known already is kept where it says more.
    """
    for attribute, field in _HINTS.items():
        hint = attributes.get(attribute)
        if hint is None:
            continue
        if isinstance(hint, DenseAttr):
            hint = hint.values * info.rank if hint.splat else hint.values
        numbers = hint if isinstance(hint, tuple) else (hint,)
        known: tuple[int, ...] = getattr(info, field)
        if len(numbers) == len(known):
            best = tuple(max(old, power_of_two_divisor(int(number)))
                         for old, number in zip(known, numbers, strict=True))
            info = AxisInfo(**{name: best if name == field else getattr(info, name) for name in _HINTS.values()},
                            constant=info.constant)
    return info


class AxisInfoAnalysis:
    """The claims about every value of ``function``: ``analysis[value]``. Runs once, over the whole function."""

    def __init__(self, function: Function) -> None:
        self._known: dict[Value, AxisInfo] = {}
        if function.body is not None:
            for argument, attributes in zip(function.body.entry.arguments, function.argument_attributes, strict=True):
                self._known[argument] = with_hints(unknown(argument.type), attributes)
            self._region(function.body)

    def __getitem__(self, value: Value) -> AxisInfo:
        """What is known of ``value``; nothing, where the analysis does not reach."""
        found = self._known.get(value)
        return unknown(value.type) if found is None else found

    def _values(self, values: Iterable[Value]) -> list[AxisInfo]:
        return [self[value] for value in values]

    def _region(self, region: Region) -> None:
        for block in region.blocks:
            self._block(block)

    def _block(self, block: Block) -> None:
        known = self._known
        for operation in block.operations:
            structured = _STRUCTURED.get(operation.name)
            if structured is not None:
                structured(self, operation)
                continue
            for region in operation.regions:
                self._region(region)
            if not operation.results:
                continue
            rule = _RULES.get(operation.name)
            for result in operation.results:
                info = unknown(result.type) if rule is None else rule(operation, self._values(operation.operands))
                known[result] = with_hints(info, operation.attributes) if operation.attributes else info

    def _define(self, values: Sequence[Value], infos: Sequence[AxisInfo]) -> None:
        for value, info in zip(values, infos, strict=True):
            self._known[value] = info

    def _for(self, operation: Operation) -> None:
        """``scf.for``: operands lower bound, upper bound, step, initial values."""
        body = operation.regions[0].entry
        lower, step = self[operation.operands[0]], self[operation.operands[2]]
        counter = body.arguments[0]
        self._known[counter] = replace(unknown(counter.type),
                                       divisibility=(min(lower.divisibility[0], step.divisibility[0]),))

        def around(carried: Sequence[AxisInfo]) -> list[AxisInfo]:
            self._define(body.arguments[1:], carried)
            self._block(body)
            return self._values(body.terminator.operands)
        self._define(operation.results, self._fixpoint(self._values(operation.operands[3:]), around))

    def _while(self, operation: Operation) -> None:
        """``scf.while``: the first region ends in ``scf.condition``, which passes values to the second and out."""
        before, after = (region.entry for region in operation.regions)

        def around(carried: Sequence[AxisInfo]) -> list[AxisInfo]:
            self._define(before.arguments, carried)
            self._block(before)
            self._define(after.arguments, self._values(before.terminator.operands[1:]))
            self._block(after)
            return self._values(after.terminator.operands)
        self._fixpoint(self._values(operation.operands), around)
        self._define(operation.results, self._values(before.terminator.operands[1:]))

    def _if(self, operation: Operation) -> None:
        """``scf.if``: a result may be what either region yields."""
        for region in operation.regions:
            self._region(region)
        if operation.results:
            ends = [self._values(region.entry.terminator.operands) for region in operation.regions]
            self._define(operation.results, [meet(*pair) for pair in zip(*ends, strict=True)])

    def _fixpoint(self, initial: Sequence[AxisInfo],
                  around: Callable[[Sequence[AxisInfo]], list[AxisInfo]]) -> list[AxisInfo]:
        """Claims that hold before and after every round of a loop, from the claims before the first."""
        carried = list(initial)
        rounds = 0
        while True:
            found = [meet(old, new) for old, new in zip(carried, around(carried), strict=True)]
            if found == carried:
                return carried
            rounds += 1
            if rounds >= MAX_ROUNDS:
                found = [new if new == old else _columns([(1, 1, 1)] * old.rank)
                         for old, new in zip(carried, found, strict=True)]
            carried = found


_STRUCTURED: dict[str, Callable[[AxisInfoAnalysis, Operation], None]] = {
    "scf.for": AxisInfoAnalysis._for,
    "scf.while": AxisInfoAnalysis._while,
    "scf.if": AxisInfoAnalysis._if,
}
