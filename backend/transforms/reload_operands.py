"""Loads an operand of several dots from its buffer anew for each of them.

Upstream's passes load it once. With other buffers filled between the load and one of the dots, all of K is held in
registers, among which a loop over K cannot choose: the dots are unrolled, or the operand is copied to another buffer.
"""

from __future__ import annotations

from ..ttgir.ir import Module, Operation
from .rewriting import Rewriter
from .sink_loads import is_operand


def reload_operands(module: Module) -> bool:
    """Gives each dot of every function its own loads of operands that others of the block use, too. Whether there was
    one."""
    changed = False
    for operation in list(module.walk()):
        changed = (is_operand(operation) and _reload(operation)) or changed
    return changed


def _reload(load: Operation) -> bool:
    value, block = load.result, load.block
    uses = list(dict.fromkeys(value.uses))
    if block is None or len(uses) < 2 or any(use.name != "tt.dot" or use.block is not block for use in uses):
        return False
    if any(use.name == "ttg.local_dealloc" for use in load["src"].uses):
        return False
    for dot in uses:
        dot.replace_operand(value, Rewriter.before(dot).copy(load).result)
    load.erase()
    return True
