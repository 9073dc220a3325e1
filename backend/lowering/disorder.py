"""Subgroups that run in another order than usual: the compile option ``disorder``, which makes a missing barrier show.

Mesa's CPU driver runs the subgroups of a workgroup one after the other, each up to the next barrier, and a GPU nearly
at once: what a subgroup should have waited for is usually there. With the option, subgroups are numbered backwards
(``Emitter.read_builtins``), so that on the CPU driver the last one comes first. On a device with a clock, each waits
at the start and behind every barrier for a time that depends on the option's number, the barrier and the subgroup.
"""

from __future__ import annotations

from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import Capability_, Scope
from .emitter import Emitter

#: Times are below 2 to this power, in the clock's unit (nanoseconds on NVIDIA's GPUs).
_BITS = 13

#: Odd numbers that spread bits.
_BARRIER, _SUBGROUP, _MIX = 0x9E3779B1, 0x85EBCA6B, 0x2C1B3C6D


class Disorder:
    """The delays of one kernel."""

    def __init__(self) -> None:
        self._barriers = 0

    def delay(self, emitter: Emitter) -> None:
        """Each subgroup waits for a while; nothing without the option, or where the driver ends long loops."""
        seed, capabilities = emitter.options.asked.disorder, emitter.capabilities
        if (
            not seed
            or emitter.num_warps == 1
            or not capabilities.has("device_clock")
            or capabilities.traits.faults.loop_limit is not None
        ):
            return
        f, module = emitter.f, emitter.module
        module.capability(Capability_.ShaderClockKHR)
        module.extension("SPV_KHR_shader_clock")
        self._barriers += 1
        start = module.uint((seed * _MIX + self._barriers * _BARRIER) & 0xFFFFFFFF)
        mixed = f.add(f.mul(emitter.warp, module.uint(_SUBGROUP)), start)
        mixed = f.mul(f.xor(mixed, f.shr(mixed, 15)), module.uint(_MIX))
        ticks = f.zero_extend(f.shr(mixed, 32 - _BITS), 64)

        def now() -> int:
            return f.effect(op.ReadClockKHR, module.int(64), module.uint(Scope.Device))

        begun = now()
        f.loop(
            [], lambda _: f.compare(op.ULessThan, f.sub(now(), begun), ticks), lambda _: [], LOOP_CONTROL_DONT_UNROLL
        )
