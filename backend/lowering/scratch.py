"""The workgroup memory that an operation uses between its own barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ttgir.ir import Operation
from .packing import MAX_BITS

if TYPE_CHECKING:
    from .context import Context


def end_of(total_bytes: int) -> int:
    """Where the memory beyond upstream's allocation of ``total_bytes`` begins."""
    return -(-total_bytes // (MAX_BITS // 8)) * (MAX_BITS // 8)


def room_beyond(total_bytes: int, shared_bytes: int) -> int:
    """What a device with ``shared_bytes`` has beyond upstream's allocation of ``total_bytes``."""
    return shared_bytes - end_of(total_bytes)


def scratch_offset(ctx: Context, operation: Operation, size: int) -> int:
    """The byte offset of ``size`` bytes of scratch memory: upstream's allocation for the operation, or where that does
    not suffice, bytes after all of upstream's."""
    if size <= int(operation.attributes.get("allocation.size", 0)):
        return own_scratch(ctx, operation)
    return ctx.extra_shared(size)


def own_scratch(ctx: Context, operation: Operation) -> int:
    """The byte offset of upstream's allocation for the operation, which footprints.py must know to be used."""
    assert operation not in ctx.silent, f"{operation.name} was taken not to use its scratch memory"
    return int(operation.attributes["allocation.offset"])
