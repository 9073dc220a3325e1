"""Plans of accesses to device memory, and of tensors in buffers of shared memory."""

from __future__ import annotations

from collections.abc import Callable

from ..analysis.axis_info import AxisInfoAnalysis
from ..layouts.buffers import buffer_bytes, buffer_width
from ..layouts.element_sizes import MAX_BITS, bits_in_memory, element_type
from ..layouts.vectors import access_width, contiguous_registers
from ..ttgir.ir import Operation, Value
from ..ttgir.traits import traits
from ..ttgir.types import MemDescType, TensorType
from .exchanges import layout_of
from .plans import BufferAccess, GlobalAccess, Plan
from .shared_memory import Room, SharedAccess

#: Why accesses of one element are planned where there could be wider ones.
CHECKED = "every access is checked"


# -- buffers -----------------------------------------------------------------------------------------------------
def buffer_offset(buffer: Value) -> int | None:
    """Where upstream put the buffer that ``buffer`` is a view of; None where that is not known."""
    root = buffer
    while isinstance(root.owner, Operation) and traits(root.owner).view:
        root = root.owner.operands[0]
    if not isinstance(root.owner, Operation) or root.owner.name != "ttg.local_alloc":
        return None
    return int(root.owner.attributes["allocation.offset"])


def plan_local_alloc(operation: Operation, room: Room) -> Plan:
    """``ttg.local_alloc``, with or without a tensor that is stored."""
    offset = int(operation.attributes["allocation.offset"])
    if not operation.operands:
        return BufferAccess(offset=offset)
    return _store(operation.operands[0], operation.result, offset, room)


def plan_local_store(operation: Operation, room: Room) -> Plan:
    """``ttg.local_store``."""
    source, buffer = operation.operands
    offset = buffer_offset(buffer)
    return Plan() if offset is None else _store(source, buffer, offset, room)


def _store(source: Value, buffer: Value, offset: int, room: Room) -> Plan:
    tensor, type_ = source.type, buffer.type
    assert isinstance(tensor, TensorType) and isinstance(type_, MemDescType)
    width = buffer_width(tensor, type_, room.width_limit(type_.element))
    stored = min(width, 1 << len(layout_of(tensor).bases["register"]))
    access = SharedAccess(tensor.element, offset, offset + buffer_bytes(type_), stored)
    return BufferAccess((access,), (), "", offset, width)


def plan_local_load(operation: Operation, room: Room, late: bool) -> Plan:
    """``ttg.local_load``; ``late``: it is left to the dots that use it."""
    buffer, tensor = operation.operands[0], operation.result.type
    offset, type_ = buffer_offset(buffer), buffer.type
    if offset is None:
        return Plan()
    assert isinstance(tensor, TensorType) and isinstance(type_, MemDescType)
    access = SharedAccess(tensor.element, offset, offset + buffer_bytes(type_))
    if late:
        return BufferAccess((access,), (), "", offset, 1, True)
    width = buffer_width(tensor, type_, room.width_limit(type_.element))
    return BufferAccess((access,), (), "", offset, width)


# -- device memory -----------------------------------------------------------------------------------------------
def plan_global_access(
    operation: Operation, axis_info: AxisInfoAnalysis, checked: Callable[[Value], bool], mask_group: int, data: Value
) -> Plan:
    """``tt.load`` and ``tt.store`` of ``data``'s type: the registers of one access have consecutive addresses, aligned
    to all of them, and equal masks. Where accesses are ``checked``, elements are accessed one by one."""
    pointer, bits = operation.operands[0], bits_in_memory(element_type(data.type))
    if not isinstance(pointer.type, TensorType):
        return GlobalAccess((), (), "", 1, bits)
    if checked(pointer):
        return GlobalAccess((), (), CHECKED, 1, bits)
    masks = operation.operand_group(mask_group)
    layout, info = layout_of(pointer.type), axis_info[pointer]
    mask = axis_info[masks[0]] if masks else None
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
