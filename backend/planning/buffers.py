"""Buffers in shared memory and their views: which bytes of workgroup memory a ``!ttg.memdesc`` value is.

A view is a part of its buffer (``memdesc_index``, ``memdesc_subslice``), or the same bytes under another shape, layout
or element type. All that is known before the kernel runs is decided here; what is left, an index or which buffer a
loop carries, is one number of elements that the lowering computes.

Values that may be the same buffer are kept together: all views of a buffer, and all buffers that one block argument or
result may be. They are accessed as elements of one type, because memory without the explicit layout has an array for
each type, and these do not alias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from ..errors import UnsupportedOperation
from ..layouts.buffer_layouts import buffer_bytes, buffer_layout
from ..layouts.element_sizes import bits_in_memory, bytes_in_memory
from ..layouts.shared_encodings import encoding_rank, shared_layout
from ..ttgir.ir import Operation, Value
from ..ttgir.operations import Pointers, definition_of
from ..ttgir.types import IntegerType, MemDescType, Type
from .memory_pools import item_kind


@dataclass(frozen=True)
class BufferView:
    """Where the elements of a ``!ttg.memdesc`` lie.

    ``start``, ``end``: bytes of the buffers that it may be part of. The element at ``offset`` of its layout, before
    padding, is at byte ``first``, plus a number of elements that the kernel computes where ``moved``, plus ``offset`` ^
    ``origin`` with its padding. ``alignment``: bytes that the place of element 0 is a multiple of. ``cell``: the type
    that memory is accessed as where other views have other elements; None: its own elements'.
    """

    type: MemDescType
    start: int
    end: int
    first: int
    origin: int = 0
    moved: bool = False
    alignment: int = 1 << 30
    cell: Type | None = None

    @classmethod
    def whole(cls, type_: MemDescType, offset: int) -> BufferView:
        """A buffer at byte ``offset``, of which there are no other views."""
        return cls(type_, offset, offset + buffer_bytes(type_), offset)

    @property
    def known(self) -> bool:
        """Whether the place of each of its elements is known before the kernel runs, in a frame of its buffer's."""
        return not self.moved and not self.origin and self.cell is None

    @property
    def cells(self) -> tuple[Type, int]:
        """What it is accessed as: the type, and how many of these an element is."""
        if self.cell is None:
            return self.type.element, 1
        return self.cell, bits_in_memory(self.type.element) // bits_in_memory(self.cell)

    def start_of_slice(self) -> int | None:
        """Elements, padding included, by which a slice starts after its buffer, where its own offsets are added to
        that; None where they are not: swizzled columns mix with others, and padding lies between other columns."""
        if not self.origin:
            return 0
        layout, within = buffer_layout(self.type), 0
        for extent, bases in zip(self.type.shape, layout.offsets.inputs.values(), strict=True):
            for basis in bases[: extent.bit_length() - 1]:
                within |= basis
        if within & self.origin or any(self.origin % interval for interval, _ in layout.padding):
            return None
        return layout.pad(self.origin)

    def width(self, limit: int) -> int:
        """Consecutive elements that one access may hold, by where it starts: ``limit`` at most."""
        for number in (self.origin, self.alignment // bytes_in_memory(self.type.element)):
            if number:
                limit = min(limit, number & -number)
        return limit


@dataclass(frozen=True)
class Buffers:
    """``views``: of the values that have one. ``refused``: operations whose results have none, and why."""

    views: Mapping[Value, BufferView]
    refused: Mapping[Operation, Exception]


Offsets = Mapping[Operation, int]


def plan_buffers(
    operations: Sequence[Operation], groups: Sequence[BufferGroup], offsets: Offsets, explicit: bool
) -> Buffers:
    """The views of a kernel of these ``operations``, whose buffers lie at ``offsets`` (planning/allocation.py).
    ``explicit``: memory may be accessed as elements of any type."""
    bounds = {group: _Bounds(group) for group in groups}
    group_of = {value: bounds[group] for group in groups for value in group.values}
    views: dict[Value, BufferView] = {}
    refused: dict[Operation, Exception] = {}
    for operation in operations:
        _measure(operation, group_of, offsets)
    for value, measured in group_of.items():
        if not isinstance(value.owner, Operation) or definition_of(value.owner).pointers is Pointers.CARRIED:
            views[value] = replace(measured.view(value, explicit), moved=True, alignment=measured.alignment)
    for operation in operations:
        rule = _VIEWS.get(operation.name)
        if rule is None or (operation.name != "ttg.local_alloc" and operation["src"] not in views):
            continue
        value = operation.result
        try:
            place = rule(operation, views, offsets)
        except (ValueError, NotImplementedError) as error:  # it has no layout here, or no size
            refused[operation] = error
            continue
        whole = group_of[value].view(value, explicit)
        views[value] = replace(place, type=whole.type, start=whole.start, end=whole.end, cell=whole.cell)
    return Buffers(views, refused)


# -- values that may be the same buffer --------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class BufferGroup:
    """Values that may be the same buffer, and the operations that allocate one of them. ``atomic``: atomic instructions
    act on its elements, then integers."""

    values: tuple[Value, ...]
    allocations: tuple[Operation, ...]
    atomic: bool

    def cell(self, explicit: bool) -> Type | None:
        """What it is accessed as, where that is not the elements of each view."""
        elements = [one.type.element for one in self.values if isinstance(one.type, MemDescType)]
        several = not explicit and (self.atomic or len({item_kind(element) for element in elements}) > 1)
        return IntegerType(min(map(bits_in_memory, elements))) if several else None

    def element(self, explicit: bool) -> Type:
        """What it is accessed as."""
        type_ = self.values[0].memdesc
        return self.cell(explicit) or type_.element


@dataclass
class _Bounds:
    """The bytes of all buffers that the values of a group may be, and what the places of their elements are multiples
    of, in bytes."""

    group: BufferGroup
    start: int = 1 << 62
    end: int = 0
    alignment: int = 0

    def view(self, value: Value, explicit: bool) -> BufferView:
        """The view of ``value``, as far as the group decides it."""
        return BufferView(value.memdesc, self.start, self.end, 0, cell=self.group.cell(explicit))


def buffer_groups(operations: Sequence[Operation]) -> list[BufferGroup]:
    """All buffers and views of a kernel, in the order of its first ones."""
    parents: dict[Value, Value] = {}

    def root(value: Value) -> Value:
        found = parents.setdefault(value, value)
        while parents[found] is not found:
            found = parents[found]
        parents[value] = found
        return found

    for operation in operations:
        for first, second in _flows(operation):
            if isinstance(first.type, MemDescType):
                parents[root(first)] = root(second)
    found: dict[Value, list[Value]] = {}
    for value in list(parents):
        found.setdefault(root(value), []).append(value)
    allocated: dict[Value, list[Operation]] = {}
    atomic = set()
    for operation in operations:
        if operation.name == "ttg.local_alloc":
            allocated.setdefault(root(operation.result), []).append(operation)
        elif operation.name == "ttg.local_atomic_scatter_rmw":
            atomic.add(root(operation["dst"]))
    return [BufferGroup(tuple(values), tuple(allocated.get(key, ())), key in atomic) for key, values in found.items()]


def _flows(operation: Operation) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that may be the same, or parts of the same."""
    if operation.name in _VIEWS:
        yield operation.result, (operation.result if operation.name == "ttg.local_alloc" else operation["src"])
    elif operation.name == "scf.for":
        body = operation.regions[0].entry
        for values in (body.arguments[1:], body.terminator.operands, operation.results):
            yield from zip(operation.operand_group("initArgs"), values, strict=True)
    elif operation.name == "scf.while":
        before, after = (region.entry for region in operation.regions)
        yield from zip(operation.operands, before.arguments, strict=True)
        yield from zip(after.terminator.operands, before.arguments, strict=True)
        for values in (after.arguments, operation.results):
            yield from zip(before.terminator.operands[1:], values, strict=True)
    elif operation.name == "scf.if":
        for region in operation.regions:
            if region.blocks:
                yield from zip(region.entry.terminator.operands, operation.results, strict=False)


def _measure(operation: Operation, bounds: Mapping[Value, _Bounds], offsets: Offsets) -> None:
    """Adds what an operation contributes to its group's bytes and alignment."""
    rule = _STEPS.get(operation.name)
    if rule is None:
        return
    group = bounds[operation.result]
    type_ = operation.result.memdesc
    try:
        group.alignment = gcd(group.alignment, rule(operation, offsets))
        if operation.name == "ttg.local_alloc":
            offset = offsets[operation]
            group.start, group.end = min(group.start, offset), max(group.end, offset + buffer_bytes(type_))
    except (ValueError, NotImplementedError):  # refused where it is a view
        group.alignment = 1


# -- views -------------------------------------------------------------------------------------------------------
def _size(value: Value) -> int:
    return bytes_in_memory(value.memdesc.element)


def _parts(type_: MemDescType) -> int:
    """Dimensions in front of those that the encoding lays out: of buffers one after the other."""
    return len(type_.shape) - (encoding_rank(type_.encoding) or len(type_.shape))


def _whole(operation: Operation, source: BufferView, what: str) -> None:
    """Refuses a view of a slice; some of an allocation's buffers count as whole where the view is one of them."""
    shape, allocated = source.type.shape, source.type.alloc_shape
    allocated = allocated[-len(shape) :] or shape
    first = 1 if what == "indexed" and _parts(source.type) else 0
    if source.origin or allocated[first:] != shape[first:]:
        raise UnsupportedOperation(operation, f"a slice of a buffer cannot be {what}", "slice last")


def index_step(operation: Operation) -> tuple[int, tuple[tuple[int, int], ...]]:
    """``ttg.memdesc_index``: elements before padding from one part to the next, and the padding."""
    layout = buffer_layout(operation.result.memdesc)
    return layout.elements.size, layout.padding


def _step_of_index(operation: Operation) -> int:
    step, padding = index_step(operation)
    return gcd(step, *(pad for _, pad in padding)) * _size(operation.result)


def _start_among_parts(operation: Operation) -> int:
    """``ttg.memdesc_subslice`` of an allocation's buffers: elements, padding included, in front of the first one.
    Raises UnsupportedOperation for a slice of each buffer."""
    type_, offsets = operation["src"].type, tuple(operation.attribute("offsets"))
    assert isinstance(type_, MemDescType) and isinstance(operation.result.type, MemDescType)
    if any(offsets[1:]) or operation.result.type.shape[1:] != type_.shape[1:]:
        raise UnsupportedOperation(
            operation, "a slice of each of several buffers", "index each of them, and slice last"
        )
    outer = _parts(type_)
    layout = shared_layout(type_.encoding, type_.shape[outer:])
    return layout.pad(offsets[0] * prod(type_.shape[1:outer]) * layout.elements.size)


def _step_of_slice(operation: Operation) -> int:
    source = operation["src"]
    if _parts(source.memdesc):
        return _start_among_parts(operation) * _size(source)
    return buffer_layout(source.memdesc).pad(_slice_origin(operation)) * _size(source)


def _slice_origin(operation: Operation) -> int:
    """The element offset, before padding, of a slice's first element within its source's layout."""
    layout, offsets = buffer_layout(operation["src"].memdesc), tuple(operation.attribute("offsets"))
    return layout.offsets.apply_flat(**{f"dim{dim}": offset for dim, offset in enumerate(offsets)})


Views = Mapping[Value, BufferView]


def _alloc(operation: Operation, _: Views, offsets: Offsets) -> BufferView:
    offset = offsets[operation]
    return replace(BufferView.whole(operation.result.memdesc, offset), alignment=gcd(offset, 1 << 30))


def _renamed(operation: Operation, views: Views, _: Offsets) -> BufferView:
    """The buffer's bytes under an encoding that upstream has rewritten to fit."""
    source = views[operation["src"]]
    if operation.name == "ttg.memdesc_reshape":
        _whole(operation, source, "reshaped")
    buffer_layout(operation.result.memdesc)
    return source


def _indexed(operation: Operation, views: Views, _: Offsets) -> BufferView:
    source = views[operation["src"]]
    _whole(operation, source, "indexed")
    return replace(source, moved=True, alignment=gcd(source.alignment, _step_of_index(operation)))


def _sliced(operation: Operation, views: Views, _: Offsets) -> BufferView:
    source = views[operation["src"]]
    if _parts(source.type):
        moved = _start_among_parts(operation) * _size(operation["src"])
        return replace(source, first=source.first + moved, alignment=gcd(source.alignment, moved))
    buffer_layout(operation.result.memdesc)
    return replace(source, origin=source.origin ^ _slice_origin(operation))


def _reinterpreted(operation: Operation, views: Views, _: Offsets) -> BufferView:
    source, size = views[operation["src"]], _size(operation.result)
    moved = buffer_layout(operation["src"].memdesc).pad(source.origin) * _size(operation["src"]) if source.origin else 0
    alignment = gcd(source.alignment, moved)
    if alignment % size:
        raise UnsupportedOperation(
            operation,
            f"elements of {size} bytes would start at multiples of {alignment} byte{'s' * (alignment > 1)}",
            "use padding and slices that are multiples of the larger element",
        )
    return replace(source, first=source.first + moved, origin=0, alignment=alignment)


_VIEWS: dict[str, Callable[[Operation, Views, Offsets], BufferView]] = {
    "ttg.local_alloc": _alloc,
    "ttg.memdesc_trans": _renamed,
    "ttg.memdesc_reshape": _renamed,
    "ttg.memdesc_index": _indexed,
    "ttg.memdesc_subslice": _sliced,
    "ttg.memdesc_reinterpret": _reinterpreted,
}

#: Operation → bytes that it moves the start of a buffer by a multiple of.
_STEPS: dict[str, Callable[[Operation, Offsets], int]] = {
    "ttg.local_alloc": lambda operation, offsets: offsets[operation],
    "ttg.memdesc_index": lambda operation, _: _step_of_index(operation),
    "ttg.memdesc_subslice": lambda operation, _: _step_of_slice(operation),
}
