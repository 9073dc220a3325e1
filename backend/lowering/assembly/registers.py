"""The registers of a piece of PTX while it is emitted.

A register holds bits: up to 32 in an integer of 32, whose upper bits are 0, and 64 in one of 64. Instructions read and
write it as the type that they name. f16 and bf16 are computed with in f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from ...ptx.program import Constant, Operand, PtxError, Register, Vector
from ...ptx.types import PtxType
from ...ttgir.types import FloatType
from ..emitter import Emitter
from ..floats import convert
from ..numerics.numeric import Bool, Int, Numeric, Real

Value: TypeAlias = "Real | Int | Bool"
Held = TypeVar("Held", Int, Bool)

_F32 = FloatType("f32")
_NARROW = {"f": FloatType("f16"), "bf": FloatType("bf16")}


def chosen(n: Numeric, condition: Bool, true: Value, false: Value) -> Value:
    """``condition ? true : false`` of two values of one type."""
    return type(true)(n, n.f.select(condition.id, true.id, false.id))


class Registers:
    """``widths``: bits of each register. One that was not written reads as 0."""

    def __init__(self, emitter: Emitter, widths: Mapping[str, int]) -> None:
        self.emitter, self.widths = emitter, widths
        #: Arithmetic in f32, and on integers of any width.
        self.n = Numeric(emitter, 32)
        self._held: dict[str, Int | Bool] = {}

    def numeric(self, type_: PtxType) -> Numeric:
        """The arithmetic that a type is computed in."""
        return Numeric(self.emitter, 64) if type_.floating and type_.width == 64 else self.n

    # -- bits ----------------------------------------------------------------------------------------------------
    def width(self, register: Register) -> int:
        """Bits of a register."""
        if register.name not in self.widths:
            raise PtxError(f"'{register.name}' is past the last operand, '${len(self.widths) - 1}'")
        return self.widths[register.name]

    def bits(self, register: Register) -> Int:
        """The bits of a register."""
        width = self.width(register)
        held = self._held.get(register.name)
        if isinstance(held, Bool) or width == 1:
            raise PtxError(f"'{_shown(register)}' is a predicate, not a number")
        return held if held is not None else self.n.integer(0, max(width, 32))

    def predicate(self, register: Register) -> Bool:
        """The truth that a predicate holds."""
        if self.width(register) != 1:
            raise PtxError(f"'{_shown(register)}' is a number, not a predicate")
        held = self._held.get(register.name)
        value = held if isinstance(held, Bool) else Bool(self.n, self.emitter.module.boolean(False))
        return ~value if register.negated else value

    def set_bits(self, register: Register, value: Int, guard: Bool | None = None) -> None:
        """Writes integers of any width, as unsigned ones, where ``guard`` holds."""
        width = self.width(register)
        if width == 1:
            raise PtxError(f"'{_shown(register)}' is a predicate, not a number")
        if value.width != max(width, 32):
            value = value.resize(max(width, 32))
        if width < 32:
            value = value & ((1 << width) - 1)
        self._held[register.name] = self._guarded(register, value, guard)

    def set_predicate(self, register: Register, value: Bool, guard: Bool | None = None) -> None:
        """Writes a predicate where ``guard`` holds."""
        if self.width(register) != 1:
            raise PtxError(f"'{_shown(register)}' is a number, not a predicate")
        self._held[register.name] = self._guarded(register, value, guard)

    def _guarded(self, register: Register, value: Held, guard: Bool | None) -> Held:
        old = self._held.get(register.name)
        if guard is None or old is None:
            return value
        return type(value)(self.n, self.n.f.select(guard.id, value.id, old.id))

    # -- typed values --------------------------------------------------------------------------------------------
    def read(self, operand: Operand, type_: PtxType) -> Value:
        """A value of a type with one component."""
        if isinstance(operand, Constant):
            return self._literal(operand, type_)
        if isinstance(operand, Vector):
            raise PtxError("'{ }' stands where one register should")
        if type_.kind == "pred":
            return self.predicate(operand)
        if self.width(operand) < type_.width:
            raise PtxError(f"'{_shown(operand)}' has {self.width(operand)} bits, and .{type_.name} {type_.width}")
        return self.typed(self.bits(operand), type_)

    def pair(self, operand: Operand) -> tuple[Int, Int]:
        """The low and high 16 bits of a register."""
        if not isinstance(operand, Register):
            raise PtxError("two numbers of 16 bits each are read from a register")
        bits = self.bits(operand)
        return bits & 0xFFFF, bits >> 16

    def typed(self, bits: Int, type_: PtxType) -> Value:
        """Bits as a value of a type with one component."""
        if type_.floating:
            if type_.width == 16:
                return Real(self.n, convert(self.emitter, self._as_element(bits, type_), _NARROW[type_.kind], _F32))
            n = self.numeric(type_)
            return Real(n, n.f.bitcast(bits.id, n.type_id))
        if bits.width > max(type_.width, 32):
            bits = bits.resize(32)
        if type_.width >= 32:
            return bits
        above = 32 - type_.width
        return (bits << above).sar(above) if type_.signed else bits & ((1 << type_.width) - 1)

    def untyped(self, value: Value, type_: PtxType) -> Int:
        """The bits of a value with one component, in an integer of at least 32."""
        if isinstance(value, Bool):
            raise PtxError(f"a predicate is not a .{type_.name} value")
        if isinstance(value, Int):
            return value
        if type_.width > 16:
            return value.bits()
        f = self.emitter.f
        code = convert(self.emitter, value.id, _F32, _NARROW[type_.kind])
        return Int(self.n, f.zero_extend(f.bitcast(code, self.emitter.elements.integer(16)), 32))

    def write(self, operand: Operand, type_: PtxType, value: Value, guard: Bool | None) -> None:
        """Writes a value of a type with one component; a signed one is extended to the register's width."""
        if not isinstance(operand, Register):
            raise PtxError("a result is written to a register")
        if isinstance(value, Bool):
            self.set_predicate(operand, value, guard)
            return
        bits = self.untyped(value, type_)
        width = self.width(operand)
        if width < type_.width:
            raise PtxError(f"'{_shown(operand)}' has {width} bits, and .{type_.name} {type_.width}")
        if width > bits.width:
            bits = bits.resize(width, type_.signed)
        elif type_.width < 32 and not type_.signed:
            bits = bits & ((1 << type_.width) - 1)
        self.set_bits(operand, bits, guard)

    def _as_element(self, bits: Int, type_: PtxType) -> int:
        f = self.emitter.f
        narrow = f.zero_extend(bits.id, 16)
        return f.bitcast(narrow, self.emitter.type_id(_NARROW[type_.kind]))

    def _literal(self, literal: Constant, type_: PtxType) -> Value:
        if type_.kind == "pred":
            raise PtxError(f"{literal.value} stands where a predicate should")
        if literal.kind in ("f32", "f64"):
            if type_.width != int(literal.kind[1:]):
                raise PtxError(f"a .{literal.kind} number stands where a .{type_.name} number should")
            return self.typed(self.n.integer(int(literal.value), type_.width), type_)
        if type_.floating:
            return self.numeric(type_).real(float(literal.value))
        if literal.kind == "real":
            raise PtxError(f"{literal.value} stands where an integer should")
        return self.typed(self.n.integer(int(literal.value) & ((1 << type_.width) - 1), max(type_.width, 32)), type_)


def _shown(register: Register) -> str:
    return register.name.partition("#")[0]
