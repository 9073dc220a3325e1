"""Programs of the grid, functions and calls, inline assembly, and what helps to debug."""

from __future__ import annotations

from .definition import ANYTHING, Effect, End, Layouts, Memory, Refusal, define

_ASSEMBLY = Refusal(
    "inline assembly is the machine language of one vendor's GPUs",
    "use operations of triton.language or tl.extra.libdevice",
)

# fmt: off
define("tt.get_program_id tt.get_num_programs", "-> result", "$axis attr-dict `:` type($result)", "axis:ProgramIDDim",
       repeatable=True)
define("tt.print", "args*", "$prefix attr-dict (`:` $args^ `:` type($args))?", "prefix:str hex isSigned",
       effects=Effect.REPORTS)
define("tt.assert", "condition", "$condition `,` $message attr-dict `:` type($condition)", "message:str",
       effects=Effect.REPORTS)
# The types of a call are written twice.
define("tt.call", "operands* -> results*",
       "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)", "callee:symbol",
       effects=ANYTHING, memory=Memory.SCRATCH, layouts=Layouts.OWN, rewritten="inlined", moves=None)
define("tt.return", "srcs*", "attr-dict ($srcs^ `:` type($srcs))?", end=End.LEAVE)
define("ttg.inline_asm", "args* -> result*", "$asm_string attr-dict ($args^)? `:` functional-type($args, $result)",
       "asm_string:str constraints pure", effects=ANYTHING, memory=Memory.SCRATCH, refused=_ASSEMBLY)
define("ttg.warp_id", "-> result", "attr-dict", "omitUniformHint:unit", "result=i32")
define("llvm.intr.assume", "cond", "$cond attr-dict `:` type($cond)")
# fmt: on
