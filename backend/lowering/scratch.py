"""The workgroup memory that an operation uses between its own barriers."""

from __future__ import annotations

from ..planning.shared_memory import Scratch
from .lowering import Lowering


def take(ctx: Lowering, scratch: Scratch) -> int:
    """The byte offset of workgroup memory that was planned. What lies beyond upstream's allocation belongs to the
    caller until the next call, before which all invocations wait for each other."""
    if scratch.beyond:
        ctx.barrier()
        ctx.shared.extend(scratch.offset + scratch.size)
    return scratch.offset
