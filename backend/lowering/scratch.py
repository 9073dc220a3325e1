"""The workgroup memory that an operation uses between its own barriers."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..ttgir.ir import Operation

if TYPE_CHECKING:
    from .context import Context


def scratch_offset(ctx: Context, operation: Operation, size: int) -> int:
    """The byte offset of ``size`` bytes of scratch memory: upstream's allocation for the operation, or where that does
    not suffice, bytes after all of upstream's."""
    if size <= int(operation.attributes.get("allocation.size", 0)):
        return int(operation.attributes["allocation.offset"])
    return ctx.extra_shared(size)
