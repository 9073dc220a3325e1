"""Where operations exchange elements: apart from what is accessed before and after, so that invocations wait less.

An exchange writes its memory, waits, and reads it. What reads the same bytes before the exchange, or writes them after
it, needs a second wait. What lies elsewhere needs none, since the exchange's own wait parts all that is before it from
all that is after. Two places by turns suffice for a sequence, three for a loop with an odd number of exchanges. An
exchange that is alone in a loop meets itself again, and waits wherever it lies.

Operations are placed in the order of the kernel, each at the lowest bytes clear of what can come before and after it on
some path without a barrier between (analysis/barriers.py); where there is no room for that, at the lowest bytes that
are free. How much memory an operation takes does not depend on its place, so that what fits still fits.

The price is memory, which may leave fewer workgroups on a compute unit at a time. So a kernel takes no more for this
than it takes anyway, up to the next multiple of GRANULE, or than ``spare_shared`` of driver_quirks.py for each
invocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..analysis.barriers import Access, Need, Paths, insert_before, reached, strongest
from ..ttgir.ir import Function, Operation
from .memory_effects import MemoryEffects
from .memory_pools import LOWEST, Apart, Bytes, Scratch, View
from .plans import Plan

#: The least bytes that are allocated at once by any GPU that is known: NVIDIA's, since compute capability 8.0 (CUDA
#: Occupancy Calculator, "Shared Memory allocation unit size").
GRANULE = 128

#: Plans an operation anew, apart from something.
Replan = Callable[[Operation, Apart], Plan]


def spare_bytes(taken: int, view: View, invocations: int, each: int) -> int:
    """Bytes that a kernel may take besides the ``taken`` ones, so that its ``invocations`` wait less. ``each``: bytes
    of one of them that cost nothing."""
    most = max(-(-taken // GRANULE) * GRANULE, each * invocations)
    return max(0, min(most, view.limit) - taken)


def spread(kernel: Function, effects: MemoryEffects, replan: Replan, spare: int) -> Mapping[Operation, Plan]:
    """The plans of all operations, of which those with memory of their own are apart from each other. ``spare``: bytes
    that this may take."""
    plans = dict(effects.plans)
    placing = MemoryEffects(plans, effects.late, effects.views)
    paths = Paths(kernel, placing)
    nodes = {node.operation: node for node in paths.accesses}  # the last one of each
    waiting = {one for one, plan in plans.items() if one in nodes and plan.scratch and placing(one).waits}
    apart = LOWEST.taking(Scratch(one.start, one.end - one.start) for plan in plans.values() for one in plan.accesses)
    apart = Apart(ends=apart.ends, spare=spare)

    def placed(accesses: Iterable[Access]) -> list[Access]:
        return [one for one in accesses if one.operation not in waiting]

    for node in paths.accesses:
        operation = node.operation
        before = reached(node, backwards=True)
        if operation in waiting:
            # A wait that is needed wherever it lies parts it from all that is before.
            alone = any(one.operation is operation for one in before)
            behind = placed(reached(nodes[operation], backwards=False))
            plans[operation] = replan(
                operation,
                Apart(
                    () if alone else _bytes(placed(before)),
                    _bytes(one for one in behind if one.write),
                    apart.ends,
                    apart.spare,
                ),
            )
            apart = apart.taking(plans[operation].scratch)
            effect = placing(operation)
            node.accesses, nodes[operation].accesses = effect.before, effect.after
            waiting.discard(operation)
        if strongest(placed(reached(node, backwards=True)), node.accesses) is not Need.NOTHING:
            insert_before(node)
    return plans


def _bytes(accesses: Iterable[Access]) -> tuple[Bytes, ...]:
    return tuple(sorted({(one.start, one.end) for one in accesses}))
