"""Whether barriers are emitted where all invocations of the workgroup come by.

``OpControlBarrier`` in control flow that is not uniform is undefined (SPIR-V specification, "OpControlBarrier").
Scalars of a kernel are the same in all invocations, so the branches and loops of ``scf`` are uniform. Those that a rule
makes for itself are not (the owner of an element, the bits of a lane), nor are regions that run for an element each.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.backends.spirv.lowering import registry
from triton.backends.spirv.lowering.lowering import Lowering
from triton.backends.spirv.lowering.registry import Rule
from triton.backends.spirv.lowering.workgroup_memory import SharedMemory
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.ttgir.ir import Operation

_UNIFORM = frozenset({"scf.if", "scf.for", "scf.while"})


@contextmanager
def checked() -> Iterator[None]:
    """In the block, each barrier that is emitted is checked. Raises AssertionError at one that may not be uniform."""
    barrier, carry_out = SharedMemory.barrier, registry._carry_out
    #: The operations that are being lowered, outer ones first, and how deep in branches and loops each begins.
    running: list[tuple[Operation, int]] = []

    def follow(ctx: Lowering, rule: Rule, operation: Operation) -> None:
        running.append((operation, ctx.f.nesting))
        try:
            carry_out(ctx, rule, operation)
        finally:
            running.pop()

    def check(self: SharedMemory, f: FunctionBuilder, *arguments: Any) -> None:
        depths = [*(depth for _, depth in running), f.nesting]
        assert depths[0] == 0
        for (operation, depth), inner in zip(running, depths[1:], strict=True):
            if inner > depth and operation.name not in _UNIFORM:
                raise AssertionError(f"{operation.location}: {operation.name} has a barrier in control flow of its own")
        barrier(self, f, *arguments)

    SharedMemory.barrier, registry._carry_out = check, follow  # type: ignore[method-assign]
    try:
        yield
    finally:
        SharedMemory.barrier, registry._carry_out = barrier, carry_out  # type: ignore[method-assign]
