"""The workgroup memory that an operation uses between its own barriers."""

from __future__ import annotations

from ..planning.memory_pools import Scratch
from .lowering import Lowering


def take(ctx: Lowering, scratch: Scratch) -> int:
    """The byte offset of workgroup memory that was planned, which is the caller's until it takes more."""
    if scratch.waits:
        ctx.barrier()
    return scratch.offset
