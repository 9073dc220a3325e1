"""The workgroup memory of a kernel: what an operation may take of it, how it is seen, and what all take together.

With VK_KHR_workgroup_memory_explicit_layout there is one block, seen through an array for each type of access. Without
it there is one array for each type of item, over the bytes that are accessed through it: every type costs memory of
its own. On drivers with 64-bit words (capabilities.traits) buffers are seen as words, whatever their elements: but
those that are written in less than words keep the array of their type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..capabilities import Capabilities
from ..layouts.element_sizes import MAX_BITS, bits_in_memory
from ..ttgir.types import FloatType, Type

#: Components of a vector, at most: Vulkan has none of more.
VECTOR = 4
#: Bits of the words that View speaks of.
WORD = 64
#: Bytes that memory starts at a multiple of: those of the widest access.
ALIGNMENT = MAX_BITS // 8

#: Floats that SPIR-V has; all others are integers of their width in memory.
_NATIVE = frozenset({"f16", "f32", "f64"})


def aligned(size: int) -> int:
    """``size`` bytes up to the next multiple of ALIGNMENT."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Scratch:
    """``size`` bytes of workgroup memory at byte ``offset`` for one operation: upstream's allocation for it, or
    ``beyond`` all of upstream's, where they belong to the operation until the next one that has such."""

    offset: int
    size: int
    beyond: bool = False


@dataclass(frozen=True)
class SharedAccess:
    """Elements of ``type`` are read within bytes ``start`` … ``end`` - 1, and written, ``stored`` consecutive ones at a
    time or more; 0 where they are only read."""

    type: Type
    start: int
    end: int
    stored: int = 0

    @property
    def narrow(self) -> bool:
        """Whether less than a word is written at once."""
        return 0 < self.stored * bits_in_memory(self.type) < WORD


@dataclass(frozen=True)
class View:
    """How workgroup memory without the explicit layout is seen. ``words``: as 64-bit words, but for the buffers in
    ``narrow``: the bytes from the first number to before the second."""

    words: bool = False
    narrow: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Room:
    """What operations are planned in. ``upstream``: bytes that upstream allocated; ``limit``: bytes of the device;
    ``explicit``: with the explicit layout; ``words``: seen as words; ``rounds``: whether what there is no room for goes
    through it in rounds."""

    upstream: int
    limit: int
    explicit: bool
    words: bool
    rounds: bool = True

    @property
    def start(self) -> int:
        """Where the memory beyond upstream's allocation begins."""
        return aligned(self.upstream)

    @property
    def beyond(self) -> int:
        """Bytes beyond upstream's allocation."""
        return self.limit - self.start

    @property
    def share(self) -> int:
        """What of it an operation should take that could do without. Where there is an array for each type of item,
        half of the memory is left to others."""
        return self.beyond - (0 if self.explicit else self.limit // 2)

    def width_limit(self, type_: Type) -> int:
        """The most consecutive elements of ``type_`` that one access may hold."""
        limit = MAX_BITS // bits_in_memory(type_)
        return limit if self.explicit or self.words else min(limit, VECTOR)

    def scratch(self, size: int, owned_at: int | None, owned: int) -> Scratch:
        """``size`` bytes: of the ``owned`` bytes of upstream's at ``owned_at``, or beyond."""
        if owned_at is not None and size <= owned:
            return Scratch(owned_at, size)
        return Scratch(self.start, size, beyond=True)


def views(capabilities: Capabilities) -> tuple[bool, ...]:
    """Whether workgroup memory is seen as words: what is tried, the better one first."""
    explicit = capabilities.has("explicit_workgroup_layout")
    return (True, False) if not explicit and capabilities.traits.word_bits == WORD else (False,)


def narrow_buffers(accesses: Iterable[SharedAccess]) -> frozenset[tuple[int, int]]:
    """The buffers that are written in less than words."""
    return frozenset((access.start, access.end) for access in accesses if access.narrow)


def item_kind(type_: Type) -> tuple[str, int]:
    """What elements of ``type_`` are in memory: those of one kind share an array."""
    return "float" if isinstance(type_, FloatType) and type_.name in _NATIVE else "integer", bits_in_memory(type_)


def _item(type_: Type) -> tuple[str, int, int]:
    """The type of the items that elements of ``type_`` lie in without words, and its bytes."""
    kind, bits = item_kind(type_)
    return kind, bits, min(VECTOR, MAX_BITS // bits) * bits // 8


def taken(room: Room, view: View, accesses: Iterable[SharedAccess], beyond: Iterable[Scratch]) -> int:
    """The most bytes of workgroup memory that a module with these accesses takes."""
    accesses = list(accesses)
    if not accesses:
        return 0
    if room.explicit:
        return aligned(max([room.upstream, *(scratch.offset + scratch.size for scratch in beyond)]))
    arrays: dict[tuple[object, bool], tuple[int, int, int]] = {}
    for access in accesses:
        worded = view.words and (access.start, access.end) not in view.narrow
        item = ("word", WORD, ALIGNMENT) if worded else _item(access.type)
        key = item, access.start >= room.start
        _, start, end = arrays.get(key, (0, access.start, 0))
        arrays[key] = item[2], min(start, access.start), max(end, access.end)
    return sum(max(1, -(-end // size) - start // size) * size for size, start, end in arrays.values())
