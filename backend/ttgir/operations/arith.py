"""The dialect ``arith``: numbers, comparisons, selections, casts."""

from __future__ import annotations

from typing import Any

from .. import custom, custom_printers
from ..ir import DenseAttr, Operation
from ..types import TensorType
from .definition import MEDIUM, Pointers, Refusal, define
from .type_checks import I1, with_element

_NEVER = Refusal(
    "neither Triton's front end nor its passes produce it for this backend",
    "write it with the operations of triton.language",
)


def _constant(operation: Operation) -> bool:
    value, type_ = operation.attributes["value"], operation.result.type
    if not isinstance(value, DenseAttr):
        return not isinstance(type_, TensorType)
    return value.type == type_ and isinstance(type_, TensorType) and len(value.values) in (1, type_.size)


def _selects(operation: Operation) -> bool:
    condition, one, other = operation.operands
    return one.type == other.type == operation.result.type and condition.type in (I1, with_element(one.type, I1))


_PURE: dict[str, Any] = {"repeatable": True, "elementwise": True}
_FAST = "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"
_BINARY = "$lhs `,` $rhs attr-dict `:` type($result)"
_OVERFLOWING = "$lhs `,` $rhs (`overflow` `` $overflowFlags^)? attr-dict `:` type($result)"
_ROUNDED = "$src ($roundingmode^)? (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `to` type($result)"
_TO = "$src attr-dict `:` type($src) `to` type($result)"

# fmt: off
define("arith.addi arith.muli", "lhs rhs -> result", _OVERFLOWING, "overflowFlags?:flags", "same", **_PURE,
       commutative=True, associative=True)
define("arith.subi arith.shli", "lhs rhs -> result", _OVERFLOWING, "overflowFlags?:flags", "same", **_PURE)
define("arith.divsi arith.divui arith.shrsi arith.shrui", "lhs rhs -> result",
       "$lhs `,` $rhs (`exact` $isExact^)? attr-dict `:` type($result)", "isExact:unit", "same", **_PURE)
define("arith.ceildivsi arith.ceildivui arith.floordivsi arith.remsi arith.remui", "lhs rhs -> result", _BINARY,
       equations="same", **_PURE)
define("arith.andi arith.ori arith.xori arith.maxsi arith.maxui arith.minsi arith.minui", "lhs rhs -> result", _BINARY,
       equations="same", **_PURE, commutative=True, associative=True)
define("arith.addf arith.mulf", "lhs rhs -> result", _FAST, "fastmath?:flags", "same", **_PURE, commutative=True,
       counts=1)
define("arith.subf arith.divf arith.maximumf arith.maxnumf arith.minimumf arith.minnumf", "lhs rhs -> result", _FAST,
       "fastmath?:flags", "same", **_PURE, counts=1)
define("arith.remf", "lhs rhs -> result", _FAST, "fastmath?:flags", "same", **_PURE, unbounded=True, length=MEDIUM,
       counts=1)
define("arith.negf", "operand -> result", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)",
       "fastmath?:flags", "same", **_PURE, counts=1)
define("arith.flush_denormals", "operand -> result", "$operand attr-dict `:` type($result)", equations="same", **_PURE,
       refused=_NEVER)
define("arith.cmpi", "lhs rhs -> result", "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)",
       "predicate:CmpIPredicate", "rhs=lhs result=i1(lhs)", **_PURE)
define("arith.cmpf", "lhs rhs -> result",
       "$predicate `,` $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs)",
       "predicate:CmpFPredicate fastmath?:flags", "rhs=lhs result=i1(lhs)", **_PURE)
define("arith.extsi arith.sitofp arith.fptosi arith.fptoui arith.bitcast arith.index_cast", "src -> result", _TO,
       **_PURE)
define("arith.extui arith.uitofp arith.index_castui", "src -> result",
       "$src (`nneg` $nonNeg^)? attr-dict `:` type($src) `to` type($result)", "nonNeg:unit", **_PURE)
define("arith.trunci", "src -> result",
       "$src (`overflow` `` $overflowFlags^)? attr-dict `:` type($src) `to` type($result)", "overflowFlags?:flags",
       **_PURE)
define("arith.extf", "src -> result", "$src (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `to` type($result)",
       "fastmath?:flags", **_PURE)
define("arith.truncf", "src -> result", _ROUNDED, "roundingmode?:ArithRoundingMode fastmath?:flags", **_PURE)
define("arith.convertf", "src -> result", _ROUNDED, "roundingmode?:ArithRoundingMode fastmath?:flags", **_PURE,
       refused=_NEVER)
define("arith.scaling_extf", "src scale -> result",
       "$src `,` $scale (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `,` type($scale) `to` type($result)",
       "fastmath?:flags", **_PURE, refused=_NEVER)
define("arith.scaling_truncf", "src scale -> result",
       "$src `,` $scale ($roundingmode^)? (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `,` type($scale) "
       "`to` type($result)", "roundingmode?:ArithRoundingMode fastmath?:flags", **_PURE, refused=_NEVER)
define("arith.mulsi_extended arith.mului_extended", "lhs rhs -> low high", "$lhs `,` $rhs attr-dict `:` type($lhs)",
       equations="same", **_PURE)
define("arith.addui_extended arith.subui_extended", "lhs rhs -> sum overflow",
       "$lhs `,` $rhs attr-dict `:` type($sum) `,` type($overflow)", equations="lhs=sum rhs=sum", **_PURE)
define("arith.constant", "-> result", "", "value", repeatable=True, length=0, types=_constant, read=custom.constant,
       write=custom_printers.constant)
define("arith.select", "condition true_value false_value -> result", **_PURE, pointers=Pointers.KEPT, types=_selects,
       read=custom.select, write=custom_printers.select)
# fmt: on
