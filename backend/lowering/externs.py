"""``tt.extern_elementwise``: the functions of ``tl.extra.libdevice``, of CUDA's and HIP's libdevice and of
``tl.extra.cuda``, by symbol."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..functions.forms import IN_DOUBLE, Form
from ..functions.symbols import form_of
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType, element_type
from .errors import UnsupportedOperation
from .hardware import READS
from .lowering import Lowering
from .math import erf, in_double
from .numerics import elementary, exact_functions, integer_functions, native, precise, quotients, special
from .numerics.conversions import from_integer, saturate, to_integer
from .numerics.numeric import Bool, Int, Numeric, Real
from .numerics.powers import power_any
from .numerics.remainder import remainder as fmod
from .registry import lowers
from .rolled import map_rolled

Formula = Callable[..., "Real | Int | Bool"]


def absolute(n: Numeric, x: Int | Real) -> Int | Real:
    """|x|."""
    return n.where(x.slt(0), 0 - x, x) if isinstance(x, Int) else abs(x)


# -- conversions -------------------------------------------------------------------------------------------------
def same_bits(n: Numeric, x: Int | Real) -> Int | Real:
    """Float bits as an integer, or the other way round."""
    return x.bits() if isinstance(x, Real) else x.as_real()


def hiloint2double(n: Numeric, high: Int, low: Int) -> Real:
    """The f64 of two halves of its bits."""
    return ((high.resize(64) << 32) | low.resize(64)).as_real()


# -- floats ------------------------------------------------------------------------------------------------------
def rcp64h(n: Numeric, x: Real) -> Real:
    """1/x with the low 32 bits cleared."""
    return ((1.0 / x).bits() & (0xFFFFFFFF << 32)).as_real()


def reciprocal_root(n: Numeric, x: Real) -> Real:
    """1/sqrt(x), rounded once except for ties that no f32 meets: the f64 result is off by less than 2^-51."""
    if not n.emitter.capabilities.has("float64"):
        return elementary.rsqrt_corrected(n, x)
    wide = Numeric(n.emitter, 64)
    return n.convert(elementary.rsqrt(wide, wide.convert(x)))


def fast_power(n: Numeric, x: Real, y: Real) -> Real:
    """2^(y log2(x))."""
    return elementary.exp2(n, y * elementary.log2(n, x))


def bessel_n(n: Numeric, order: Int, x: Real, function: Callable[..., Real]) -> Real:
    """A Bessel function of integer order, in f64."""
    wide = n if n.width == 64 else Numeric(n.emitter, 64)
    return n.convert(function(wide, Int(wide, order.id), wide.convert(x)))


def subtract(n: Numeric, a: Real, b: Real, mode: str) -> Real:
    """a - b."""
    return precise.add(n, a, -b, mode) if mode != "rn" else a - b


def reciprocal(n: Numeric, x: Real, mode: str) -> Real:
    """1/x."""
    return quotients.divide(n, n.real(1.0), x, mode)


#: Functions of the arithmetic's own width.
_SAME_WIDTH = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh "
    "acosh atanh cbrt rcbrt sqrt rsqrt atan2 hypot rhypot"
).split()

#: Functions in every rounding mode.
_ROUNDED: dict[str, Formula] = {
    "add": precise.add,
    "sub": subtract,
    "mul": precise.multiply,
    "div": quotients.divide,
    "fma": precise.fma,
    "sqrt": quotients.sqrt,
    "rcp": reciprocal,
    "double2float": precise.convert,
}

EMITTERS: dict[str, Formula] = {
    **{name: getattr(elementary, name) for name in _SAME_WIDTH},
    **{name: in_double(getattr(special, name)) for name in IN_DOUBLE},
    **{f"{name}_{mode}": partial(function, mode=mode) for mode in precise.MODES for name, function in _ROUNDED.items()},
    **{
        f"{source}2{name}_{mode}": partial(to_integer, mode=mode, width=width, signed=signed)
        for mode in precise.MODES
        for source in ("float", "double")
        for name, width, signed in (("int", 32, True), ("uint", 32, False), ("ll", 64, True), ("ull", 64, False))
    },
    **{
        f"{name}2{target}_{mode}": partial(from_integer, mode=mode, signed=signed)
        for mode in precise.MODES
        for target in ("float", "double")
        for name, signed in (("int", True), ("uint", False), ("ll", True), ("ull", False))
    },
    **{
        name: same_bits
        for name in (
            "float_as_int",
            "float_as_uint",
            "int_as_float",
            "uint_as_float",
            "double_as_longlong",
            "longlong_as_double",
        )
    },
    **{
        name: getattr(integer_functions, name)
        for name in "clz ffs popc brev byte_perm mulhi mul24 sad hadd rhadd".split()
    },
    "abs": absolute,
    "floor": lambda n, x: x.floor(),
    "ceil": lambda n, x: x.ceil(),
    "trunc": lambda n, x: x.trunc(),
    "rint": lambda n, x: x.rint(),
    "nearbyint": lambda n, x: x.rint(),
    "round": exact_functions.round_away,
    "logb": exact_functions.logb,
    "ilogb": exact_functions.ilogb,
    "copysign": lambda n, x, y: x.with_sign_of(y),
    "nextafter": exact_functions.next_after,
    "fmod": fmod,
    "remainder": exact_functions.remainder,
    "fdim": exact_functions.positive_difference,
    "ldexp": exact_functions.ldexp,
    "scalbn": exact_functions.ldexp,
    "fma": precise.fma,
    "norm3d": elementary.hypot,
    "norm4d": elementary.hypot,
    "rnorm3d": elementary.rhypot,
    "rnorm4d": elementary.rhypot,
    "pow": power_any,
    "erf": erf,
    "jn": partial(bessel_n, function=special.jn),
    "yn": partial(bessel_n, function=special.yn),
    "rcp64h": rcp64h,
    "saturatef": saturate,
    "rsqrt_rn": reciprocal_root,
    "fast_sinf": elementary.sin,
    "fast_cosf": elementary.cos,
    "fast_tanf": elementary.tan,
    "fast_tanhf": native.tanh,
    "fast_expf": native.exp,
    "fast_exp10f": elementary.exp10,
    "fast_logf": elementary.log,
    "fast_log2f": elementary.log2,
    "fast_log10f": elementary.log10,
    "fast_dividef": native.divide,
    "fast_powf": fast_power,
    "isnan": lambda n, x: x.is_nan(),
    "isinf": lambda n, x: x.is_inf(),
    "finitef": lambda n, x: x.is_finite(),
    "isfinited": lambda n, x: x.is_finite(),
    "signbit": lambda n, x: x.negative(),
    "llrint": partial(to_integer, mode="rn", width=64, signed=True),
    "llround": lambda n, x: to_integer(n, exact_functions.round_away(n, x), "rz", 64, True),
    "double2loint": lambda n, x: x.bits().resize(32),
    "double2hiint": lambda n, x: (x.bits() >> 32).resize(32),
    "hiloint2double": hiloint2double,
}

#: Integer functions that differ with signedness.
_SIGNED = frozenset({"mulhi", "mul24", "sad", "hadd", "rhadd"})


def _arithmetic(form: Form) -> int:
    """Width of the float arithmetic of a form: that of the result, else of the operand; 32 if there are none."""
    floats = [code for code in (form.result, *form.arguments) if code[0] == "f"]
    return int(floats[0][1:]) if floats else 32


@lowers("tt.extern_elementwise")
def _extern(ctx: Lowering, operation: Operation) -> None:
    symbol = operation.attribute("symbol")
    if symbol in READS:
        READS[symbol](ctx, operation)
        return
    form = form_of(symbol, [operand.type for operand in operation.operands])
    if form is None:
        raise UnsupportedOperation(
            operation,
            f"there is no function '{symbol}' for Vulkan devices",
            "use a function of tl.extra.libdevice, or write it in Triton",
        )
    if form.name not in EMITTERS:
        raise UnsupportedOperation(
            operation,
            f"libdevice.{form.name} has signatures in functions/forms.py, but no emitter",
            "a function of tl.extra.libdevice that has one, or add it to EMITTERS in lowering/externs.py",
        )
    emitter, given = EMITTERS[form.name], element_type(operation.result.type)
    if form.name in _SIGNED:
        emitter = partial(emitter, signed=form.arguments[0][0] == "i")

    def emit(*ids: int) -> int:
        values: list[Any] = []
        n = Numeric(ctx, _arithmetic(form))
        for id_, code in zip(ids, form.arguments, strict=True):
            if code[0] == "f":
                width = int(code[1:])
                values.append(Real(n if width == n.width else Numeric(ctx, width), id_))
            else:
                values.append(Int(n, id_))
        result = emitter(n, *values)
        if isinstance(result, Bool):
            return n.where(result, n.integer(1, 32), 0).id
        if isinstance(result, Int) and isinstance(given, IntegerType) and given.width > result.width:
            return result.resize(given.width).id  # HIP's clz gives 64 bits of 64
        return result.id

    map_rolled(ctx, operation, emit)
