"""The symbols of ``triton.language.extra.cuda.libdevice`` (NVIDIA's ``__nv_*``), each with the form that computes it.

Code that was written for CUDA imports that module by name. Most symbols are the function's name, and an ``f`` where it
takes f32; the tables have the others.
"""

from __future__ import annotations

from .forms import FORMS, Form

#: Functions with names of their own for some types: argument types → symbol.
_NAMED = {
    "clz": "i64 clzll",
    "popc": "i64 popcll",
    "ffs": "i64 ffsll",
    "brev": "i64 brevll",
    "mulhi": "u32,u32 umulhi i64,i64 mul64hi u64,u64 umul64hi",
    "mul24": "u32,u32 umul24",
    "sad": "u32,u32,u32 usad",
    "hadd": "u32,u32 uhadd",
    "rhadd": "u32,u32 urhadd",
    "abs": "i64 llabs f32 fabsf f64 fabs",
    "pow": "f32,i32 powif f64,i32 powi",
    "isnan": "f64 isnand",
    "isinf": "f64 isinfd",
    "signbit": "f64 signbitd",
    "fast_dividef": "f32,f32 fast_fdividef",
    "rsqrt_rn": "f32 frsqrt_rn",
}

#: Functions whose f32 form starts with ``f`` and whose f64 form with ``d``, in every rounding mode.
_LETTERED = frozenset(
    f"{name}_{mode}" for name in ("add", "sub", "mul", "div", "rcp", "sqrt") for mode in ("rn", "rz", "rd", "ru")
)


def _plain(name: str) -> bool:
    """Whether the name itself says that the function takes f32."""
    return name.startswith(("float2", "float_as_", "fast_")) or name in ("saturatef", "finitef")


def _symbol(name: str, form: Form) -> str:
    types = _NAMED.get(name, "").split()
    named = dict(zip(types[::2], types[1::2], strict=True)).get(",".join(form.arguments))
    single = "f32" in form.arguments
    if named is not None:
        return named
    if name in _LETTERED:
        return ("f" if single else "d") + name
    if not single or _plain(name):
        return name
    function, _, mode = name.partition("_")
    return f"{function}f_{mode}" if function == "fma" and mode else f"{name}f"


#: Types that CUDA's functions take; its integer functions except for four know no unsigned operands.
_UNSIGNED = frozenset({"mulhi", "mul24", "sad", "hadd", "rhadd"})

#: Functions of tl.extra.libdevice that upstream's module for CUDA does not have.
_NOT_IN_CUDA = frozenset({"fast_tanhf"})


def _forms() -> dict[str, Form]:
    found: dict[str, Form] = {}
    for name, forms in FORMS.items():
        for form in forms:
            if form.arguments[0][0] == "u" and "2" not in name and "_as_" not in name and name not in _UNSIGNED:
                continue
            if name not in _NOT_IN_CUDA:
                found.setdefault(f"__nv_{_symbol(name, form)}", form)
    return found


#: Symbol → form.
CUDA_SYMBOLS = _forms()
