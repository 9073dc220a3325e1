"""Plans of accesses to device memory, and of tensors in buffers of shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..analysis.axis_info import AxisInfoAnalysis
from ..layouts.buffer_layouts import buffer_width
from ..layouts.distributed import layout_of
from ..layouts.element_sizes import MAX_BITS, bits_in_memory
from ..layouts.vectors import access_width, contiguous_registers
from ..ttgir.ir import Operation, Value
from ..ttgir.operations import masks
from ..ttgir.types import TensorType, element_type
from .buffers import BufferView
from .cross_lane import Target, plan_atomic
from .memory_pools import Room, SharedAccess, View
from .plans import BufferAccess, GlobalAccess, Plan

#: Why accesses of one element are planned where there could be wider ones.
CHECKED = "every access is checked"


# -- buffers -----------------------------------------------------------------------------------------------------
Views = Mapping[Value, BufferView]


def plan_local_alloc(operation: Operation, seen: View, views: Views) -> Plan:
    """``ttg.local_alloc``, with or without a tensor that is stored."""
    if operation.result not in views:
        return BufferAccess()
    view = views[operation.result]
    source = operation.optional("src")
    return BufferAccess(offset=view.first) if source is None else _store(source, view, seen)


def plan_local_store(operation: Operation, seen: View, views: Views) -> Plan:
    """``ttg.local_store``."""
    buffer = operation["dst"]
    return _store(operation["src"], views[buffer], seen) if buffer in views else Plan()


def _store(source: Value, view: BufferView, seen: View) -> Plan:
    tensor = source.tensor
    width = buffer_width(tensor, view.type, view.width(seen.width_limit(view.type.element)))
    return _accessed(view, width)


def _accessed(view: BufferView, width: int, late: bool = False) -> BufferAccess:
    return BufferAccess((SharedAccess(view.cells[0], view.start, view.end),), (), "", view.first, width, late)


def plan_local_load(operation: Operation, seen: View, views: Views, late: bool) -> Plan:
    """``ttg.local_load``; ``late``: it is left to the dots that use it."""
    buffer, tensor = operation["src"], operation.result.type
    if buffer not in views:
        return Plan()
    view = views[buffer]
    assert isinstance(tensor, TensorType)
    if late:
        return _accessed(view, 1, late=True)
    return _accessed(view, buffer_width(tensor, view.type, view.width(seen.width_limit(view.type.element))))


def plan_element_access(operation: Operation, views: Views) -> Plan:
    """``ttg.local_gather`` and ``ttg.local_scatter``: elements one by one."""
    buffer = operation["dst" if operation.name == "ttg.local_scatter" else "src"]
    return _accessed(views[buffer], 1) if buffer in views else Plan()


def plan_shared_atomic(operation: Operation, room: Room, target: Target, views: Views) -> Plan:
    """``ttg.local_atomic_scatter_rmw``: elements one by one, whose old values are shared like the old values of other
    atomic operations."""
    buffer = operation["dst"]
    if buffer not in views:
        return Plan()
    shared = plan_atomic(operation, room, target)
    return replace(shared, accesses=(*_accessed(views[buffer], 1).accesses, *shared.accesses))


# -- device memory -----------------------------------------------------------------------------------------------
def plan_global_access(operation: Operation, axis_info: AxisInfoAnalysis, checked: Callable[[Value], bool]) -> Plan:
    """``tt.load`` and ``tt.store``: the registers of one access have consecutive addresses, aligned
    to all of them, and equal masks. Where accesses are ``checked``, elements are accessed one by one."""
    pointer, data = operation["ptr"], operation.result if operation.results else operation["value"]
    bits = bits_in_memory(element_type(data.type))
    if not isinstance(pointer.type, TensorType):
        return GlobalAccess((), (), "", 1, bits)
    if checked(pointer):
        return GlobalAccess((), (), CHECKED, 1, bits)
    layout, info = layout_of(pointer.type), axis_info[pointer]
    mask = next((axis_info[one] for one in masks(operation)), None)
    width = access_width(layout, info, mask, bits, MAX_BITS)
    if width * bits == MAX_BITS or not layout.rank:
        return GlobalAccess((), (), "", width, bits)
    dim, registers = contiguous_registers(layout)
    limits = {
        f"the layout gives a lane runs of {registers}": registers,
        f"runs of {info.contiguity[dim]} addresses are known": info.contiguity[dim],
        f"addresses are known to be multiples of {info.divisibility[dim]} bytes": info.divisibility[dim] * 8 // bits,
        **({f"runs of {mask.constancy[dim]} equal masks are known": mask.constancy[dim]} if mask is not None else {}),
    }
    return GlobalAccess((), (), min(limits, key=lambda reason: limits[reason]), width, bits)
