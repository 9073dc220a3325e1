"""Before which operations invocations must wait for each other, and whether the subgroup or the workgroup waits.

Judged are the accesses that operations make to workgroup memory as they will be lowered:

* a pair of accesses meets if the later one can follow the earlier one on any path through branches and loops without
  a workgroup barrier between, their bytes overlap and one of them writes;
* RULES says what must stand between a pair: nothing, a subgroup barrier, or (everything that no rule knows) a workgroup
  barrier;
* in the order of the kernel, an operation gets a barrier before it where one of its accesses meets an earlier one that
  needs anything;
* then each of these barriers becomes what the most demanding of its pairs needs. They are judged one after the other,
  each against those that are still there, so that every pair keeps one as strong as it needs.

Barriers that the user wrote, and the waits inside of operations that exchange elements through memory of their own,
part pairs like any other, and are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ..layouts.distributed import LANE, REGISTER, WARP
from ..layouts.gf2 import Span
from ..layouts.linear import LinearLayout
from ..ttgir.ir import Block, Function, Operation
from ..ttgir.operations import OPERATIONS, definition_of

BARRIER = "ttg.barrier"


class Need(IntEnum):
    """What must stand between two accesses, in ascending order."""

    NOTHING = 0
    SUBGROUP = 1
    WORKGROUP = 2


@dataclass(frozen=True)
class Frame:
    """What the offsets of an access are counted in: elements of ``element_bytes`` from byte ``start``, before
    ``padding`` (see layouts.shared_encodings.SharedLayout)."""

    start: int
    element_bytes: int
    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Access:
    """A read or write of workgroup memory within bytes ``start`` … ``end`` - 1, by ``operation``.

    ``places``: (register, lane, warp) to the element offsets in ``frame``; None if any invocation may touch any of
    the bytes.
    """

    operation: Operation
    start: int
    end: int
    write: bool
    places: LinearLayout | None = None
    frame: Frame | None = None


@dataclass(frozen=True)
class MemoryEffect:
    """What an operation does to workgroup memory: the accesses ``before``, then if ``waits`` a wait of all invocations,
    then those ``after``."""

    before: tuple[Access, ...] = ()
    waits: bool = False
    after: tuple[Access, ...] = ()


NO_ACCESS = MemoryEffect()

#: Attribute of a load for the next iteration of its loop (transforms/gpu/prefetch.py).
AHEAD = "spirv.ahead"

Rule = Callable[[Access, Access], Need]


# -- the table ---------------------------------------------------------------------------------------------------
def own_places(earlier: Access, later: Access) -> Need:
    """Nothing where each invocation meets only its own bytes again: it keeps its own order. A subgroup barrier where
    each subgroup does."""
    first, second = earlier.places, later.places
    if first is None or second is None or earlier.frame is None or earlier.frame != later.frame:
        return Need.WORKGROUP
    if _apart(first, second, (LANE, WARP)):
        return Need.NOTHING
    return Need.SUBGROUP if _apart(first, second, (WARP,)) else Need.WORKGROUP


def _apart(first: LinearLayout, second: LinearLayout, parties: tuple[str, ...]) -> bool:
    """Whether inputs that differ in ``parties`` never have an offset in common, one under ``first`` and the other under
    ``second``: both maps must agree on ``parties``, and be injective there, up to what the other inputs reach."""
    reached = Span(
        basis
        for layout in (first, second)
        for name in (REGISTER, LANE, WARP)
        if name not in parties
        for basis in layout.inputs[name]
    )
    pairs = [pair for name in parties for pair in zip(first.inputs[name], second.inputs[name], strict=True)]
    return all(left ^ right in reached for left, right in pairs) and all(reached.add(left) for left, _ in pairs)


#: Operations that take the bytes of a buffer by a layout of registers, lanes and subgroups, without waiting.
BY_LAYOUT = tuple(name for name, row in OPERATIONS.items() if row.by_layout)

#: (earlier operation, later operation) → what must stand between two accesses of them that overlap; a workgroup barrier
#: for all others.
RULES: Mapping[tuple[str, str], Rule] = {(first, second): own_places for first in BY_LAYOUT for second in BY_LAYOUT}


def pair_need(earlier: Access, later: Access, rules: Mapping[tuple[str, str], Rule]) -> Need:
    """What must stand between ``earlier`` and ``later``, one after the other on some path."""
    if not (earlier.write or later.write) or earlier.start >= later.end or later.start >= earlier.end:
        return Need.NOTHING
    rule = rules.get((earlier.operation.name, later.operation.name))
    return Need.WORKGROUP if rule is None else rule(earlier, later)


# -- paths -------------------------------------------------------------------------------------------------------
@dataclass(eq=False, slots=True)
class Node:
    """A place on the paths through a function: ``accesses`` of ``operation``, or a barrier as strong as ``state``."""

    accesses: tuple[Access, ...] = ()
    operation: Operation | None = None
    state: Need = Need.NOTHING
    following: list[Node] = field(default_factory=list)
    previous: list[Node] = field(default_factory=list)


class Paths:
    """The paths through a function whose regions have one block each: nodes for what concerns workgroup memory."""

    def __init__(self, function: Function, effect: Callable[[Operation], MemoryEffect]) -> None:
        self._footprint = effect
        #: The nodes with accesses, in the order of the kernel.
        self.accesses: list[Node] = []
        assert function.body is not None
        self._block(_only_block(function.body.blocks), Node())

    def _after(self, *nodes: Node, **what: object) -> Node:
        made = Node(**what)  # type: ignore[arg-type]
        for node in nodes:
            _connect(node, made)
        return made

    def _block(self, block: Block, last: Node) -> Node:
        for operation in block.operations:
            structure = _STRUCTURES.get(operation.name)
            if structure is not None:
                last = structure(self, operation, last)
            elif operation.name == BARRIER:
                last = self._after(last, state=Need.WORKGROUP)
            else:
                last = self._plain(self._footprint(operation), operation, last)
        return last

    def _plain(self, effect: MemoryEffect, operation: Operation, last: Node) -> Node:
        last = self._access(effect.before, operation, last)
        if effect.waits:
            last = self._after(last, state=Need.WORKGROUP)
        return self._access(effect.after, operation, last)

    def _access(self, accesses: tuple[Access, ...], operation: Operation, last: Node) -> Node:
        if accesses:
            last = self._after(last, accesses=accesses, operation=operation)
            self.accesses.append(last)
        return last

    def _if(self, operation: Operation, last: Node) -> Node:
        ends = [self._block(_only_block(region.blocks), last) for region in operation.regions if region.blocks]
        return self._after(*ends, *([last] if len(ends) < 2 else []))

    def _for(self, operation: Operation, last: Node) -> Node:
        head = self._after(last)
        _connect(self._block(_only_block(operation.regions[0].blocks), head), head)
        return head

    def _while(self, operation: Operation, last: Node) -> Node:
        before, after = (_only_block(region.blocks) for region in operation.regions)
        head = self._after(last)
        checked = self._block(before, head)
        _connect(self._block(after, checked), head)
        return checked


_STRUCTURES: dict[str, Callable[[Paths, Operation, Node], Node]] = {
    "scf.if": Paths._if,
    "scf.for": Paths._for,
    "scf.while": Paths._while,
}


def _only_block(blocks: list[Block]) -> Block:
    assert len(blocks) == 1, "branches between blocks are structured before (transforms/structure.py)"
    return blocks[0]


def _connect(first: Node, second: Node) -> None:
    first.following.append(second)
    second.previous.append(first)


def reached(start: Node, backwards: bool) -> list[Access]:
    """The accesses that come next to ``start`` on some path, up to the nearest workgroup barriers: its own, too, where
    a loop leads back to it."""
    found: list[Access] = []
    seen: set[int] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        for other in node.previous if backwards else node.following:
            if id(other) not in seen:
                seen.add(id(other))
                found += other.accesses
                if other.state != Need.WORKGROUP:
                    pending.append(other)
    return found


def _judge(node: Node, rules: Mapping[tuple[str, str], Rule]) -> Need:
    """What the barrier ``node`` has to be."""
    later = reached(node, backwards=False)
    return strongest(reached(node, backwards=True), later, rules) if later else Need.NOTHING


def strongest(
    earlier: Sequence[Access], later: Sequence[Access], rules: Mapping[tuple[str, str], Rule] = RULES
) -> Need:
    """What must stand between all ``earlier`` accesses and all ``later`` ones."""
    need = Need.NOTHING
    for first in earlier:
        for second in later:
            need = max(need, pair_need(first, second, rules))
            if need == Need.WORKGROUP:
                return need
    return need


def insert_before(node: Node) -> Node:
    """A workgroup barrier on all paths to ``node``."""
    made = Node(operation=node.operation, state=Need.WORKGROUP)
    made.previous, made.following = node.previous, [node]
    for other in made.previous:
        other.following = [made if one is node else one for one in other.following]
    node.previous = [made]
    return made


def barrier_needs(
    function: Function, effect: Callable[[Operation], MemoryEffect], rules: Mapping[tuple[str, str], Rule] = RULES
) -> dict[Operation, Need]:
    """Before which operations of ``function`` a barrier must stand, and which."""
    paths = Paths(function, effect)
    barriers = [
        insert_before(node)
        for node in paths.accesses
        if strongest(reached(node, backwards=True), node.accesses, rules) != Need.NOTHING
    ]
    for barrier in barriers:
        barrier.state = _judge(barrier, rules)
    needs = {barrier.operation: barrier.state for barrier in barriers if barrier.operation and barrier.state}
    return {_before_loads(operation, needs, effect): need for operation, need in needs.items()}


def _before_loads(
    operation: Operation, needs: Mapping[Operation, Need], effect: Callable[[Operation], MemoryEffect]
) -> Operation:
    """Where the barrier before ``operation`` stands: before the loads ahead that come right before it, with nothing
    between that accesses workgroup memory. They take the registers of what was stored, and nobody waits for them
    here."""
    block, found = operation.block, operation
    if block is None:
        return found
    for earlier in reversed(block.operations[: block.operations.index(operation)]):
        if earlier.flag(AHEAD):
            found = earlier
        elif (
            earlier in needs or earlier.regions or not definition_of(earlier).repeatable or effect(earlier) != NO_ACCESS
        ):
            break
    return found
