"""Loops that the driver ends although their condition still holds (``Faults.loop_limit``): the launch says so."""

from __future__ import annotations

from collections.abc import Callable

from ..spirv import opcodes as op
from ..spirv.opcodes import Capability_, Scope
from ..ttgir.ir import Location
from .emitter import Emitter
from .reports import Reports


def watch_loops(emitter: Emitter, reports: Reports, place: Callable[[], Location]) -> None:
    """Makes every loop report where the driver ended it.

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
