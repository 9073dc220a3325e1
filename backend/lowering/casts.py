"""Conversions between element types: the ``arith`` casts and the ``tt`` ones."""

from __future__ import annotations

from ..planning.plans import MatrixProducts
from ..spirv import opcodes as op
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, IntegerType, PointerType, Type, element_type
from .defined_integers import magnitude, of_any_size
from .elementwise import MOVES, map_registers
from .errors import UnsupportedOperation
from .floats import compute_type, convert, convert_toward_zero, narrow, widen
from .lowering import Lowering
from .registry import lowers
from .rolled import map_unpacked

BOOL = IntegerType(1)


def _types(operation: Operation) -> tuple[Type, Type]:
    return element_type(operation["src"].type), element_type(operation.result.type)


def boolean_as_integer(ctx: Lowering, value: int, width: int, true: int) -> int:
    """i1 as an integer: ``true`` or 0."""
    return ctx.f.select(value, ctx.module.uint(true, width), ctx.module.uint(0, width))


@lowers("arith.extsi", "arith.extui")
def _extend(ctx: Lowering, operation: Operation) -> None:
    source, target = _types(operation)
    width = ctx.module.kinds[ctx.type_id(target)][1]
    signed = operation.name == "arith.extsi"
    if source == BOOL:
        map_registers(ctx, operation, lambda a: boolean_as_integer(ctx, a, width, -1 if signed else 1))
        return
    extend = ctx.f.sign_extend if signed else ctx.f.zero_extend
    map_registers(ctx, operation, lambda a: extend(a, width))


@lowers("arith.trunci")
def _truncate(ctx: Lowering, operation: Operation) -> None:
    _, target = _types(operation)
    f, module = ctx.f, ctx.module
    if target == BOOL:
        map_registers(
            ctx, operation, lambda a: f.compare(op.INotEqual, f.and_(a, f.constant_like(a, 1)), f.constant_like(a, 0))
        )
        return
    width = module.kinds[ctx.type_id(target)][1]
    map_registers(ctx, operation, lambda a: f.zero_extend(a, width))


@lowers("arith.index_cast", "arith.index_castui")
def _index_cast(ctx: Lowering, operation: Operation) -> None:
    _, target = _types(operation)
    width = ctx.module.kinds[ctx.type_id(target)][1]
    extend = ctx.f.sign_extend if operation.name == "arith.index_cast" else ctx.f.zero_extend
    map_registers(ctx, operation, lambda a: extend(a, width))


#: Integer width → (first bit of the numbers that it is for, low bits that are merged into one): at most 24 bits
#: remain, which f32 holds exactly, and at least 10, which is more than the formats narrower than f16 have.
_MERGED = {32: ((24, 8),), 64: ((24, 14), (38, 28), (52, 40))}


def _round_to_odd(ctx: Lowering, value: int, signed: bool) -> int:
    """An integer as an f32 whose last bits stand for all that is lost, so that rounding it once more, to a format of
    at most 8 significant bits, is right."""
    f, module = ctx.f, ctx.module
    width = module.kinds[f.type_of(value)][1]
    f32 = module.float(32)
    size, sign = magnitude(ctx, value) if signed else (value, 0)
    kept, scale = size, module.real(1.0, 32)
    for first, low in _MERGED[width]:
        lost = f.compare(op.INotEqual, f.and_(size, module.uint((1 << low) - 1, width)), module.uint(0, width))
        merged = f.or_(f.shr(size, low), f.select(lost, module.uint(1, width), module.uint(0, width)))
        large = f.compare(op.UGreaterThanEqual, size, module.uint(1 << first, width))
        kept = f.select(large, merged, kept)
        scale = f.select(large, module.real(2.0**low, 32), scale)
    result = f.emit(op.FMul, f32, f.emit(op.ConvertUToF, f32, kept), scale)
    if not signed:
        return result
    negative = f.compare(op.INotEqual, sign, module.uint(0, width))
    return f.select(negative, f.emit(op.FNegate, f32, result), result)


@lowers("arith.sitofp", "arith.uitofp")
def _integer_to_float(ctx: Lowering, operation: Operation) -> None:
    source, target = _types(operation)
    f = ctx.f
    signed = operation.name == "arith.sitofp"
    type_id = ctx.type_id(compute_type(ctx, target))

    width = 0 if source == BOOL else source.width  # type: ignore[attr-defined]
    merged = width in _MERGED and not ctx.elements.is_native(target)

    def emit(value: int) -> int:
        if source == BOOL:
            value = boolean_as_integer(ctx, value, 32, -1 if signed else 1)
        elif not signed and width >= 32:
            (value,) = of_any_size(ctx, value)
        if merged:
            return narrow(ctx, _round_to_odd(ctx, value, signed), target)
        return narrow(ctx, f.integer_to_float(type_id, value, signed), target)

    map_registers(ctx, operation, emit)


@lowers("arith.fptosi", "arith.fptoui")
def _float_to_integer(ctx: Lowering, operation: Operation) -> None:
    source, target = _types(operation)
    f, module = ctx.f, ctx.module
    opcode = op.ConvertFToS if operation.name == "arith.fptosi" else op.ConvertFToU
    if target == BOOL:
        zero = module.null(ctx.type_id(compute_type(ctx, source)))
        map_registers(ctx, operation, lambda a: f.emit(op.FUnordNotEqual, module.bool, widen(ctx, a, source), zero))
        return
    type_id = ctx.type_id(target)
    map_registers(ctx, operation, lambda a: f.emit(opcode, type_id, widen(ctx, a, source)))


#: Operations that write the elements of an operand, as they are, where other invocations may read them.
_WRITES = frozenset({"tt.store", "ttg.local_alloc", "ttg.local_store"})


def _stays(ctx: Lowering, value: Value) -> bool:
    """Whether nothing widens the elements of a float16 tensor: they go to memory, or matrix units take them."""
    for user in value.uses:
        if user.name in MOVES:
            if not _stays(ctx, user.result):
                return False
        elif user.name == "tt.dot":
            plan = ctx.plan.plans.get(user)
            if not isinstance(plan, MatrixProducts) or user["c"] is value:
                return False
        elif user.name not in _WRITES:
            return False
    return True


@lowers("arith.extf", "arith.truncf")
def _float_to_float(ctx: Lowering, operation: Operation) -> None:
    source, target = _types(operation)
    stays = _stays(ctx, operation.result)
    map_registers(ctx, operation, lambda a: convert(ctx, a, source, target, stays))


@lowers("tt.fp_to_fp")
def _fp_to_fp(ctx: Lowering, operation: Operation) -> None:
    source, target = _types(operation)
    rounding = operation.attribute("rounding")
    if rounding == "rtz":
        if source == FloatType("f64"):
            raise UnsupportedOperation(
                operation,
                f"rounding towards zero from {source} to {target} is not supported",
                "convert to float32 first, or round to nearest even (the default)",
            )
        map_registers(ctx, operation, lambda a: convert_toward_zero(ctx, a, source, target))
        return
    if rounding not in (None, "rtne"):
        raise UnsupportedOperation(operation, f"rounding '{rounding}' is not known", "use 'rtne' or 'rtz'")
    stays = _stays(ctx, operation.result)
    rows = [(register,) for register in ctx.registers(operation["src"])]
    map_unpacked(ctx, operation, rows, lambda a: convert(ctx, a, source, target, stays))


@lowers("arith.bitcast", "tt.bitcast")
def _bitcast(ctx: Lowering, operation: Operation) -> None:
    source, target = _types(operation)
    if operation.result in ctx.pointer_bases:
        ctx.alias(operation.result, operation["src"])
        return
    if BOOL in (source, target) and source != target:
        f = ctx.f
        if source == BOOL:
            width = ctx.module.kinds[ctx.type_id(target)][1]
            map_registers(ctx, operation, lambda a: boolean_as_integer(ctx, a, width, 1))
        else:
            map_registers(ctx, operation, lambda a: f.compare(op.INotEqual, a, f.constant_like(a, 0)))
        return
    type_id = ctx.type_id(target)
    map_registers(ctx, operation, lambda a: ctx.f.bitcast(a, type_id))


@lowers("tt.ptr_to_int", "tt.int_to_ptr")
def _pointer_cast(ctx: Lowering, operation: Operation) -> None:
    _, target = _types(operation)
    width = 64 if isinstance(target, PointerType) else ctx.module.kinds[ctx.type_id(target)][1]
    map_registers(ctx, operation, lambda a: ctx.f.zero_extend(a, width))
