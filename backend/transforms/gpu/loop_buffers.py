"""The buffers of shared memory that a loop uses."""

from __future__ import annotations

from ...layouts.buffer_layouts import buffer_bytes
from ...ttgir.ir import Block, Operation
from ...ttgir.operations import definition_of


def loop_bytes(body: Block) -> int:
    """Bytes of the buffers that a loop fills, and of those that it reads."""
    return sum(buffer_bytes(one.result.memdesc) for one in (*fills(body), *_kept(body)))


def fills(body: Block) -> list[Operation]:
    """The buffers that a loop fills, in their order."""
    return [operation for operation in body.operations if operation.name == "ttg.local_alloc"]


def _kept(body: Block) -> set[Operation]:
    """Buffers from before a loop that its body reads, as they are or views of them."""
    owners = {operand.owner for operation in body.operations for operand in operation.operands}
    owners |= {view["src"].owner for view in owners if isinstance(view, Operation) and definition_of(view).view}
    return {
        owner
        for owner in owners
        if isinstance(owner, Operation) and owner.name == "ttg.local_alloc" and owner.block is not body
    }
