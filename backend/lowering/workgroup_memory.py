"""Workgroup memory: where planned byte offsets become SPIR-V variables, and how elements are read and written.

With VK_KHR_workgroup_memory_explicit_layout there is one block, seen through an aliased array for each access type.
Without it there is one array an element type, each over bytes of its own (planning/memory_pools.py). Its items are
vectors, and one element is reached as a component of its item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..layouts.element_sizes import MAX_BITS, bits_in_memory
from ..planning.buffers import BufferView
from ..planning.memory_pools import POOL, VECTOR, View, first_element
from ..spirv import opcodes as op
from ..spirv.function import FunctionBuilder
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import Capability_, MemoryAccess, Scope, Semantics, StorageClass
from ..ttgir.types import IntegerType, TensorType, Type
from .emitter import Emitter
from .packing import PackedElements, pack, packing, unpack
from .shared_watch import Bytes, Kind, Watch

EXPLICIT_LAYOUT = "SPV_KHR_workgroup_memory_explicit_layout"
EXPLICIT_LAYOUT_CAPABILITY = {
    8: Capability_.WorkgroupMemoryExplicitLayout8BitAccessKHR,
    16: Capability_.WorkgroupMemoryExplicitLayout16BitAccessKHR,
}


@dataclass(frozen=True)
class SharedBuffer:
    """A ``!ttg.memdesc`` value. ``moved``: the id of the number of elements that its place depends on, if any."""

    view: BufferView
    moved: int | None = None


@dataclass(frozen=True)
class SharedOperand:
    """A tensor that is still in shared memory, read where it is used (see analysis/lazy_loads.py)."""

    type: TensorType
    buffer: SharedBuffer


@dataclass
class _Array:
    """A workgroup variable whose items are scalars or vectors, and the bytes that it must hold. ``first``: the id of a
    constant, the number of its first item, known when all accesses are."""

    variable: int
    item: int
    item_bytes: int
    part_bits: int
    pointer_type: int
    first: int
    start: int
    extent: int = 0


class SharedMemory:
    """The workgroup variables of one module, as they were planned."""

    def __init__(self, module: ModuleBuilder, view: View, watch: Watch | None = None) -> None:
        self._module = module
        #: Who is called for each access and barrier.
        self.watch = watch
        self._view = view
        self._explicit = view.explicit
        self._arrays: dict[tuple[int, int], _Array] = {}

    def width_limit(self, type_: Type) -> int:
        """The most consecutive elements of ``type_`` that one access may take."""
        return self._view.width_limit(type_)

    def _array(self, item: int, item_bytes: int, part: int, start: int, end: int) -> _Array:
        key = item, start // POOL
        array = self._arrays.get(key)
        if array is None:
            pointer_type = self._module.pointer(StorageClass.Workgroup, item)
            array = self._arrays[key] = _Array(
                self._module.id(), item, item_bytes, self._module.kinds[part][1], pointer_type, self._module.id(), start
            )
            self._module.type_of[array.first] = self._module.u32
        array.start = 0 if self._explicit else min(array.start, start)
        array.extent = max(array.extent, end)
        return array

    def matrix(
        self, emitter: Emitter, type_: Type, index: int, lines: tuple[int, int], stride: int, start: int, end: int
    ) -> int:
        """A pointer to element ``index`` of the workgroup memory, seen as elements of ``type_``, from where a subgroup
        reads a matrix: ``lines``, how many and of how many elements each, ``stride`` apart. They are in the buffer of
        bytes from ``start`` to before ``end``. For devices with the explicit layout."""
        assert self._explicit
        how = packing(emitter, type_, 1)
        if self.watch is not None:
            self._seen_matrix(emitter, how.bits // 8, index, lines, stride, start, end)
        return self._whole(emitter.f, how, how.type_id(emitter), index, start, end)

    def _whole(self, f: FunctionBuilder, how: PackedElements, item: int, index: int, start: int, end: int) -> int:
        """A pointer to item ``index``."""
        assert start % (how.bits // 8) == 0, f"a buffer at byte {start} is read in items of {how.bits // 8} bytes"
        array = self._array(item, how.bits // 8, how.part, start, end)
        path = (self._module.uint(0), index) if self._explicit else (f.sub(index, array.first),)
        return f.access(array.pointer_type, array.variable, *path)

    def _component(self, emitter: Emitter, how: PackedElements, index: int, start: int, end: int) -> int:
        """A pointer to part ``index`` in the array of items that hold ``how.parts`` of them."""
        f, module = emitter.f, self._module
        lanes = how.parts
        array = self._array(how.type_id(emitter), how.bits // 8, how.part, start, end)
        item = f.sub(f.shr(index, lanes.bit_length() - 1), array.first)
        return f.access(
            module.pointer(StorageClass.Workgroup, how.part),
            array.variable,
            item,
            f.and_(index, module.uint(lanes - 1)),
        )

    def _item(self, emitter: Emitter, type_: Type) -> PackedElements:
        """An item of the array that elements of ``type_`` have for themselves."""
        how = packing(emitter, type_, min(VECTOR, MAX_BITS // bits_in_memory(type_)))
        count = how.parts * how.per_part
        return PackedElements(how.element, how.element, count, 1, how.boolean, how.bits)

    def load(self, emitter: Emitter, type_: Type, index: int, count: int, end: int, start: int = 0) -> list[int]:
        """Reads ``count`` consecutive elements of scalar ``type_`` from element ``index`` × ``count`` of the workgroup
        memory. The buffer that they are in lies within the bytes from ``start`` to before ``end``."""
        f, how = emitter.f, packing(emitter, type_, count)
        self._seen(Kind.READ, how, index, start, end)
        if self._explicit:
            item = how.type_id(emitter)
            pointer = self._whole(f, how, item, index, start, end)
            return unpack(emitter, how, f.load(item, pointer, MemoryAccess.NonPrivatePointer))
        return self._load_items(emitter, self._item(emitter, type_), index, count, start, end)

    def _load_items(
        self, emitter: Emitter, item: PackedElements, index: int, count: int, start: int, end: int
    ) -> list[int]:
        f = emitter.f
        if count >= item.parts:
            type_id = item.type_id(emitter)
            pointers = [
                self._whole(f, item, type_id, number, start, end)
                for number in self._elements(f, index, count // item.parts)
            ]
            return [
                element
                for pointer in pointers
                for element in unpack(emitter, item, f.load(type_id, pointer, MemoryAccess.NonPrivatePointer))
            ]
        single = _part_of(item)
        return [
            unpack(
                emitter,
                single,
                f.load(item.part, self._component(emitter, item, element, start, end), MemoryAccess.NonPrivatePointer),
            )[0]
            for element in self._elements(f, index, count)
        ]

    def store(self, emitter: Emitter, type_: Type, index: int, values: Sequence[int], end: int, start: int = 0) -> None:
        """Writes consecutive elements at element ``index`` × ``len(values)`` of the workgroup memory."""
        f = emitter.f
        how = packing(emitter, type_, len(values))
        self._seen(Kind.WRITE, how, index, start, end)
        if self._explicit:
            pointer = self._whole(f, how, how.type_id(emitter), index, start, end)
            f.store(pointer, pack(emitter, how, values), MemoryAccess.NonPrivatePointer)
            return
        self._store_items(emitter, self._item(emitter, type_), index, values, start, end)

    def _store_items(
        self, emitter: Emitter, item: PackedElements, index: int, values: Sequence[int], start: int, end: int
    ) -> None:
        f, count = emitter.f, len(values)
        if count >= item.parts:
            for place, number in enumerate(self._elements(f, index, count // item.parts)):
                some = values[place * item.parts : (place + 1) * item.parts]
                f.store(
                    self._whole(f, item, item.type_id(emitter), number, start, end),
                    pack(emitter, item, some),
                    MemoryAccess.NonPrivatePointer,
                )
            return
        single = _part_of(item)
        for element, value in zip(self._elements(f, index, count), values, strict=True):
            f.store(
                self._component(emitter, item, element, start, end),
                pack(emitter, single, [value]),
                MemoryAccess.NonPrivatePointer,
            )

    def _elements(self, f: FunctionBuilder, index: int, count: int) -> list[int]:
        first = f.shl(index, count.bit_length() - 1)
        return [f.add(first, self._module.uint(place)) for place in range(count)]

    def word_pointer(self, emitter: Emitter, bits: int, index: int, start: int, end: int) -> int:
        """A pointer to integer ``index`` of so many ``bits``, for atomic instructions. Its buffer lies within the bytes
        from ``start`` to before ``end``."""
        word = IntegerType(bits)
        how = packing(emitter, word, 1)
        self._seen(Kind.UPDATE, how, index, start, end)
        if self._explicit:
            return self._whole(emitter.f, how, self._module.int(bits), index, start, end)
        return self._component(emitter, self._item(emitter, word), index, start, end)

    def _seen(self, kind: Kind, how: PackedElements, index: int, start: int, end: int) -> None:
        if self.watch is not None:
            self.watch.access(kind, Bytes(index, how.bits // 8, start, end))

    def _seen_matrix(
        self, emitter: Emitter, size: int, index: int, lines: tuple[int, int], stride: int, start: int, end: int
    ) -> None:
        """Which lane reads what is the driver's choice: here each reads a share of the lines."""
        f, module, (count, length) = emitter.f, self._module, lines
        together = math.gcd(length, stride, MAX_BITS // 8 // size)
        pieces = count * length // together
        first = f.shr(index, together.bit_length() - 1)
        for round_ in range(0, pieces, emitter.subgroup_size):
            piece = f.and_(f.add(emitter.lane, module.uint(round_)), module.uint(pieces - 1))
            line = f.shr(piece, (length // together).bit_length() - 1)
            place = f.add(
                f.mul(line, module.uint(stride // together)), f.and_(piece, module.uint(length // together - 1))
            )
            assert self.watch is not None
            self.watch.access(Kind.READ, Bytes(f.add(first, place), size * together, start, end))

    def increment(self, emitter: Emitter, index: int, end: int, start: int = 0) -> None:
        """Adds 1 to the 32-bit word at element ``index``, atomically within the workgroup."""
        module = self._module
        emitter.f.effect(
            op.AtomicIAdd,
            module.u32,
            self.word_pointer(emitter, 32, index, start, end),
            module.uint(Scope.Workgroup),
            module.uint(Semantics.Relaxed),
            module.uint(1),
        )

    def barrier(self, f: FunctionBuilder, global_memory: bool, scope: int, memory_scope: int) -> None:
        """A barrier that makes earlier writes visible; ``global_memory`` includes device memory."""
        semantics = (
            Semantics.AcquireRelease
            | Semantics.WorkgroupMemory
            | Semantics.MakeAvailable
            | Semantics.MakeVisible
            | (Semantics.UniformMemory if global_memory else 0)
        )
        if self.watch is not None:
            self.watch.settle()
        f.do(op.ControlBarrier, self._module.uint(scope), self._module.uint(memory_scope), self._module.uint(semantics))
        if self.watch is not None:
            self.watch.barrier(scope)

    def finish(self) -> int:
        """Declares the variables. Returns the bytes of workgroup memory that the module takes."""
        module = self._module
        total = 0
        whole = max((array.extent for array in self._arrays.values()), default=0)
        for array in self._arrays.values():
            first = first_element(array.start, array.item_bytes)
            module.define_uint(array.first, first)
            extent = whole if self._explicit else array.extent
            length = max(1, -(-(extent % POOL) // array.item_bytes) - first)
            if self._explicit:
                module.extension(EXPLICIT_LAYOUT)
                module.capability(Capability_.WorkgroupMemoryExplicitLayoutKHR)
                if array.part_bits in EXPLICIT_LAYOUT_CAPABILITY:
                    module.capability(EXPLICIT_LAYOUT_CAPABILITY[array.part_bits])
                pointee = module.struct([module.array(array.item, length, array.item_bytes)], [0])
                module.decorate(array.variable, op.Decoration.Aliased)
                total = max(total, length * array.item_bytes)
            else:
                pointee = module.array(array.item, length)
                total += length * array.item_bytes
            module.declare_variable(array.variable, StorageClass.Workgroup, pointee)
        return total


def _part_of(item: PackedElements) -> PackedElements:
    return PackedElements(item.element, item.part, 1, 1, item.boolean, item.bits // item.parts)
