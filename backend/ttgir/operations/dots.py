"""Dots: matrix products, scaled ones, and the numbers of four bits that these take."""

from __future__ import annotations

from ...abi.elements import FLOATS
from ..encodings import DotOperandEncoding
from ..ir import Operation
from ..types import FloatType, IntegerType, Type, encoding_of
from .definition import Encodings, Layouts, define
from .type_checks import element, shape, tensors


def _dots(operation: Operation) -> bool:
    a, b, c = map(shape, operation.operands[:3])
    return a[:-2] == b[:-2] and a[-1] == b[-2] and c == (*a[:-1], b[-1])


def _of_operands(operation: Operation) -> Encodings:
    a, b, c, *_ = tensors(operation)
    parent = encoding_of(c.type)
    for number, value in enumerate((a, b)):
        if isinstance(encoding := encoding_of(value.type), DotOperandEncoding) and parent is not None:
            yield value, DotOperandEncoding(number, parent, encoding.k_width)


def added_in(dot: Operation) -> Type | None:
    """The type in which the products of a ``tt.dot`` are added, whatever the result is rounded to in the end; None for
    operands that are not multiplied. The two are of one type, or both of floats whose products are added in f32."""
    a, b, c = (element(operand) for operand in dot.operands[:3])
    if isinstance(a, FloatType) and isinstance(b, FloatType):
        added = {FLOATS[one.name].added_in for one in (a, b)}
        return FloatType(*added) if len(added) == 1 and "" not in added else None
    return c if a == b == IntegerType(8) and c == IntegerType(32) else None


def _operations(dot: Operation) -> int:
    """A multiplication and an addition for each element of the result and each along K."""
    return 2 * dot.result.tensor.size * dot.operands[0].tensor.shape[-1]


_CAST = "$src attr-dict `:` type($src) `->` type($result)"

# fmt: off
define("tt.dot", "a b c -> d",
       "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:` type($a) `*` type($b) `->` "
       "type($d)", "inputPrecision:InputPrecision=ieee maxNumImpreciseAcc=0", "c=d", layouts=Layouts.OWN,
       unbounded=True, counts=_operations, types=_dots, encodings=_of_operands)
define("tt.dot_scaled", "a b c a_scale? b_scale? -> d",
       "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type "
       "attr-dict `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)",
       "a_elem_type:ScaleDotElemType b_elem_type:ScaleDotElemType fastMath lhs_k_pack=true rhs_k_pack=true", "c=d",
       layouts=Layouts.OWN, by_pass="add_accelerate_matmul")
define("ttg.fp4_to_fp", "src -> result", _CAST, "axis", layouts=Layouts.OWN)
# fmt: on
