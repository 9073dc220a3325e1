"""PTX's integer and bit instructions (PTX ISA, 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ptx.program import PtxError
from ...ptx.types import PtxType
from ...spirv import opcodes as op
from ..defined_integers import safe_shift, signed_divide, signed_remainder, unsigned_divide, unsigned_remainder
from ..numerics import integer_functions
from ..numerics.numeric import Bool, Int, Numeric
from .instruction_forms import Formula, InstructionForm, form

_NUMBERS = "u16 u32 u64 s16 s32 s64"
_WORDS = "u32 u64 s32 s64"
_BITS = "b16 b32 b64"


def _plain(function: Callable[..., Int | Bool]) -> Formula:
    """A function of integers alone."""
    return lambda n, modifiers, type_, *values: function(n, *values)


def less(type_: PtxType, a: Int, b: Int) -> Bool:
    """``a < b``, signed or not as the type is."""
    return a.slt(b) if type_.signed else a.ult(b)


def _saturated(compute: Callable[[Int, Int], Int]) -> Formula:
    """A sum or difference; with ``.sat`` of s32 its ends past the range."""

    def formula(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int) -> Int:
        if "sat" not in modifiers:
            return compute(a, b)
        if type_.name != "s32":
            raise PtxError(f"'.sat' is of .s32, not of .{type_.name}")
        value = compute(a.resize(64, True), b.resize(64, True))
        low, high = n.integer(-(1 << 31), 64), n.integer((1 << 31) - 1, 64)
        value = n.where(value.slt(low), low, value)
        return n.where(value.sgt(high), high, value).resize(32)

    return formula


def _product(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int) -> Int:
    """``.lo``, ``.hi`` or ``.wide``: the low half of a product, the high half, or all of it."""
    if "wide" in modifiers:
        return a * b if type_.width == 16 else a.resize(64, type_.signed) * b.resize(64, type_.signed)
    if "hi" in modifiers:
        if type_.width == 16:
            return (a * b).sar(16) if type_.signed else (a * b) >> 16
        return integer_functions.mulhi(n, a, b, type_.signed)
    return a * b


def _product_and_sum(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int, c: Int) -> Int:
    return _product(n, modifiers, type_, a, b) + c


def _divide(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int) -> Int:
    return Int(n, (signed_divide if type_.signed else unsigned_divide)(n.emitter, a.id, b.id))


def _remainder(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int) -> Int:
    return Int(n, (signed_remainder if type_.signed else unsigned_remainder)(n.emitter, a.id, b.id))


def _minimum(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int) -> Int:
    return n.where(less(type_, a, b), a, b)


def _maximum(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int) -> Int:
    return n.where(less(type_, a, b), b, a)


def _absolute(n: Numeric, a: Int) -> Int:
    return n.where(a.slt(0), -a, a)


def _difference(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int, c: Int) -> Int:
    return integer_functions.sad(n, a, b, c, type_.signed)


# -- bits --------------------------------------------------------------------------------------------------------
def _shift(n: Numeric, opcode: int, x: Int, amount: Int) -> Int:
    """Past the width zeros, or the sign (PTX ISA, shl and shr)."""
    if x.width == 64:
        amount = amount.resize(64)
    return Int(n, safe_shift(n.emitter, opcode, x.id, amount.id))


def _left(n: Numeric, modifiers: Sequence[str], type_: PtxType, x: Int, amount: Int) -> Int:
    return _shift(n, op.ShiftLeftLogical, x, amount)


def _right(n: Numeric, modifiers: Sequence[str], type_: PtxType, x: Int, amount: Int) -> Int:
    return _shift(n, op.ShiftRightArithmetic if type_.signed else op.ShiftRightLogical, x, amount)


def _funnel(n: Numeric, modifiers: Sequence[str], type_: PtxType, low: Int, high: Int, amount: Int) -> Int:
    """``high:low`` shifted; ``.l`` gives the upper half, ``.r`` the lower."""
    pool = (high.resize(64) << 32) | low.resize(64)
    amount = n.where(amount.ugt(32), 32, amount) if "clamp" in modifiers else amount & 31
    if "l" in modifiers:
        return ((pool << amount.resize(64)) >> 32).resize(32)
    return (pool >> amount.resize(64)).resize(32)


def _known(n: Numeric, value: Int, what: str) -> int:
    known = n.module.constants.get(value.id)
    if known is None:
        raise PtxError(f"{what} is not a constant")
    return int(known)


def _lookup(n: Numeric, a: Int, b: Int, c: Int, table: Int) -> Int:
    """lop3: bit ``4 a + 2 b + c`` of the table for each place; of the fewer terms, those that are 1 or those that are
    0."""
    bits = _known(n, table, "the table of lop3")
    inverted = bits.bit_count() > 4
    result = n.integer(0, 32)
    for term in range(8):
        if (bits >> term & 1) != inverted:
            result = result | ((a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c))
    return ~result if inverted else result


def _permute(n: Numeric, low: Int, high: Int, selector: Int) -> Int:
    """prmt: byte i of the result is the byte of ``high:low`` that nibble i names, or, with its highest bit, that
    byte's sign eight times."""
    known = n.module.constants.get(selector.id)
    result = n.integer(0, 32)
    pool = None if known is not None else (high.resize(64) << 32) | low.resize(64)
    for place in range(4):
        if pool is None:
            nibble = int(known or 0) >> (4 * place) & 15
            byte = ((high if nibble & 4 else low) >> (8 * (nibble & 3))) & 0xFF
            if nibble & 8:
                byte = (byte << 24).sar(31) & 0xFF
        else:
            chosen = (selector >> (4 * place)) & 15
            byte = ((pool >> ((chosen & 7) << 3).resize(64)) & 0xFF).resize(32)
            byte = n.where(chosen.ugt(7), (byte << 24).sar(31) & 0xFF, byte)
        result = result | (byte << (8 * place))
    return result


def _mask(n: Numeric, width: int, length: Int) -> Int:
    """``length`` low bits, at most ``width``."""
    wide = length.resize(width) if width == 64 else length
    ones = Int(n, safe_shift(n.emitter, op.ShiftLeftLogical, n.integer(-1, width).id, wide.id))
    return ~ones


def _extract(n: Numeric, modifiers: Sequence[str], type_: PtxType, x: Int, start: Int, length: Int) -> Int:
    """bfe: ``length`` bits from ``start`` on, both of 8 bits; of a signed number what is past the end is its sign."""
    start, length = start & 0xFF, length & 0xFF
    field = _right(n, modifiers, type_, x, start)
    mask = _mask(n, type_.width, length)
    if not type_.signed:
        return field & mask
    last = start + length - 1
    last = n.where(last.ugt(type_.width - 1), type_.width - 1, last)
    negative = (_shift(n, op.ShiftRightLogical, x, last) & 1).ne(0) & length.ne(0)
    return n.where(negative, field | ~mask, field & mask)


def _insert(n: Numeric, modifiers: Sequence[str], type_: PtxType, x: Int, into: Int, start: Int, length: Int) -> Int:
    """bfi: the low ``length`` bits of ``x`` instead of those from ``start`` on."""
    start, length = start & 0xFF, length & 0xFF
    mask = _shift(n, op.ShiftLeftLogical, _mask(n, type_.width, length), start)
    return (_shift(n, op.ShiftLeftLogical, x, start) & mask) | (into & ~mask)


def _bytes_product(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Int, b: Int, c: Int) -> Int:
    """dp4a: the sum of the products of the four bytes of each, and ``c``; both of one sign here."""
    for place in range(4):
        left, right = ((x << (24 - 8 * place)).sar(24) if type_.signed else (x >> (8 * place)) & 0xFF for x in (a, b))
        c = c + left * right
    return c


_AND: Formula = _plain(lambda n, a, b: a & b)
_OR: Formula = _plain(lambda n, a, b: a | b)
_XOR: Formula = _plain(lambda n, a, b: a ^ b)

#: Instruction → what it computes on integers.
INTEGERS: dict[str, InstructionForm] = {
    "add": form(_saturated(lambda a, b: a + b), _NUMBERS, modifiers="sat"),
    "sub": form(_saturated(lambda a, b: a - b), _NUMBERS, modifiers="sat"),
    "mul": form(_product, _NUMBERS, modifiers="lo hi"),
    "mad": form(_product_and_sum, _NUMBERS, "t t t", modifiers="lo hi"),
    "div": form(_divide, _NUMBERS),
    "rem": form(_remainder, _NUMBERS),
    "abs": form(_plain(_absolute), "s16 s32 s64", "t"),
    "neg": form(_plain(lambda n, a: -a), "s16 s32 s64", "t"),
    "min": form(_minimum, _NUMBERS),
    "max": form(_maximum, _NUMBERS),
    "sad": form(_difference, _WORDS, "t t t"),
    "mul24": form(
        lambda n, modifiers, type_, a, b: integer_functions.mul24(n, a, b, type_.signed), "u32 s32", modifiers="lo"
    ),
    "dp4a": form(_bytes_product, "u32 s32", "b32 b32 t"),
    "and": form(_AND, _BITS),
    "or": form(_OR, _BITS),
    "xor": form(_XOR, _BITS),
    "not": form(_plain(lambda n, a: ~a), _BITS, "t"),
    "cnot": form(_plain(lambda n, a: n.where(a.eq(0), n.integer(1, a.width), 0)), _BITS, "t"),
    "shl": form(_left, _BITS, "t u32"),
    "shr": form(_right, f"{_BITS} {_NUMBERS}", "t u32"),
    "shf": form(_funnel, "b32", "t t u32", modifiers="l r wrap clamp"),
    "lop3": form(_plain(_lookup), "b32", "t t t u32"),
    "prmt": form(_plain(_permute), "b32", "t t t"),
    "bfe": form(_extract, _WORDS, "t u32 u32"),
    "bfi": form(_insert, "b32 b64", "t t u32 u32"),
    "popc": form(_plain(integer_functions.popc), "b32 b64", "t", "u32"),
    "clz": form(_plain(integer_functions.clz), "b32 b64", "t", "u32"),
    "brev": form(_plain(integer_functions.brev), "b32 b64", "t"),
}

#: The same with the modifier ``.wide``, whose result is twice as wide.
WIDE: dict[str, InstructionForm] = {
    "mul": form(_product, "u16 u32 s16 s32", result="w", modifiers="wide"),
    "mad": form(_product_and_sum, "u16 u32 s16 s32", "t t w", "w", "wide"),
}

#: On predicates.
PREDICATES: dict[str, InstructionForm] = {
    "and": form(_AND, "pred"),
    "or": form(_OR, "pred"),
    "xor": form(_XOR, "pred"),
    "not": form(_plain(lambda n, a: ~a), "pred", "t"),
}
