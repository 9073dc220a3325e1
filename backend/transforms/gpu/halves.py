"""Products of f32 in tf32 are one exact product of f16, where all elements of both tiles are f16 numbers.

tf32 and f16 both have ten bits after the point: rounded to tf32, a number between 2**-14 and 65,504 is a number of f16,
and so is zero. A product of such numbers is exact in f32. Tiles are multiplied by a power of two before, which puts
most numbers into that range.

A vote (``spirv.beyond_halves``) says whether a tile has another number. If so, four products of bf16 are added instead
in a branch: an f32 rounded to tf32 is the sum of two bf16 numbers. The branch gives zeros as the tiles then, so that
the product of f16, which follows in any case, adds nothing, and both ways end in the same accumulators.

An accumulator that a loop only adds products to is multiplied by the powers of both tiles, so that matrix units add to
it. The loop carries the powers: the branch chooses those that suit the tiles which it has seen, as long as neither the
accumulator leaves the range of f32 nor a power is below 1, which would lose small numbers. Other accumulators get each
product divided (HALVES).

Tiles that go to shared memory are rounded before, once, and take half of it. A barrier at the end of the branch leaves
the other way without one that only the branch needs.

An infinity or a NaN has 1 with its sign as its first part and is itself the second one, which is 0 where two second
parts meet: so its products are those of the numbers themselves (lowering/split_floats.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...analysis.matrix_dots import is_matrix_dot
from ...analysis.split_products import HALF_EXPONENT, OF_HALVES, PRECISION
from ...matrices import MatrixConfiguration
from ...ttgir.ir import Block, DenseAttr, Module, Operation, Value
from ...ttgir.types import FloatType, IntegerType, TensorType, Type
from ..rewriting import Rewriter, carry, region_of
from .matrix_buffers import pad_matrix_buffers
from .prefetch import RARE

_F32, _F16, _BF16 = FloatType("f32"), FloatType("f16"), FloatType("bf16")
_BOOL, _SHORT, _WORD = IntegerType(1), IntegerType(16), IntegerType(32)

#: In bits of an f32: all but the sign, the sign, an infinity or the exponent, 1, 2**127, from which on numbers are cut
#: off lest they become infinities, what tf32 and bf16 keep, and less than half of tf32's last digit.
_MAGNITUDE, _SIGN, _INFINITY, _ONE, _LARGE = 0x7FFFFFFF, 0x80000000, 0x7F800000, 0x3F800000, 0x7F000000
_TF32, _UPPER, _BELOW_HALF, _LAST = 0xFFFFE000, 0xFFFF0000, 0xFFF, 13
#: The lowest bit of an exponent, and the usual power.
_DIGIT = 1 << 23
_USUAL = _ONE + HALF_EXPONENT * _DIGIT
#: The greatest number of a tile comes to between 2**13 and 2**14, which leaves room for others; by 2**60 at most.
_AIM, _MOST = 2 * _ONE + 13 * _DIGIT, _ONE + 60 * _DIGIT
#: What an accumulator may be, so that what is added to it later finds room in f32.
_ROOM = _ONE + 110 * _DIGIT

#: The parts of an element: the first one, the second one, and the second one of a finite number, 0 for others.
_FIRST, _SECOND, _FINITE = range(3)
#: The parts of A and B that are multiplied, small products first.
_TERMS = ((_FINITE, _FINITE), (_SECOND, _FIRST), (_FIRST, _SECOND), (_FIRST, _FIRST))


def multiply_halves(module: Module, configurations: Sequence[MatrixConfiguration], padded: bool) -> bool:
    """Rewrites the tt.dots of fragments that may be rounded to tf32, if ``configurations`` have f16 and bf16 alike.
    ``padded``: buffers of operands get padded rows. Whether there were any."""
    if module.attribute(PRECISION) != "tf32" or not _both(configurations):
        return False
    dots = [operation for operation in module.walk() if is_matrix_dot(operation) and _may_be_rounded(operation)]
    for dot in dots:
        _Rewritten(dot)
    if dots and padded:
        pad_matrix_buffers(module)
    return bool(dots)


def _both(configurations: Sequence[MatrixConfiguration]) -> bool:
    found = {
        name: {
            (one.extents, one.maps)
            for one in configurations
            if one.types == (name, name, "f32", "f32") and not one.saturating
        }
        for name in ("f16", "bf16")
    }
    return bool(found["f16"] & found["bf16"])


def _may_be_rounded(dot: Operation) -> bool:
    a, b, c = (value.tensor.element for value in dot.operands)
    return a == b == c == _F32 and dot.attribute("inputPrecision") != "ieee"


@dataclass(frozen=True)
class _Operand:
    """An operand of a dot. ``source``: the tile that is rounded. ``chain``: what stores it to shared memory, views it
    and loads it; empty where the operand is rounded in registers. ``outside``: of the dot's block."""

    source: Value
    chain: tuple[Operation, ...]
    outside: bool


def _operand(dot: Operation, number: int) -> _Operand:
    value, found = dot.operands[number], list[Operation]()
    owner = value.owner
    while isinstance(owner, Operation) and owner.block is dot.block and len(owner.results[0].uses) == 1:
        found.append(owner)
        if owner.name == "ttg.local_alloc" and owner.operands:
            return _Operand(owner["src"], tuple(reversed(found)), False)
        if owner.name != ("ttg.local_load" if len(found) == 1 else "ttg.memdesc_trans"):
            break
        owner = owner["src"].owner
    block = value.owner.block if isinstance(value.owner, Operation) else value.owner
    return _Operand(value, (), block is not dot.block)


def _own_accumulator(dot: Operation) -> int | None:
    """The number of the value of an scf.for that is the dot's accumulator and becomes its result, and nothing else."""
    total, block = dot["c"], dot.block
    if block is None or block.holder is None or block.holder.name != "scf.for":
        return None
    if total.owner is not block or total.uses != [dot] or dot.result.uses != [block.terminator]:
        return None
    number = total.index - 1
    return number if block.terminator.operands[number] is dot.result else None


class _Rewritten:
    """A dot, as described above. ``_bits``: the powers of A and B, as bits of f32."""

    def __init__(self, dot: Operation) -> None:
        self._dot = dot
        self._operands = tuple(_operand(dot, number) for number in range(2))
        self._inside = [which for which in range(2) if not self._operands[which].outside]
        self._tiles = list(dict.fromkeys(self._operands[which].source for which in self._inside))
        self._number = _own_accumulator(dot) if self._inside else None
        block = dot.block
        assert block is not None
        if self._number is None:
            usual = _word(Rewriter.before(dot), _USUAL)
            self._bits = [usual, usual]
            self._rewrite()
            return
        loop, number = block.holder, self._number
        assert loop is not None
        self._begin(Rewriter.before(loop), loop, number)
        places = {which: carry(loop, self._bits[which]) for which in self._inside}
        self._bits = [places[which] if which in places else self._bits[which] for which in range(2)]
        self._rewrite()
        end = block.terminator
        end.set_operands(
            [
                next((self._bits[which] for which, place in places.items() if value is place), value)
                for value in end.operands
            ]
        )
        after, total = Rewriter.after(loop), loop.results[number]
        uses = list(total.uses)
        if uses:
            last = [
                loop.results[places[which].index - 1] if which in places else self._first[which] for which in (0, 1)
            ]
            total.replace_uses(_times(after, total, _inverse(after, last)), lambda use: use in uses)

    def _begin(self, at: Rewriter, loop: Operation, number: int) -> None:
        """Chooses the first powers, and multiplies the accumulator before the loop."""
        usual, initial = _word(at, _USUAL), loop.operands[3 + number]
        self._bits = [usual, usual]
        if not _is_zero(initial):
            powers = self._kept_in_range(at, initial, self._bits)
            operands = list(loop.operands)
            operands[3 + number] = _times(at, initial, _product_of(at, powers))
            loop.set_operands(operands)
            self._bits = powers
        self._first = self._bits

    def _kept_in_range(self, at: Rewriter, total: Value, bits: list[Value]) -> list[Value]:
        """``bits``, if the accumulator ``total`` times both leaves room in f32; else powers whose product is 1."""
        greatest = _make(at, "arith.andi", _make(at, "spirv.greatest", total), _word(at, _INFINITY))
        both = _make(at, "arith.addi", greatest, _product_of(at, bits))
        large = _make(at, "arith.cmpi", both, _word(at, _ONE + _ROOM), type_=_BOOL, predicate="ugt")
        ones = [_word(at, _ONE)] * 2
        if len(self._inside) == 1:
            other = 1 - self._inside[0]
            ones[other], ones[self._inside[0]] = bits[other], _word(at, 2 * _ONE - _USUAL)
        return [_make(at, "arith.select", large, one, own) for one, own in zip(ones, bits, strict=True)]

    def _rewrite(self) -> None:
        dot, operands, at = self._dot, self._operands, Rewriter.before(self._dot)
        flags = []
        if self._inside:
            pairs = [each for which in self._inside for each in (operands[which].source, self._bits[which])]
            flags.append(_make(at, "spirv.beyond_halves", *pairs, type_=_BOOL))
        halves: dict[int, Value] = {}
        for which, one in enumerate(operands):
            if one.outside:
                place = Rewriter.behind(one.source)
                usual, zero = _word(place, _USUAL), _constant(place, one.source.type, 0)
                flags.append(_make(place, "spirv.beyond_halves", one.source, usual, type_=_BOOL))
                kept = _make(place, "arith.select", flags[-1], zero, one.source, type_=zero.type)
                halves[which] = _halves(place, kept, usual)
        beyond = flags[0]
        for flag in flags[1:]:
            beyond = _make(at, "arith.ori", beyond, flag, type_=_BOOL)
        total, *found = self._otherwise(at, beyond)
        tiles = dict(zip(self._tiles, found, strict=False))
        # All of the dot's own operations stand before the first store of its tiles.
        halves |= {which: _halves(at, tiles[operands[which].source], self._bits[which]) for which in self._inside}
        a, b = (_brought(at, one.chain, halves[which]) for which, one in enumerate(operands))
        result = self._product(at, a, b, total, {} if self._number is not None else {OF_HALVES: None})
        dot.result.replace_uses(result)
        dot.erase()
        for one in operands:
            for operation in reversed(one.chain):
                operation.erase()

    def _otherwise(self, at: Rewriter, beyond: Value) -> list[Value]:
        """The branch: gives the accumulator and the tiles. It chooses other powers, if the loop carries them."""
        then, otherwise, total = Block(), Block(), self._dot["c"]
        carried = [self._bits[which] for which in self._inside] if self._number is not None else []
        kept = [total, *self._tiles, *carried]
        regions = [region_of(then), region_of(otherwise)]
        branch = at.make("scf.if", [beyond], [value.type for value in kept], {RARE: None}, regions)
        at.at_end(otherwise).make("scf.yield", kept)
        place = at.at_end(then)
        if carried:
            total = _times(place, total, _inverse(place, self._bits))
        total = self._sum(place, total)
        if carried:
            bits = self._kept_in_range(place, total, [self._suited(place, which) for which in range(2)])
            total = _times(place, total, _product_of(place, bits))
            carried = [bits[which] for which in self._inside]
        if any(one.chain for one in self._operands):
            place.make("ttg.barrier", attributes={"addrSpace": "local"})
        place.make("scf.yield", [total, *(_constant(place, tile.type, 0) for tile in self._tiles), *carried])
        for which, result in zip(self._inside if carried else (), branch.results[-len(carried) :], strict=False):
            self._bits[which] = result
        return branch.results

    def _sum(self, place: Rewriter, total: Value) -> Value:
        """The accumulator and four products."""
        parts = {source: _parts(place, source) for source in dict.fromkeys(one.source for one in self._operands)}
        placed: list[tuple[int, Value] | None] = [None, None]
        for term in _TERMS:
            for number, (one, which) in enumerate(zip(self._operands, term, strict=True)):
                before = placed[number]
                if before is None or before[0] != which:
                    placed[number] = which, _brought(place, one.chain, parts[one.source][which])
            a, b = (one[1] for one in placed if one is not None)
            total = self._product(place, a, b, total, {})
        return total

    def _suited(self, at: Rewriter, which: int) -> Value:
        """The power that suits the tile of an operand, or the present one if the tile is zero or of another block."""
        now, one = self._bits[which], self._operands[which]
        if one.outside:
            return now
        exponent = _make(at, "arith.andi", _make(at, "spirv.greatest", one.source), _word(at, _INFINITY))
        aimed = _make(at, "arith.subi", _word(at, _AIM), exponent)
        power = _make(at, "arith.minui", _make(at, "arith.maxui", aimed, _word(at, _ONE)), _word(at, _MOST))
        nothing = _make(at, "arith.cmpi", exponent, _word(at, 0), type_=_BOOL, predicate="eq")
        return _make(at, "arith.select", nothing, now, power)

    def _product(self, at: Rewriter, a: Value, b: Value, total: Value, attributes: dict[str, object]) -> Value:
        made = {**self._dot.attributes, "inputPrecision": "ieee", **attributes}
        return at.make("tt.dot", [a, b, total], [self._dot.result.type], made).result


def _make(at: Rewriter, name: str, *operands: Value, type_: Type = _WORD, **attributes: object) -> Value:
    segments = (len(operands),) if name.startswith("spirv.") else None
    return at.make(name, operands, [type_], attributes, segments=segments).result


def _word(at: Rewriter, bits: int) -> Value:
    return at.integer(_signed(bits))


def _signed(bits: int) -> int:
    return bits - (bits >> 31 << 32)


def _product_of(at: Rewriter, bits: Sequence[Value]) -> Value:
    """The bits of the product of two powers of two."""
    return _make(at, "arith.subi", _make(at, "arith.addi", *bits), _word(at, _ONE))


def _inverse(at: Rewriter, bits: Sequence[Value]) -> Value:
    """The bits of 1 divided by both of two powers of two."""
    return _make(at, "arith.subi", _word(at, 2 * _ONE), _product_of(at, bits))


def _times(at: Rewriter, tensor: Value, bits: Value) -> Value:
    """A tensor times a number of these bits."""
    number = _make(at, "arith.bitcast", bits, type_=_F32)
    spread = _make(at, "tt.splat", number, type_=tensor.type)
    return _make(at, "arith.mulf", tensor, spread, type_=tensor.type)


def _is_zero(value: Value) -> bool:
    owner = value.owner
    number = owner.attribute("value") if isinstance(owner, Operation) and owner.name == "arith.constant" else None
    return isinstance(number, DenseAttr) and number.splat and number.values == (0.0,)


def _halves(at: Rewriter, tile: Value, bits: Value) -> Value:
    """The elements times a number of these bits, as f16."""
    return _make(at, "arith.truncf", _times(at, tile, bits), type_=replace(tile.tensor, element=_F16))


def _brought(at: Rewriter, chain: Sequence[Operation], tile: Value) -> Value:
    """``tile`` the way by which the dot got its operand, of the tile's element type."""
    element = tile.tensor.element
    for operation in chain:
        type_ = replace(operation.result.type, element=element)  # type: ignore[call-arg]
        tile = at.copy(operation, operands=[tile], types=[type_]).result
    return tile


def _parts(at: Rewriter, source: Value) -> tuple[Value, Value, Value]:
    """The parts of the elements, rounded to tf32, as bf16."""
    type_ = source.tensor
    words, flags = replace(type_, element=_WORD), replace(type_, element=_BOOL)

    def make(name: str, *operands: Value, type_: Type = words, **attributes: object) -> Value:
        return _make(at, name, *operands, type_=type_, **attributes)

    def word(bits: int) -> Value:
        return _constant(at, words, _signed(bits))

    def bf16(bits: Value) -> Value:
        short = make("arith.trunci", make("arith.shrui", bits, word(16)), type_=replace(type_, element=_SHORT))
        return make("tt.bitcast", short, type_=replace(type_, element=_BF16))

    bits = make("tt.bitcast", source)
    magnitude = make("arith.andi", bits, word(_MAGNITUDE))
    finite, small = (
        make("arith.cmpi", magnitude, word(bound), type_=flags, predicate="ult") for bound in (_INFINITY, _LARGE)
    )
    odd = make("arith.andi", make("arith.shrui", bits, word(_LAST)), word(1))
    upward = make("arith.select", small, make("arith.addi", odd, word(_BELOW_HALF)), word(0))
    rounded = make("arith.andi", make("arith.addi", bits, upward), word(_TF32))
    one = make("arith.ori", make("arith.andi", bits, word(_SIGN)), word(_ONE))
    first = make("arith.select", finite, make("arith.andi", rounded, word(_UPPER)), one)
    whole, taken = (
        make("tt.bitcast", each, type_=type_) for each in (make("arith.select", finite, rounded, bits), first)
    )
    second = make("tt.bitcast", make("arith.subf", whole, taken, type_=type_))
    return bf16(first), bf16(second), bf16(make("arith.select", finite, second, word(0)))


def _constant(at: Rewriter, type_: Type, value: float) -> Value:
    assert isinstance(type_, TensorType)
    number = float(value) if type_.element == _F32 else value
    return at.make("arith.constant", types=[type_], attributes={"value": DenseAttr(type_, (number,), True)}).result
