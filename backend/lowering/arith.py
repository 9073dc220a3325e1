"""The ``arith`` dialect: constants, integer and float arithmetic, comparisons, selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..spirv import opcodes as op
from ..spirv.opcodes import Glsl
from ..transforms.cpu.alike_lanes import ALIKE, NEIGHBOURS
from ..ttgir.ir import DenseAttr, FloatBits, Operation, Value
from ..ttgir.types import FloatType, IntegerType, MemDescType, Type, element_type
from .defined_integers import negative, safe_shift, signed_divide, signed_remainder, unsigned_divide, unsigned_remainder
from .elementwise import MOVES, map_registers, map_wanted
from .errors import UnsupportedOperation
from .floats import F32, compute_type, convert, narrow, widen
from .lowering import Lowering
from .multiply_add import fuse_multiply_add
from .numerics.float_formats import decimal_code
from .numerics.native import divide_by_few
from .numerics.numeric import Numeric, Real
from .numerics.remainder import remainder
from .registry import lowers
from .rolled import map_made, map_rolled
from .shuffle import of_lane
from .zeros import kept_zero

BOOL = IntegerType(1)
F64 = FloatType("f64")

#: Integer operations that are one folded instruction.
INTEGER = {
    "arith.addi": op.IAdd,
    "arith.subi": op.ISub,
    "arith.muli": op.IMul,
    "arith.andi": op.BitwiseAnd,
    "arith.ori": op.BitwiseOr,
    "arith.xori": op.BitwiseXor,
}

#: The same on i1, where addition is modulo 2.
BOOLEAN = {
    "arith.addi": op.LogicalNotEqual,
    "arith.subi": op.LogicalNotEqual,
    "arith.muli": op.LogicalAnd,
    "arith.andi": op.LogicalAnd,
    "arith.ori": op.LogicalOr,
    "arith.xori": op.LogicalNotEqual,
}

#: Integer operations that need more than one instruction to be defined for every operand.
CAREFUL: dict[str, Callable[..., int]] = {
    "arith.divsi": signed_divide,
    "arith.divui": unsigned_divide,
    "arith.remsi": signed_remainder,
    "arith.remui": unsigned_remainder,
    "arith.shli": lambda ctx, a, b: safe_shift(ctx, op.ShiftLeftLogical, a, b),
    "arith.shrui": lambda ctx, a, b: safe_shift(ctx, op.ShiftRightLogical, a, b),
    "arith.shrsi": lambda ctx, a, b: safe_shift(ctx, op.ShiftRightArithmetic, a, b),
}

#: min and max by the comparison that chooses the left operand.
INTEGER_CHOICE = {
    "arith.minsi": op.SLessThan,
    "arith.maxsi": op.SGreaterThan,
    "arith.minui": op.ULessThan,
    "arith.maxui": op.UGreaterThan,
}

FLOAT = {"arith.addf": op.FAdd, "arith.subf": op.FSub, "arith.mulf": op.FMul}

#: Quotients are within 2.5 ULP for divisors below this in magnitude (Vulkan specification, "Precision of Individual
#: Operations"): a driver multiplies by the reciprocal, which is subnormal past it. A power of two that brings any
#: number below it, for both operands.
LARGE_DIVISOR, REDUCED = 2.0**126, 0.25

#: Quotients with one divisor for which its reciprocal is made: it takes ten instructions, and each quotient four.
_MANY = 4

#: min and max of floats: GLSL.std.450 instruction, and whether a NaN operand makes the result NaN.
FLOAT_CHOICE = {
    "arith.minnumf": (Glsl.NMin, False),
    "arith.maxnumf": (Glsl.NMax, False),
    "arith.minimumf": (Glsl.NMin, True),
    "arith.maximumf": (Glsl.NMax, True),
}

INTEGER_PREDICATE = {
    "eq": op.IEqual,
    "ne": op.INotEqual,
    "slt": op.SLessThan,
    "sle": op.SLessThanEqual,
    "sgt": op.SGreaterThan,
    "sge": op.SGreaterThanEqual,
    "ult": op.ULessThan,
    "ule": op.ULessThanEqual,
    "ugt": op.UGreaterThan,
    "uge": op.UGreaterThanEqual,
}

FLOAT_PREDICATE = {
    "oeq": op.FOrdEqual,
    "one": op.FOrdNotEqual,
    "olt": op.FOrdLessThan,
    "ole": op.FOrdLessThanEqual,
    "ogt": op.FOrdGreaterThan,
    "oge": op.FOrdGreaterThanEqual,
    "ueq": op.FUnordEqual,
    "une": op.FUnordNotEqual,
    "ult": op.FUnordLessThan,
    "ule": op.FUnordLessThanEqual,
    "ugt": op.FUnordGreaterThan,
    "uge": op.FUnordGreaterThanEqual,
}


# -- constants ---------------------------------------------------------------------------------------------------
def constant(ctx: Lowering, type_: Type, value: Any) -> int:
    """The id of one constant element."""
    type_ = element_type(type_)
    module = ctx.module
    if type_ == BOOL:
        return module.boolean(bool(value))
    if isinstance(type_, FloatType):
        return _float_constant(ctx, type_, value)
    ctx.type_id(type_)
    return module.uint(int(value), module.kinds[ctx.type_id(type_)][1])


def _float_constant(ctx: Lowering, type_: FloatType, value: Any) -> int:
    module = ctx.module
    type_id = ctx.type_id(type_)
    kind, width = module.kinds[type_id]
    if isinstance(value, FloatBits):
        return module.real_bits(value.bits, width) if kind == "float" else module.uint(value.bits, width)
    if kind == "float":
        return module.real(float(value), width)
    return module.uint(decimal_code(float(value), type_.name), width)


@lowers("arith.constant")
def _constant(ctx: Lowering, operation: Operation) -> None:
    result, value = operation.result, operation.attribute("value")
    if not isinstance(value, DenseAttr):
        ctx[result] = constant(ctx, result.type, value)
        return
    if not value.splat:
        raise NotImplementedError("a constant tensor whose elements differ has no layout to take them by")
    ctx[result] = [constant(ctx, result.type, value.values[0])] * ctx.register_count(result.type)


@lowers("ub.poison")
def _poison(ctx: Lowering, operation: Operation) -> None:
    value = ctx.module.null(ctx.type_id(operation.result.type))
    ctx.define(operation.result, [value] * ctx.register_count(operation.result.type))


# -- integers ----------------------------------------------------------------------------------------------------
@lowers(*INTEGER)
def _integer(ctx: Lowering, operation: Operation) -> None:
    f = ctx.f
    if element_type(operation.result.type) == BOOL:
        opcode = BOOLEAN[operation.name]
        shortcut = {op.LogicalAnd: f.logical_and, op.LogicalOr: f.logical_or}.get(opcode)
        map_registers(ctx, operation, shortcut or (lambda a, b: f.logical(opcode, a, b)))
        return
    opcode = INTEGER[operation.name]
    zero = _hiding_zero(ctx, operation)

    def emit(a: int, b: int) -> int:
        if opcode == op.ISub and ctx.module.constants.get(a) == 0:
            return negative(ctx, b)
        result = f.binary(opcode, a, b)
        return result if zero is None or result in ctx.module.constants else f.add(result, zero)

    map_registers(ctx, operation, emit)


#: What may be a negation, as the driver finds: 1 plus a complement, a number less than 0, a product with -1. Zeros that
#: it does not know are added to these results, each shifted by another count: of z - ((x + y) + z) it makes -(x + y).
#: Zeros that are combined by a bitwise or do not help, because it shifts -x | z as (-x >> 1) | (z >> 1).
_MAY_NEGATE = {"arith.addi": 1, "arith.subi": 2, "arith.muli": 3}


def _hiding_zero(ctx: Lowering, operation: Operation) -> int | None:
    """A 0 that the driver does not know, which, added to the result, keeps it from folding the operation; None if it
    may fold it."""
    faults, width = ctx.capabilities.traits.faults, ctx.module.kinds[ctx.type_id(operation.result.type)][1]
    if not ctx.f.unknown_zero:
        return None
    if faults.narrows_sums and _is_sum_of_narrow(operation):
        return ctx.zero(width)
    if faults.widens_negations and width < 32 and operation.name in _MAY_NEGATE:
        return ctx.f.shl(ctx.zero(width), _MAY_NEGATE[operation.name])
    return None


def _is_sum_of_narrow(operation: Operation) -> bool:
    """Whether an operation adds two sign-extended numbers of 8 or 16 bits."""
    return operation.name == "arith.addi" and all(_is_narrow(operand) for operand in operation.operands)


def _is_narrow(value: Value) -> bool:
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in MOVES:
        owner = owner["src"].owner
    if not isinstance(owner, Operation) or owner.name != "arith.extsi":
        return False
    source = element_type(owner["src"].type)
    return isinstance(source, IntegerType) and 1 < source.width < 32


@lowers(*CAREFUL)
def _careful(ctx: Lowering, operation: Operation) -> None:
    if element_type(operation.result.type) == BOOL:
        raise NotImplementedError("division and shifts of booleans are not supported; cast to int32 first")
    rule, alike = CAREFUL[operation.name], operation.attribute(ALIKE)
    if alike is None:
        map_registers(ctx, operation, lambda a, b: rule(ctx, a, b))
        return
    f, last, type_ = ctx.f, ctx.subgroup_size - 1, element_type(operation.result.type)
    assert isinstance(type_, IntegerType)
    # Of neighbours, what the last lane's number is more than this lane's.
    less = f.sub(f.constant_like(ctx.lane, last), ctx.lane) if alike == NEIGHBOURS else 0

    def emit(a: int, b: int) -> int:
        result = rule(ctx, of_lane(ctx, a, last), of_lane(ctx, b, last))
        return f.sub(result, f.zero_extend(less, type_.width)) if less else result

    map_registers(ctx, operation, emit)


@lowers(*INTEGER_CHOICE)
def _integer_choice(ctx: Lowering, operation: Operation) -> None:
    f, opcode = ctx.f, INTEGER_CHOICE[operation.name]
    if element_type(operation.result.type) == BOOL:
        # As one signed bit true is -1, so the signed order is the reverse of the unsigned one.
        either = operation.name in ("arith.maxui", "arith.minsi")
        map_registers(ctx, operation, f.logical_or if either else f.logical_and)
        return
    map_registers(ctx, operation, lambda a, b: f.select(f.compare(opcode, a, b), a, b))


@lowers("arith.cmpi")
def _compare_integers(ctx: Lowering, operation: Operation) -> None:
    f, predicate = ctx.f, operation.attribute("predicate")
    if element_type(operation["lhs"].type) != BOOL:
        opcode = INTEGER_PREDICATE[predicate]
        map_registers(ctx, operation, lambda a, b: f.compare(opcode, a, b))
        return
    if predicate in ("eq", "ne"):
        opcode = op.LogicalEqual if predicate == "eq" else op.LogicalNotEqual
        map_registers(ctx, operation, lambda a, b: f.emit(opcode, ctx.module.bool, a, b))
        return
    one, zero = ctx.module.uint(1), ctx.module.uint(0)
    true = ctx.module.uint(-1) if predicate[0] == "s" else one
    opcode = INTEGER_PREDICATE[predicate]
    map_registers(ctx, operation, lambda a, b: f.compare(opcode, f.select(a, true, zero), f.select(b, true, zero)))


# -- floats ------------------------------------------------------------------------------------------------------
def float_binary(ctx: Lowering, opcode: int, type_: Type) -> Callable[[int, int], int]:
    """An emitter of a two-operand float instruction on elements of ``type_``."""
    type_id = ctx.type_id(compute_type(ctx, type_))

    def emit(a: int, b: int) -> int:
        a, b = (widen(ctx, kept_zero(ctx, value, type_), type_) for value in (a, b))
        return narrow(ctx, ctx.f.emit(opcode, type_id, a, b), type_)

    return emit


@lowers(*FLOAT)
def _float(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    if fuse_multiply_add(ctx, operation, type_):
        return
    map_made(ctx, operation, float_binary(ctx, FLOAT[operation.name], type_))


def _divided_by_few(ctx: Lowering, operation: Operation, type_: Type) -> dict[tuple[int, int], int]:
    """(dividend, divisor) → quotient where many dividends share a divisor and its reciprocal is cheaper than the
    quotients: on a driver whose quotients take a branch each, attention's last division was 3% of its time."""
    if not ctx.capabilities.traits.reciprocal_roots or compute_type(ctx, type_) != F32:
        return {}
    wanted = ctx.plan.live.of(operation.result)
    rows = enumerate(zip(*(ctx.registers(operand) for operand in operation.operands), strict=True))
    pairs = list(dict.fromkeys(pair for register, pair in rows if wanted >> register & 1))
    if not pairs or len(pairs) < _MANY * len({divisor for _, divisor in pairs}):
        return {}
    n = Numeric(ctx, 32)

    def wide(value: int) -> Real:
        return n.wrap(widen(ctx, kept_zero(ctx, value, type_), type_))

    quotients = divide_by_few(n, [(wide(a), wide(b)) for a, b in pairs])
    return {pair: narrow(ctx, quotient.id, type_) for pair, quotient in zip(pairs, quotients, strict=True)}


@lowers("arith.divf")
def _divide(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    made = _divided_by_few(ctx, operation, type_)
    if made:
        map_registers(ctx, operation, lambda a, b: made[a, b])
        return
    if compute_type(ctx, type_) != F32 or type_ == FloatType("f16") or ctx.capabilities.traits.large_divisors:
        map_registers(ctx, operation, float_binary(ctx, op.FDiv, type_))
        return
    f, module, f32 = ctx.f, ctx.module, ctx.type_id(F32)

    def emit(a: int, b: int) -> int:
        a, b = (widen(ctx, kept_zero(ctx, value, type_), type_) for value in (a, b))
        known = module.constants.get(b)
        if known is None or abs(float(known)) >= LARGE_DIVISOR:
            size = f.glsl(Glsl.FAbs, f32, b)
            large = f.compare(op.FOrdGreaterThanEqual, size, module.real(LARGE_DIVISOR, 32))
            scale = f.select(large, module.real(REDUCED, 32), module.real(1.0, 32))
            a, b = (f.emit(op.FMul, f32, value, scale) for value in (a, b))
        return narrow(ctx, f.emit(op.FDiv, f32, a, b), type_)

    map_registers(ctx, operation, emit)


@lowers("arith.remf")
def _float_remainder(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    computed = type_ if type_ == F64 else F32
    n = Numeric(ctx, computed.width)

    def emit(a: int, b: int) -> int:
        a, b = (convert(ctx, value, type_, computed) for value in (a, b))
        return convert(ctx, remainder(n, n.wrap(a), n.wrap(b)).id, computed, type_)

    map_rolled(ctx, operation, emit)


@lowers("arith.negf")
def _negate(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    type_id = ctx.type_id(compute_type(ctx, type_))
    map_registers(ctx, operation, lambda a: narrow(ctx, ctx.f.emit(op.FNegate, type_id, widen(ctx, a, type_)), type_))


def choose_float(ctx: Lowering, number: int, propagate_nan: bool, type_: Type, a: int, b: int) -> int:
    """min or max: GLSL's NMin and NMax give the other operand for a NaN; with ``propagate_nan`` the result is NaN."""
    f, module = ctx.f, ctx.module
    type_id = ctx.type_id(compute_type(ctx, type_))
    wide_a, wide_b = widen(ctx, a, type_), widen(ctx, b, type_)
    chosen = f.glsl(number, type_id, wide_a, wide_b)
    if propagate_nan:
        either = f.logical_or(f.emit(op.IsNan, module.bool, wide_a), f.emit(op.IsNan, module.bool, wide_b))
        chosen = f.select(either, f.emit(op.FAdd, type_id, wide_a, wide_b), chosen)
    return narrow(ctx, chosen, type_)


@lowers(*FLOAT_CHOICE)
def _float_choice(ctx: Lowering, operation: Operation) -> None:
    number, propagate_nan = FLOAT_CHOICE[operation.name]
    type_ = element_type(operation.result.type)
    map_registers(ctx, operation, lambda a, b: choose_float(ctx, number, propagate_nan, type_, a, b))


@lowers("tt.clampf")
def _clamp(ctx: Lowering, operation: Operation) -> None:
    propagate_nan = operation.attribute("propagateNan") == "all"
    type_ = element_type(operation.result.type)

    def emit(value: int, low: int, high: int) -> int:
        raised = choose_float(ctx, Glsl.NMax, propagate_nan, type_, value, low)
        return choose_float(ctx, Glsl.NMin, propagate_nan, type_, raised, high)

    map_registers(ctx, operation, emit)


@lowers("arith.cmpf")
def _compare_floats(ctx: Lowering, operation: Operation) -> None:
    f, module = ctx.f, ctx.module
    type_ = element_type(operation["lhs"].type)
    predicate = operation.attribute("predicate")
    if predicate in ("true", "false"):
        map_registers(ctx, operation, lambda a, b: module.boolean(predicate == "true"))
        return

    def unordered(a: int, b: int) -> int:
        return f.logical_or(f.emit(op.IsNan, module.bool, a), f.emit(op.IsNan, module.bool, b))

    def emit(a: int, b: int) -> int:
        a, b = widen(ctx, a, type_), widen(ctx, b, type_)
        if predicate == "uno":
            return unordered(a, b)
        if predicate == "ord":
            return f.logical_not(unordered(a, b))
        return f.emit(FLOAT_PREDICATE[predicate], module.bool, a, b)

    map_registers(ctx, operation, emit)


@lowers("arith.select")
def _select(ctx: Lowering, operation: Operation) -> None:
    if isinstance(operation.result.type, MemDescType):
        raise UnsupportedOperation(
            operation, "a branch chooses between buffers", "choose a number, and take part of one buffer with .index()"
        )
    condition, true, false = (ctx.registers(operand) for operand in operation.operands)
    if len(condition) == 1 and len(true) > 1:
        condition = condition * len(true)
    ctx.define(operation.result, map_wanted(ctx, operation, zip(condition, true, false, strict=True), ctx.f.select))
