"""The ``math`` dialect, and Triton's own precise and extended arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from ..analysis.code_size import fma_is_one_instruction
from ..spirv import opcodes as op
from ..spirv.opcodes import Glsl
from ..ttgir.ir import Operation
from ..ttgir.operations import MEDIUM, OPERATIONS
from ..ttgir.types import FloatType, Type, element_type
from .defined_integers import multiply_high, negative
from .elementwise import map_registers
from .floats import F32, compute_type, convert, narrow, widen
from .lowering import Lowering
from .numerics import elementary, exact_functions, integer_functions, native, precise, quotients, special
from .numerics.numeric import Bool, Int, Numeric, Real
from .numerics.powers import power_any
from .registry import lowers
from .rolled import map_rolled
from .zeros import kept_zero

BF16, F64 = FloatType("bf16"), FloatType("f64")
Formula = Callable[..., Real]

#: Exact in every format: one GLSL.std.450 instruction for f16, f32 and f64 alike.
EXACT = {"math.absf": Glsl.FAbs, "math.floor": Glsl.Floor, "math.ceil": Glsl.Ceil}

#: Exact, too, but not one instruction, or not in f64 on every driver (Numeric.trunc); and the quotient of the driver.
SHORT: dict[str, Formula] = {
    "math.trunc": lambda n, x: x.trunc(),
    "math.roundeven": lambda n, x: x.rint(),
    "math.round": exact_functions.round_away,
    "math.copysign": lambda n, x, y: x.with_sign_of(y),
    "math.clampf": lambda n, x, low, high: n.minimum(n.maximum(x, low), high),
    "tt.approx_divf": lambda n, x, y: x / y,
}

#: Functions in f32 and f64; f16 and bf16 are computed in f32 and rounded.
ELEMENTARY: dict[str, Formula] = {
    "math.exp": native.exp,
    "math.exp2": native.exp2,
    "math.expm1": elementary.expm1,
    "math.log": elementary.log,
    "math.log2": elementary.log2,
    "math.log10": elementary.log10,
    "math.log1p": elementary.log1p,
    "math.sin": elementary.sin,
    "math.cos": elementary.cos,
    "math.tan": elementary.tan,
    "math.tanh": elementary.tanh,
    "math.sinh": elementary.sinh,
    "math.cosh": elementary.cosh,
    "math.asin": elementary.asin,
    "math.acos": elementary.acos,
    "math.atan": elementary.atan,
    "math.asinh": elementary.asinh,
    "math.acosh": elementary.acosh,
    "math.atanh": elementary.atanh,
    "math.atan2": elementary.atan2,
    "math.cbrt": elementary.cbrt,
    "math.sqrt": elementary.sqrt,
    "math.rsqrt": elementary.rsqrt,
}


def in_format(ctx: Lowering, type_: Type, function: Formula, *values: int) -> int:
    """``function`` of a Numeric and Reals, on values of ``type_``: f64 in f64, narrower formats in f32."""
    computed = F64 if type_ == F64 else F32
    n = Numeric(ctx, computed.width)
    result = function(n, *(n.wrap(convert(ctx, value, type_, computed)) for value in values))
    return convert(ctx, result.id, computed, type_)


def in_double(function: Formula) -> Formula:
    """``function`` computed in f64 and rounded, whatever the arithmetic it is called with; one of special.IN_SINGLE
    where there is no f64 in the arithmetic itself."""

    def emit(n: Numeric, *values: Real) -> Real:
        if function in special.IN_SINGLE and not n.emitter.capabilities.has("float64"):
            return function(n, *values)
        wide = n if n.width == 64 else Numeric(n.emitter, 64)
        return n.convert(function(wide, *(wide.convert(value) for value in values)))

    return emit


def erf(n: Numeric, x: Real) -> Real:
    """The error function, in an own form for each width."""
    return special.erf_single(n, x) if n.width == 32 else special.erf(n, x)


#: Functions that are computed in a loop over registers where there are many (planning/rolling.py).
LENGTHY: dict[str, Formula] = {"math.erf": erf, "math.erfc": in_double(special.erfc), "math.powf": power_any}
LENGTHY |= {"tt.precise_sqrt": quotients.sqrt, "tt.precise_divf": quotients.divide}
LENGTHY |= {name: ELEMENTARY.pop(name) for name in list(ELEMENTARY) if OPERATIONS[name].length >= MEDIUM}


@lowers(*EXACT)
def _exact(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    type_id, number = ctx.type_id(compute_type(ctx, type_)), EXACT[operation.name]
    map_registers(ctx, operation, lambda a: narrow(ctx, ctx.f.glsl(number, type_id, widen(ctx, a, type_)), type_))


@lowers(*ELEMENTARY, *SHORT)
def _elementary(ctx: Lowering, operation: Operation) -> None:
    type_, function = element_type(operation.result.type), (ELEMENTARY | SHORT)[operation.name]
    map_registers(ctx, operation, lambda *values: in_format(ctx, type_, function, *values))


@lowers(*LENGTHY)
def _lengthy(ctx: Lowering, operation: Operation) -> None:
    type_, function = element_type(operation.result.type), LENGTHY[operation.name]
    map_rolled(ctx, operation, lambda *values: in_format(ctx, type_, function, *values))


@lowers("math.absi")
def _absolute_integer(ctx: Lowering, operation: Operation) -> None:
    f = ctx.f
    map_registers(
        ctx, operation, lambda a: f.select(f.compare(op.SLessThan, a, f.constant_like(a, 0)), negative(ctx, a), a)
    )


@lowers("math.fma")
def _fma(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    if fma_is_one_instruction(type_, ctx.capabilities.traits):
        type_id = ctx.type_id(type_)
        map_registers(ctx, operation, lambda a, b, c: ctx.f.glsl(Glsl.Fma, type_id, a, b, c))
        return
    function = precise.fma if type_ in (F32, F64) else _bfloat_fma if type_ == BF16 else _short_fma
    map_rolled(
        ctx,
        operation,
        lambda *values: in_format(ctx, type_, function, *(kept_zero(ctx, value, type_) for value in values)),
    )


def _short_fma(n: Numeric, a: Real, b: Real, c: Real) -> Real:
    """a b + c, so that rounding it to 11 or fewer bits is one rounding: the product of such numbers is exact in f32,
    and the sum is rounded to odd."""
    return precise.odd_sum(n, a * b, c)


def _bfloat_fma(n: Numeric, a: Real, b: Real, c: Real) -> Real:
    """A fused multiply-add of bfloat16, whose products may over- or underflow: those are computed in integers."""
    product = a * b
    size = abs(product)
    exact = ((size > 2.0**-110) & (size < 2.0**126)) | a.is_zero() | b.is_zero()
    (found,) = n.branch(~exact, lambda: [precise.fma(n, a, b, c, "odd")], [precise.odd_sum(n, product, c)])
    return found


#: Predicates of a float by its class.
CLASSES: dict[str, Callable[[Real], Bool]] = {
    "math.isnan": Real.is_nan,
    "math.isinf": Real.is_inf,
    "math.isfinite": Real.is_finite,
    "math.isnormal": lambda x: x.is_finite() & ~x.magnitude().ult(1 << x.n.mantissa),
}


@lowers(*CLASSES)
def _class(ctx: Lowering, operation: Operation) -> None:
    type_, predicate = element_type(operation["operand"].type), CLASSES[operation.name]
    if operation.name == "math.isnormal" and type_ not in (F32, F64):
        raise NotImplementedError(
            f"isnormal of {type_} is not supported; compare the magnitude with the smallest normal number"
        )
    computed = F64 if type_ == F64 else F32
    n = Numeric(ctx, computed.width)
    map_registers(ctx, operation, lambda a: predicate(n.wrap(convert(ctx, a, type_, computed))).id)


@lowers("math.fpowi")
def _integer_power(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation.result.type)
    computed = F64 if type_ == F64 else F32

    def emit(base: int, exponent: int) -> int:
        n = Numeric(ctx, computed.width)
        x = n.wrap(convert(ctx, base, type_, computed))
        return convert(ctx, power_any(n, x, Int(n, exponent)).id, computed, type_)

    map_rolled(ctx, operation, emit)


@lowers("math.ipowi")
def _power_of_integers(ctx: Lowering, operation: Operation) -> None:
    n = Numeric(ctx, 32)
    map_rolled(ctx, operation, lambda a, b: integer_functions.power(n, Int(n, a), Int(n, b)).id)


@lowers("math.sincos")
def _sine_and_cosine(ctx: Lowering, operation: Operation) -> None:
    type_ = element_type(operation["operand"].type)
    for result, function in zip(operation.results, (elementary.sin, elementary.cos), strict=True):
        ctx.define(result, [in_format(ctx, type_, function, a) for a in ctx.registers(operation["operand"])])


@lowers("math.ctlz", "math.cttz", "math.ctpop")
def _count_bits(ctx: Lowering, operation: Operation) -> None:
    n = Numeric(ctx, 32)

    def emit(a: int) -> int:
        value = Int(n, a)
        width = value.width
        wide = value if width >= 32 else value.resize(32)
        if operation.name == "math.ctpop":
            count = integer_functions.popc(n, wide)
        elif operation.name == "math.ctlz":
            count = integer_functions.clz(n, wide) - (wide.width - width)
        else:
            count = integer_functions.ffs(n, wide) - 1
            count = n.where(wide.eq(0), width, count)
        return count.resize(width).id

    map_registers(ctx, operation, emit)


@lowers("tt.mulhiui")
def _multiply_high(ctx: Lowering, operation: Operation) -> None:
    map_registers(ctx, operation, lambda a, b: multiply_high(ctx, a, b))
