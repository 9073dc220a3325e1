"""Where a program is in its grid, and the hints that say nothing at run time."""

from __future__ import annotations

from ..spirv.opcodes import BuiltIn
from ..ttgir.ir import Operation
from .lowering import Lowering
from .registry import lowers

GRID = {
    "tt.get_program_id": (BuiltIn.WorkgroupId, "workgroup_id"),
    "tt.get_num_programs": (BuiltIn.NumWorkgroups, "num_workgroups"),
}


@lowers(*GRID)
def _grid(ctx: Lowering, operation: Operation) -> None:
    number, name = GRID[operation.name]
    ctx[operation.result] = ctx.workgroup_built_in(number, name, int(operation.attribute("axis")))


@lowers("llvm.intr.assume")
def _assume(ctx: Lowering, operation: Operation) -> None:
    """A promise to the optimiser: there is nothing to emit."""


@lowers("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
def _grid_dependency(ctx: Lowering, operation: Operation) -> None:
    """Nothing to emit: a launch starts when the ones before it have ended, as on CUDA without launch_pdl=True."""


@lowers("ttg.warp_id")
def _warp_id(ctx: Lowering, operation: Operation) -> None:
    ctx[operation.result] = ctx.warp
