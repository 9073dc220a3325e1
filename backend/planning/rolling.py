"""How many registers of a long element-by-element operation are computed in one round of a loop over registers.

This is the owner of such loops' counts: ``lowering/rolled.py`` emits them, ``planning/messages.py`` asks how often they
turn, because some drivers end loops after so many iterations, counted over all of an invocation.
"""

from __future__ import annotations

from ..drivers import Driver
from ..layouts.distributed import REGISTER, distributed_layout
from ..ttgir.ir import Operation
from ..ttgir.traits import MEDIUM, in_loop
from ..ttgir.traits import traits as traits_of
from ..ttgir.types import TensorType


def registers_a_round(operation: Operation, count: int, length: int, traits: Driver) -> int:
    """How many of ``count`` registers are computed together, ``length`` instructions each; ``count`` for no loop.

    In a loop of the kernel a round is longer, and is made only where that spares more: rounds of all its iterations add
    up to the driver's limit."""
    if in_loop(operation):
        budget = traits.unrolled_in_loop
        together = max(1, budget // length)
        return together if budget and count > 2 * together else count
    return 1 if count > max(1, traits.unrolled_instructions // length) else count


def most_rounds(operation: Operation, traits: Driver) -> int:
    """An upper bound of the iterations of the loop over registers that ``operation`` has in the kernel's loops."""
    length = traits_of(operation).length
    if length < MEDIUM or not in_loop(operation):
        return 0
    type_ = operation.results[0].type
    if not isinstance(type_, TensorType) or type_.encoding is None:
        return 0
    count = 1 << len(distributed_layout(type_.encoding, type_.shape).bases[REGISTER])
    together = registers_a_round(operation, count, length, traits)
    return -(-count // together) + 1 if together < count else 0
