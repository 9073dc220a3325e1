"""The functions of ``tl.extra.libdevice``: which types each takes and gives, and the symbol of each form.

A signature is written ``arguments>result``, types as f32, i64, u32; a function has one form per signature.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ttgir.operations import LONG, MEDIUM, OPERATIONS, SHORT

#: Functions that are computed in f64 whatever their type.
IN_DOUBLE = (
    "erfc erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1"
).split()

#: How long functions are that no operation of ``math`` is named after (tests/lowering/test_code_size.py measures it);
#: the others are short.
_LENGTHS = {
    **dict.fromkeys("erfinv erfcinv normcdfinv lgamma tgamma j0 j1 y0 y1 jn yn pow".split(), LONG),
    **dict.fromkeys("erfcx normcdf cyl_bessel_i0 cyl_bessel_i1 fmod remainder sinpi cospi".split(), MEDIUM),
    **dict.fromkeys("rcbrt norm3d norm4d rnorm3d rnorm4d ldexp scalbn".split(), MEDIUM),
    **dict.fromkeys("fast_sinf fast_cosf fast_tanf fast_powf".split(), MEDIUM),
    **{f"{name}_r{to}": MEDIUM for name in "add sub mul double2float".split() for to in "zdu"},
    **{f"{name}_r{to}": MEDIUM for name in "div fma rcp sqrt".split() for to in "nzdu"},
}


@dataclass(frozen=True)
class Form:
    """One form of a function: type codes. ``predicate``: the int32 result is a truth value."""

    name: str
    arguments: tuple[str, ...]
    result: str
    predicate: bool

    @property
    def symbol(self) -> str:
        """The name in ``tt.extern_elementwise``."""
        return f"__spirv_{self.name}_{'_'.join(self.arguments)}"

    @property
    def length(self) -> int:
        """The length of the code of one register, roughly, in instructions (ttgir.operations.Definition)."""
        row = OPERATIONS.get(f"math.{self.name}")
        return _LENGTHS.get(self.name, SHORT) if row is None else row.length


_ROUNDED = "{0}_rn {0}_rz {0}_rd {0}_ru"

#: Signatures → the functions that have them.
_TABLE = {
    "i32>i32 u32>i32 i64>i32 u64>i32": "clz popc ffs",
    "i32>i32 u32>u32 i64>i64 u64>u64": "brev",
    "i32,i32,i32>i32": "byte_perm",
    "i32,i32>i32 u32,u32>u32 i64,i64>i64 u64,u64>u64": "mulhi",
    "i32,i32>i32 u32,u32>u32": "mul24 hadd rhadd",
    "i32,i32,u32>i32 u32,u32,u32>u32": "sad",
    "i32>i32 i64>i64 f32>f32 f64>f64": "abs",
    "f32>f32 f64>f64": " ".join(
        [
            "floor ceil trunc rint nearbyint round rsqrt sqrt exp exp2 exp10 expm1 log log2 log10 log1p logb",
            "sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh cbrt rcbrt",
            "erf erfc erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1",
            _ROUNDED.format("rcp"),
            _ROUNDED.format("sqrt"),
        ]
    ),
    "f32,f32>f32 f64,f64>f64": " ".join(
        [
            "copysign nextafter atan2 hypot rhypot fmod remainder fdim",
            *(_ROUNDED.format(name) for name in ("add", "sub", "mul", "div")),
        ]
    ),
    "f32,f32,f32>f32 f64,f64,f64>f64": f"fma norm3d rnorm3d {_ROUNDED.format('fma')}",
    "f32,f32,f32,f32>f32 f64,f64,f64,f64>f64": "norm4d rnorm4d",
    "f32,f32>f32 f64,f64>f64 f32,i32>f32 f64,i32>f64": "pow",
    "f32,i32>f32 f64,i32>f64": "ldexp scalbn",
    "i32,f32>f32 i32,f64>f64": "jn yn",
    "f64>f64": "rcp64h",
    "f32>f32": "saturatef rsqrt_rn fast_sinf fast_cosf fast_tanf fast_tanhf fast_expf fast_exp10f fast_logf fast_log2f "
    "fast_log10f",
    "f32,f32>f32": "fast_dividef fast_powf",
    "f32>i32! f64>i32!": "isnan isinf",
    "f32>i32!": "finitef",
    "f64>i32!": "isfinited",
    "f32>i32 f64>i32": "signbit ilogb",
    "f32>i64 f64>i64": "llrint llround",
    "f64>f32": _ROUNDED.format("double2float"),
    "f64>i32": f"{_ROUNDED.format('double2int')} {_ROUNDED.format('double2uint')} double2loint double2hiint",
    "f64>i64": f"{_ROUNDED.format('double2ll')} {_ROUNDED.format('double2ull')} double_as_longlong",
    "f32>i32": f"{_ROUNDED.format('float2int')} {_ROUNDED.format('float2uint')} float_as_int float_as_uint",
    "f32>i64": f"{_ROUNDED.format('float2ll')} {_ROUNDED.format('float2ull')}",
    "i32>f32": f"{_ROUNDED.format('int2float')} int_as_float",
    "u32>f32": f"{_ROUNDED.format('uint2float')}",
    "u32>f32 i32>f32": "uint_as_float",
    "i32>f64": "int2double_rn",
    "u32>f64": "uint2double_rn",
    "i64>f32": _ROUNDED.format("ll2float"),
    "u64>f32": _ROUNDED.format("ull2float"),
    "i64>f64": f"{_ROUNDED.format('ll2double')} longlong_as_double",
    "u64>f64": _ROUNDED.format("ull2double"),
    "i32,i32>f64": "hiloint2double",
}


def _forms() -> dict[str, tuple[Form, ...]]:
    forms: dict[str, tuple[Form, ...]] = {}
    for signatures, names in _TABLE.items():
        for name in names.split():
            parsed = []
            for signature in signatures.split():
                arguments, result = signature.rstrip("!").split(">")
                parsed.append(Form(name, tuple(arguments.split(",")), result, signature.endswith("!")))
            forms[name] = tuple(parsed)
    return forms


#: Function → its forms.
FORMS: dict[str, tuple[Form, ...]] = _forms()

#: Symbol → form.
SYMBOLS = {form.symbol: form for forms in FORMS.values() for form in forms}
