"""The symbols of ``triton.language.extra.hip.libdevice`` (AMD's ``__ocml_*`` and ``__ockl_*``), each with the forms
that compute it: code that was written for AMD's GPUs imports that module by name."""

from __future__ import annotations

from .forms import FORMS, Form

#: AMD's name → the function, where they differ.
_NAMED = {
    "i0": "cyl_bessel_i0",
    "i1": "cyl_bessel_i1",
    "pown": "pow",
    "popcount": "popc",
    "fabs": "abs",
    "iabs": "abs",
    "fast_fdividef": "fast_dividef",
}

#: ``__ocml_NAME_f32`` and ``__ocml_NAME_f64``; the other functions of their types have no symbol there.
_OCML = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfcx erfinv exp exp2 expm1 floor fma fmod "
    "hypot i0 i1 ilogb isinf isnan j0 j1 ldexp lgamma log log10 log1p log2 nearbyint nextafter pow pown round rsqrt "
    "signbit sin sinh sqrt tan tanh trunc y0 y1"
).split()

#: Symbols that say nothing of their types.
_UNTYPED = "iabs fabs rint llrint fast_expf fast_tanhf fast_fdividef".split()


def _forms() -> dict[str, tuple[Form, ...]]:
    found: dict[str, tuple[Form, ...]] = {f"__triton_hip_{name}": FORMS[_NAMED.get(name, name)] for name in _UNTYPED}
    for name in _OCML:
        for width in ("f32", "f64"):
            forms = tuple(form for form in FORMS[_NAMED.get(name, name)] if form.arguments[0] == width)
            found[f"__ocml_{name}_{width}"] = forms
    for name in ("clz", "popcount"):
        for width in ("32", "64"):
            forms = tuple(form for form in FORMS[_NAMED.get(name, name)] if form.arguments == (f"i{width}",))
            found[f"__ockl_{name}_u{width}"] = forms
    found["__ocml_isfinite_f32"], found["__ocml_isfinite_f64"] = FORMS["finitef"], FORMS["isfinited"]
    return found


#: Symbol → forms, of which the types of the arguments choose one.
HIP_SYMBOLS = _forms()
