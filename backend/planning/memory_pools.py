"""Workgroup memory: how a kernel sees it, and what an operation may take of it.

With VK_KHR_workgroup_memory_explicit_layout there is one block, seen through an array for each type of access. Without
it there is an array for each type of item, each with memory of its own.

What shares memory is a pool. An offset in workgroup memory says which: each pool's offsets begin at a multiple of POOL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..capabilities import Capabilities
from ..layouts.element_sizes import MAX_BITS, bits_in_memory
from ..ttgir.types import FloatType, Type

#: Components of a vector, at most: Vulkan has none of more.
VECTOR = 4
#: Memory starts at a multiple of so many bytes: the width of the widest access.
ALIGNMENT = MAX_BITS // 8
#: Bytes from the first offset of a pool to that of the next: more than any device has.
POOL = 1 << 24

#: From the first number to before the second.
Bytes = tuple[int, int]

#: Floats that SPIR-V has; all others are integers of their width in memory.
_NATIVE = frozenset({"f16", "f32", "f64"})
#: The items that have a pool of their own without the explicit layout; with it pool 0 is the only one.
_KINDS = [("integer", bits) for bits in (8, 16, 32, 64)] + [("float", bits) for bits in (16, 32, 64)]


def aligned(size: int) -> int:
    """``size`` bytes up to the next multiple of ALIGNMENT."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def first_element(offset: int, size: int) -> int:
    """The number in its pool of the element of ``size`` bytes at ``offset``."""
    return offset % POOL // size


@dataclass(frozen=True)
class Scratch:
    """``size`` bytes of workgroup memory at ``offset``, for one operation while it runs. ``exchange``: an operation may
    exchange elements several times, each time through the parts of that number. ``waits``: all invocations wait for
    each other first, because the exchange before has read such bytes."""

    offset: int
    size: int
    exchange: int = 0
    waits: bool = False

    @property
    def bytes(self) -> Bytes:
        """From the first to before the second."""
        return self.offset, self.offset + self.size


@dataclass(frozen=True)
class SharedAccess:
    """Elements of ``type`` are accessed within bytes ``start`` … ``end`` - 1."""

    type: Type
    start: int
    end: int


def item_kind(type_: Type) -> tuple[str, int]:
    """What elements of ``type_`` are in memory: elements of one kind share an array."""
    return "float" if isinstance(type_, FloatType) and type_.name in _NATIVE else "integer", bits_in_memory(type_)


def _item_bytes(type_: Type) -> int:
    """Bytes of the items that elements of ``type_`` lie in without the explicit layout."""
    bits = bits_in_memory(type_)
    return min(VECTOR, MAX_BITS // bits) * bits // 8


@dataclass(frozen=True)
class View:
    """How a kernel sees the device's ``limit`` bytes of workgroup memory. ``explicit``: with the explicit layout."""

    limit: int
    explicit: bool

    def width_limit(self, type_: Type) -> int:
        """The most consecutive elements of ``type_`` that one access may hold."""
        limit = MAX_BITS // bits_in_memory(type_)
        return limit if self.explicit else min(limit, VECTOR)

    def pool(self, type_: Type) -> int:
        """The first offset of the pool that holds elements of ``type_``."""
        return 0 if self.explicit else (1 + _KINDS.index(item_kind(type_))) * POOL

    def taken(self, accesses: Iterable[SharedAccess]) -> int:
        """The most bytes of workgroup memory that a module with these accesses takes."""
        pools: dict[int, tuple[int, int, int]] = {}
        for access in accesses:
            pool = access.start // POOL
            size = ALIGNMENT if pool == 0 else _item_bytes(access.type)
            _, start, end = pools.get(pool, (0, access.start, 0))
            pools[pool] = size, 0 if self.explicit else min(start, access.start), max(end, access.end)
        return sum(max(1, -(-end // size) - start // size) * size for size, start, end in pools.values())


def view_of(capabilities: Capabilities) -> View:
    """How kernels see the workgroup memory of a device."""
    return View(capabilities.shared_bytes, capabilities.has("explicit_workgroup_layout"))


@dataclass(frozen=True)
class ScratchPart:
    """Scratch memory that is asked for: ``size`` bytes of elements of ``type``."""

    type: Type
    size: int


@dataclass(frozen=True)
class Apart:
    """What scratch memory had better stay clear of, so that invocations need not wait: bytes that are accessed
    ``before`` the operation, and that are written ``behind`` it, with no barrier between. ``ends``: pool → where the
    memory that the kernel takes ends; for this it may take ``spare`` bytes more."""

    before: tuple[Bytes, ...] = ()
    behind: tuple[Bytes, ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)
    spare: int = 0

    def taking(self, found: Iterable[Scratch]) -> Apart:
        """When the kernel takes ``found``, too."""
        ends, spare = dict(self.ends), self.spare
        for one in found:
            pool = one.offset // POOL * POOL
            end, last = aligned(one.offset + one.size), ends.get(pool, pool)
            spare -= max(0, end - last)
            ends[pool] = max(end, last)
        return replace(self, ends=ends, spare=spare)


#: Nothing, because everything is to lie as low as it can.
LOWEST = Apart()


@dataclass(frozen=True)
class Room:
    """What an operation is planned in. ``busy``: pool → the bytes of buffers that are live meanwhile, ascending.
    ``most``: bytes that the operation may take, if it can do with less. ``rounds``: that conversions go through memory
    in, at most; 0 for any number. ``apart``: what its scratch memory had better stay clear of. ``used``: what it has
    used for the exchange before, ``exchange`` the number of the next."""

    view: View
    busy: dict[int, list[Bytes]] = field(default_factory=dict)
    most: int = 1 << 62
    rounds: int = 0
    apart: Apart = LOWEST
    used: tuple[Bytes, ...] = ()
    exchange: int = 0

    @property
    def free(self) -> int:
        """Bytes that the operation may take."""
        others = sum(max(end for _, end in taken) - pool for pool, taken in self.busy.items() if pool and taken)
        limit = self.view.limit - others
        start = widest = 0
        for first, end in [*self.busy.get(0, ()), (limit, limit)]:
            widest = max(widest, min(first, limit) - start)
            start = max(start, aligned(end))
        return max(0, min(widest // ALIGNMENT * ALIGNMENT, self.most))

    @property
    def share(self) -> int:
        """What of it an operation should take that could do without. Where there is an array for each type of item,
        half of the memory is left to others."""
        return self.free - (0 if self.view.explicit else self.view.limit // 2)

    def place(self, *parts: ScratchPart) -> tuple[Scratch, ...]:
        """Memory for ``parts`` that are used at the same time: the lowest bytes that are free, clear of as much of
        ``apart`` as there is room for."""
        before, behind = self.used or self.apart.before, self.apart.behind
        for clear in ((*before, *behind), before, behind):
            found = self._lowest(parts, clear)
            if clear and self.apart.taking(found).spare >= 0:
                return found
        return self._lowest(parts, ())

    def _lowest(self, parts: Sequence[ScratchPart], clear: Sequence[Bytes]) -> tuple[Scratch, ...]:
        found: list[Scratch] = []
        for part in parts:
            pool = self.view.pool(part.type)
            taken = sorted([*self.busy.get(pool, ()), *clear, *(one.bytes for one in found)])
            found.append(Scratch(lowest_gap(taken, pool, part.size), part.size, self.exchange))
        waits = any(one.offset < end and start < one.offset + one.size for one in found for start, end in self.used)
        return (replace(found[0], waits=waits), *found[1:]) if found else ()

    def after(self, found: Sequence[Scratch]) -> Room:
        """For what the operation exchanges after it has used ``found``; the same where it has used nothing."""
        if not found:
            return self
        used = tuple(one.bytes for one in found)
        return replace(self, apart=self.apart.taking(found), used=used, exchange=self.exchange + 1)


def lowest_gap(taken: Sequence[Bytes], start: int, size: int) -> int:
    """The lowest offset from ``start`` on with ``size`` bytes that overlap none of ``taken``, which ascend."""
    for first, end in taken:
        if end > start:
            if first >= start + size:
                break
            start = max(start, aligned(end))
    return start
