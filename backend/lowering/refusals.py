"""Operations that have no rule of their own: refused, ends of a region, or gone before, by an upstream pass or a
rewrite, as their rows in ``ttgir/operations/`` say.

With ``registry.RULES`` this names every operation of upstream's TritonOps.td and TritonGPUOps.td, and of the dialects
of MLIR that they are used with.
"""

from __future__ import annotations

from ..ttgir.ir import Operation
from ..ttgir.operations import OPERATIONS, Refusal
from .errors import UnsupportedOperation

#: Operations that are never compiled.
REFUSED: dict[str, Refusal] = {name: row.refused for name, row in OPERATIONS.items() if row.refused is not None}


def _ends() -> dict[str, str]:
    """The names of the operations whose regions an operation ends."""
    ended: dict[str, list[str]] = {}
    for name, row in sorted(OPERATIONS.items()):
        if row.syntax is not None and row.refused is None:
            for end in row.ended_by:
                ended.setdefault(end, []).append(name)
    return {end: ", ".join(names) for end, names in ended.items()}


#: Operations that end a region, with those whose rules read them.
REGION_ENDS = _ends()

#: Operations that are the module's own structure, not lowered one by one.
STRUCTURE = {"tt.func": "the kernel is the entry point; its callees are inlined"}

#: Operations that an upstream pass (passes.py) replaces before the lowering, with the pass.
REWRITTEN_BY_PASS = {name: row.by_pass for name, row in OPERATIONS.items() if row.by_pass}

#: Operations that are gone before any rule runs, with what becomes of them.
REWRITTEN = {name: row.rewritten for name, row in OPERATIONS.items() if row.rewritten}


def refusal(operation: Operation) -> UnsupportedOperation:
    """The error for an operation that has no rule."""
    name = operation.name
    known = REFUSED.get(name)
    if known is not None:
        return UnsupportedOperation(operation, known.reason, known.instead)
    if name in REWRITTEN_BY_PASS:
        return UnsupportedOperation(
            operation,
            f"upstream's pass {REWRITTEN_BY_PASS[name]} should have replaced it",
            "compile from source or TTIR, not from TTGIR that has not been through that pass",
        )
    if name in REGION_ENDS:
        return UnsupportedOperation(
            operation, f"it can only end a region of {REGION_ENDS[name]}", "check the module that was given"
        )
    return UnsupportedOperation(
        operation,
        "it belongs to none of the dialects that this backend compiles",
        "docs/internals/operations.md lists the operations that it compiles",
    )
