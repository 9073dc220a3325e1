"""Which barriers are emitted: membar's and the user's, as strong as they have to be, and those that membar counts on
without inserting them.

Membar treats an operation that was given scratch memory (``allocation.offset``) as one that writes it, waits for all
invocations, and reads it: that wait also orders the accesses to *other* buffers before and after the operation, so none
is inserted for them. Where layouts hold copies of elements in several subgroups, an operation may find all that it
needs in the invocation's own subgroup, and is planned without scratch memory and without the wait. Then a barrier after
it takes the wait's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..analysis.barrier_filter import BARRIER, Footprint, Need, barrier_needs
from ..ttgir.ir import Function, Operation
from ..ttgir.traits import Memory, in_loop, traits
from .plans import Plan

#: Memory semantics of atomic operations around which there are barriers of their own.
_ORDERED = frozenset({"acquire", "release", "acq_rel"})


@dataclass(frozen=True)
class Barriers:
    """``needs``: what each ``ttg.barrier`` has to be. ``implied``: the same of the barrier that is emitted after an
    operation, in place of the wait that it was thought to need."""

    needs: Mapping[Operation, Need]
    implied: Mapping[Operation, Need]


def plan_barriers(
    kernel: Function,
    operations: Iterable[Operation],
    plans: Mapping[Operation, Plan],
    footprint: Callable[[Operation], Footprint],
) -> Barriers:
    """``operations``: all of ``kernel``, in their order; ``footprint``: of each (footprints.py)."""
    weaker = barrier_needs(kernel, footprint)
    needs: dict[Operation, Need] = {}
    implied: dict[Operation, Need] = {}
    used = False
    for operation in operations:
        plan = plans.get(operation, Plan())
        used = used or bool(plan.accesses)
        if operation.name == BARRIER:
            needs[operation] = weaker.get(operation, Need.WORKGROUP)
        elif "allocation.offset" in operation.attributes and not _waits(operation, plan):
            need = weaker.get(operation, Need.WORKGROUP)
            if need != Need.NOTHING and (used or in_loop(operation)) and not _follows_barrier(operation, weaker):
                implied[operation] = need
    return Barriers(needs, implied)


def _waits(operation: Operation, plan: Plan) -> bool:
    """Whether all invocations wait where ``operation`` is lowered; for buffers, membar does not expect it."""
    return (
        traits(operation).memory is Memory.BUFFER or bool(plan.scratch) or operation.attributes.get("sem") in _ORDERED
    )


def _follows_barrier(operation: Operation, weaker: Mapping[Operation, Need]) -> bool:
    """Whether a workgroup barrier comes right before ``operation``."""
    block = operation.block
    assert block is not None
    place = block.operations.index(operation)
    before = block.operations[place - 1] if place else None
    return before is not None and before.name == BARRIER and before not in weaker
