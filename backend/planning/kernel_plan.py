"""One table from operation to plan, made after the transforms and before anything is emitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..analysis.axis_info import AxisInfoAnalysis
from ..analysis.lazy_loads import lazy_loads
from ..capabilities import Capabilities
from ..ttgir.ir import Function, Module, Operation, Value
from ..ttgir.traits import MEDIUM, TRAITS
from .assembly import plan_assembly
from .barriers import Barriers, plan_barriers
from .buffers import BufferView, plan_buffers
from .demand import Demand, plan_demand
from .dots import plan_dot
from .exchanges import (
    Target,
    plan_atomic,
    plan_convert_layout,
    plan_gather_operation,
    plan_histogram,
    plan_reduce,
    plan_reshape,
    plan_scan_operation,
)
from .footprints import Footprints
from .memory import (
    plan_element_access,
    plan_global_access,
    plan_local_alloc,
    plan_local_load,
    plan_local_store,
    plan_shared_atomic,
)
from .messages import may_report, watches_loops
from .options import Options
from .plans import Failed, Plan
from .pointers import PointerPlan, plan_pointers
from .rolling import plan_rolled
from .shared_memory import Room, View, narrow_buffers, taken, views


@dataclass(repr=False)
class KernelPlan:
    """What is decided of a kernel.

    ``plans``: of each operation that has one. ``late``: the loads that are left to the dots that use them.
    ``barriers``: which are emitted. ``room``, ``view``: of workgroup memory, of which the kernel takes ``shared_bytes``
    at most. ``buffers``: where the buffers in it lie. ``watched``: loops are counted, because the driver may cut them
    short. ``reports``: the kernel tells the host something, if only that an access was outside of its tensor.
    ``demand``: which registers of tensors are read.
    """

    plans: dict[Operation, Plan]
    late: frozenset[Operation]
    barriers: Barriers
    room: Room
    view: View
    shared_bytes: int
    buffers: Mapping[Value, BufferView]
    pointers: PointerPlan
    watched: bool
    reports: bool
    demand: Demand

    @property
    def fits(self) -> bool:
        """Whether the device has the workgroup memory that the kernel takes."""
        return self.shared_bytes <= self.room.limit


@dataclass(frozen=True)
class _Given:
    """What planners work with."""

    room: Room
    target: Target
    options: Options
    late: frozenset[Operation]
    buffers: Mapping[Value, BufferView]
    axis_info: AxisInfoAnalysis
    checked: Callable[[Value], bool]


Planner = Callable[[Operation, _Given], Plan]

_EXCHANGES: dict[str, Callable[[Operation, Room, Target], Plan]] = {
    "ttg.convert_layout": plan_convert_layout,
    "tt.reshape": plan_reshape,
    "tt.reduce": plan_reduce,
    "tt.scan": plan_scan_operation,
    "tt.gather": plan_gather_operation,
    "tt.histogram": plan_histogram,
    **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_poll"), plan_atomic),
}

#: Operation → its planner, where its plan depends on the room there is in workgroup memory.
PLANNERS: dict[str, Planner] = {
    **{
        name: lambda operation, given, plan=plan: plan(operation, given.room, given.target)  # type: ignore[misc]
        for name, plan in _EXCHANGES.items()
    },
    "ttg.local_alloc": lambda operation, given: plan_local_alloc(operation, given.room, given.buffers),
    "ttg.local_store": lambda operation, given: plan_local_store(operation, given.room, given.buffers),
    "ttg.local_load": lambda operation, given: plan_local_load(
        operation, given.room, given.buffers, operation in given.late
    ),
    **dict.fromkeys(
        ("ttg.local_gather", "ttg.local_scatter"),
        lambda operation, given: plan_element_access(operation, given.buffers),
    ),
    "ttg.local_atomic_scatter_rmw": lambda operation, given: plan_shared_atomic(
        operation, given.room, given.target, given.buffers
    ),
    "tt.dot": lambda operation, given: plan_dot(
        operation, given.room, given.target.capabilities.traits, given.options, given.late
    ),
}

#: The same for those whose plan does not.
FIXED: dict[str, Planner] = {
    "tt.load": lambda operation, given: plan_global_access(
        operation, given.axis_info, given.checked, 1, operation.result
    ),
    "tt.store": lambda operation, given: plan_global_access(
        operation, given.axis_info, given.checked, 2, operation.operands[1]
    ),
    "tt.elementwise_inline_asm": lambda operation, given: plan_assembly(operation),
    **{
        name: lambda operation, given: plan_rolled(operation, given.target.capabilities.traits)
        for name, row in TRAITS.items()
        if row.elementwise and row.length >= MEDIUM
    },
}


def plan_kernel(kernel: Function, source: Module, capabilities: Capabilities, options: Options) -> KernelPlan:
    """The plans of all operations of ``kernel``, the only function left of ``source``. What fits in workgroup memory is
    decided here: as words where that fits, else as it is."""
    assert kernel.body is not None
    operations = [inner for block in kernel.body.blocks for top in block.operations for inner in top.walk()]
    late = lazy_loads(kernel, options.matrices, options.matrix_loads)
    axis_info = AxisInfoAnalysis(kernel)
    warps, lanes = (int(source.attributes[name]) for name in ("ttg.num-warps", "ttg.threads-per-warp"))
    target = Target(capabilities, warps, lanes)
    pointers = plan_pointers(kernel, options.check_bounds)
    roots = pointers.roots or {}
    upstream, limit = int(source.attributes.get("ttg.shared", 0)), capabilities.shared_bytes
    explicit = capabilities.has("explicit_workgroup_layout")
    buffers = plan_buffers(kernel, explicit)
    refused: dict[Operation, Plan] = {operation: Failed(error=error) for operation, error in buffers.refused.items()}
    fixed: dict[Operation, Plan] = {}
    # With a dot in pieces, too, they would make code that Mesa's CPU driver compiles for 40 s: refused, as too large.
    rounds = not any(operation.name == "tt.dot" for operation in operations)
    for words in views(capabilities):
        room = Room(upstream, limit, explicit, words, rounds)
        given = _Given(room, target, options, late, buffers.views, axis_info, lambda pointer: bool(roots.get(pointer)))
        if not fixed:
            fixed = _planned(operations, FIXED, given)
        plans = {**fixed, **_planned(operations, PLANNERS, given), **refused}
        accesses = [access for plan in plans.values() for access in plan.accesses]
        beyond = [scratch for plan in plans.values() for scratch in plan.scratch if scratch.beyond]
        view = View(words, narrow_buffers(accesses) if words else frozenset())
        shared_bytes = taken(room, view, accesses, beyond)
        if shared_bytes <= limit:
            break
    barriers = plan_barriers(kernel, operations, plans, Footprints(plans, late, buffers.views))
    watched = watches_loops(kernel, capabilities, plans)
    reports = watched or options.check_bounds or may_report(kernel)
    demand = plan_demand(kernel, plans, options.check_bounds)
    return KernelPlan(
        plans, late, barriers, room, view, shared_bytes, buffers.views, pointers, watched, reports, demand
    )


def _planned(operations: list[Operation], planners: dict[str, Planner], given: _Given) -> dict[Operation, Plan]:
    found: dict[Operation, Plan] = {}
    for operation in operations:
        planner = planners.get(operation.name)
        if planner is not None:
            try:
                found[operation] = planner(operation, given)
            except Exception as error:  # raised again where the operation is lowered, with its place
                found[operation] = Failed(error=error)
    return found
