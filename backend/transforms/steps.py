"""Loops whose step is not greater than 0 fail, where a kernel is compiled to check itself.

``scf.for`` wants a step greater than 0. Triton's front end turns a ``range`` around whose step is a negative constant,
and hands on what is known at run time alone.
"""

from __future__ import annotations

from ..ttgir.ir import Module, Operation
from ..ttgir.type_reader import PLAIN_TYPES
from .rewriting import Rewriter

_MESSAGE = "the step of a range is 0, or negative and no tl.constexpr"


def check_steps(module: Module) -> bool:
    """Asserts before each loop that its step is greater than 0, and has it run no round where that is false. Whether
    there was a loop whose step is not known."""
    return any([_checked(one) for one in list(module.walk()) if one.name == "scf.for"])


def _checked(loop: Operation) -> bool:
    lower, upper, step, *carried = loop.operands
    if isinstance(step.owner, Operation) and step.owner.name == "arith.constant":
        return False  # refused where it is lowered, if it is 0
    rewriter = Rewriter.before(loop)
    predicate = "ugt" if loop.flag("unsignedCmp") else "sgt"
    zero = rewriter.integer(0, step.type)
    counts = rewriter.make("arith.cmpi", [step, zero], [PLAIN_TYPES["i1"]], {"predicate": predicate}).result
    rewriter.make("tt.assert", [counts], attributes={"message": _MESSAGE})
    ends = rewriter.make("arith.select", [counts, upper, lower], [upper.type]).result
    advances = rewriter.make("arith.select", [counts, step, rewriter.integer(1, step.type)], [step.type]).result
    loop.set_operands([lower, ends, advances, *carried])
    return True
