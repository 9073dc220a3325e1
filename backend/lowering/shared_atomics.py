"""``ttg.local_atomic_scatter_rmw``: atomic operations on the elements of a buffer in shared memory.

One invocation acts for each element of the values; the others receive its result. What the device has no instruction
for is a compare-and-swap loop, as on device memory (atomics.py).
"""

from __future__ import annotations

from ..layouts.element_sizes import bits_in_memory
from ..planning.plans import Shared
from ..spirv.opcodes import Scope, Semantics
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType, TensorType, Type
from .atomics import INTEGER_KIND, masks_of, new_value, share, swap_loop
from .errors import UnsupportedOperation
from .index_arithmetic import owns
from .lowering import Lowering
from .registry import lowers
from .shared import indexed_places
from .workgroup_memory import SharedBuffer

#: Bits of the elements that are updated.
WORD = 32


@lowers("ttg.local_atomic_scatter_rmw")
def _local_atomic_scatter(ctx: Lowering, operation: Operation) -> None:
    f, module = ctx.f, ctx.module
    buffer, tensor = ctx[operation["dst"]], operation["values"].type
    assert isinstance(buffer, SharedBuffer) and isinstance(tensor, TensorType)
    ctx.plan_of(operation, Shared)
    type_ = tensor.element
    if bits_in_memory(type_) != WORD or bits_in_memory(buffer.view.cells[0]) != WORD:
        raise UnsupportedOperation(
            operation,
            f"the buffer's elements are {type_}, and Vulkan guarantees shared-memory atomics for 32-bit elements only"
            if bits_in_memory(type_) != WORD
            else "the buffer is also seen as elements of another width",
            "use a buffer of 32-bit elements, or atomic operations on device memory",
        )
    owner, zero = owns(ctx, tensor), module.null(ctx.type_id(type_))
    values = ctx.registers(operation["values"])
    masks = masks_of(ctx, operation.operand_group("mask"), len(values))
    places = indexed_places(ctx, buffer, operation["indices"], int(operation.attribute("axis")))
    results: list[int] = []
    for place, value, mask in zip(places, values, masks, strict=True):
        results += f.if_(
            f.logical_and(owner, mask),
            lambda place=place, value=value: [_modify(ctx, operation, buffer, type_, place, value)],  # type: ignore[misc]
            defaults=[zero],
        )
    if operation.result.uses:
        results = share(ctx, operation, type_, results, owner, tensor)
    ctx.define(operation.result, results)


def _modify(ctx: Lowering, operation: Operation, buffer: SharedBuffer, type_: Type, place: int, value: int) -> int:
    """One read-modify-write of element ``place``; gives the old element."""
    f, module = ctx.f, ctx.module
    kind, word, type_id = operation.attribute("atomic_rmw_op"), module.int(WORD), ctx.type_id(type_)
    pointer = ctx.shared.word_pointer(ctx, WORD, place, buffer.view.start, buffer.view.end)
    scope, relaxed = module.uint(Scope.Workgroup), module.uint(Semantics.Relaxed)
    if kind == "exch" or isinstance(type_, IntegerType):
        old = f.effect(INTEGER_KIND[kind], word, pointer, scope, relaxed, f.bitcast(value, word))
    else:
        old = swap_loop(ctx, pointer, WORD, scope, new_value(ctx, kind, type_, value))
    return f.bitcast(old, type_id)
