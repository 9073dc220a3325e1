"""Which bytes of upstream's allocation in workgroup memory each operation reads and writes, as this backend lowers it:
what analysis/barrier_filter.py judges barriers by.

An operation that is not known here may read and write everything, and waits for nobody. Bytes beyond upstream's
allocation (Context.extra_shared) do not count: their users wait for each other themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..analysis.barrier_filter import NO_ACCESS, Access, Footprint, Frame
from ..capabilities import Capabilities
from ..layouts.conversion import Identity, RegisterPermutation, SubgroupShuffle, plan_conversion
from ..layouts.distributed import distributed_layout
from ..layouts.gather import plan_gather
from ..layouts.linear import LinearLayout
from ..layouts.scan import AcrossWarps, ScanError, plan_scan, simple_layout
from ..ttgir.ir import Operation, Value
from ..ttgir.traits import TOUCHES_SHARED, TRAITS, Effect, traits
from ..ttgir.types import MemDescType, TensorType, Type
from .convert_layout import few_shuffles
from .elements import bits_in_memory
from .packing import MAX_BITS
from .reduce import choose_plan
from .shared import buffer_layout, tensor_offsets

#: Bytes of the widest access: where elements travel in words, those next to a buffer's are read along.
_GRANULE = MAX_BITS // 8

_ALL = 1 << 62


@dataclass
class Footprints:
    """``footprints(operation)``: its footprint. ``lazy``: the loads that are left to the dots that use them.
    ``room``: bytes beyond upstream's allocation. ``silent``: the operations until now that were found not to use the
    scratch memory that upstream gave them."""

    capabilities: Capabilities
    lazy: frozenset[Operation]
    room: int
    silent: set[Operation] = field(default_factory=set)

    def __call__(self, operation: Operation) -> Footprint:
        rule = _RULES.get(operation.name)
        try:
            if rule is not None:
                return rule(self, operation)
            if "allocation.offset" in operation.attributes:
                return self._scratch(operation)
        except (ValueError, NotImplementedError):  # a layout or type that the lowering will refuse
            return _anything(operation)
        if traits(operation).effects & (TOUCHES_SHARED | Effect.WAITS):
            return _anything(operation)
        if operation.regions and any(_concerns(inner) for inner in operation.walk()):
            return _anything(operation)
        if any(isinstance(value.type, MemDescType) for value in (*operation.operands, *operation.results)):
            return _anything(operation)
        late = [
            owner
            for owner in (operand.owner for operand in operation.operands)
            if isinstance(owner, Operation) and owner in self.lazy
        ]
        return (
            Footprint(tuple(_buffer_access(operation, load.operands[0], False) for load in late)) if late else NO_ACCESS
        )

    def _scratch(self, operation: Operation) -> Footprint:
        keeps_off = _KEEPS_OFF.get(operation.name)
        size = int(operation.attributes.get("allocation.size", 0))
        if keeps_off is None or not size:
            return _anything(operation)
        if keeps_off(self, operation):
            self.silent.add(operation)
            return Footprint(waits=True)
        start = int(operation.attributes["allocation.offset"])
        written, read = (Access(operation, *_widened(start, start + size), write) for write in (True, False))
        return Footprint((written,), True, (read,))


def _anything(operation: Operation) -> Footprint:
    return Footprint((Access(operation, 0, _ALL, True),))


def _concerns(operation: Operation) -> bool:
    """Whether an operation inside of a region that is not followed may have to do with workgroup memory."""
    return (
        "allocation.offset" in operation.attributes
        or bool(traits(operation).effects & (TOUCHES_SHARED | Effect.WAITS))
        or any(isinstance(value.type, MemDescType) for value in (*operation.operands, *operation.results))
    )


def _widened(start: int, end: int) -> tuple[int, int]:
    return start // _GRANULE * _GRANULE, -(-end // _GRANULE) * _GRANULE


# -- buffers -----------------------------------------------------------------------------------------------------
def _buffer_access(operation: Operation, buffer: Value, write: bool, tensor: Type | None = None) -> Access:
    """The access of ``operation`` to all of ``buffer``; ``tensor``: the type whose layout says who accesses what."""
    root = buffer
    while isinstance(root.owner, Operation) and traits(root.owner).view:
        root = root.owner.operands[0]
    type_ = buffer.type
    if (
        not isinstance(root.owner, Operation)
        or root.owner.name != "ttg.local_alloc"
        or not isinstance(type_, MemDescType)
    ):
        return Access(operation, 0, _ALL, write)
    start = int(root.owner.attributes["allocation.offset"])
    layout, element_bytes = buffer_layout(type_), bits_in_memory(type_.element) // 8
    first, end = _widened(start, start + layout.size * element_bytes)
    if not isinstance(tensor, TensorType):
        return Access(operation, first, end, write)
    return Access(
        operation, first, end, write, tensor_offsets(tensor, type_), Frame(start, element_bytes, layout.padding)
    )


def _local_alloc(_: Footprints, operation: Operation) -> Footprint:
    if not operation.operands:
        return NO_ACCESS
    return Footprint((_buffer_access(operation, operation.result, True, operation.operands[0].type),))


def _local_store(_: Footprints, operation: Operation) -> Footprint:
    return Footprint((_buffer_access(operation, operation.operands[1], True, operation.operands[0].type),))


def _local_load(footprints: Footprints, operation: Operation) -> Footprint:
    """Here also where it is lazy: then the dots read once more, as they like."""
    tensor = None if operation in footprints.lazy else operation.result.type
    return Footprint((_buffer_access(operation, operation.operands[0], False, tensor),))


_RULES: dict[str, Callable[[Footprints, Operation], Footprint]] = {
    "ttg.local_alloc": _local_alloc,
    "ttg.local_store": _local_store,
    "ttg.local_load": _local_load,
    "ttg.local_dealloc": lambda _, operation: NO_ACCESS,
    **{name: lambda _, operation: NO_ACCESS for name, row in TRAITS.items() if row.view},
}


# -- scratch memory ----------------------------------------------------------------------------------------------
def _layout(type_: Type) -> LinearLayout:
    if not isinstance(type_, TensorType) or type_.encoding is None:
        raise ValueError(f"{type_} has no layout")
    return distributed_layout(type_.encoding, type_.shape)


def _sizes(operation: Operation) -> tuple[int, ...]:
    return tuple(bits_in_memory(operand.type) // 8 for operand in operation.operands)


def _owned(operation: Operation) -> int:
    return int(operation.attributes["allocation.size"])


def _conversion(footprints: Footprints, operation: Operation) -> bool:
    size = bits_in_memory(operation.result.type) // 8
    plan = plan_conversion(_layout(operation.operands[0].type), _layout(operation.result.type), size, _owned(operation))
    return (
        isinstance(plan, Identity | RegisterPermutation)
        or isinstance(plan, SubgroupShuffle)
        and few_shuffles(plan, size, footprints.capabilities.traits.most_shuffles)
    )


def _reduction(footprints: Footprints, operation: Operation) -> bool:
    plan, beyond = choose_plan(operation, _layout(operation.operands[0].type), _sizes(operation), footprints.room)
    return plan.across_warps is None or beyond


def _scan(_: Footprints, operation: Operation) -> bool:
    layout, sizes = _layout(operation.operands[0].type), _sizes(operation)
    axis, reverse = int(operation.attributes["axis"]), bool(operation.attributes["reverse"])
    try:
        plan = plan_scan(layout, axis, reverse, sizes)
    except ScanError:
        plan = plan_scan(simple_layout(layout), axis, reverse, sizes)
    return not any(isinstance(step, AcrossWarps) and step.bytes <= _owned(operation) for step in plan.steps)


def _gather(_: Footprints, operation: Operation) -> bool:
    source, indices = (_layout(operand.type) for operand in operation.operands)
    return plan_gather(source, indices, int(operation.attributes["axis"])) is not None


def _atomic(_: Footprints, operation: Operation) -> bool:
    return not any(result.uses for result in operation.results)


def _never(_: Footprints, operation: Operation) -> bool:
    return False


#: Operations that upstream gives scratch memory → whether this one does without (in registers, by shuffles, or beyond
#: upstream's allocation). All others of these names write it, wait, and read it.
_KEEPS_OFF: dict[str, Callable[[Footprints, Operation], bool]] = {
    "ttg.convert_layout": _conversion,
    "tt.reduce": _reduction,
    "tt.scan": _scan,
    "tt.gather": _gather,
    "tt.histogram": _never,
    **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_poll"), _atomic),
}
