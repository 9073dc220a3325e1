"""Loads an operand of several dots from its buffer anew for each of them.

Upstream's passes load it once. With other buffers filled between the load and one of the dots, all of K is held in
registers, among which a loop over K cannot choose: the dots are unrolled, or the operand is copied to another buffer.
"""

from __future__ import annotations

from ..ttgir.ir import Module, Operation
from .rewriting import drop_uses, insert, replace_in
from .sink_loads import is_operand


def reload_operands(module: Module) -> bool:
    """Gives each dot of every function its own loads of operands that others of the block use, too. Whether there was
    one."""
    changed = False
    for function in module.functions.values():
        for block in function.body.blocks if function.body is not None else ():
            for operation in [inner for top in block.operations for inner in top.walk()]:
                changed = (is_operand(operation) and _reload(operation)) or changed
    return changed


def _reload(load: Operation) -> bool:
    value, block = load.result, load.block
    uses = list(dict.fromkeys(value.uses))
    if block is None or len(uses) < 2 or any(use.name != "tt.dot" or use.block is not block for use in uses):
        return False
    if any(use.name == "ttg.local_dealloc" for use in load.operands[0].uses):
        return False
    for dot in uses:
        made = insert(
            block,
            block.operations.index(dot),
            load.name,
            load.operands,
            [value.type],
            dict(load.attributes),
            like=load,
            segments=load.segments,
        )
        replace_in(dot, value, made.result)
    block.operations.remove(load)
    drop_uses(load)
    return True
