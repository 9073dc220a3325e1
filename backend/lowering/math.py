"""The ``math`` dialect, and Triton's own precise and extended arithmetic."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..spirv import opcodes as op
from ..spirv.opcodes import Glsl
from ..ttgir.ir import Operation
from ..ttgir.types import FloatType, Type
from .elements import element_type
from .elementwise import map_registers
from .floats import F32, compute_type, convert, narrow, widen
from .registry import lowers

if TYPE_CHECKING:
    from .context import Context

#: Exact in every format: one GLSL.std.450 instruction for f16, f32 and f64 alike.
EXACT = {
    "math.absf": Glsl.FAbs, "math.floor": Glsl.Floor, "math.ceil": Glsl.Ceil, "math.trunc": Glsl.Trunc,
    "math.roundeven": Glsl.RoundEven,
}

#: One GLSL.std.450 instruction on f32; f16 and bf16 are computed in f32 and rounded.
SINGLE = {
    "math.exp": Glsl.Exp, "math.exp2": Glsl.Exp2, "math.log": Glsl.Log, "math.log2": Glsl.Log2,
    "math.sin": Glsl.Sin, "math.cos": Glsl.Cos, "math.tan": Glsl.Tan, "math.tanh": Glsl.Tanh,
    "math.sinh": Glsl.Sinh, "math.cosh": Glsl.Cosh, "math.asin": Glsl.Asin, "math.acos": Glsl.Acos,
    "math.atan": Glsl.Atan, "math.sqrt": Glsl.Sqrt, "math.rsqrt": Glsl.InverseSqrt,
}


@lowers(*EXACT)
def _exact(ctx: Context, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    type_id, number = ctx.type_id(compute_type(type_)), EXACT[operation.name]
    map_registers(ctx, operation,
                  lambda a: narrow(ctx, ctx.f.glsl(number, type_id, widen(ctx, a, type_)), type_))


def in_single(ctx: Context, type_: Type, emit: Callable[..., int], *values: int) -> int:
    """``emit`` applied to values of ``type_`` converted to f32; its f32 result converted back."""
    if type_ == FloatType("f64"):
        raise NotImplementedError("this function of float64 is not supported; use float32")
    return convert(ctx, emit(*(convert(ctx, value, type_, F32) for value in values)), F32, type_)


@lowers(*SINGLE)
def _single(ctx: Context, operation: Operation) -> None:
    type_, number = element_type(operation.result.type), SINGLE[operation.name]
    f32 = ctx.module.float(32)
    if type_ == FloatType("f64") and operation.name in ("math.sqrt", "math.rsqrt"):
        f64 = ctx.type_id(type_)
        map_registers(ctx, operation, lambda a: ctx.f.glsl(number, f64, a))
        return
    map_registers(ctx, operation, lambda a: in_single(ctx, type_, lambda x: ctx.f.glsl(number, f32, x), a))


@lowers("math.absi")
def _absolute_integer(ctx: Context, operation: Operation) -> None:
    f = ctx.f
    map_registers(ctx, operation, lambda a: f.select(f.compare(op.SLessThan, a, f.constant_like(a, 0)),
                                                     f.sub(f.constant_like(a, 0), a), a))


@lowers("math.fma")
def _fma(ctx: Context, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    type_id = ctx.type_id(compute_type(type_))
    map_registers(ctx, operation, lambda a, b, c: narrow(
        ctx, ctx.f.glsl(Glsl.Fma, type_id, *(widen(ctx, value, type_) for value in (a, b, c))), type_))


@lowers("tt.mulhiui")
def _multiply_high(ctx: Context, operation: Operation) -> None:
    f, module = ctx.f, ctx.module

    def emit(a: int, b: int) -> int:
        type_id = f.type_of(a)
        width = module.kinds[type_id][1]
        if width == 32:
            product = f.mul(f.zero_extend(a, 64), f.zero_extend(b, 64))
            return f.zero_extend(f.shr(product, 32), 32)
        pair = module.pair(type_id)
        return f.emit(op.CompositeExtract, type_id, f.emit(op.UMulExtended, pair, a, b), 1)

    map_registers(ctx, operation, emit)
