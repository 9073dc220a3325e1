"""The dialect ``math``."""

from __future__ import annotations

from typing import Any

from .definition import LONG, MEDIUM, SHORT, define

_PURE: dict[str, Any] = {"repeatable": True, "elementwise": True}
_UNARY = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"
_BINARY = "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"

# fmt: off
define("math.absf math.acos math.asin math.atan math.ceil math.cosh math.exp math.exp2 math.expm1 math.floor "
       "math.log math.log10 math.log1p math.log2 math.round math.roundeven math.rsqrt math.sinh math.sqrt math.tanh "
       "math.trunc", "operand -> result", _UNARY, "fastmath?:flags", "same", **_PURE, length=SHORT, counts=1)
define("math.acosh math.asinh math.atanh math.cbrt math.cos math.erf math.sin math.tan", "operand -> result", _UNARY,
       "fastmath?:flags", "same", **_PURE, length=MEDIUM, counts=1)
define("math.erfc", "operand -> result", _UNARY, "fastmath?:flags", "same", **_PURE, length=LONG, counts=1)
define("math.absi math.ctlz math.ctpop math.cttz", "operand -> result", "$operand attr-dict `:` type($result)",
       equations="same", **_PURE, length=SHORT, counts=1)
define("math.isfinite math.isinf math.isnan math.isnormal", "operand -> result",
       "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($operand)", "fastmath?:flags", "result=i1(operand)",
       **_PURE, length=SHORT, counts=1)
define("math.atan2", "lhs rhs -> result", _BINARY, "fastmath?:flags", "same", **_PURE, length=MEDIUM, counts=1)
define("math.copysign", "lhs rhs -> result", _BINARY, "fastmath?:flags", "same", **_PURE, length=SHORT, counts=1)
define("math.powf", "lhs rhs -> result", _BINARY, "fastmath?:flags", "same", **_PURE, length=LONG, counts=1)
define("math.ipowi", "lhs rhs -> result", "$lhs `,` $rhs attr-dict `:` type($result)", equations="same", **_PURE,
       unbounded=True, length=MEDIUM, counts=1)
define("math.fpowi", "lhs rhs -> result",
       "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs) `,` type($rhs)", "fastmath?:flags",
       "result=lhs", **_PURE, length=LONG, counts=1)
define("math.fma", "a b c -> result", "$a `,` $b `,` $c (`fastmath` `` $fastmath^)? attr-dict `:` type($result)",
       "fastmath?:flags", "same", **_PURE, length=MEDIUM, counts=2)
define("math.clampf", "value min max -> result",
       "$value `to` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($result)", "fastmath?:flags",
       "same", **_PURE, length=SHORT, counts=1)
define("math.sincos", "operand -> sin cos", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($sin)",
       "fastmath?:flags", "same", **_PURE, length=SHORT, counts=1)
# fmt: on
