"""The instructions of one SPIR-V function under construction: value numbering and folding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..driver_quirks import NO_FAULTS, Faults
from . import fold
from . import opcodes as op
from .encode import Instruction
from .module import ModuleBuilder
from .opcodes import MemoryAccess, StorageClass
from .source_lines import SourceLines

_ways_of = fold.WAYS.get


def _of_integers(opcode: int) -> Callable[[InstructionBuilder, int, int], int]:
    return lambda self, a, b: self.binary(opcode, a, b)


class InstructionBuilder:
    """Appends instructions to a function.

    A pure instruction whose operands were seen before gives the id it gave then, as long as that id dominates the
    place of use. ``faults`` of the driver are worked around.
    """

    def __init__(
        self, module: ModuleBuilder, result: int, parameters: Sequence[int] = (), faults: Faults = NO_FAULTS
    ) -> None:
        self.module = module
        self.faults = faults
        self.id = module.id()
        self.parameters = [module.id() for _ in parameters]
        kind = module.function_type(result, parameters)
        self._head: list[Instruction] = [[op.Function, result, self.id, 0, kind]]
        for parameter, type_id in zip(self.parameters, parameters, strict=True):
            self._head.append([op.FunctionParameter, type_id, parameter])
            module.type_of[parameter] = type_id
        self._variables: list[Instruction] = []
        self._body: list[Instruction] = []
        self._numbered: dict[tuple[int, ...], int] = {}
        #: Result → (opcode, type, operands), for the opcodes that simplifications look through.
        self._definitions: dict[int, tuple[int, ...]] = {}
        self._scopes: list[list[tuple[int, ...]]] = []
        #: Sum with a constant → the other operand, and the constant.
        self._sums: dict[int, tuple[int, int]] = {}
        #: 64-bit number → the narrower one that it extends.
        self._sign_extended: dict[int, int] = {}
        #: A 64-bit 0 that no driver recognises as a constant; the id 0 if the kernel has no pointer.
        self.unknown_zero = 0
        #: Conditions that unsigned comparisons of 64-bit numbers are part of.
        self._wide_conditions: set[int] = set()
        #: What such conditions chose, with that 0 added.
        self._hidden: set[int] = set()
        #: The places in the user's source, where the module is to have them.
        self.lines: SourceLines | None = None
        #: Whether equal instructions are one, those on constants are folded, and others are simplified (optional.py).
        self.numbers = self.folds = self.simplifies = True

    # -- single instructions -------------------------------------------------------------------------------------
    def emit(self, opcode: int, type_id: int, *operands: int) -> int:
        """A pure instruction with a result; gives its id, or that of an equal one. Floating-point arithmetic is
        decorated so that the driver neither contracts nor reassociates it."""
        ways = _ways_of(opcode)
        if ways:
            if ways & fold.COMMUTES and operands[0] > operands[1] and self.numbers:
                operands = (operands[1], operands[0])
            if ways & fold.SIMPLIFIES and self.simplifies:
                simpler = self._simplify(opcode, type_id, operands)
                if simpler is not None:
                    return simpler
        key = (opcode, type_id, *operands)
        known = self._numbered.get(key)
        if known is not None:
            if self.lines is not None:
                self.lines.reuse(known)
            return known
        result = self.effect(opcode, type_id, *operands)
        if self.numbers:
            self._numbered[key] = result
            if self._scopes:
                self._scopes[-1].append(key)
        if ways:
            if ways & fold.DEFINES:
                self._definitions[result] = key
            if ways & fold.CONTRACTS and self._contracts(opcode, type_id, operands):
                self.module.decorate_new(result, op.Decoration.NoContraction)
        return result

    def _contracts(self, opcode: int, type_id: int, operands: tuple[int, ...]) -> bool:
        """Whether a driver may contract or reassociate an instruction of fold.CONTRACTS. One that rounds a number to a
        narrower type it may leave out together with the conversion back, as Mesa 26.2's CPU driver does."""
        if opcode == op.ExtInst:
            return operands[1] == op.Glsl.Fma
        if opcode == op.FConvert:
            kinds = self.module.kinds
            return kinds[type_id][1] < kinds[self.module.type_of[operands[0]]][1]
        return True

    def _simplify(self, opcode: int, type_id: int, operands: tuple[int, ...]) -> int | None:
        """A value that equals the instruction's and was there before, or takes less; None where none is known."""
        definitions = self._definitions
        if opcode == op.BitwiseXor:  # a ^ (a ^ b)
            for outer, inner in (operands, operands[::-1]):
                definition = definitions.get(inner)
                if definition is not None and definition[0] == opcode and outer in definition[2:]:
                    return definition[3] if definition[2] == outer else definition[2]
            return None
        if opcode == op.Bitcast:
            definition = definitions.get(operands[0])
            if definition is not None and definition[0] == opcode and self.module.type_of[definition[2]] == type_id:
                return definition[2]
            return None
        if opcode == op.Select:
            definition = definitions.get(operands[0])
            if definition is not None and definition[0] == op.LogicalNot:
                return self.select(definition[2], operands[2], operands[1])
            return None
        for one, other in (operands, operands[::-1]):  # LogicalEqual, LogicalNotEqual
            known = self.module.constants.get(one)
            if known is not None:
                return other if known == (opcode == op.LogicalEqual) else self.logical_not(other)
        return None

    def effect(self, opcode: int, type_id: int, *operands: int) -> int:
        """An instruction with a result that is never merged with another."""
        result = self.module.id()
        self._body.append([opcode, type_id, result, *operands])
        self.module.type_of[result] = type_id
        if self.lines is not None:
            self.lines.note(self._body[-1])
        return result

    def do(self, opcode: int, *operands: int) -> None:
        """An instruction without a result."""
        self._body.append([opcode, 0, 0, *operands])
        if self.lines is not None:
            self.lines.note(self._body[-1])

    def type_of(self, value: int) -> int:
        """The type id of a value."""
        return self.module.type_of[value]

    def glsl(self, number: int, type_id: int, *operands: int) -> int:
        """An instruction of GLSL.std.450."""
        return self.emit(op.ExtInst, type_id, self.module.glsl, number, *operands)

    # -- integers, folded ----------------------------------------------------------------------------------------
    def binary(self, opcode: int, a: int, b: int) -> int:
        """An integer instruction whose operands and result have one type, folded where constants allow."""
        module = self.module
        type_id = module.type_of[a]
        constants = module.constants
        right = constants.get(b)
        left = constants.get(a)
        if left is not None and right is None and opcode in op.COMMUTATIVE:
            a, b, left, right = b, a, right, left
        if right is not None:
            width = module.kinds[type_id][1]
            if left is not None and self.folds:
                rule = fold.BINARY.get(opcode)
                value = rule(int(left), int(right), width) if rule else None
                if value is not None:
                    return module.uint(value, width)
            if not self.simplifies:
                return self.emit(opcode, type_id, a, b)
            if fold.RIGHT_IDENTITY.get(opcode) == right:
                return a
            if right == 0 and opcode in fold.ZERO_ABSORBS:
                return b
            if opcode == op.IMul and right & (right - 1) == 0:  # type: ignore[operator]
                return self.binary(op.ShiftLeftLogical, a, module.uint(int(right).bit_length() - 1, width))
            if opcode == op.IAdd:
                base, constant = self.base_and_constant(a)
                if constant:
                    return self.binary(op.IAdd, base, module.uint(constant + int(right), width))
                total = self.emit(opcode, type_id, a, b)
                self._sums[total] = a, int(right)
                return total
        elif opcode == op.IAdd and (a in self._sums or b in self._sums):
            return self._sum_of_sums(a, b)
        return self.emit(opcode, type_id, a, b)

    def _sum_of_sums(self, a: int, b: int) -> int:
        """a + b with constants added last: what differs by constants shares the rest of the sum, and takes no register
        of its own across a loop that adds to it. Narrow sums are left as they are: what a driver must not find in them
        is hidden by their order."""
        width = self.module.kinds[self.module.type_of[a]][1]
        (base, constant), (other, more) = self.base_and_constant(a), self.base_and_constant(b)
        if width < 32:
            return self.emit(op.IAdd, self.module.type_of[a], a, b)
        return self.add(self.add(base, other), self.module.uint(constant + more, width))

    def base_and_constant(self, value: int) -> tuple[int, int]:
        """An integer as the sum, modulo 2^width, of an id and a constant: itself and 0 where it was not made as one."""
        return self._sums.get(value, (value, 0))

    def compare(self, opcode: int, a: int, b: int) -> int:
        """An integer comparison, folded where both operands are constant, and made on the narrow number where one
        operand was sign-extended and the other is a constant: cheaper, and Mesa 22.3 gets the wide one wrong. It makes
        one of an equality that asks for the highest bit, too: both sides of any of 64 bits have that bit flipped."""
        constants = self.module.constants
        left, right = constants.get(a), constants.get(b)
        if left is not None and right is not None and self.folds:
            width = self.module.kinds[self.module.type_of[a]][1]
            return self.module.boolean(fold.COMPARE[opcode](int(left), int(right), width))
        if opcode in fold.SIGNED_COMPARE:
            for known, other in ((right, a), (left, b)):
                narrow = self._sign_extended.get(other)
                if known is not None and narrow is not None:
                    return self._compare_narrow(opcode, narrow, int(known), other == b)
            wide = self.module.kinds[self.module.type_of[a]][1] == 64
            if wide and self.faults.narrows_comparisons:
                bias = self.module.uint(1 << 63, 64)
                unsigned = fold.UNSIGNED.get(opcode, opcode)
                return self.emit(unsigned, self.module.bool, self.xor(a, bias), self.xor(b, bias))
        result = self.emit(opcode, self.module.bool, a, b)
        if self.faults.narrows_saturation and opcode in fold.UNSIGNED.values():
            if self.module.kinds[self.module.type_of[a]][1] == 64:
                self._wide_conditions.add(result)
        return result

    def integer_to_float(self, type_id: int, value: int, signed: bool) -> int:
        """An integer as a float, rounded. A driver that narrows comparisons wrongly makes one of integers out of a
        comparison of such a float with 0; the number's sign is passed on beside it there."""
        width = self.module.kinds[self.module.type_of[value]][1]
        if not (signed and width == 64 and self.faults.narrows_comparisons):
            return self.emit(op.ConvertSToF if signed else op.ConvertUToF, type_id, value)
        zero = self.module.uint(0, width)
        negative = self.compare(op.SLessThan, value, zero)
        size = self.emit(op.ConvertUToF, type_id, self.select(negative, self.sub(zero, value), value))
        return self.select(negative, self.emit(op.FNegate, type_id, size), size)

    def _compare_narrow(self, opcode: int, narrow: int, constant: int, constant_first: bool) -> int:
        """The comparison of a sign-extended number with a constant of the wide type, without the extension."""
        module = self.module
        wide_width, width = 64, module.kinds[module.type_of[narrow]][1]
        value = constant - (1 << wide_width) if constant >> (wide_width - 1) else constant
        if -(1 << (width - 1)) <= value < 1 << (width - 1):
            operands = (module.uint(value, width), narrow) if constant_first else (narrow, module.uint(value, width))
            return self.compare(opcode, *operands)
        # Any narrow number is on the same side of such a constant.
        operands = (value, 0) if constant_first else (0, value)
        mask = (1 << wide_width) - 1
        return module.boolean(fold.COMPARE[opcode](operands[0] & mask, operands[1] & mask, wide_width))

    add = _of_integers(op.IAdd)  # a + b
    sub = _of_integers(op.ISub)  # a - b
    mul = _of_integers(op.IMul)  # a * b
    and_ = _of_integers(op.BitwiseAnd)  # a & b
    or_ = _of_integers(op.BitwiseOr)  # a | b
    xor = _of_integers(op.BitwiseXor)  # a ^ b

    def shl(self, a: int, count: int) -> int:
        """``a << count`` for a count known here."""
        return self.binary(op.ShiftLeftLogical, a, self.constant_like(a, count))

    def shr(self, a: int, count: int) -> int:
        """``a >> count``, logical, for a count known here."""
        return self.binary(op.ShiftRightLogical, a, self.constant_like(a, count))

    def constant_like(self, value: int, constant: int) -> int:
        """The integer ``constant`` in the type of ``value``."""
        return self.module.uint(constant, self.module.kinds[self.module.type_of[value]][1])

    def select(self, condition: int, true: int, false: int) -> int:
        """``condition ? true : false``. A driver with the fault ``narrows_saturation`` is not to know what an unsigned
        comparison of 64 bits chose of such numbers."""
        known = self.module.constants.get(condition)
        if known is not None:
            return true if known else false
        if true == false:
            return true
        type_id = self.module.type_of[true]
        chosen = self.emit(op.Select, type_id, condition, true, false)
        wide = condition in self._wide_conditions and self.module.kinds[type_id] == ("int", 64)
        if not (wide and self.unknown_zero) or chosen in self._hidden:  # as a negated condition's choice is
            return chosen
        hidden = self.add(chosen, self.unknown_zero)
        self._hidden.add(hidden)
        return hidden

    def logical_and(self, a: int, b: int) -> int:
        """Boolean ``a && b``."""
        for known, other in ((a, b), (b, a)):
            value = self.module.constants.get(known)
            if value is not None:
                return other if value else known
        return a if a == b else self.logical(op.LogicalAnd, a, b)

    def logical_or(self, a: int, b: int) -> int:
        """Boolean ``a || b``."""
        for known, other in ((a, b), (b, a)):
            value = self.module.constants.get(known)
            if value is not None:
                return known if value else other
        return a if a == b else self.logical(op.LogicalOr, a, b)

    def logical(self, opcode: int, *conditions: int) -> int:
        """A Boolean operation on conditions."""
        result = self.emit(opcode, self.module.bool, *conditions)
        if not self._wide_conditions.isdisjoint(conditions):
            self._wide_conditions.add(result)
        return result

    def logical_not(self, a: int) -> int:
        """Boolean ``!a``."""
        value = self.module.constants.get(a)
        if value is not None:
            return self.module.boolean(not value)
        return self.logical(op.LogicalNot, a)

    def bitcast(self, value: int, type_id: int) -> int:
        """The value's bits as another type."""
        if self.module.type_of[value] == type_id:
            return value
        return self.emit(op.Bitcast, type_id, value)

    def zero_extend(self, value: int, width: int) -> int:
        """An unsigned widening or narrowing to ``width`` bits."""
        return self._convert(op.UConvert, value, width)

    def sign_extend(self, value: int, width: int) -> int:
        """A signed widening or narrowing to ``width`` bits."""
        return self._convert(op.SConvert, value, width)

    def _convert(self, opcode: int, value: int, width: int) -> int:
        module = self.module
        old = module.kinds[module.type_of[value]][1]
        if old == width:
            return value
        known = module.constants.get(value)
        if known is not None and self.folds:
            number = int(known)
            if opcode == op.SConvert and number >> (old - 1):
                number -= 1 << old
            return module.uint(number, width)
        result = self.emit(opcode, module.int(width), value)
        if opcode == op.SConvert and width == 64:
            self._sign_extended[result] = value
        return result

    # -- memory --------------------------------------------------------------------------------------------------
    def access(self, pointer_type: int, base: int, *indices: int) -> int:
        """OpAccessChain."""
        return self.emit(op.AccessChain, pointer_type, base, *indices)

    def load(self, type_id: int, pointer: int, access: int = 0, alignment: int = 0) -> int:
        """OpLoad with the given memory access bits; ``alignment`` bytes adds Aligned."""
        return self.effect(op.Load, type_id, pointer, *self._access_words(access, alignment))

    def store(self, pointer: int, value: int, access: int = 0, alignment: int = 0) -> None:
        """OpStore."""
        self.do(op.Store, pointer, value, *self._access_words(access, alignment))

    @staticmethod
    def _access_words(access: int, alignment: int) -> list[int]:
        if alignment:
            return [access | MemoryAccess.Aligned, alignment]
        return [access] if access else []

    def variable(self, pointee: int, initial: int = 0) -> int:
        """A variable of this function's storage."""
        pointer = self.module.pointer(StorageClass.Function, pointee)
        variable = self.module.id()
        self._variables.append([op.Variable, pointer, variable, StorageClass.Function, *([initial] if initial else [])])
        self.module.type_of[variable] = pointer
        return variable
