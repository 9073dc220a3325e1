"""One table from operation to plan, made after the transforms and before anything is emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ..analysis.axis_info import AxisInfoAnalysis
from ..analysis.barriers import Need, barrier_needs
from ..analysis.code_size import multiply_adds
from ..analysis.lazy_loads import lazy_loads
from ..analysis.overwriting import ReadsFirst, reads_first
from ..capabilities import Capabilities
from ..driver_quirks import Driver
from ..optional import AXIS_INFO, LATE_LOADS
from ..transforms.kernel_function import kernel_of
from ..transforms.schedule import Options
from ..ttgir.ir import Function, Module, Operation, Value
from ..ttgir.operations import MEDIUM, OPERATIONS
from .access_plans import (
    plan_element_access,
    plan_global_access,
    plan_local_alloc,
    plan_local_load,
    plan_local_store,
    plan_shared_atomic,
)
from .allocation import Lifetimes, allocations, least_bytes
from .assembly import plan_assembly
from .buffers import BufferGroup, BufferView, buffer_groups, plan_buffers
from .cross_lane import (
    Target,
    plan_atomic,
    plan_convert_layout,
    plan_gather_operation,
    plan_histogram,
    plan_reduce,
    plan_reshape,
    plan_scan_operation,
    plan_vote,
)
from .dot_plans import plan_dot
from .live_registers import LiveRegisters, find_live_registers
from .memory_effects import MemoryEffects
from .memory_pools import Apart, Room, View, view_of
from .plans import Failed, Plan
from .pointers import PointerPlan, plan_pointers
from .rolling import plan_rolled, plan_scaled, plan_unpacked
from .scratch_places import spare_bytes, spread

#: Rounds of a conversion, at most, in kernels with dots: with more of them they would make code that Mesa's CPU driver
#: compiles for 40 s. There are better ways, but where nothing else fits (cost.py).
ROUNDS_WITH_DOTS = 4


@dataclass(repr=False)
class KernelPlan:
    """What is decided of a kernel.

    ``plans``: of each operation that has one. ``late``: the loads that are left to the dots that use them.
    ``barriers``: before which operations all invocations wait for each other, or the invocations of a subgroup;
    ``reads_first``: before which writes to device memory they wait, because one may yet have to read there. ``view``:
    of workgroup memory, of which the kernel takes ``shared_bytes`` at most. ``buffers``: where the buffers in it lie.
    ``live``: which registers of tensors are read.
    """

    plans: dict[Operation, Plan]
    late: frozenset[Operation]
    barriers: Mapping[Operation, Need]
    reads_first: ReadsFirst
    view: View
    shared_bytes: int
    buffers: Mapping[Value, BufferView]
    pointers: PointerPlan
    live: LiveRegisters

    @property
    def fits(self) -> bool:
        """Whether the device has the workgroup memory that the kernel takes."""
        return self.shared_bytes <= self.view.limit


@dataclass(frozen=True, repr=False)
class Planned:
    """A module whose only public function was rewritten and planned: ``lowering.entry_point.emit`` makes a kernel of
    it."""

    source: Module
    plan: KernelPlan
    capabilities: Capabilities
    options: Options


@dataclass(frozen=True)
class _Given:
    """What planners work with."""

    view: View
    room: Callable[[Operation], Room]
    target: Target
    options: Options
    late: frozenset[Operation]
    buffers: Mapping[Value, BufferView]
    axis_info: AxisInfoAnalysis
    checked: Callable[[Value], bool]
    dots: int
    unrolled: int


Planner = Callable[[Operation, _Given], Plan]


def _by_driver(plan: Callable[[Operation, Driver], Plan]) -> Planner:
    return lambda operation, given: plan(operation, given.target.capabilities.traits)


_EXCHANGES: dict[str, Callable[[Operation, Room, Target], Plan]] = {
    "ttg.convert_layout": plan_convert_layout,
    "tt.reshape": plan_reshape,
    "tt.reduce": plan_reduce,
    "tt.scan": plan_scan_operation,
    **dict.fromkeys(("spirv.beyond_halves", "spirv.greatest"), plan_vote),
    "tt.gather": plan_gather_operation,
    "tt.histogram": plan_histogram,
    **dict.fromkeys(
        ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll"), plan_atomic
    ),
}

#: Operation → its planner, where its plan depends on the room there is in workgroup memory.
PLANNERS: dict[str, Planner] = {
    **{
        name: lambda operation, given, plan=plan: plan(operation, given.room(operation), given.target)  # type: ignore[misc]
        for name, plan in _EXCHANGES.items()
    },
    "ttg.local_atomic_scatter_rmw": lambda operation, given: plan_shared_atomic(
        operation, given.room(operation), given.target, given.buffers
    ),
    "tt.dot": lambda operation, given: plan_dot(
        operation,
        given.room(operation),
        given.target.capabilities.traits,
        given.options,
        given.late,
        given.dots,
        given.unrolled,
    ),
}

#: The same for accesses to buffers.
BUFFERS: dict[str, Planner] = {
    "ttg.local_alloc": lambda operation, given: plan_local_alloc(operation, given.view, given.buffers),
    "ttg.local_store": lambda operation, given: plan_local_store(operation, given.view, given.buffers),
    "ttg.local_load": lambda operation, given: plan_local_load(
        operation, given.view, given.buffers, operation in given.late
    ),
    **dict.fromkeys(
        ("ttg.local_gather", "ttg.local_scatter"),
        lambda operation, given: plan_element_access(operation, given.buffers),
    ),
}

#: The same for those whose plan depends on no memory.
FIXED: dict[str, Planner] = {
    **dict.fromkeys(
        ("tt.load", "tt.store"), lambda operation, given: plan_global_access(operation, given.axis_info, given.checked)
    ),
    "tt.elementwise_inline_asm": _by_driver(plan_assembly),
    **{name: _by_driver(plan_rolled) for name, row in OPERATIONS.items() if row.elementwise and row.length >= MEDIUM},
    **dict.fromkeys(("tt.fp_to_fp", "ttg.fp4_to_fp"), _by_driver(plan_unpacked)),
    "arith.mulf": _by_driver(plan_scaled),
}


def plan_kernel(source: Module, capabilities: Capabilities, options: Options) -> Planned:
    """The plans of all operations of the only public function of ``source``, which was rewritten. What fits in
    workgroup memory is decided here: the first of the ways to see it in which everything fits, with the fewest bytes;
    else operations take less than they would like to."""
    kernel = kernel_of(source)
    operations = list(kernel.walk())
    asked = options.asked
    late = frozenset[Operation]()
    if asked.has(LATE_LOADS):
        late = lazy_loads(kernel, options.matrices, options.matrix_loads)
    axis_info = AxisInfoAnalysis(kernel if asked.has(AXIS_INFO) else None)
    target = Target(capabilities, source.warps, source.lanes)
    pointers = plan_pointers(kernel, "bounds" in options.asked.checks)
    roots = pointers.roots or {}
    groups = buffer_groups(operations)
    dots, unrolled = sum(one.name == "tt.dot" for one in operations), multiply_adds(operations)
    kernel_memory = _Memory(
        operations, groups, Lifetimes(operations, late), options.schedule.in_rounds, capabilities.traits.resident_shared
    )

    def checked(pointer: Value) -> bool:
        return bool(roots.get(pointer))

    def given(view: View, offsets: Mapping[Operation, int], room: Callable[[Operation], Room]) -> _Given:
        buffers = plan_buffers(operations, groups, offsets, view.explicit).views
        return _Given(view, room, target, options, late, buffers, axis_info, checked, dots, unrolled)

    chosen = kernel_memory.laid_out(view_of(capabilities), given)
    if chosen.bytes <= chosen.view.limit:
        chosen = _spread(kernel, chosen, late, source.warps * source.lanes)
    explicit, nowhere = chosen.view.explicit, kernel_memory.nowhere
    refused = plan_buffers(operations, groups, nowhere, explicit).refused
    plans = {
        **_planned(operations, FIXED, given(chosen.view, nowhere, lambda _: Room(chosen.view))),
        **chosen.plans,
        **{operation: Failed(error=error) for operation, error in refused.items()},
    }
    effects = MemoryEffects(plans, late, chosen.buffers)
    barriers = barrier_needs(kernel, effects)
    first = reads_first(kernel, effects, barriers)
    pointers = replace(pointers, communicates=pointers.communicates or bool(first.waits) or first.barriers)
    live = find_live_registers(kernel, plans, "bounds" in options.asked.checks)
    plan = KernelPlan(plans, late, barriers, first, chosen.view, chosen.bytes, chosen.buffers, pointers, live)
    return Planned(source, plan, capabilities, options)


@dataclass(frozen=True)
class _LaidOut:
    """A way to use workgroup memory, and the ``bytes`` that it takes. ``how``: what it was planned with."""

    bytes: int
    plans: Mapping[Operation, Plan]
    how: _Given

    @property
    def view(self) -> View:
        """How the memory is seen."""
        return self.how.view

    @property
    def buffers(self) -> Mapping[Value, BufferView]:
        """Where buffers lie."""
        return self.how.buffers


def _spread(kernel: Function, chosen: _LaidOut, late: frozenset[Operation], invocations: int) -> _LaidOut:
    """With fewer waits, where there is memory for that."""
    how, driver = chosen.how, chosen.how.target.capabilities.traits
    if not any(plan.scratch for plan in chosen.plans.values()):
        return chosen
    spare = spare_bytes(chosen.bytes, how.view, invocations, driver.spare_shared)

    def replan(operation: Operation, apart: Apart) -> Plan:
        return PLANNERS[operation.name](operation, replace(how, room=lambda one: replace(how.room(one), apart=apart)))

    plans = spread(kernel, MemoryEffects(chosen.plans, late, how.buffers), replan, spare)
    return _LaidOut(how.view.taken(access for plan in plans.values() for access in plan.accesses), plans, how)


#: What makes the input of planners.
_Givens = Callable[[View, Mapping[Operation, int], Callable[[Operation], Room]], _Given]


@dataclass(frozen=True)
class _Memory:
    """What the operations of a kernel take of workgroup memory. ``in_rounds``: they may take little, where that makes
    long code. ``resident``: the kernel takes at most so many bytes, where its operations can do with less than they
    would like to; None where that gains nothing."""

    operations: list[Operation]
    groups: list[BufferGroup]
    lifetimes: Lifetimes
    in_rounds: bool
    resident: int | None

    @property
    def nowhere(self) -> dict[Operation, int]:
        """Places of buffers before there are any."""
        return dict.fromkeys((one for group in self.groups for one in group.allocations), 0)

    def laid_out(self, view: View, given: _Givens) -> _LaidOut:
        """Lays everything out so that it fits, else in the fewest bytes. Where memory is divided among types,
        operations take less of it then. What makes the kernel ``resident`` comes first."""
        dots = any(operation.name == "tt.dot" for operation in self.operations)
        rounds = 0 if self.in_rounds or not dots else ROUNDS_WITH_DOTS
        least: _LaidOut | None = None
        limit = view.limit
        if self.resident is not None:
            found = min(self._ways(view, self.resident, rounds, given), key=lambda one: one.bytes)
            if found.bytes <= self.resident:
                return found
        for most in (limit, *((limit // 2, limit // 4, limit // 8) if not view.explicit else ())):
            if least is not None and not _takes_more(least.plans, most):
                continue
            found = min(self._ways(view, most, rounds, given), key=lambda one: one.bytes)
            if least is None or found.bytes < least.bytes:
                least = found
            if found.bytes <= limit:
                return found
        assert least is not None
        return least

    def _ways(self, view: View, most: int, rounds: int, given: _Givens) -> Iterator[_LaidOut]:
        pools = {number: view.pool(group.element(view.explicit)) for number, group in enumerate(self.groups)}
        for allocation in allocations(self.groups, pools, self.lifetimes):
            room = partial(allocation.room, view=view, most=most, rounds=rounds)
            how = given(view, allocation.offsets, room)
            plans = _planned(self.operations, {**BUFFERS, **PLANNERS}, how)
            accesses = [access for plan in plans.values() for access in plan.accesses]
            yield _LaidOut(view.taken(accesses), plans, how)


def _takes_more(plans: Mapping[Operation, Plan], most: int) -> bool:
    """Whether an operation has more than ``most`` bytes for itself."""
    return any(one.size > most for plan in plans.values() for one in plan.scratch)


def least_shared(kernel: Function) -> int:
    """Bytes of workgroup memory that a kernel takes at least, as far as that can be said at little cost."""
    operations = list(kernel.walk())
    if kernel.body is None or len(kernel.body.blocks) > 1 or any(one.name == "tt.call" for one in operations):
        return 0
    return least_bytes(buffer_groups(operations), Lifetimes(operations, frozenset()))


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
