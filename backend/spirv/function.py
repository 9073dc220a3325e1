"""The body of one SPIR-V function under construction: value numbering, folding and structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import fold
from . import opcodes as op
from .anchors import anchor_across_barriers
from .encode import Instruction, live
from .module import ModuleBuilder
from .opcodes import MemoryAccess, StorageClass
from .packed_phis import carry_words
from .source_lines import SourceLines

SELECTION_CONTROL_NONE = 0
LOOP_CONTROL_NONE = 0
LOOP_CONTROL_DONT_UNROLL = 2

_ways_of = fold.WAYS.get


class FunctionBuilder:
    """Appends instructions to a function, one basic block after the other.

    A pure instruction whose operands were seen before gives the id it gave then, as long as that id dominates the
    place of use: what was numbered inside a branch or a loop body is forgotten at its end.
    """

    def __init__(self, module: ModuleBuilder, result: int, parameters: Sequence[int] = ()) -> None:
        self.module = module
        self.id = module.id()
        self.parameters = [module.id() for _ in parameters]
        kind = module.function_type(result, parameters)
        self._head: list[Instruction] = [[op.Function, result, self.id, 0, kind]]
        for parameter, type_id in zip(self.parameters, parameters, strict=True):
            self._head.append([op.FunctionParameter, type_id, parameter])
            module.type_of[parameter] = type_id
        self._entry = module.id()
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
        self.block = self._entry
        self._terminated = False
        #: Called for every loop: with its condition where that is known, and after the loop with what that call gave.
        self.watch: tuple[Callable[[int], int], Callable[[int], None]] | None = None
        #: Anchor values that live across barriers (see anchors.py).
        self.anchored = False
        #: Whether signed 64-bit numbers are compared as unsigned ones with the sign flipped.
        self.biased = False
        #: The places in the user's source, where the module is to have them.
        self.lines: SourceLines | None = None

    # -- single instructions -------------------------------------------------------------------------------------
    def emit(self, opcode: int, type_id: int, *operands: int) -> int:
        """A pure instruction with a result; gives its id, or that of an equal one. Floating-point arithmetic is
        decorated so that the driver neither contracts nor reassociates it."""
        ways = _ways_of(opcode)
        if ways:
            if ways & fold.COMMUTES and operands[0] > operands[1]:
                operands = (operands[1], operands[0])
            if ways & fold.SIMPLIFIES:
                simpler = self._simplify(opcode, type_id, operands)
                if simpler is not None:
                    return simpler
        key = (opcode, type_id, *operands)
        known = self._numbered.get(key)
        if known is not None:
            if self.lines is not None:
                self.lines.reuse(known)
            return known
        self._numbered[key] = result = self.effect(opcode, type_id, *operands)
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
            if left is not None:
                rule = fold.BINARY.get(opcode)
                value = rule(int(left), int(right), width) if rule else None
                if value is not None:
                    return module.uint(value, width)
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
        return self.emit(opcode, type_id, a, b)

    def base_and_constant(self, value: int) -> tuple[int, int]:
        """An integer as the sum, modulo 2^width, of an id and a constant: itself and 0 where it was not made as one."""
        return self._sums.get(value, (value, 0))

    def compare(self, opcode: int, a: int, b: int) -> int:
        """An integer comparison, folded where both operands are constant, and made on the narrow number where one
        operand was sign-extended and the other is a constant: cheaper, and Mesa 22.3 gets the wide one wrong."""
        constants = self.module.constants
        left, right = constants.get(a), constants.get(b)
        if left is not None and right is not None:
            width = self.module.kinds[self.module.type_of[a]][1]
            return self.module.boolean(fold.COMPARE[opcode](int(left), int(right), width))
        if opcode in fold.SIGNED_COMPARE:
            for known, other in ((right, a), (left, b)):
                narrow = self._sign_extended.get(other)
                if known is not None and narrow is not None:
                    return self._compare_narrow(opcode, narrow, int(known), other == b)
            if self.biased and opcode in fold.UNSIGNED and self.module.kinds[self.module.type_of[a]][1] == 64:
                bias = self.module.uint(1 << 63, 64)
                return self.emit(fold.UNSIGNED[opcode], self.module.bool, self.xor(a, bias), self.xor(b, bias))
        return self.emit(opcode, self.module.bool, a, b)

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

    def add(self, a: int, b: int) -> int:
        """``a + b``."""
        return self.binary(op.IAdd, a, b)

    def sub(self, a: int, b: int) -> int:
        """``a - b``."""
        return self.binary(op.ISub, a, b)

    def mul(self, a: int, b: int) -> int:
        """``a * b``."""
        return self.binary(op.IMul, a, b)

    def and_(self, a: int, b: int) -> int:
        """``a & b``."""
        return self.binary(op.BitwiseAnd, a, b)

    def or_(self, a: int, b: int) -> int:
        """``a | b``."""
        return self.binary(op.BitwiseOr, a, b)

    def xor(self, a: int, b: int) -> int:
        """``a ^ b``."""
        return self.binary(op.BitwiseXor, a, b)

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
        """``condition ? true : false``."""
        known = self.module.constants.get(condition)
        if known is not None:
            return true if known else false
        if true == false:
            return true
        return self.emit(op.Select, self.module.type_of[true], condition, true, false)

    def logical_and(self, a: int, b: int) -> int:
        """Boolean ``a && b``."""
        for known, other in ((a, b), (b, a)):
            value = self.module.constants.get(known)
            if value is not None:
                return other if value else known
        return a if a == b else self.emit(op.LogicalAnd, self.module.bool, a, b)

    def logical_or(self, a: int, b: int) -> int:
        """Boolean ``a || b``."""
        for known, other in ((a, b), (b, a)):
            value = self.module.constants.get(known)
            if value is not None:
                return known if value else other
        return a if a == b else self.emit(op.LogicalOr, self.module.bool, a, b)

    def logical_not(self, a: int) -> int:
        """Boolean ``!a``."""
        value = self.module.constants.get(a)
        if value is not None:
            return self.module.boolean(not value)
        return self.emit(op.LogicalNot, self.module.bool, a)

    def bitcast(self, value: int, type_id: int) -> int:
        """The same bits as another type."""
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
        if known is not None:
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

    # -- blocks --------------------------------------------------------------------------------------------------
    def label(self, block: int) -> None:
        """Starts a block."""
        self._body.append([op.Label, 0, block])
        self.block = block
        self._terminated = False

    def branch(self, target: int) -> None:
        """Ends the block by a jump."""
        self.do(op.Branch, target)
        self._terminated = True

    def return_(self, value: int = 0) -> None:
        """Ends the block by a return."""
        self.do(op.ReturnValue, value) if value else self.do(op.Return)
        self._terminated = True

    @property
    def nesting(self) -> int:
        """How many selections and loops the current block is inside."""
        return len(self._scopes)

    def push_scope(self) -> None:
        """What is numbered from here on holds until the matching pop_scope."""
        self._scopes.append([])

    def pop_scope(self) -> None:
        """Forgets what was numbered since the matching push_scope."""
        for key in self._scopes.pop():
            del self._numbered[key]

    def if_(
        self,
        condition: int,
        then: Callable[[], Sequence[int]],
        otherwise: Callable[[], Sequence[int]] | None = None,
        defaults: Sequence[int] = (),
    ) -> list[int]:
        """A selection. ``then`` and ``otherwise`` emit their blocks and give equally many values of equal types; the
        phis that join them are returned. Without ``otherwise`` the other side's values are ``defaults``."""
        module = self.module
        known = module.constants.get(condition)
        if known is not None:
            chosen = then if known else otherwise
            return list(chosen() if chosen else defaults)
        true_block, merge = module.id(), module.id()
        false_block = module.id() if otherwise else merge
        start = self.block
        self.do(op.SelectionMerge, merge, SELECTION_CONTROL_NONE)
        self.do(op.BranchConditional, condition, true_block, false_block)
        true_values, true_end = self._arm(true_block, then, merge)
        false_values, false_end = list(defaults), start
        if otherwise:
            false_values, false_end = self._arm(false_block, otherwise, merge)
        self.label(merge)
        return [
            a if a == b else self.effect(op.Phi, module.type_of[a], a, true_end, b, false_end)
            for a, b in zip(true_values, false_values, strict=True)
        ]

    def _arm(self, block: int, body: Callable[[], Sequence[int]], merge: int) -> tuple[list[int], int]:
        self.label(block)
        self.push_scope()
        values = list(body())
        self.pop_scope()
        end = self.block
        self.branch(merge)
        return values, end

    def loop(
        self,
        initial: Sequence[int],
        condition: Callable[[list[int]], int],
        body: Callable[[list[int]], Sequence[int]],
        control: int = LOOP_CONTROL_NONE,
    ) -> list[int]:
        """A loop over carried values: while ``condition(values)`` holds, ``values = body(values)``.

        Returns the values at the exit. ``condition`` may emit pure instructions and loads, no control flow.
        """
        return self.loop_with_results(initial, lambda values: (condition(values), values), body, control)

    def loop_with_results(
        self,
        initial: Sequence[int],
        before: Callable[[list[int]], tuple[int, Sequence[int]]],
        after: Callable[[list[int]], Sequence[int]],
        control: int = LOOP_CONTROL_NONE,
    ) -> list[int]:
        """The general loop: ``before(carried)`` gives the condition and the values passed on; while it holds,
        ``after(passed)`` gives the next carried values. Returns the values passed on at the exit."""
        module = self.module
        header, check, body, latch, merge = (module.id() for _ in range(5))
        start = self.block
        self.branch(header)
        self.label(header)
        phis: list[Instruction] = []
        carried: list[int] = []
        for value in initial:
            result = module.id()
            type_id = module.type_of[value]
            module.type_of[result] = type_id
            phis.append([op.Phi, type_id, result, value, start])
            carried.append(result)
        self._body += phis
        self.do(op.LoopMerge, merge, latch, control)
        self.branch(check)
        self.label(check)
        # The check dominates everything after the loop, so what it numbers stays known.
        condition, passed = before(carried)
        watched = self.watch[0](condition) if self.watch else 0
        self.do(op.BranchConditional, condition, body, merge)
        self.label(body)
        self.push_scope()
        following = list(after(list(passed)))
        self.pop_scope()
        self.branch(latch)
        self.label(latch)
        self.branch(header)
        for phi, value in zip(phis, following, strict=True):
            phi += [value, latch]
        self.label(merge)
        if self.watch:
            self.watch[1](watched)
        return list(passed)

    # -- the end -------------------------------------------------------------------------------------------------
    def finish(self) -> list[Instruction]:
        """All instructions of the function, those without a use left out."""
        assert self._terminated, "the last block has no terminator"
        start: list[Instruction] = [[op.Label, 0, self._entry]]
        body, operands = live(carry_words(self.module, self._body, self._entry))
        if self.anchored:
            body = anchor_across_barriers(self.module, body, operands)
        if self.lines is not None:
            body = self.lines.inserted(self.module, body, self.id)
        return [*self._head, *start, *self._variables, *body, [op.FunctionEnd, 0, 0]]
