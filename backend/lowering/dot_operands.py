"""The operands of a dot: where the elements of a step of K come from.

An operand in shared memory is read as it is needed. An operand in registers has all of K for each invocation's rows or
columns. A loop over K cannot choose among registers, so they first go to workgroup memory, once for all invocations
that hold the same, or, if there is no room, to an array of the invocation.
"""

from __future__ import annotations

from collections.abc import Callable

from ..layouts.buffer_layouts import buffer_layout
from ..layouts.linear import unflatten
from ..planning.buffers import BufferView
from ..planning.plans import Dot
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Value
from ..ttgir.types import FloatType, TensorType, Type, element_type
from .floats import convert
from .index_arithmetic import apply_bases, combine, image, thread_part
from .lowering import Lowering
from .shared import element_index, read, store_tensor
from .workgroup_memory import SharedBuffer, SharedOperand

#: Gives the element of an operand at (batch, row or column) of this lane and a step of K.
Fetch = Callable[[tuple[int, ...], int], int]


def as_type(ctx: Lowering, value: int, source: Type, target: Type) -> int:
    """An element as one of the type that products are added in, or back."""
    if isinstance(source, FloatType):
        return convert(ctx, value, source, target)
    return ctx.f.sign_extend(value, 32)


def operand(ctx: Lowering, value: Value, axis: int, k_axis: int, compute: Type) -> OperandSource:
    """A dot operand whose rows or columns are dimension ``axis``, fetched as elements of ``compute``."""
    lowered = ctx[value]
    if isinstance(lowered, SharedOperand):
        return _InMemory(ctx, lowered, axis, k_axis, compute)
    return _InRegisters(ctx, value, axis, k_axis, compute)


class OperandSource:
    """A dot operand: ``at(k, count)`` gives what fetches elements of steps k … k + count - 1."""

    def at(self, k: int, count: int) -> Fetch:
        """``k`` is an id, a multiple of ``count``."""
        raise NotImplementedError


class _InRegisters(OperandSource):
    """The whole operand is in registers: steps are looked up, so ``k`` must be the constant 0."""

    def __init__(self, ctx: Lowering, value: Value, axis: int, k_axis: int, compute: Type) -> None:
        layout = ctx.layout(value.type)
        registers = ctx.registers(value)
        source = element_type(value.type)
        self._ctx, self._compute = ctx, compute
        self.value, self._axis, self._k_axis = value, axis, k_axis
        self._elements: dict[tuple[int, ...], int] = {}
        for place, register in zip(layout.images("register"), registers, strict=True):
            point = unflatten(place, layout.shape)
            self._elements[*point[:-2], point[axis], point[k_axis]] = register
        self._convert = lambda element: as_type(ctx, element, source, compute)

    def at(self, k: int, count: int) -> Fetch:
        return lambda place, step: self._convert(self._elements[*place, step])

    def in_array(self) -> OperandSource:
        """The operand where ``k`` may be any id, in an array of the invocation's own."""
        elements = {place: self._convert(value) for place, value in self._elements.items()}
        return _InArray(self._ctx, elements, self._ctx.type_id(self._compute))

    def in_memory(self, buffer: SharedBuffer, width: int) -> OperandSource:
        """The operand in workgroup memory, ``width`` elements a write. All invocations must wait before it is read."""
        ctx, value = self._ctx, self.value
        type_ = value.type
        assert isinstance(type_, TensorType)
        store_tensor(ctx, buffer, type_, ctx.registers(value), width)
        return _InMemory(ctx, SharedOperand(type_, buffer), self._axis, self._k_axis, self._compute)


class _InArray(OperandSource):
    """The whole operand is in an indexed array of the invocation's own, because a loop over K reads it."""

    def __init__(self, ctx: Lowering, elements: dict[tuple[int, ...], int], type_id: int) -> None:
        f, module = ctx.f, ctx.module
        self._ctx, self._type_id = ctx, type_id
        self._steps = 1 + max(place[-1] for place in elements)
        self._first = {
            place: index * self._steps for index, place in enumerate(dict.fromkeys(place[:-1] for place in elements))
        }
        self._variable = f.variable(module.array(type_id, len(self._first) * self._steps))
        self._pointer = module.pointer(StorageClass.Function, type_id)
        for place, value in elements.items():
            f.store(self._element(module.uint(self._first[place[:-1]] + place[-1])), value)

    def _element(self, index: int) -> int:
        return self._ctx.f.access(self._pointer, self._variable, index)

    def at(self, k: int, count: int) -> Fetch:
        f, module = self._ctx.f, self._ctx.module
        return lambda place, step: f.load(
            self._type_id, self._element(f.add(k, module.uint(self._first[place] + step)))
        )


class _InMemory(OperandSource):
    """The operand is in shared memory: each step is read where it is used."""

    def __init__(self, ctx: Lowering, operand: SharedOperand, axis: int, k_axis: int, compute: Type) -> None:
        self._ctx, self._operand, self._compute = ctx, operand, compute
        self._layout = buffer_layout(operand.buffer.view.type)
        offsets = self._layout.offsets.bases
        rank = len(operand.type.shape)
        self._bases = [[basis[0] for basis in offsets[f"dim{dim}"]] for dim in range(rank)]
        self._dims = [*range(rank - 2), rank + axis]
        self._k_bases = self._bases[rank + k_axis]
        self._thread = self._thread_offset()

    def _thread_offset(self) -> tuple[int, int]:
        """What the lane's own origin contributes to the offset: its id, and the bits that it may set."""
        ctx, layout = self._ctx, self._ctx.layout(self._operand.type)
        total, mask = ctx.module.uint(0), 0
        for dim in self._dims:
            origin, origin_mask = thread_part(ctx, layout, dim)
            bases = [basis if origin_mask >> bit & 1 else 0 for bit, basis in enumerate(self._bases[dim])]
            part = apply_bases(ctx.f, origin, bases)
            total = combine(ctx.f, total, mask, part, image(bases))
            mask |= image(bases)
        return total, mask

    def at(self, k: int, count: int) -> Fetch:
        ctx = self._ctx
        f, buffer = ctx.f, self._operand.buffer
        element = self._operand.type.element
        # The low bits of k are zero, so its own part and that of the step within the body do not meet.
        low = count.bit_length() - 1
        high_bases = [0] * low + self._k_bases[low:]
        base, mask = self._thread
        base = combine(f, base, mask, apply_bases(f, k, high_bases), image(high_bases))
        mask |= image(high_bases)
        width = self._width(low)
        known: dict[int, list[int]] = {}

        def fetch(place: tuple[int, ...], step: int) -> int:
            constant = 0
            for dim, coordinate in zip(self._dims, place, strict=True):
                constant ^= _apply(self._bases[dim], coordinate)
            constant ^= _apply(self._k_bases, step)
            lane = constant & (width - 1)
            first = constant - lane
            if first not in known:
                offset = combine(f, base, mask, ctx.module.uint(first), first)
                loaded = read(ctx, buffer, element_index(ctx, buffer, offset), width)
                known[first] = [as_type(ctx, value, element, self._compute) for value in loaded]
            return known[first][lane]

        return fetch

    def _width(self, low: int) -> int:
        """Elements that one read may take: offsets that neither the lane nor the high bits of k choose."""
        element, view = self._operand.type.element, self._operand.buffer.view
        limit = view.width(self._ctx.shared.width_limit(element))
        for interval, padding in self._layout.padding:
            limit = min(limit, interval & -interval, padding & -padding)
        taken = self._thread[1] | image(self._k_bases[low:])
        chosen = set(self._k_bases[:low])
        layout = self._ctx.layout(self._operand.type)
        for basis in layout.bases["register"]:
            chosen |= {_apply(self._bases[dim], basis[dim]) for dim in self._dims if basis[dim]}
        width = 1
        while width < limit and width in chosen and not taken & width:
            width *= 2
        return width


def _apply(bases: list[int], value: int) -> int:
    total = 0
    for bit, basis in enumerate(bases):
        if value >> bit & 1:
            total ^= basis
    return total


def indexed(ctx: Lowering, plan: Dot, *operands: OperandSource) -> list[OperandSource]:
    """The operands for any id ``k``: registers are put in workgroup memory or in arrays, as planned."""
    found: list[OperandSource] = []
    for one, place in zip(operands, plan.operands, strict=True):
        if not isinstance(one, _InRegisters):
            found.append(one)
        elif place.buffer is None:
            found.append(one.in_array())
        else:
            found.append(one.in_memory(SharedBuffer(BufferView.whole(place.buffer, place.offset)), place.width))
    if plan.scratch:
        ctx.barrier()
    return found
