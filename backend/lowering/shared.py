"""The ``ttg`` operations on shared memory: allocation, store, load, views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..layouts.buffer_layouts import buffer_layout, tensor_offsets
from ..layouts.element_sizes import bits_in_memory, bytes_in_memory
from ..layouts.shared_encodings import SharedLayout
from ..planning.memory_pools import first_element
from ..planning.plans import BufferAccess
from ..spirv import opcodes as op
from ..ttgir.ir import Operation, Value
from ..ttgir.types import IntegerType, TensorType, Type
from .index_arithmetic import apply_bases, combine, coordinates, image, owns, unique_owner
from .lowering import Lowering
from .packing import join_words, split_word
from .registry import lowers
from .workgroup_memory import SharedBuffer, SharedOperand


def padded(ctx: Lowering, offset: int, layout: SharedLayout) -> int:
    """The element offset in memory for an offset before padding. Whole intervals are added last, padding included:
    drivers fold constants into addresses."""
    f = ctx.f
    base, constant = f.base_and_constant(offset)
    if constant >> 31 or any(constant % interval for interval, _ in layout.padding):
        base, constant = offset, 0
    total = base
    for interval, padding in layout.padding:
        group = f.shr(base, interval.bit_length() - 1)
        total = f.add(total, f.mul(group, ctx.module.uint(padding)))
    return f.add(total, ctx.module.uint(layout.pad(constant)))


def element_index(ctx: Lowering, buffer: SharedBuffer, offset: int) -> int:
    """The index of an element in workgroup memory, counted in elements of its type. ``offset``: of the element in the
    buffer's layout, before padding."""
    f, view = ctx.f, buffer.view
    size = bytes_in_memory(view.type.element)
    assert view.first % size == 0, buffer
    if view.origin:
        offset = f.xor(offset, ctx.module.uint(view.origin))
    index = f.add(padded(ctx, offset, buffer_layout(view.type)), ctx.module.uint(first_element(view.first, size)))
    return index if buffer.moved is None else f.add(index, buffer.moved)


def _in_units(ctx: Lowering, index: int, width: int) -> int:
    """``index``, a multiple of ``width``, counted in so many elements. What is added to it last stays so: drivers fold
    constants into addresses. Workgroup memory is far smaller than 2^32 bytes, so no sum wraps around."""
    f, bits = ctx.f, width.bit_length() - 1
    base, constant = f.base_and_constant(index)
    if constant % width or constant >> 31:  # a negative one wraps around
        return f.shr(index, bits)
    return f.add(f.shr(base, bits), ctx.module.uint(constant >> bits))


def read(ctx: Lowering, buffer: SharedBuffer, index: int, width: int) -> list[int]:
    """``width`` consecutive elements from element ``index``, a multiple of ``width``."""
    view = buffer.view
    cell, count = view.cells
    found = ctx.shared.load(ctx, cell, _in_units(ctx, index, width), width * count, view.end, view.start)
    return (
        found
        if view.cell is None
        else [_element(ctx, found[at : at + count], view.type.element) for at in range(0, len(found), count)]
    )


def write(ctx: Lowering, buffer: SharedBuffer, index: int, values: Sequence[int]) -> None:
    """The opposite of ``read``."""
    view = buffer.view
    cell, count = view.cells
    cells = values
    if view.cell is not None:
        cells = [one for value in values for one in _cells(ctx, value, view.type.element, cell)]
    ctx.shared.store(ctx, cell, _in_units(ctx, index, len(values)), cells, view.end, view.start)


def _element(ctx: Lowering, cells: list[int], type_: Type) -> int:
    """The element of ``type_`` that integers make up."""
    if type_ == IntegerType(1):
        return ctx.f.compare(op.INotEqual, cells[0], ctx.module.uint(0, 8))
    held = ctx.elements.memory_type_id(type_)
    return ctx.f.bitcast(cells[0], held) if len(cells) == 1 else join_words(ctx, cells, held)


def _cells(ctx: Lowering, value: int, type_: Type, cell: Type) -> list[int]:
    """The integers of type ``cell`` that an element of ``type_`` is made of."""
    if type_ == IntegerType(1):
        return [ctx.f.select(value, ctx.module.uint(1, 8), ctx.module.uint(0, 8))]
    held = ctx.elements.memory_type_id(cell)
    if bits_in_memory(type_) == bits_in_memory(cell):
        return [ctx.f.bitcast(value, held)]
    return split_word(ctx, value, held)


def store_tensor(ctx: Lowering, buffer: SharedBuffer, type_: TensorType, registers: Sequence[int], width: int) -> None:
    """Writes a tensor into its buffer, ``width`` registers at a time. Of invocations with the same elements one writes:
    writes of two race, even of the same value (Vulkan specification, "Data Race")."""
    offsets = tensor_offsets(type_, buffer.view.type)
    places = coordinates(ctx, offsets, 0)

    def store() -> list[int]:
        for start in range(0, len(registers), width):
            write(ctx, buffer, element_index(ctx, buffer, places[start]), registers[start : start + width])
        return []

    if any(not basis for name in ("lane", "warp") for basis in offsets.inputs[name]):
        ctx.f.if_(unique_owner(ctx, offsets), store)
    else:
        store()


def tensor_reader(
    ctx: Lowering, buffer: SharedBuffer, type_: TensorType, width: int = 1
) -> Callable[[int], Sequence[int]]:
    """What reads ``width`` registers of a tensor from its buffer, from a given one on, at its first call for them."""
    places = coordinates(ctx, tensor_offsets(type_, buffer.view.type), 0)
    known: dict[int, Sequence[int]] = {}

    def at(first: int) -> Sequence[int]:
        index = element_index(ctx, buffer, places[first])
        if index not in known:
            known[index] = read(ctx, buffer, index, width)
        return known[index]

    return at


def load_tensor(ctx: Lowering, buffer: SharedBuffer, type_: TensorType, width: int) -> list[int]:
    """Reads a tensor from its buffer, ``width`` registers at a time: one id a register."""
    reader = tensor_reader(ctx, buffer, type_, width)
    count = 1 << len(ctx.layout(type_).bases["register"])
    return [register for first in range(0, count, width) for register in reader(first)]


def _buffer(ctx: Lowering, operation: Operation, name: str = "src") -> SharedBuffer:
    buffer = ctx[operation[name]]
    assert isinstance(buffer, SharedBuffer), operation.name
    return buffer


@lowers("ttg.local_alloc")
def _local_alloc(ctx: Lowering, operation: Operation) -> None:
    plan = ctx.plan_of(operation, BufferAccess)
    buffer = SharedBuffer(ctx.plan.buffers[operation.result])
    ctx[operation.result] = buffer
    source = operation.optional("src")
    if source is not None:
        store_tensor(ctx, buffer, source.tensor, ctx.registers(source), plan.width)


@lowers("ttg.local_dealloc")
def _local_dealloc(ctx: Lowering, operation: Operation) -> None:
    """Its bytes are reused after its last use (planning/allocation.py)."""


@lowers("ttg.local_store")
def _local_store(ctx: Lowering, operation: Operation) -> None:
    source = operation["src"]
    width = ctx.plan_of(operation, BufferAccess).width
    store_tensor(ctx, _buffer(ctx, operation, "dst"), source.tensor, ctx.registers(source), width)


@lowers("ttg.local_load")
def _local_load(ctx: Lowering, operation: Operation) -> None:
    type_ = operation.result.tensor
    buffer = _buffer(ctx, operation)
    plan = ctx.plan_of(operation, BufferAccess)
    if plan.late:
        ctx[operation.result] = SharedOperand(type_, buffer)
    else:
        ctx[operation.result] = load_tensor(ctx, buffer, type_, plan.width)


@lowers("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_subslice")
def _view(ctx: Lowering, operation: Operation) -> None:
    """All that there is to a view is planned."""
    ctx[operation.result] = SharedBuffer(ctx.view_of(operation), _buffer(ctx, operation).moved)


@lowers("ttg.memdesc_index")
def _index(ctx: Lowering, operation: Operation) -> None:
    """Padding comes after every so many elements of all parts together; extents are powers of two, so that the padding
    before a part and the padding within it can be added."""
    f, view, source = ctx.f, ctx.view_of(operation), _buffer(ctx, operation)
    layout = buffer_layout(view.type)
    elements = padded(ctx, f.mul(ctx.scalar(operation["index"]), ctx.module.uint(layout.elements.size)), layout)
    ctx[operation.result] = SharedBuffer(view, elements if source.moved is None else f.add(source.moved, elements))


@lowers("ttg.memdesc_reinterpret")
def _reinterpret(ctx: Lowering, operation: Operation) -> None:
    f, view, source = ctx.f, ctx.view_of(operation), _buffer(ctx, operation)
    before, after = (bytes_in_memory(one.type.element) for one in (source.view, view))
    moved = source.moved
    if moved is not None and before > after:
        moved = f.mul(moved, ctx.module.uint(before // after))
    elif moved is not None and before < after:
        moved = f.shr(moved, (after // before).bit_length() - 1)
    ctx[operation.result] = SharedBuffer(view, moved)


# -- elements one by one -----------------------------------------------------------------------------------------
def indexed_places(ctx: Lowering, buffer: SharedBuffer, indices: Value, axis: int) -> list[int]:
    """The indices in workgroup memory of the elements that a tensor of indices along ``axis`` names. One outside of the
    buffer has no meaning in the language; here it counts modulo the extent, so that no other memory is reached."""
    f, module, type_ = ctx.f, ctx.module, buffer.view.type
    layout, offsets = ctx.layout(indices.type), buffer_layout(type_).offsets
    last = module.uint(type_.shape[axis] - 1)
    along = [f.and_(f.zero_extend(index, 32), last) for index in ctx.registers(indices)]
    places, taken = [module.uint(0)] * len(along), 0
    for dim in range(layout.rank):
        bases = [basis[0] for basis in offsets.bases[f"dim{dim}"]]
        own = along if dim == axis else coordinates(ctx, layout, dim)
        places = [
            combine(f, place, taken, apply_bases(f, coordinate, bases), image(bases))
            for place, coordinate in zip(places, own, strict=True)
        ]
        taken |= image(bases)
    return [element_index(ctx, buffer, place) for place in places]


@lowers("ttg.local_gather")
def _local_gather(ctx: Lowering, operation: Operation) -> None:
    buffer, axis = _buffer(ctx, operation), int(operation.attribute("axis"))
    ctx.plan_of(operation, BufferAccess)
    places = indexed_places(ctx, buffer, operation["indices"], axis)
    ctx.define(operation.result, [read(ctx, buffer, place, 1)[0] for place in places])


@lowers("ttg.local_scatter")
def _local_scatter(ctx: Lowering, operation: Operation) -> None:
    buffer, axis = _buffer(ctx, operation, "dst"), int(operation.attribute("axis"))
    ctx.plan_of(operation, BufferAccess)
    places = indexed_places(ctx, buffer, operation["indices"], axis)
    values = operation["values"]

    def store() -> list[int]:
        for place, value in zip(places, ctx.registers(values), strict=True):
            write(ctx, buffer, place, [value])
        return []

    ctx.f.if_(owns(ctx, values.type), store)
