"""The stretches of a function between its barriers."""

from __future__ import annotations

from collections.abc import Sequence

from ..spirv import opcodes as op
from ..spirv.encode import Instruction
from ..spirv.module import ModuleBuilder
from ..spirv.opcodes import Scope

_MARKS = frozenset({op.Label, op.SelectionMerge, op.LoopMerge, op.ControlBarrier})


class Stretches:
    """Which stretch each instruction of a function is in, and where its blocks and constructs begin.

    Entering and leaving a loop that has barriers begins a stretch as a barrier does. Subgroup barriers, for which no
    coroutine is suspended, do not count.
    """

    def __init__(self, module: ModuleBuilder, body: Sequence[Instruction]) -> None:
        marks = [place for place, instruction in enumerate(body) if instruction[0] in _MARKS]
        #: Places of labels and merges, in order.
        self.structure: list[int] = []
        barriers: list[int] = []
        labels: dict[int, int] = {}
        for place in marks:
            opcode = body[place][0]
            if opcode != op.ControlBarrier:
                self.structure.append(place)
                if opcode == op.Label:
                    labels[body[place][2]] = place
            elif module.constants.get(body[place][1]) != Scope.Subgroup:
                barriers.append(place)
        # A barrier and the merge of such a loop end a stretch behind themselves, the block behind the loop before.
        starts = [place + 1 for place in barriers]
        for place in self.structure:
            if body[place][0] == op.LoopMerge:
                end = labels[body[place][3]]
                if any(place < barrier < end for barrier in barriers):
                    starts += [place + 1, end]
        #: The stretch of each instruction.
        self.of: list[int] = []
        for number, (start, end) in enumerate(zip([0, *sorted(starts)], [*sorted(starts), len(body)], strict=True)):
            self.of += [number] * (end - start)
        #: How many there are.
        self.count = len(starts) + 1
