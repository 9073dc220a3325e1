"""The report buffer, through which a kernel tells the host something: failed assertions, printed values, and more
(report_kinds.py).

A kernel that reports takes one more argument after its own: the 64-bit address of a buffer, laid out as
docs/internals/abi.md says. Reading the buffer is the launcher's (runtime/reports/). Messages are numbered at compile
time; what is not known
before the launch travels in the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..abi.report_buffer import CURSOR, FAILURE, RECORD, RECORDS, places
from ..spirv import opcodes as op
from ..spirv.opcodes import Capability_, MemoryAccess, Scope, Semantics
from ..ttgir.ir import Location
from .emitter import Emitter


class Reports:
    """The report buffer of one kernel: ``address`` is the id of its address, ``messages`` what they are about."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.messages: list[dict[str, Any]] = []

    def message(self, kind: str, location: Location, **facts: Any) -> int:
        """Numbers a message: ``kind`` and ``facts`` are for runtime/reports/."""
        self.messages.append({"kind": kind, "file": location.file, "line": location.line, **facts})
        return len(self.messages) - 1

    def place(self, kind: str) -> int:
        """The byte at which the part of a kind begins that has a message."""
        return places(self.messages)[0][kind]

    def count(self, emitter: Emitter, offset: int, some: int) -> int:
        """Adds to the word at byte ``offset``; gives what it was before."""
        module = emitter.module
        module.capability(Capability_.VulkanMemoryModelDeviceScope)
        pointer, scope = emitter.integer_at(self.address, offset), module.uint(Scope.Device)
        return emitter.f.effect(op.AtomicIAdd, module.u32, pointer, scope, module.uint(Semantics.Relaxed), some)

    def fail(
        self, emitter: Emitter, condition: int, number: int, element: Callable[[], Sequence[int]] | None = None
    ) -> None:
        """Reports message ``number`` where ``condition`` holds; the first failure of the launch is kept. ``element``:
        emits what an assertion says of it: the element's index and the words of its value."""
        f, module = emitter.f, emitter.module

        def report() -> list[int]:
            module.capability(Capability_.VulkanMemoryModelDeviceScope)
            relaxed, scope = module.uint(Semantics.Relaxed), module.uint(Scope.Device)
            pointer, words = emitter.integer_at(self.address, 4 * FAILURE), (module.uint(number + 1), module.uint(0))
            found = f.effect(op.AtomicCompareExchange, module.u32, pointer, scope, relaxed, relaxed, *words)
            if element is not None:
                f.if_(f.compare(op.IEqual, found, module.uint(0)), describe)
            return []

        def describe() -> list[int]:
            assert element is not None
            words = (*emitter.program_ids(), *element())
            write_words(emitter, self.address, self.place("asserted"), words)
            return []

        f.if_(condition, report)

    def record(
        self, emitter: Emitter, condition: int, number: int, operand: int, index: int, words: Sequence[int]
    ) -> None:
        """Appends a record where ``condition`` holds: the element at row-major ``index`` has the bits ``words``."""
        f, module = emitter.f, emitter.module

        def append() -> list[int]:
            slot = self.count(emitter, 4 * CURSOR, module.uint(1))
            f.if_(f.compare(op.ULessThan, slot, module.uint(RECORDS)), lambda: write(slot))
            return []

        def write(slot: int) -> list[int]:
            program = emitter.program_ids()
            base = f.add(
                f.add(self.address, module.uint(self.place("print"), 64)),
                f.mul(f.zero_extend(slot, 64), module.uint(RECORD.size, 64)),
            )
            write_words(emitter, base, 0, (module.uint(number), module.uint(operand), *program, index, *words))
            return []

        f.if_(condition, append)


def write_words(emitter: Emitter, address: int, offset: int, words: Sequence[int]) -> None:
    """Writes words that the host reads, from ``offset`` bytes behind a 64-bit address on."""
    for number, word in enumerate(words):
        pointer = emitter.integer_at(address, offset + 4 * number)
        emitter.f.store(pointer, word, MemoryAccess.NonPrivatePointer, 4)
