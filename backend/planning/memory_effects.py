"""Which bytes of workgroup memory each operation reads and writes, by its plan: what analysis/barriers.py judges by.

An operation that is not known here may read and write everything, and waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..analysis.barriers import NO_ACCESS, Access, Frame, MemoryEffect
from ..layouts.buffer_layouts import buffer_bytes, buffer_layout, tensor_offsets
from ..layouts.element_sizes import bytes_in_memory
from ..ttgir.ir import Operation, Value
from ..ttgir.operations import OPERATIONS, TOUCHES_SHARED, Effect, End, definition_of, memory_semantics
from ..ttgir.types import MemDescType, TensorType, Type
from .buffers import BufferView
from .memory_pools import ALIGNMENT, aligned
from .plans import Plan

_ALL = 1 << 62
#: Memory semantics of atomic operations around which there are barriers of their own.
_ORDERED = frozenset({"acquire", "release", "acq_rel"})


@dataclass
class MemoryEffects:
    """``effects(operation)``: its effect. ``late``: the loads that are left to their dots. ``views``: where
    buffers lie."""

    plans: Mapping[Operation, Plan]
    late: frozenset[Operation]
    views: Mapping[Value, BufferView]

    def __call__(self, operation: Operation) -> MemoryEffect:
        rule = _RULES.get(operation.name)
        plan = self.plans.get(operation)
        try:
            if rule is not None:
                return rule(self, operation)
            if plan is not None and plan.scratch:
                return self._scratch(operation, plan)
        except (ValueError, NotImplementedError):  # a layout or type that the lowering will refuse
            return _anything(operation)
        row = definition_of(operation)
        if row.effects & (TOUCHES_SHARED | Effect.WAITS):
            return _anything(operation)
        if operation.regions and any(self._concerns(inner) for inner in operation.walk()):
            return _anything(operation)
        if row.end is End.NOT and any(
            isinstance(value.type, MemDescType) for value in (*operation.operands, *operation.results)
        ):
            return _anything(operation)
        return MemoryEffect(self._late_reads(operation), memory_semantics(operation) in _ORDERED)

    def _late_reads(self, operation: Operation) -> tuple[Access, ...]:
        loads = [owner for operand in operation.operands if (owner := operand.owner) in self.late]
        return tuple(self.buffer_access(operation, load["src"], False) for load in loads)

    def _scratch(self, operation: Operation, plan: Plan) -> MemoryEffect:
        """The first exchange writes; the last one reads after a wait. Those between are parted from other operations
        by the waits of these two."""
        late = self._late_reads(operation)
        first, last = (plan.scratch[end].exchange for end in (0, -1))
        written, read = (
            tuple(Access(operation, *_widened(*one.bytes), write) for one in plan.scratch if one.exchange == exchange)
            for exchange, write in ((first, True), (last, False))
        )
        return MemoryEffect((*late, *written), True, (*late, *read))

    def _concerns(self, operation: Operation) -> bool:
        """Whether an operation inside of a region that is not followed may have to do with workgroup memory."""
        plan = self.plans.get(operation)
        return (
            (plan is not None and bool(plan.scratch))
            or bool(definition_of(operation).effects & (TOUCHES_SHARED | Effect.WAITS))
            or any(isinstance(value.type, MemDescType) for value in (*operation.operands, *operation.results))
        )

    def buffer_access(self, operation: Operation, buffer: Value, write: bool, tensor: Type | None = None) -> Access:
        """The access of ``operation`` to ``buffer``; ``tensor``: the type whose layout says who accesses what."""
        view = self.views.get(buffer)
        if view is None:
            return Access(operation, 0, _ALL, write)
        if not view.known:
            return Access(operation, *_widened(view.start, view.end), write)
        type_ = view.type
        first, end = _widened(view.first, view.first + buffer_bytes(type_))
        if not isinstance(tensor, TensorType):
            return Access(operation, first, end, write)
        frame = Frame(view.first, bytes_in_memory(type_.element), buffer_layout(type_).padding)
        return Access(operation, first, end, write, tensor_offsets(tensor, type_), frame)


def _anything(operation: Operation) -> MemoryEffect:
    return MemoryEffect((Access(operation, 0, _ALL, True),))


def _widened(start: int, end: int) -> tuple[int, int]:
    """The bytes of all accesses: where elements travel in words, those next to a buffer's are read along."""
    return start // ALIGNMENT * ALIGNMENT, aligned(end)


# -- buffers -----------------------------------------------------------------------------------------------------
def _local_alloc(effects: MemoryEffects, operation: Operation) -> MemoryEffect:
    source = operation.optional("src")
    if source is None:
        return NO_ACCESS
    return MemoryEffect((effects.buffer_access(operation, operation.result, True, source.type),))


def _local_store(effects: MemoryEffects, operation: Operation) -> MemoryEffect:
    return MemoryEffect((effects.buffer_access(operation, operation["dst"], True, operation["src"].type),))


def _local_load(effects: MemoryEffects, operation: Operation) -> MemoryEffect:
    """Here also where it is left to dots: then they read once more, as they like."""
    tensor = None if operation in effects.late else operation.result.type
    return MemoryEffect((effects.buffer_access(operation, operation["src"], False, tensor),))


_RULES: dict[str, Callable[[MemoryEffects, Operation], MemoryEffect]] = {
    "ttg.local_alloc": _local_alloc,
    "ttg.local_store": _local_store,
    "ttg.local_load": _local_load,
    "ttg.local_gather": lambda effects, operation: MemoryEffect(
        (effects.buffer_access(operation, operation["src"], False),)
    ),
    "ttg.local_scatter": lambda effects, operation: MemoryEffect(
        (effects.buffer_access(operation, operation["dst"], True),)
    ),
    "ttg.local_atomic_scatter_rmw": lambda _, operation: _anything(operation),
    "ttg.local_dealloc": lambda _, operation: NO_ACCESS,
    **{name: lambda _, operation: NO_ACCESS for name, row in OPERATIONS.items() if row.view},
}
