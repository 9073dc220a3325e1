"""Watching workgroup memory accesses and barriers as they are emitted: callbacks for each, and a survey of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from ..planning.memory_pools import POOL
from ..spirv.opcodes import Scope
from ..ttgir.ir import Operation
from .emitter import Emitter
from .reports import Reports


class Kind(IntEnum):
    """What an access does; UPDATE does it atomically."""

    READ = 0
    WRITE = 1
    UPDATE = 2


@dataclass(frozen=True)
class Bytes:
    """``size`` bytes, a power of two, at ``index`` (an id) times that in their pool. They are in the buffer of bytes
    ``start`` to before ``end``."""

    index: int
    size: int
    start: int
    end: int


class Watch:
    """What is called for each access and barrier of a kernel, in the order in which they are emitted. This one does
    nothing about them."""

    def begin(self, emitter: Emitter, reports: Reports, operation: Callable[[], Operation | None]) -> None:
        """The kernel begins. ``operation``: the one that is being lowered."""

    def access(self, kind: Kind, where: Bytes) -> None:
        """The invocation accesses ``where`` now."""

    def settle(self) -> None:
        """What comes next may run without what was before, or apart from it: a barrier, a branch or a loop."""

    def barrier(self, scope: int) -> None:
        """The invocations of ``scope`` have waited for each other."""

    def end(self) -> None:
        """The kernel ends."""


@dataclass
class SharedSurvey(Watch):
    """What there is to watch. ``granule``: bytes of the smallest access. ``ends``: of each pool, the bytes from its
    first offset to the last that is accessed."""

    granule: int = 1 << 32
    ends: dict[int, int] = field(default_factory=dict)
    kinds: set[Kind] = field(default_factory=set)
    scopes: set[int] = field(default_factory=set)

    def access(self, kind: Kind, where: Bytes) -> None:
        pool = where.start // POOL
        self.granule = min(self.granule, where.size)
        self.ends[pool] = max(self.ends.get(pool, 0), where.end - pool * POOL)
        self.kinds.add(kind)

    def barrier(self, scope: int) -> None:
        self.scopes.add(scope)

    @property
    def subgroups_wait(self) -> bool:
        """Whether subgroups wait where the workgroup does not."""
        return Scope.Subgroup in self.scopes
