"""Before which writes to device memory invocations must wait, because another may still have to read there.

A program acts on whole tensors, one operation after the other. Its invocations run at their own pace: Mesa's CPU driver
runs each subgroup to the next barrier before it starts another. So a load before a store may come after the store in
another invocation. This matters if elements move (a tile is shifted or transposed in place), and if several invocations
hold the same elements but only one stores them (``count = tl.load(p)``, ``tl.store(p, count + 1)``).

A load and a later write need a workgroup barrier between them on every path if they may go through the same argument.
None is needed if each invocation writes only what it alone has read: both have the same pointers, no two of these are
equal, and only the invocation that writes an element uses the loaded value.

A barrier for workgroup memory between the two suffices if it also orders device memory. Otherwise the driver's compiler
may move the load past it (SPIR-V specification, section 3.25, Memory Semantics).

Overlapping arguments, pointers loaded from memory, the same pointers in other iterations of a loop, and loads after
writes are not considered: they are up to the kernel (``tl.debug_barrier``), as with upstream's GPU backends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..layouts.distributed import LANE, WARP, layout_of
from ..ttgir.ir import Function, Operation, Value
from ..ttgir.operations import OPERATIONS, Effect, Pointers, definition_of, memory_semantics
from ..ttgir.types import TensorType, Type
from .barriers import BARRIER, Access, MemoryEffect, Need, barrier_needs
from .places import no_two_alike, same_pointer
from .pointer_roots import Roots, pointer_roots

_READ = "tt.load"
_WRITES = tuple(
    name
    for name, row in OPERATIONS.items()
    if row.pointers is Pointers.ACCESSED and Effect.WRITES_GLOBAL in row.effects
)
#: Memory semantics of atomic operations with a wait before them.
_RELEASES = frozenset({"release", "acq_rel"})


@dataclass(frozen=True)
class ReadsFirst:
    """``waits``: the writes before which invocations wait for each other's reads. ``barriers``: whether barriers that
    are there for workgroup memory make such waits needless elsewhere, so that they order device memory, too."""

    waits: frozenset[Operation] = frozenset()
    barriers: bool = False


def reads_first(
    function: Function, effect: Callable[[Operation], MemoryEffect], placed: Mapping[Operation, Need]
) -> ReadsFirst:
    """How reads of device memory come before the writes that follow them in ``function``. ``effect``: what
    operations do to workgroup memory, for the waits in it; ``placed``: the barriers for that memory."""
    assert function.body is not None
    accesses = {
        operation: (Access(operation, 0, 1, operation.name != _READ),)
        for operation in function.walk()
        if operation.name in (_READ, *_WRITES)
    }
    roots = pointer_roots(function) if len({one.name == _READ for one in accesses}) == 2 else {}
    read, written = (
        {root for one in accesses if (one.name == _READ) == reads for root in roots.get(one["ptr"], ())}
        for reads in (True, False)
    )
    if read.isdisjoint(written):
        return ReadsFirst()

    def with_its_own(operation: Operation) -> MemoryEffect:
        if memory_semantics(operation) in _RELEASES:
            return MemoryEffect((), True, accesses.get(operation, ()))
        return MemoryEffect(accesses.get(operation, ()), orders_device_memory(operation))

    def with_all(operation: Operation) -> MemoryEffect:
        own = with_its_own(operation)
        if placed.get(operation) == Need.WORKGROUP:
            return MemoryEffect((), True, accesses.get(operation, ()))
        return own if own.waits else MemoryEffect(own.before, effect(operation).waits)

    def rule(earlier: Access, later: Access) -> Need:
        read, write = earlier.operation, later.operation
        if earlier.write or not later.write or not _share(read, write, roots):
            return Need.NOTHING
        pointer, other = read["ptr"], write["ptr"]
        alone = not _copied(pointer.type) or _stays(read.result, set())
        apart = same_pointer(pointer, other) and alone and no_two_alike(pointer)
        return Need.NOTHING if apart else Need.WORKGROUP

    accessing = (_READ, *_WRITES)
    rules = {(first, second): rule for first in accessing for second in accessing}
    waits, alone = (frozenset(barrier_needs(function, one, rules)) for one in (with_all, with_its_own))
    return ReadsFirst(waits, waits != alone)


def orders_device_memory(operation: Operation) -> bool:
    """Whether this is a barrier that the kernel has for more than workgroup memory."""
    return operation.name == BARRIER and operation.attribute("addrSpace") != "local"


def _share(read: Operation, write: Operation, roots: Roots) -> bool:
    """Whether both are known to go through arguments, and may go through the same."""
    return not set(roots.get(read["ptr"], ())).isdisjoint(roots.get(write["ptr"], ()))


def _copied(type_: Type) -> bool:
    """Whether several invocations hold an element of such a value."""
    if not isinstance(type_, TensorType) or type_.encoding is None:
        return True
    try:
        layout = layout_of(type_)
    except (ValueError, NotImplementedError):  # refused when it is lowered
        return True
    return any(not basis for name in (LANE, WARP) for basis in layout.inputs[name])


def _stays(value: Value, seen: set[Value]) -> bool:
    """Whether all that is computed from ``value``, element by element, is at last given to writes: each of these acts
    in one of the invocations that hold an element."""
    if value in seen:
        return True
    seen.add(value)
    return all(
        use.name in _WRITES
        or (
            definition_of(use).elementwise
            and not use.regions
            and all(_alike(other.type, value.type) for other in (*use.operands, *use.results))
            and all(_stays(result, seen) for result in use.results)
        )
        for use in value.uses
    )


def _alike(one: Type, other: Type) -> bool:
    """Whether the same invocations hold the elements of both."""
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return isinstance(one, TensorType) == isinstance(other, TensorType)
    return one.shape == other.shape and one.encoding == other.encoding
