"""Where buffers lie in workgroup memory, and what of it is free while an operation runs.

A buffer is live from the operation that allocates it to the last that uses it or a view of it; one that is used in a
loop but allocated before it, to the end of the loop. A load that is left to its dots uses it there. Buffers that may be
one (planning/buffers.py) are live together. Those that are live at the same time do not overlap.

Scratch memory is live while its operation runs, so it must only stay clear of the buffers that are live then. Whether
all fits is decided with each operation at the lowest bytes that are free; scratch_places.py then moves them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..layouts.buffer_layouts import buffer_bytes
from ..ttgir.ir import Operation, Value
from ..ttgir.operations import definition_of
from .buffers import BufferGroup
from .memory_pools import POOL, Room, View, aligned, lowest_gap


@dataclass(frozen=True)
class Lifetime:
    """From operation number ``start`` to number ``end``, both included."""

    start: int
    end: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both live at some time."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class _Item:
    """A group of buffers that is placed as one: ``sizes`` of its allocations."""

    sizes: tuple[tuple[Operation, int], ...]
    size: int
    pool: int
    life: Lifetime


class Lifetimes:
    """When the groups of buffers of a kernel are live. ``operations``: all of it, outer ones before those inside, in
    their order; ``late``: the loads that are left to their dots."""

    def __init__(self, operations: Sequence[Operation], late: Collection[Operation]) -> None:
        self.number = {operation: number for number, operation in enumerate(operations)}
        self._last = list(range(len(operations)))
        for number in reversed(range(len(operations))):
            parent = operations[number].holder
            if parent is not None:
                outer = self.number[parent]
                self._last[outer] = max(self._last[outer], self._last[number])
        self._loops = [number for number, operation in enumerate(operations) if definition_of(operation).loop]
        self._late = late

    def of(self, values: Collection[Value]) -> Lifetime:
        """The lifetime of a buffer that all of ``values`` are, or are views of."""
        numbers = [number for value in values for number in self._of_value(value)]
        start, end = min(numbers), max(numbers)
        for loop in reversed(self._loops):  # inner ones first
            if start < loop <= end <= self._last[loop]:
                end = self._last[loop]
        return Lifetime(start, end)

    def _of_value(self, value: Value) -> Iterator[int]:
        owner = value.owner if isinstance(value.owner, Operation) else value.owner.holder
        if owner is not None:
            yield self.number[owner]
            if definition_of(owner).loop:  # a value that it carries
                yield self._last[self.number[owner]]
        for use in value.uses:
            yield self.number[use]
            if use in self._late:
                yield from (self.number[dot] for dot in use.result.uses)

    def while_running(self, operation: Operation) -> Lifetime:
        """The lifetime of memory that ``operation`` has for itself."""
        number = self.number[operation]
        return Lifetime(number, self._last[number])


@dataclass(frozen=True)
class SharedAllocation:
    """``offsets``: of each ``ttg.local_alloc``. ``taken``: of each group of buffers its bytes and lifetime."""

    offsets: Mapping[Operation, int]
    taken: tuple[tuple[tuple[int, int], Lifetime], ...]
    lifetimes: Lifetimes

    def room(self, operation: Operation, view: View, most: int, rounds: int) -> Room:
        """What there is for ``operation``."""
        now = self.lifetimes.while_running(operation)
        busy: dict[int, list[tuple[int, int]]] = {}
        for (start, end), life in self.taken:
            if life.meets(now):
                busy.setdefault(start // POOL * POOL, []).append((start, end))
        return Room(view, {pool: sorted(found) for pool, found in busy.items()}, most, rounds)


#: In which orders buffers are placed, each at the lowest offset that is free: the largest first, those that live
#: longest first, in the order of the kernel.
_ORDERS: tuple[Callable[[_Item], tuple[int, ...]], ...] = (
    lambda item: (-item.size, item.life.start),
    lambda item: (item.life.start - item.life.end, -item.size, item.life.start),
    lambda item: (item.life.start, -item.size),
)


def allocations(
    groups: Sequence[BufferGroup], pools: Mapping[int, int], lifetimes: Lifetimes
) -> list[SharedAllocation]:
    """Ways to place the buffers of ``groups``, all of them different. ``pools``: of each, by its number there, the
    first offset of its pool."""
    items = [
        _Item(sizes, sum(size for _, size in sizes), pools[number], lifetimes.of(group.values))
        for number, group in enumerate(groups)
        if (sizes := tuple((one, aligned(_bytes(one))) for one in group.allocations))
    ]
    found: list[SharedAllocation] = []
    for order in _ORDERS:
        made = _placed(sorted(items, key=order), lifetimes)
        if all(made.offsets != other.offsets for other in found):
            found.append(made)
    return found


def _bytes(allocation: Operation) -> int:
    type_ = allocation.result.memdesc
    try:
        return buffer_bytes(type_)
    except (ValueError, NotImplementedError):  # refused where it is lowered
        return 0


def _placed(items: Sequence[_Item], lifetimes: Lifetimes) -> SharedAllocation:
    offsets: dict[Operation, int] = {}
    taken: list[tuple[tuple[int, int], Lifetime]] = []
    for item in items:
        others = sorted(
            place for place, life in taken if place[0] // POOL * POOL == item.pool and life.meets(item.life)
        )
        start = place = lowest_gap(others, item.pool, item.size)
        for allocation, size in item.sizes:
            offsets[allocation] = place
            place += size
        taken.append(((start, place), item.life))
    return SharedAllocation(offsets, tuple(taken), lifetimes)


def least_bytes(groups: Sequence[BufferGroup], lifetimes: Lifetimes) -> int:
    """Bytes that the buffers which tensors are stored to take at least: the most that are live at once."""
    changes: dict[int, int] = {}
    for group in groups:
        size = sum(aligned(_bytes(one)) for one in group.allocations if one.operands)
        if size:
            life = lifetimes.of(group.values)
            changes[life.start] = changes.get(life.start, 0) + size
            changes[life.end + 1] = changes.get(life.end + 1, 0) - size
    live = most = 0
    for _, change in sorted(changes.items()):
        live += change
        most = max(most, live)
    return most
