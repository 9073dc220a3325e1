"""What torch's elementwise operations compute: a table of expressions, and how their types are promoted.

Names are as in the operation's schema: ``self``, ``other``, ``alpha`` … An expression is computed in the type that
promotion gives. ``INTEGER`` has the expressions for integers that differ.
"""

from __future__ import annotations

#: Types of results: what operands promote to; torch's default float where that is no float; bool.
DEFAULT, TO_FLOAT, TO_BOOL = "default", "to float", "to bool"


def _libdevice(*names: str) -> dict[str, str]:
    return {name.split("=")[0]: f"libdevice.{name.split('=')[-1]}(self)" for name in names}


def _compare(**signs: str) -> dict[str, str]:
    return {name: f"self {sign} other" for name, sign in signs.items()}


_GELU_TANH = "(1 + fn.tanh(fn.tanh_gelu_inner(self)))"
_I0, _I1 = "libdevice.cyl_bessel_i0(self)", "tl.where(self == 0, 0.0, libdevice.cyl_bessel_i1(self))"
_NORMAL_DENSITY = "libdevice.exp(self * self * -0.5) * 0.3989422804014327"

#: Of floats from whatever is passed: integers become torch's default float.
UNARY_FLOAT = {
    **_libdevice("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    **_libdevice("sinh", "cosh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "erf", "erfc", "erfinv"),
    **_libdevice("lgamma", "special_erfcx=erfcx"),
    "special_ndtri": "libdevice.normcdfinv(self) + 0.0",
    "sigmoid": "fn.sigmoid(self)",
    "tanh": "fn.tanh(self)",
    "reciprocal": "fn.reciprocal(self)",
    "special_entr": "fn.entropy(self)",
    "rad2deg": "self * 57.29577951308232",
    "deg2rad": "self * 0.017453292519943295",
    "angle": "tl.where(self != self, self, (self < 0).to(self.dtype) * 3.141592653589793)",
    "digamma": "sp.digamma(self)",
    "i0": _I0,
    "special_i0e": "sp.i0e(self)",
    "special_i1": _I1,
    "special_i1e": "sp.i1e(self)",
    "special_modified_bessel_i0": _I0,
    "special_modified_bessel_i1": _I1,
    "special_log_ndtr": "sp.log_ndtr(self)",
    "special_bessel_j0": "libdevice.j0(self)",
    "special_bessel_j1": "libdevice.j1(self)",
    "special_bessel_y0": "libdevice.y0(self)",
    "special_bessel_y1": "libdevice.y1(self)",
    "special_spherical_bessel_j0": ("tl.where(fn.is_infinite(x), 0.0, tl.where(x == 0, 1.0, libdevice.sin(x) / x))"),
    "sinc": "tl.where(self == 0, 1.0, libdevice.sinpi(self) / (self * 3.141592653589793))",
}

#: Of two, of floats from whatever is passed.
BINARY_FLOAT = {
    "div": "fn.div(self, other)",
    "atan2": "libdevice.atan2(self, other)",
    "xlogy": "fn.xlogy(self, other)",
    "special_xlog1py": "fn.xlog1py(self, other)",
    "special_zeta": "sp.zeta(self, other)",
    "copysign": "libdevice.copysign(self, other)",
}

#: Of one type, which integers keep.
DEFAULTS = {
    "abs": "tl.abs(self)",
    "neg": "-self",
    "sgn": "fn.sign(self)",
    "sign": "fn.sign(self)",
    "floor": "libdevice.floor(self)",
    "ceil": "libdevice.ceil(self)",
    "trunc": "libdevice.trunc(self)",
    "round": "libdevice.rint(self)",
    "frac": "self - libdevice.trunc(self)",
    "relu": "tl.where(self < 0, 0.0, self)",
    "add": "self + alpha * other",
    "sub": "self - alpha * other",
    "rsub": "other - alpha * self",
    "mul": "self * other",
    "remainder": "fn.remainder(self, other)",
    "fmod": "libdevice.fmod(self, other)",
    "floor_divide": "fn.floor_div(self, other)",
    "maximum": "fn.maximum(self, other)",
    "minimum": "fn.minimum(self, other)",
    "gcd": "fn.gcd(self + zero, other + zero)",
    "lcm": "fn.lcm(self + zero, other + zero)",
    "fmax": "tl.maximum(self, other)",
    "fmin": "tl.minimum(self, other)",
    "hypot": "libdevice.hypot(self, other)",
    "logaddexp": "fn.log_add_exp(self, other)",
    "logaddexp2": "fn.log_add_exp2(self, other)",
    "heaviside": "tl.where(self == 0, values, (self > 0).to(self.dtype))",
    "addcmul": "self + value * tensor1 * tensor2",
    "addcdiv": "self + value * fn.div(tensor1, tensor2)",
    "lerp": "fn.lerp(self, end, weight)",
    "square": "self * self",
}

#: Where integers are computed otherwise.
INTEGERS = {
    "pow:": "fn.int_pow(self, exponent)",
    "floor": "self",
    "ceil": "self",
    "trunc": "self",
    "round": "self",
    "relu": "tl.where(self <= 0, self * 0, self)",
    "fmod": "self % other",
    "heaviside": "tl.where(self == 0, values, (self > 0).to(self.dtype))",
    "isnan": "self != self",
    "isinf": "self != self",
    "isfinite": "self == self",
    "signbit": "self < 0",
}

BITWISE = {
    "bitwise_and": "self & other",
    "bitwise_or": "self | other",
    "bitwise_xor": "self ^ other",
    "bitwise_not": "~self",
    "bitwise_left_shift": "fn.shift_left(self, other)",
    "bitwise_right_shift": "fn.shift_right(self, other)",
    "__lshift__": "fn.shift_left(self, other)",
    "__rshift__": "fn.shift_right(self, other)",
}

#: Of integers alone: torch refuses floating-point numbers.
INTEGERS_ONLY = frozenset(("gcd", "lcm", *BITWISE))

PREDICATES = {
    **_compare(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">="),
    "logical_and": "(self != 0) & (other != 0)",
    "logical_or": "(self != 0) | (other != 0)",
    "logical_xor": "(self != 0) != (other != 0)",
    "logical_not": "self == 0",
    "isnan": "self != self",
    "isinf": "fn.is_infinite(self)",
    "isposinf": 'self == float("inf")',
    "isneginf": 'self == float("-inf")',
    "isfinite": '(self == self) & (tl.abs(self) != float("inf"))',
    "signbit": "libdevice.signbit(self)",
}

#: Activations, of floats alone, with their backward formulas.
ACTIVATIONS = {
    "silu": "fn.gated(self, self)",
    "silu_backward": "fn.gated(grad_output * (1 + self * (1 - fn.sigmoid(self))), self)",
    "sigmoid_backward": "grad_output * (1 - output) * output",
    "tanh_backward": "grad_output * (1 - output * output)",
    "leaky_relu": "tl.where(self > 0, self, self * negative_slope)",
    "hardtanh": "fn.between(self, min_val, max_val)",
    "hardsigmoid": "fn.minimum(fn.maximum(self + 3, 0.0), 6.0) / 6",
    "hardswish": "self * fn.minimum(fn.maximum(self + 3, 0.0), 6.0) / 6",
    "mish": "self * fn.tanh(libdevice.log1p(libdevice.exp(self)))",
    "softplus": "fn.softplus(self, beta, threshold)",
    "elu": "tl.where(self > 0, self * scale, libdevice.expm1(self * input_scale) * alpha * scale)",
    "hardshrink": "tl.where((self >= -lambd) & (self <= lambd), 0.0, self)",
    "softshrink": "tl.where(self > lambd, self - lambd, tl.where(self < -lambd, self + lambd, self * 0))",
    "threshold": "tl.where(self <= threshold, value, self)",
    "threshold_backward": "tl.where(self <= threshold, 0.0, grad_output)",
    "leaky_relu_backward": "tl.where(self > 0, grad_output, grad_output * negative_slope)",
    "hardtanh_backward": "tl.where((self <= min_val) | (self >= max_val), 0.0, grad_output)",
    "hardsigmoid_backward": "tl.where((self > -3) & (self < 3), grad_output / 6, 0.0)",
    "hardswish_backward": "tl.where(self <= -3, 0.0, tl.where(self < 3, grad_output * (self / 3 + 0.5), grad_output))",
    "hardshrink_backward": "tl.where((self >= -lambd) & (self <= lambd), 0.0, grad_out)",
    "softshrink_backward": "tl.where((self >= -lambd) & (self <= lambd), 0.0, grad_output)",
    "softplus_backward": "tl.where(self * beta > threshold, grad_output, grad_output * fn.falling(-self * beta))",
    "logit_backward": "tl.where((self < 0) | (self > 1), float('nan'), grad_output / (self * (1 - self)))",
    "_prelu_kernel": "tl.where(self > 0, self, weight * self)",
}

#: With the text that is among their arguments: ``approximate``, ``rounding_mode``.
BY_TEXT = {
    ("div", "trunc"): "fn.trunc_div(self, other)",
    ("div", "floor"): "fn.floor_div(self, other)",
    ("gelu", "none"): "self * 0.5 * (1 + libdevice.erf(self * 0.7071067811865476))",
    ("gelu", "tanh"): f"0.5 * self * {_GELU_TANH}",
    ("gelu_backward", "none"): (
        f"grad_output * (0.5 * (1 + libdevice.erf(self * 0.7071067811865476)) + self * {_NORMAL_DENSITY})"
    ),
    ("gelu_backward", "tanh"): (
        f"grad_output * (0.5 * {_GELU_TANH} + 0.5 * self * (1 - fn.tanh(fn.tanh_gelu_inner(self)) * "
        "fn.tanh(fn.tanh_gelu_inner(self))) * 0.7978845608028654 * (1 + 0.134145 * self * self))"
    ),
}

#: Exponents that have a case of their own; of integers, 1, 2 and 3 do: to the power 2.0 they are floats.
POWERS = {1.0: "1", 2.0: "2", 3.0: "3", 0.5: "0.5", -0.5: "-0.5", -1.0: "-1", -2.0: "-2"}

#: Of an operation and a case that cases.py tells apart.
CASES = {
    "clamp:both": "fn.minimum(fn.maximum(self, min), max)",
    "clamp:min": "fn.maximum(self, min)",
    "clamp:max": "fn.minimum(self, max)",
    "pow:1": "self",  # in the gradient of a square
    "pow:2": "self * self",
    "pow:3": "self * self * self",
    "pow:0.5": "libdevice.sqrt(self)",
    "pow:-0.5": "libdevice.rsqrt(self)",
    "pow:-1": "fn.reciprocal(self)",
    "pow:-2": "fn.reciprocal(self * self)",
    "pow:": "libdevice.pow(self, exponent)",
    "nan_to_num:": (
        'tl.where(self != self, nan, tl.where(self == float("inf"), posinf, '
        'tl.where(self == float("-inf"), neginf, self)))'
    ),
    "polygamma:0": "sp.digamma(self)",
    "polygamma:": "factor * sp.zeta(order, self)",
    "logit_backward:eps": "tl.where((self < eps) | (self > 1 - eps), 0.0, grad_output / (self * (1 - self)))",
    "logit:": "libdevice.log(self / (1 - self))",
    "logit:eps": (
        "libdevice.log(tl.where(self < eps, eps, fn.minimum(self, 1 - eps)) / "
        "(1 - tl.where(self < eps, eps, fn.minimum(self, 1 - eps))))"
    ),
    "elu_backward:input": (
        "tl.where(self_or_result <= 0, grad_output * input_scale * alpha * scale * "
        "libdevice.exp(self_or_result * input_scale), grad_output * scale)"
    ),
    "elu_backward:result": (
        "tl.where(self_or_result <= 0, grad_output * input_scale * (self_or_result + alpha * scale), "
        "grad_output * scale)"
    ),
    "round:after": "fn.div(libdevice.rint(self * power), power)",
    "round:before": "libdevice.rint(fn.div(self, power)) * power",
    "mse_loss:": "(self - target) * (self - target)",
    "smooth_l1_loss:": "fn.smooth_l1(self - target, beta)",
    "huber_loss:": "fn.huber(self - target, delta)",
    "mse_loss_backward:": "factor * (self - target) * grad_output",
    "smooth_l1_loss_backward:": (
        "factor * grad_output * tl.where(self - target <= -beta, -1.0, "
        "tl.where(self - target >= beta, 1.0, (self - target) / beta))"
    ),
    "huber_loss_backward:": ("factor * grad_output * fn.minimum(fn.maximum(self - target, -delta), delta)"),
    "binary_cross_entropy:": (
        "(target - 1) * fn.maximum(libdevice.log1p(-self), self * 0 - 100) - "
        "target * fn.maximum(libdevice.log(self), self * 0 - 100)"
    ),
    "binary_cross_entropy_backward:": (
        "factor * grad_output * (self - target) / fn.maximum((1 - self) * self, self * 0 + 1e-12)"
    ),
    "binary_cross_entropy_with_logits:": "(1 - target) * self - fn.log_sigmoid(self)",
    "binary_cross_entropy_with_logits:weight": (
        "(1 - target) * self - (1 + (weight - 1) * target) * fn.log_sigmoid(self)"
    ),
    "log_sigmoid:": "fn.log_sigmoid(self)",
    "log_sigmoid_backward:": "grad_output * fn.falling(self)",
    "mish_backward:": "grad_output * fn.mish_slope(self)",
    "nextafter:": "libdevice.nextafter(self, other)",
    "nextafter:halves": "fn.next_half(self, other, infinity)",
}

#: Operation, with ":" and its text or case → how its result's type follows from its operands'.
PROMOTIONS = {
    **dict.fromkeys((*UNARY_FLOAT, *BINARY_FLOAT), TO_FLOAT),
    **dict.fromkeys((*DEFAULTS, *BITWISE, *ACTIVATIONS, "gelu", "gelu_backward"), DEFAULT),
    **dict.fromkeys(PREDICATES, TO_BOOL),
}
PROMOTIONS |= dict.fromkeys(CASES, DEFAULT)
PROMOTIONS |= {f"{name}:{text}": DEFAULT for name, text in BY_TEXT}
EXPRESSIONS = {**UNARY_FLOAT, **BINARY_FLOAT, **DEFAULTS, **BITWISE, **PREDICATES, **ACTIVATIONS, **CASES}
