"""Plans of ``tt.dot``: on matrix units, by which fragments; on multiply-adds, how much of K a loop body holds, where
the loop finds the operands, and which accumulators it updates."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.matrix_dots import choose, is_matrix_dot, split_of, unfolded
from ..driver_quirks import Driver
from ..errors import UnsupportedOperation
from ..layouts.buffer_layouts import buffer_bytes, buffer_width
from ..layouts.distributed import layout_of
from ..layouts.dot_operand_places import operand_encoding
from ..layouts.element_sizes import bytes_in_memory
from ..layouts.linear import LinearLayout, log2, unflatten
from ..transforms.schedule import Options
from ..ttgir.encodings import BlockedEncoding, SharedLinearEncoding
from ..ttgir.ir import Operation, Value
from ..ttgir.types import MemDescType, TensorType
from .memory_pools import Room, ScratchPart, SharedAccess, aligned
from .plans import Dot, MatrixProducts, Operand, Plan

#: Steps of K that the body of a loop keeps, however many dots there are: one access reads so many.
LEAST_UNROLL = 4


def plan_dot(
    operation: Operation,
    room: Room,
    driver: Driver,
    options: Options,
    late: frozenset[Operation],
    dots: int = 1,
    unrolled: int = 0,
) -> Plan:
    """The body holds as many steps as keep it under the target's budget of multiply-adds, and under the share of one of
    the kernel's ``dots`` where it is a loop's. It is one, too, where both operands are in buffers and all dots of the
    kernel together have more multiply-adds, ``unrolled``, than the target's budget for them. Operands in registers,
    among which a loop cannot choose, go to workgroup memory, the first that find room, and to arrays."""
    a, b, accumulator = operation.operands
    type_ = accumulator.type
    assert isinstance(type_, TensorType) and isinstance(a.type, TensorType)
    if is_matrix_dot(operation):
        return _plan_products(operation, options, late)
    if not isinstance(unfolded(type_.encoding), BlockedEncoding):
        return Plan()
    layout = layout_of(type_)
    count = 1 << len(layout.bases["register"])
    parts = _parts(layout, driver.dot_registers)
    steps = unroll = a.type.shape[-1]
    while unroll > 1 and unroll * count > driver.dot_unroll:
        unroll //= 2
    operands = tuple(Operand(isinstance(value.owner, Operation) and value.owner in late) for value in (a, b))
    crowded = unrolled > driver.dots_unroll and all(one.late for one in operands)
    if driver.dots_unroll and (unroll < steps or crowded):
        while unroll > LEAST_UNROLL and unroll * count * dots > driver.dots_unroll:
            unroll //= 2
    if unroll == steps:
        return Dot((), (), "", steps, steps, operands, parts)
    moved = _moved((a, b), operands, room)
    held = [one for one in moved if not one.late and one.buffer is None]
    if held and steps * count <= driver.dot_unroll_registers:
        reason = f"an operand in registers finds no room in the {max(room.share, 0)} bytes of shared memory left"
        return Dot((), (), reason, steps, steps, operands, parts)
    buffers = [(one.buffer, buffer_bytes(one.buffer), one) for one in moved if one.buffer is not None]
    scratch = room.place(*(ScratchPart(buffer.element, size) for buffer, size, one in buffers))
    places = iter(scratch)
    moved = tuple(one if one.buffer is None else replace(one, offset=next(places).offset) for one in moved)
    accesses = tuple(
        SharedAccess(buffer.element, place.offset, place.offset + size)
        for (buffer, size, one), place in zip(buffers, scratch, strict=True)
    )
    reason = f"{count * steps} multiply-adds are more than {driver.dot_unroll}"
    if count * steps <= driver.dot_unroll:
        reason = f"{unrolled} multiply-adds of all dots are more than {driver.dots_unroll}"
    return Dot(accesses, scratch, reason, steps, unroll, moved, parts)


def _parts(layout: LinearLayout, limit: int) -> tuple[tuple[int, ...], ...]:
    """Accumulators that one loop over K updates: rectangles of rows by columns, as square as fits into ``limit``."""
    points = [unflatten(place, layout.shape) for place in layout.images("register")]
    if len(points) <= limit:
        return (tuple(range(len(points))),)
    rows = {key: index for index, key in enumerate(dict.fromkeys(point[:-1] for point in points))}
    columns = {key: index for index, key in enumerate(dict.fromkeys(point[-1] for point in points))}
    height, width = len(rows), len(columns)
    while height * width > limit:
        if height >= width:
            height //= 2
        else:
            width //= 2
    parts: dict[tuple[int, int], list[int]] = {}
    for register, point in enumerate(points):
        parts.setdefault((rows[point[:-1]] // height, columns[point[-1]] // width), []).append(register)
    return tuple(map(tuple, parts.values()))


def _plan_products(operation: Operation, options: Options, late: frozenset[Operation]) -> Plan:
    chosen = choose(operation, options.matrices)
    if chosen is None:
        a, b = (operand.type for operand in operation.operands[:2])
        raise UnsupportedOperation(
            operation,
            f"the target has no matrix units for {a} × {b}",
            "compile the kernel from its source for this target",
        )
    left, right = (isinstance(value.owner, Operation) and value.owner in late for value in operation.operands[:2])
    return MatrixProducts((), (), "", *chosen, (left, right), split_of(operation))


def _moved(values: tuple[Value, ...], operands: tuple[Operand, ...], room: Room) -> tuple[Operand, ...]:
    """The operands where those in registers that find room are in workgroup memory."""
    left = room.share
    found: list[Operand] = []
    for value, operand, k_axis in zip(values, operands, (1, 0), strict=True):
        if not operand.late:
            tensor = value.type
            assert isinstance(tensor, TensorType)
            buffer = operand_buffer(tensor, k_axis)
            if buffer_bytes(buffer) <= left:
                width = buffer_width(tensor, buffer, room.view.width_limit(buffer.element))
                operand = Operand(False, buffer, 0, width)
                left -= aligned(buffer_bytes(buffer))
        found.append(operand)
    return tuple(found)


def operand_buffer(tensor: TensorType, k_axis: int) -> MemDescType:
    """A buffer in workgroup memory for an operand, laid out for dots. ``k_axis``: 1 for A, 0 for B."""
    *batch, rows, columns = tensor.shape
    plane = operand_encoding((rows, columns), k_axis, bytes_in_memory(tensor))
    nothing = (0,) * len(batch)
    bases = [(*nothing, *basis) for basis in plane.offset]
    for axis in reversed(range(len(batch))):
        unit = [0] * len(tensor.shape)
        bases += [tuple([*unit[:axis], 1 << bit, *unit[axis + 1 :]]) for bit in range(log2(batch[axis]))]
    return MemDescType(tensor.shape, tensor.element, SharedLinearEncoding(tuple(bases), ()))
