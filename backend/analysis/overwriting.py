"""Before which writes to device memory the invocations of a workgroup wait, because one may yet have to read there.

A program acts on whole tensors, one operation after the other. Its invocations run at their own pace: Mesa's CPU driver
runs each subgroup to the next barrier before it begins with another one. So a load that stands before a store may come
after it in another invocation: where elements move (a tile is shifted or turned in place), and where several
invocations hold the same elements (``count = tl.load(p)``, ``tl.store(p, count + 1)``), of which one stores.

A load and a later write with no wait of the workgroup between them, on any path, need one if they may go through the
same argument, unless each invocation writes only what it alone has read: both have the same pointers, and of the
invocations that hold an element only the one that writes it uses what was loaded.

Not judged are arguments that overlap, pointers out of memory, what the same pointers are in other iterations of a loop,
and loads after writes: these are up to the kernel (``tl.debug_barrier``), as they are with upstream's GPU backends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..layouts.distributed import LANE, WARP, distributed_layout
from ..ttgir.ir import Function, Operation, Value
from ..ttgir.traits import TRAITS, Effect, Pointers, traits
from ..ttgir.types import TensorType, Type
from .barriers import Access, Footprint, Need, barrier_needs
from .places import same_pointer
from .pointer_roots import Roots, pointer_roots

_READ = "tt.load"
_WRITES = tuple(
    name for name, row in TRAITS.items() if row.pointers is Pointers.ACCESSED and Effect.WRITES_GLOBAL in row.effects
)
#: Memory semantics of atomic operations with a wait before them.
_RELEASES = frozenset({"release", "acq_rel"})


def overwriting(
    function: Function, footprint: Callable[[Operation], Footprint], placed: Mapping[Operation, Need]
) -> frozenset[Operation]:
    """The writes of ``function`` before which invocations must wait. ``footprint``: what operations do to workgroup
    memory, for the waits in it; ``placed``: the barriers for that memory."""
    assert function.body is not None
    names = {inner.name for block in function.body.blocks for top in block.operations for inner in top.walk()}
    if _READ not in names or names.isdisjoint(_WRITES):
        return frozenset()
    roots = pointer_roots(function)

    def device_footprint(operation: Operation) -> Footprint:
        waits = footprint(operation).waits
        accesses = (Access(operation, 0, 1, operation.name != _READ),) if operation.name in (_READ, *_WRITES) else ()
        if placed.get(operation) == Need.WORKGROUP or operation.attributes.get("sem") in _RELEASES:
            return Footprint((), True, accesses)
        return Footprint(accesses, waits)

    def rule(earlier: Access, later: Access) -> Need:
        read, write = earlier.operation, later.operation
        if earlier.write or not later.write or not _share(read, write, roots):
            return Need.NOTHING
        pointer, other = read.operands[0], write.operands[0]
        apart = same_pointer(pointer, other) and (not _copied(pointer.type) or _stays(read.result, set()))
        return Need.NOTHING if apart else Need.WORKGROUP

    accessing = (_READ, *_WRITES)
    rules = {(first, second): rule for first in accessing for second in accessing}
    return frozenset(barrier_needs(function, device_footprint, rules))


def _share(read: Operation, write: Operation, roots: Roots) -> bool:
    """Whether both are known to go through arguments, and may go through the same."""
    return not set(roots.get(read.operands[0], ())).isdisjoint(roots.get(write.operands[0], ()))


def _copied(type_: Type) -> bool:
    """Whether several invocations hold an element of such a value."""
    if not isinstance(type_, TensorType) or type_.encoding is None:
        return True
    try:
        layout = distributed_layout(type_.encoding, type_.shape)
    except (ValueError, NotImplementedError):  # refused where it is lowered
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
            traits(use).elementwise
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
