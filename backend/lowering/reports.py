"""What a kernel tells the host: failed assertions, printed values, loops that the driver cut short.

A kernel that may report takes one more argument after its own: the 64-bit address of a buffer, laid out in 32-bit words
as docs/abi.md says. Reading the buffer is the launcher's (runtime/reporting.py). Messages are numbered at compile time;
what is not known before the launch travels in the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..abi.report_buffer import CURSOR, FAILURE, HEADER, RECORD, RECORDS
from ..spirv import opcodes as op
from ..spirv.opcodes import BuiltIn, Capability_, MemoryAccess, Scope, Semantics, StorageClass
from ..ttgir.ir import Location
from .emitter import Emitter


class Reports:
    """The report buffer of one kernel: ``address`` is the id of its address, ``messages`` what they are about.
    ``checks_bytes`` lie between its header and its records (bounds_check.py, race_check.py)."""

    def __init__(self, address: int, checks_bytes: int = 0) -> None:
        self.address = address
        self._records = HEADER.size + checks_bytes
        self.messages: list[dict[str, Any]] = []

    def message(self, kind: str, location: Location, **facts: Any) -> int:
        """Numbers a message: ``kind`` and ``facts`` are for runtime/reporting.py."""
        self.messages.append({"kind": kind, "file": location.file, "line": location.line, **facts})
        return len(self.messages) - 1

    def _word(self, emitter: Emitter, address: int) -> int:
        pointer = emitter.module.pointer(StorageClass.PhysicalStorageBuffer, emitter.module.u32)
        return emitter.f.emit(op.ConvertUToPtr, pointer, address)

    def _at(self, emitter: Emitter, word: int) -> int:
        return self._word(emitter, emitter.f.add(self.address, emitter.module.uint(4 * word, 64)))

    def fail(self, emitter: Emitter, condition: int, number: int) -> None:
        """Reports message ``number`` where ``condition`` holds; the first failure of the launch is kept."""
        f, module = emitter.f, emitter.module

        def report() -> list[int]:
            module.capability(Capability_.VulkanMemoryModelDeviceScope)
            relaxed = module.uint(Semantics.Relaxed)
            f.effect(
                op.AtomicCompareExchange,
                module.u32,
                self._at(emitter, FAILURE),
                module.uint(Scope.Device),
                relaxed,
                relaxed,
                module.uint(number + 1),
                module.uint(0),
            )
            return []

        f.if_(condition, report)

    def record(
        self, emitter: Emitter, condition: int, number: int, operand: int, index: int, words: Sequence[int]
    ) -> None:
        """Appends a record where ``condition`` holds: the element at row-major ``index`` has the bits ``words``."""
        f, module = emitter.f, emitter.module

        def append() -> list[int]:
            module.capability(Capability_.VulkanMemoryModelDeviceScope)
            slot = f.effect(
                op.AtomicIAdd,
                module.u32,
                self._at(emitter, CURSOR),
                module.uint(Scope.Device),
                module.uint(Semantics.Relaxed),
                module.uint(1),
            )
            f.if_(f.compare(op.ULessThan, slot, module.uint(RECORDS)), lambda: write(slot))
            return []

        def write(slot: int) -> list[int]:
            program = [emitter.workgroup_built_in(BuiltIn.WorkgroupId, "workgroup_id", axis) for axis in range(3)]
            base = f.add(
                f.add(self.address, module.uint(self._records, 64)),
                f.mul(f.zero_extend(slot, 64), module.uint(RECORD.size, 64)),
            )
            for place, word in enumerate((module.uint(number), module.uint(operand), *program, index, *words)):
                pointer = self._word(emitter, f.add(base, module.uint(4 * place, 64)))
                f.store(pointer, word, MemoryAccess.NonPrivatePointer, 4)
            return []

        f.if_(condition, append)


def watch_loops(emitter: Emitter, reports: Reports, place: Callable[[], Location]) -> None:
    """Makes every loop report where the driver ended it although its condition still held.

    The condition is passed through a subgroup operation that changes nothing: the driver's compiler knows that a
    condition is false after its loop, and would drop a plain test of it. ``place``: the location of the loop that is
    emitted.
    """
    f, module = emitter.f, emitter.module
    numbers: dict[Location, int] = {}
    module.capability(Capability_.GroupNonUniformShuffle)

    def check(condition: int) -> int:
        flag = f.select(condition, module.uint(1), module.uint(0))
        return f.effect(op.GroupNonUniformShuffleXor, module.u32, module.uint(Scope.Subgroup), flag, module.uint(0))

    def end(flag: int) -> None:
        where = place()
        if where not in numbers:
            numbers[where] = reports.message("loop", where)
        reports.fail(emitter, f.compare(op.INotEqual, flag, module.uint(0)), numbers[where])

    f.watch = (check, end)
