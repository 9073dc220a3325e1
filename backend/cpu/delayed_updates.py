"""Atomic updates of several threads, which each thread keeps in a log and makes later, some programs' together.

A locked instruction takes many times as long as a load and a store, most of all where another thread changed the same
line of the cache before. A thread makes the updates of its log in plain memory under a lock of the launch, one after
the other in the order of its programs. On two threads, scatter add of rows takes 467 µs instead of 7,316.

Where all updates of a kernel are sums of neighbours, of one type, their order is free (summed_updates.py): what
programs add to the same rows is added up, and 64 locks for as many parts of the memory let threads make theirs at the
same time.

No program can see that an update comes late. One would have to learn of it from what an atomic operation returns, an
atomic load, or a volatile load (docs/cpu.md), or be the program of the update and access device memory after it. A
kernel with such an atomic operation or load makes its updates at once. A program makes those of its log before it
accesses device memory, and before each round of a loop: 1,024 rows of 1,000 that 8 programs add to one in loops take
374 µs on two threads, with a locked instruction for each element 9,058. Where no round depends on another one, as in
loops over strips, whose accesses come before all updates in the kernel, it makes them before the loop, and keeps the
loop's.

A thread's log holds what its programs of a launch have updated, until there is no room or the last has ended (Updates
of triton_spirv/processor.hpp). It is a number of bytes, the launch's grid, and from _FIRST on records: their kind, then
their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..optional import DELAYED_UPDATES
from ..spirv.opcodes import MemoryAccess, StorageClass
from .decoded_module import KernelModule, ModuleInstruction
from .divergence import Divergence
from .launch_lock import DECLARATIONS, TAKE_LOCK
from .near_updates import near_type
from .summed_updates import Sums

#: Where a log's first record is.
_FIRST = 64
#: Bytes of a log's records, or those of one program if they are more. The second-level cache holds it beside what the
#: programs read.
_ROOM = 1 << 16
#: A thread asks for the lock from this part of the room on. It waits for it only where there is no more room.
_ASKS_FROM = _ROOM // 4
#: Atomic instructions that are no updates, and one that stores only in some cases.
_NO_UPDATES = ("OpAtomicLoad", "OpAtomicStore", "OpAtomicCompareExchange")
#: What a program does only once its updates are made: of device memory alone, but for calls.
_ACCESSES = ("OpLoad", "OpStore", "OpCopyMemory", "OpFunctionCall")
#: A program that makes its updates before its end makes so many at least, or makes them in rounds that do not depend on
#: each other: fewer take as long as the lock.
_FEWEST_EARLY = 4


def _most_kept(program: KernelModule) -> tuple[int, frozenset[int]]:
    """How many updates of device memory a log has at most of one program, and the blocks at whose begin it may have
    some. 0 if updates are made at once."""
    if program.emulation is not None or program.watched or DELAYED_UPDATES in program.without:
        return 0, frozenset()
    items = [item for block in program.blocks.values() for item in block.body]
    found = [item for item in items if item.name.startswith("OpAtomic") and _device(program, item)]
    if any(item.name in _NO_UPDATES or item.result in program.mentioned for item in found):
        return 0, frozenset()
    if any(item.name == "OpLoad" and item.operands[1:] and item.operands[1] & MemoryAccess.Volatile for item in items):
        return 0, frozenset()
    updates, kept, early = {item.result for item in found}, set[int](), False
    ahead = [label for label, block in program.blocks.items() if updates & {item.result for item in block.body}]
    while ahead:
        block = program.blocks[ahead.pop()]
        holds = block.label in kept
        early |= holds and bool(block.following)
        holds &= not block.following
        for item in block.body:
            early |= holds and ends_delay(program, item)
            holds = item.result in updates or (holds and not ends_delay(program, item))
        new = {_behind(program, block.label, target) for target in block.targets} - kept if holds else set()
        kept |= new
        ahead += new
    few = len(found) < _FEWEST_EARLY and not any(block.independent for block in program.blocks.values())
    return (0 if early and few else len(found)), frozenset(kept)


def _behind(program: KernelModule, label: int, target: int) -> int:
    """The block that has to wait for what is kept where one goes to ``target``: that behind a loop at the end of one of
    its rounds, if they do not depend on each other."""
    loop = program.blocks[target]
    return loop.merge if loop.independent and loop.following == label else target


def ends_delay(program: KernelModule, item: ModuleInstruction) -> bool:
    """Whether a program may access with an instruction what it updated before."""
    return item.name in _ACCESSES and _device(program, item)


def _device(program: KernelModule, item: ModuleInstruction) -> bool:
    """Whether an instruction accesses device memory, or may."""
    if item.name == "OpFunctionCall":
        return True
    pointers = item.operands[:2] if item.name == "OpCopyMemory" else item.operands[:1]
    return any(program.type(pointer).storage == StorageClass.PhysicalStorageBuffer for pointer in pointers)


class DelayedUpdates:
    """The log of a kernel whose vectors have so many lanes. ``most``: how many updates of a program it
    has; 0: there is no log. ``kept``: the blocks at whose begin it may have some. ``sums``: its form where all are
    sums of neighbours."""

    def __init__(self, program: KernelModule, lanes: int, divergence: Divergence) -> None:
        self.most, self.kept = _most_kept(program)
        types = {
            near_type(program, divergence, item)
            for block in program.blocks.values()
            for item in block.body
            if self.most and item.name.startswith("OpAtomic") and _device(program, item)
        }
        self.sums = Sums(lanes, *types) if len(types) == 1 and "" not in types and self.most <= Sums.MOST else None
        #: Of a program: each update with its kind, its base, its mask, and the places and the values of all lanes.
        self._most_bytes = self.most * (24 + 16 * lanes)
        #: The function that makes the updates of a record, its arguments' types, and the rest of the call, by kind.
        self._kinds: list[tuple[str, list[str], str]] = []

    @property
    def bytes(self) -> int:
        """How much scratch memory the log takes."""
        return self.sums.bytes if self.sums else _FIRST + max(_ROOM, self._most_bytes) if self.most else 0

    @property
    def full(self) -> int:
        """The bytes of records, or the sums, from which on there is no more room for those of a program, or a round of
        a loop."""
        return self.sums.full(self.most) if self.sums else self.bytes - _FIRST - self._most_bytes

    def keep(self, function: str, arguments: Sequence[tuple[str, str]], rest: str, now: str, sum_: str = "") -> str:
        """Lines that write a record to %log and go to %done: a call of ``function`` with these (type, value) and
        ``rest``. They go to ``now`` where there is no log. ``sum_``: the operation of a function of %base, %mask and
        %values that adds to neighbours."""
        if not self.most:
            return f"  br label %{now}\n"
        if self.sums:
            self._kinds.append((function, [], rest))
            return self.sums.keep(now, sum_)
        kind, types = len(self._kinds), ["i64", *(type_ for type_, _ in arguments)]
        self._kinds.append((function, types[1:], rest))
        record = _record(types)
        lines = f"""  %log.begin = add i64 %log.held, {_FIRST}
  %log.record = getelementptr i8, ptr %log, i64 %log.begin
"""
        for number, (type_, value) in enumerate([("i64", str(kind)), *arguments]):
            lines += f"  %log.{number} = getelementptr {record}, ptr %log.record, i32 0, i32 {number}\n"
            lines += f"  store {type_} {value}, ptr %log.{number}, align 1\n"
        return f"""  %log.is = icmp ne ptr %log, null
  br i1 %log.is, label %look, label %{now}
look:
  %log.held = load i64, ptr %log, align 64
{lines}  %log.holds = add i64 %log.held, {_bytes(record)}
  store i64 %log.holds, ptr %log, align 64
  br label %done
"""

    def entry(self, place: int) -> dict[str, str]:
        """Lines of the kernel's entry by their places: at its begin, before each program, at its end. ``place``: the
        log's in scratch memory."""
        if not self._kinds:
            return {"begin": "  %log = select i1 false, ptr %scratch, ptr null\n", "before": "", "end": ""}
        return {
            "begin": f"""  %place = getelementptr i8, ptr %scratch, i64 {place}
  %launch = getelementptr i8, ptr %place, i64 8
  store ptr %grid, ptr %launch, align 8
  %delays = icmp eq i32 %threads, 3
  %log = select i1 %delays, ptr %place, ptr null
""",
            "before": f"""  %held = load i64, ptr %place, align 64
  %asks = icmp ugt i64 %held, {self.full if self.sums else _ASKS_FROM}
  %now = and i1 %asks, %delays
  br i1 %now, label %ask, label %have
ask:
  %waits = icmp ugt i64 %held, {self.full}
  call void @make_delayed(ptr %place, ptr %stop, i1 %waits)
  br label %have
have:
""",
            "end": "",
        }

    def updates(self, name: str, place: int) -> str:
        """The kernel's function Updates (triton_spirv/processor.hpp)."""
        if not self._kinds:
            return ""
        return f"""define void @"{name}.updates"(ptr %scratch, ptr %grid, ptr %stop, i32 %begins) nounwind {{
entry:
  %place = getelementptr i8, ptr %scratch, i64 {place}
  %launch = getelementptr i8, ptr %place, i64 8
  %new = icmp ne i32 %begins, 0
  br i1 %new, label %begin, label %make
begin:
  store <8 x i64> zeroinitializer, ptr %place, align 64
  ret void
make:
  store ptr %grid, ptr %launch, align 8
  call void @make_delayed(ptr %place, ptr %stop, i1 true)
  ret void
}}
"""

    @property
    def declarations(self) -> frozenset[str]:
        """Those that function() needs."""
        if not self._kinds:
            return frozenset()
        return DECLARATIONS | (self.sums.DECLARATIONS if self.sums else set())

    def function(self) -> str:
        """The function that makes the updates of a log if it gets the launch's lock. It waits for the lock if it is
        told to; if the launch is to stop meanwhile, it drops them, as a loop that goes on would have no room."""
        if not self._kinds:  # the code may have calls where none of its updates is reached
            none = "define internal void @make_delayed(ptr %log, ptr %stop, i1 %waits) {\n  ret void\n}"
            return none if self.most else ""
        if self.sums:
            return self.sums.function(self._kinds[0][0])
        kinds, cases, nexts = "", "", []
        for kind, (function, types, rest) in enumerate(self._kinds):
            record = _record(["i64", *types])
            kinds += f"kind{kind}:\n"
            for number, type_ in enumerate(types):
                name = f"{kind}.{number}"
                kinds += f"  %part{name} = getelementptr {record}, ptr %record, i32 0, i32 {number + 1}\n"
                kinds += f"  %of{name} = load {type_}, ptr %part{name}, align 1\n"
            given = ", ".join([f"{type_} %of{kind}.{number}" for number, type_ in enumerate(types)])
            kinds += f"  call void @{function}({given}{rest})\n  %next{kind} = add i64 %at, {_bytes(record)}\n"
            kinds += "  br label %made\n"
            cases += f" i64 {kind}, label %kind{kind}"
            nexts.append(f"[%next{kind}, %kind{kind}]")
        return f"""{TAKE_LOCK}define internal void @make_delayed(ptr %log, ptr %stop, i1 %waits) noinline nounwind {{
entry:
  %held = load i64, ptr %log, align 64
  %none = icmp eq i64 %held, 0
  br i1 %none, label %end, label %look
look:
  %launch = getelementptr i8, ptr %log, i64 8
  %grid = load ptr, ptr %launch, align 8
  %told = getelementptr i32, ptr %grid, i64 4
  %lock = load ptr, ptr %told, align 8
  %got = call i1 @take_lock(ptr %lock, ptr %stop, i1 %waits)
  br i1 %got, label %turn, label %busy
busy:
  br i1 %waits, label %empty, label %end
turn:
  %at = phi i64 [0, %look], [%next, %made]
  %begin = add i64 %at, {_FIRST}
  %record = getelementptr i8, ptr %log, i64 %begin
  %kind = load i64, ptr %record, align 1
  switch i64 %kind, label %never [{cases} ]
never:
  unreachable
{kinds}made:
  %next = phi i64 {", ".join(nexts)}
  %more = icmp ult i64 %next, %held
  br i1 %more, label %turn, label %done
done:
  store atomic i32 0, ptr %lock release, align 4
  br label %empty
empty:
  store i64 0, ptr %log, align 64
  br label %end
end:
  ret void
}}
"""


def _record(types: Sequence[str]) -> str:
    return f"<{{ {', '.join(types)} }}>"


def _bytes(record: str) -> str:
    return f"ptrtoint (ptr getelementptr ({record}, ptr null, i32 1) to i64)"
