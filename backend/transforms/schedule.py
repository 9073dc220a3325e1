"""How a kernel is laid out and carried out: what ``planning/cost.py`` chooses among, and rewrites and plans go by."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..matrices import MatrixConfiguration
from ..options import SPIRVOptions


@dataclass(frozen=True)
class Schedule:
    """One way to lay a kernel out: for how many subgroups, whether loads of dot operands go down to their dots
    (sink_loads.py), whether dots are for matrix units, and with ``padded`` buffers, whether operands that loops do not
    change are ``held`` in registers even if there are too few (invariant_operands.py), in how many ``pieces`` dots are
    cut along K (split_dots.py), 0 for none. ``in_rounds``: conversions of a kernel with dots may go through shared
    memory in rounds, and buffers are filled in loops that use them (refill_buffers.py). ``stages``: of pipelined loops;
    where there are more than one, drivers that want it get the next iteration's dot operands loaded ahead
    (prefetch.py)."""

    subgroups: int = 0
    moved_loads: bool = True
    matrices: bool = False
    padded: bool = False
    held: bool = False
    pieces: int = 0
    in_rounds: bool = False
    stages: int = 2

    def summary(self) -> str:
        """A few words."""
        parts = [f"{self.subgroups} subgroups"]
        if self.matrices:
            parts.append(f"matrix units with {'padded' if self.padded else 'plain'} buffers")
        elif not self.moved_loads:
            parts.append("loads of dot operands stay where upstream left them")
        if self.held:
            parts.append("operands that loops do not change in registers")
        if self.pieces:
            parts.append(f"dots in {self.pieces} pieces of K")
        if self.in_rounds:
            parts.append("conversions in rounds, buffers filled in loops")
        return ", ".join(parts)


@dataclass(frozen=True)
class Options:
    """The compile options, what they give on a device, and the ``schedule``.

    ``asked``: the compile options. ``native_math``: what of capabilities.NATIVE_MATH kernels may use. ``matrices``: the
    configurations of matrix units that dots may use; ``matrix_loads``: dots may load fragments from shared memory.
    """

    asked: SPIRVOptions = field(default=SPIRVOptions())
    native_math: frozenset[str] = frozenset()
    matrices: tuple[MatrixConfiguration, ...] = ()
    matrix_loads: bool = False
    schedule: Schedule = field(default=Schedule(moved_loads=False, matrices=True))

    @property
    def units(self) -> tuple[MatrixConfiguration, ...]:
        """The configurations that dots of the ``schedule`` use: none where it is for multiply-adds."""
        return self.matrices if self.schedule.matrices else ()
