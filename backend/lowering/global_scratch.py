"""``ttg.global_scratch_alloc``: each program's own device memory, which the launch allocates.

Upstream's pass gives each operation its offset in a program's memory, and the module the size of that memory. The
launcher passes the address of that many bytes for each program of the grid (docs/internals/abi.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spirv.opcodes import BuiltIn
from ..ttgir.ir import Module, Operation
from .lowering import Lowering
from .registry import lowers

OFFSET, SIZE, ALIGNMENT = (f"ttg.global_scratch_memory_{name}" for name in ("offset", "size", "alignment"))


@dataclass(frozen=True)
class GlobalScratch:
    """``size``: bytes of each program, a multiple of ``alignment``; 0 where a kernel has no global scratch memory."""

    size: int = 0
    alignment: int = 1

    @classmethod
    def of(cls, source: Module) -> GlobalScratch:
        """What upstream's allocation pass says of the module."""
        size = int(source.attribute(SIZE))
        return cls(size, int(source.attribute(ALIGNMENT))) if size else cls()


@lowers("ttg.global_scratch_alloc")
def _global_scratch_alloc(ctx: Lowering, operation: Operation) -> None:
    if operation.flag("third_party_allocation"):
        raise NotImplementedError(
            "only profilers ask for third-party memory, and the SPIR-V backend has none; compile without "
            "instrumentation"
        )
    f, module = ctx.f, ctx.module

    def built_in(number: int, name: str, axis: int) -> int:
        return f.zero_extend(ctx.workgroup_built_in(number, name, axis), 64)

    program = module.uint(0, 64)
    for axis in (2, 1, 0):
        extent = built_in(BuiltIn.NumWorkgroups, "num_workgroups", axis)
        program = f.add(f.mul(program, extent), built_in(BuiltIn.WorkgroupId, "workgroup_id", axis))
    place = f.mul(program, module.uint(GlobalScratch.of(ctx.source).size, 64))
    ctx[operation.result] = f.add(f.add(ctx.global_scratch, place), module.uint(int(operation.attribute(OFFSET)), 64))
