"""Accesses to workgroup memory checked against other invocations' accesses: the compile option ``check_races``.

Two invocations race if they access the same bytes, at least one of them writes, they are not both atomic, and no
barrier is between them: neither of the workgroup nor, if both are in one subgroup, of the subgroup. Without a barrier
Vulkan promises no order, not even within a subgroup (Vulkan specification, appendix "Memory Model": a subgroup's
invocations need not run in lockstep).

A kernel is emitted twice. A SharedSurvey notes which accesses there are; the smallest of them is one granule, and
accesses that share no granule do not race. Then each access is emitted with its check.

For each granule and kind of access there are, in device memory of the program's own, two words: the number of the last
barrier before the latest of these accesses, above the number of an invocation that made one since that barrier. One
word has the highest such invocation, the other the lowest (as 4095 less its number), and AtomicUMax keeps both in
whatever order invocations arrive. If both name the invocation that checks, no other made such an access. Where
subgroups wait on their own, there is a second pair, which counts their barriers, too. A further word is the site: which
access of the source was the latest, and since which barrier. It is exchanged before the others are noted, so that
whoever finds an access that was noted finds its site, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

from ..abi.report_buffer import RACE_ACCESS, RACE_COUNT, SHADOW_BYTES
from ..planning.memory_pools import POOL
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL as DONT_UNROLL
from ..spirv.opcodes import BuiltIn, Scope, Semantics, StorageClass
from ..ttgir.ir import UNKNOWN, Operation
from .bounds_check import callers
from .emitter import Emitter
from .reports import Reports, write_words
from .shared_watch import Bytes, Kind, SharedSurvey, Watch

#: Kind → those that it races with.
CONFLICTS: Mapping[Kind, tuple[Kind, ...]] = {
    Kind.READ: (Kind.WRITE, Kind.UPDATE),
    Kind.WRITE: (Kind.WRITE, Kind.READ, Kind.UPDATE),
    Kind.UPDATE: (Kind.WRITE, Kind.READ),
}
_VERBS = {Kind.READ: "reads", Kind.WRITE: "writes", Kind.UPDATE: "updates"}

#: Bits of a word that are the number of an invocation; those above are that of a barrier.
_BITS = 12
_INVOCATIONS = 1 << _BITS
#: Numbers that barriers have. What comes after more of them is not checked.
_BARRIERS = 1 << (32 - _BITS)

#: Bits of a site's word that are 1 + the message of the access; those above are the lowest of its barrier's number.
_SITE_BITS = 16

#: Accesses that wait to be checked by one loop, at most, and granules that it checks at a time.
_WAITING = 64
_TOGETHER = 2


@dataclass(frozen=True)
class _Clock:
    """A number of barriers, in a variable, and by how much the numbers of invocations must differ, as an exclusive or,
    to race where it is the same: from ``low`` to before ``high``."""

    variable: int
    low: int
    high: int


@dataclass(frozen=True)
class _Finding:
    """An earlier access that races: whether there is one, the exclusive or of both invocations, the address of
    its site, and the site there before that of the access that finds it."""

    exists: int
    difference: int
    site: int
    before: int


@dataclass(frozen=True)
class _Batch:
    """Accesses that are checked by one loop: of one ``kind`` and ``message``, to ``granules`` each."""

    kind: Kind
    message: int
    granules: int


class RaceCheck(Watch):
    """Checks the accesses that ``survey`` found."""

    def __init__(self, survey: SharedSurvey) -> None:
        self._granule = survey.granule
        counts = {pool: -(-end // survey.granule) for pool, end in sorted(survey.ends.items())}
        starts = accumulate(counts.values(), initial=0)
        #: Pool → the number of its first granule.
        self._first = dict(zip(counts, starts, strict=False))
        self._kinds = sorted(survey.kinds)
        self._subgroups_wait = survey.subgroups_wait
        self._granules = sum(counts.values())
        self._messages: dict[tuple[Any, ...], int] = {}
        self._batch: _Batch | None = None
        self._waiting: list[int] = []

    def begin(self, emitter: Emitter, reports: Reports, operation: Callable[[], Operation | None]) -> None:
        """Reads, in the entry block, what checks need."""
        f, module = emitter.f, emitter.module
        self._emitter, self._reports, self._operation = emitter, reports, operation
        spans = self._spans()
        self._words = len(self._kinds) * (2 * len(spans) + 1)
        self._shadow, checked = self._find_shadow()
        # In a program without words of its own all barriers have passed, and nothing is checked.
        passed = f.select(checked, module.uint(1), module.uint(_BARRIERS))
        self._clocks = [_Clock(f.variable(module.u32), low, high) for low, high in spans]
        for clock in self._clocks:
            f.store(clock.variable, passed)
        #: Of this invocation's races: how many, then of the first the words of RACES from RACE_ACCESS on.
        self._count, *self._told = (f.variable(module.u32, module.null(module.u32)) for _ in range(5))
        self._list = f.variable(module.array(module.u32, _WAITING))
        f.settle = self.settle
        invocation = f.add(f.mul(emitter.warp, module.uint(emitter.subgroup_size)), emitter.lane)
        #: The number of the invocation, and 4095 less it.
        self._own = invocation, f.xor(invocation, module.uint(_INVOCATIONS - 1))
        self._program_ids = emitter.program_ids()

    def _spans(self) -> list[tuple[int, int]]:
        """``low`` and ``high`` of each clock: of all invocations, or of those of other subgroups and of the same."""
        size = self._emitter.subgroup_size
        assert size * self._emitter.num_warps <= _INVOCATIONS
        apart = self._emitter.num_warps > 1 and self._subgroups_wait
        return [(size, _INVOCATIONS), (1, size)] if apart else [(1, _INVOCATIONS)]

    def _find_shadow(self) -> tuple[int, int]:
        """The address of the program's words in device memory, and whether it has any of its own."""
        f, module, reports = self._emitter.f, self._emitter.module, self._reports
        bytes_ = self._granules * self._words * 4
        programs = max(1, SHADOW_BYTES // bytes_)
        pools = sorted(self._first.values())
        reports.message("races", UNKNOWN, bytes=bytes_, programs=programs, granule=self._granule, pools=pools)
        self._at = reports.place("races")
        program = self._program()
        checked = f.compare(op.ULessThan, program, module.uint(programs, 64))
        shadow = f.load(module.int(64), self._emitter.integer_at(reports.address, self._at, 64), 0, 8)
        place = f.mul(f.select(checked, program, module.uint(0, 64)), module.uint(bytes_, 64))
        return f.add(shadow, place), checked

    def _program(self) -> int:
        """The number of the program in its grid, 64 bits."""
        emitter, f = self._emitter, self._emitter.f
        program = emitter.module.uint(0, 64)
        for axis in (2, 1, 0):
            extent = emitter.workgroup_built_in(BuiltIn.NumWorkgroups, "num_workgroups", axis)
            number = emitter.workgroup_built_in(BuiltIn.WorkgroupId, "workgroup_id", axis)
            program = f.add(f.mul(program, f.zero_extend(extent, 64)), f.zero_extend(number, 64))
        return program

    # -- barriers ------------------------------------------------------------------------------------------------
    def barrier(self, scope: int) -> None:
        f, module = self._emitter.f, self._emitter.module
        every = scope != Scope.Subgroup or len(self._clocks) == 1
        for clock in self._clocks if every else self._clocks[1:]:
            f.store(clock.variable, f.add(f.load(module.u32, clock.variable), module.uint(1)))

    # -- accesses ------------------------------------------------------------------------------------------------
    def access(self, kind: Kind, where: Bytes) -> None:
        f, module = self._emitter.f, self._emitter.module
        count = where.size // self._granule
        assert count and where.size % self._granule == 0
        first = f.add(f.mul(where.index, module.uint(count)), module.uint(self._first[where.start // POOL]))
        some = _Batch(kind, self._message(kind), min(count, _TOGETHER))
        for start in range(0, count, _TOGETHER):
            if some != self._batch or len(self._waiting) == _WAITING:
                self.settle()
            self._batch = some
            self._waiting.append(f.add(first, module.uint(start)))

    def settle(self) -> None:
        f, module, batch = self._emitter.f, self._emitter.module, self._batch
        waiting, self._waiting, self._batch = self._waiting, [], None
        if batch is None:
            return
        settle, f.settle = f.settle, None
        watch, f.watch = f.watch, None
        now = [f.load(module.u32, clock.variable) for clock in self._clocks]

        def check() -> list[int]:
            numbers = [f.shl(number, _BITS) for number in now]
            if len(waiting) == 1:
                self._check(batch, waiting[0], numbers)
                return []
            word = module.pointer(StorageClass.Function, module.u32)
            for number, first in enumerate(waiting):
                f.store(f.access(word, self._list, module.uint(number)), first)

            def one(carried: list[int]) -> list[int]:
                self._check(batch, f.load(module.u32, f.access(word, self._list, carried[0])), numbers)
                return [f.add(carried[0], module.uint(1))]

            last = module.uint(len(waiting))
            f.loop([module.uint(0)], lambda carried: f.compare(op.ULessThan, carried[0], last), one, DONT_UNROLL)
            return []

        # The last clock counts all barriers.
        f.if_(f.compare(op.ULessThan, now[-1], module.uint(_BARRIERS)), check)
        f.settle, f.watch = settle, watch

    def _check(self, batch: _Batch, first: int, numbers: list[int]) -> None:
        """Checks and notes the access to granules from ``first`` on."""
        f, module = self._emitter.f, self._emitter.module
        addresses = [self._address(f.add(first, module.uint(granule))) for granule in range(batch.granules)]
        assert batch.message + 1 < 1 << _SITE_BITS
        here = f.or_(f.shl(numbers[0], _SITE_BITS - _BITS), module.uint(batch.message + 1))
        findings = [finding for address in addresses for finding in self._noted(batch.kind, address, numbers, here)]
        exists = reduce(f.logical_or, (finding.exists for finding in findings))
        f.if_(exists, lambda: self._tell(batch, findings, first, here))

    def _noted(self, kind: Kind, address: int, numbers: list[int], here: int) -> list[_Finding]:
        """Notes the access of site ``here`` to the granule whose words are at ``address``; gives what earlier accesses
        race with it."""
        f, module = self._emitter.f, self._emitter.module
        scope, relaxed = module.uint(Scope.Workgroup), module.uint(Semantics.Relaxed)
        acquire = module.uint(Semantics.Acquire | Semantics.UniformMemory)
        acquire_release = module.uint(Semantics.AcquireRelease | Semantics.UniformMemory)
        own_site = self._emitter.integer_at(address, 4 * self._site(kind))
        replaced = f.effect(op.AtomicExchange, module.u32, own_site, scope, relaxed, here)
        findings: list[_Finding] = []
        for other in dict.fromkeys((kind, *CONFLICTS[kind])):
            if other not in self._kinds:
                continue
            site = f.add(address, module.uint(4 * self._site(other), 64))
            before = replaced if other == kind else here
            for number, clock in enumerate(self._clocks):
                for lowest in (0, 1):
                    word = self._word(other) + 2 * number + lowest
                    pointer = self._emitter.integer_at(address, 4 * word)
                    mine = f.or_(numbers[number], self._own[lowest])
                    if other == kind:
                        known = f.effect(op.AtomicUMax, module.u32, pointer, scope, acquire_release, mine)
                    else:
                        known = f.effect(op.AtomicLoad, module.u32, pointer, scope, acquire)
                    if other in CONFLICTS[kind]:
                        difference = f.xor(known, mine)
                        span = module.uint(clock.high - clock.low)
                        exists = f.compare(op.ULessThan, f.sub(difference, module.uint(clock.low)), span)
                        findings.append(_Finding(exists, difference, site, before))
        return findings

    def _tell(self, batch: _Batch, findings: list[_Finding], granule: int, here: int) -> list[int]:
        """Counts the access of site ``here``; the first one of the invocation leaves its place."""
        f, module = self._emitter.f, self._emitter.module
        earlier = f.load(module.u32, self._count)
        f.store(self._count, f.add(earlier, module.uint(1)))

        def describe() -> list[int]:
            last = findings[-1]
            difference, address, before = last.difference, last.site, last.before
            for finding in reversed(findings[:-1]):
                difference = f.select(finding.exists, finding.difference, difference)
                address = f.select(finding.exists, finding.site, address)
                before = f.select(finding.exists, finding.before, before)
            scope, relaxed = module.uint(Scope.Workgroup), module.uint(Semantics.Relaxed)
            latest = f.effect(op.AtomicLoad, module.u32, self._emitter.integer_at(address, 0), scope, relaxed)
            latest = f.select(f.compare(op.IEqual, latest, here), before, latest)
            # A site of an earlier barrier: the access found is one of the same site, which came after the exchange.
            now = f.compare(op.ULessThan, f.xor(latest, here), module.uint(1 << _SITE_BITS))
            site = f.and_(f.select(now, latest, here), module.uint((1 << _SITE_BITS) - 1))
            other = f.xor(self._own[0], f.and_(difference, module.uint(_INVOCATIONS - 1)))
            for variable, value in zip(self._told, (module.uint(batch.message + 1), site, granule, other), strict=True):
                f.store(variable, value)
            return []

        f.if_(f.compare(op.IEqual, earlier, module.uint(0)), describe)
        return []

    def _message(self, kind: Kind) -> int:
        """The message of such an access by the operation that is emitted."""
        operation = self._operation()
        location, name = (operation.location, operation.name) if operation is not None else (UNKNOWN, "")
        key = kind, name, str(location)
        if key not in self._messages:
            self._messages[key] = self._reports.message(
                "shared_access", location, callers=callers(location), verb=_VERBS[kind], operation=name
            )
        return self._messages[key]

    # -- the end -------------------------------------------------------------------------------------------------
    def end(self) -> None:
        """Reports what the invocation found, at the end of the kernel."""
        self.settle()
        f, module = self._emitter.f, self._emitter.module
        found = f.load(module.u32, self._count)

        def report() -> list[int]:
            earlier = self._reports.count(self._emitter, self._at + 4 * RACE_COUNT, found)
            f.if_(f.compare(op.IEqual, earlier, module.uint(0)), describe)
            return []

        def describe() -> list[int]:
            access, other_access, granule, other = (f.load(module.u32, variable) for variable in self._told)
            words = (access, other_access, granule, self._own[0], other, *self._program_ids)
            write_words(self._emitter, self._reports.address, self._at + 4 * RACE_ACCESS, words)
            return []

        f.if_(f.compare(op.INotEqual, found, module.uint(0)), report)

    # -- places --------------------------------------------------------------------------------------------------
    def _address(self, granule: int) -> int:
        f, module = self._emitter.f, self._emitter.module
        return f.add(self._shadow, f.zero_extend(f.mul(granule, module.uint(4 * self._words)), 64))

    def _word(self, kind: Kind) -> int:
        """The first word of a kind in its granule's."""
        return self._kinds.index(kind) * (2 * len(self._clocks) + 1)

    def _site(self, kind: Kind) -> int:
        return self._word(kind) + 2 * len(self._clocks)
