"""Element-by-element operations of the dialect ``tt``."""

from __future__ import annotations

from .definition import MEDIUM, Pointers, define

_CAST = "$src attr-dict `:` type($src) `->` type($result)"

# fmt: off
define("tt.int_to_ptr tt.ptr_to_int", "src -> result", _CAST, elementwise=True)
define("tt.bitcast", "src -> result", _CAST, pointers=Pointers.KEPT, repeatable=True, elementwise=True)
define("tt.fp_to_fp", "src -> result",
       "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)", "rounding?:RoundingMode",
       elementwise=True)
define("tt.clampf", "x min max -> result",
       "$x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)",
       "propagateNan:PropagateNan", "same", elementwise=True, counts=1)
define("tt.precise_sqrt", "x -> result", "$x attr-dict `:` type($x)", equations="same", elementwise=True,
       length=MEDIUM, counts=1)
define("tt.precise_divf", "x y -> result", "$x `,` $y attr-dict `:` type($x)", equations="same", elementwise=True,
       length=MEDIUM, counts=1)
define("tt.approx_divf", "x y -> result", "$x `,` $y attr-dict `:` type($x)", equations="same", elementwise=True)
define("tt.mulhiui", "x y -> result", "$x `,` $y attr-dict `:` type($x)", equations="same", repeatable=True,
       elementwise=True)
define("tt.addptr", "ptr offset -> result", "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)",
       equations="ptr=result", pointers=Pointers.KEPT, repeatable=True, elementwise=True)
# Functions by name only compute, or read a register of the hardware; of assembly, only arithmetic is compiled.
define("tt.extern_elementwise", "srcs* -> result", "operands attr-dict `:` functional-type(operands, $result)",
       "libname libpath symbol pure", elementwise=True, unbounded=True, length=MEDIUM, counts=1)
define("tt.elementwise_inline_asm", "args* -> result*",
       "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)",
       "asm_string:str constraints pure packed_element")
# fmt: on
