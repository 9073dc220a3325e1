"""Which of membar's barriers are not needed, or only within a subgroup.

Upstream's membar analysis (see passes.insert_barriers) is the only one that inserts barriers: it knows which bytes
operations were given, not what they become on this backend. Here every one of its barriers is judged by the accesses
that are really made:

* the pairs that it parts are those of an access that can reach it and one that can be reached from it, on any path
  through branches and loops without another workgroup barrier, whose bytes overlap and of which one writes;
* RULES says what must stand between a pair: nothing, a subgroup barrier, or (everything that no rule knows) a workgroup
  barrier;
* the barrier becomes what the most demanding of its pairs needs.

Barriers are judged one after the other, each against those that are still there, so that every pair that needs a
workgroup barrier keeps one: at first membar's barriers, and the waits that it counts on (planning/barriers.py), part
every pair; a barrier goes only where no pair that it alone parts needs it. Those waits take part: an operation that
makes no access, lowered without any barrier, has to be made up for by one only where a pair needs it. What the user
wrote is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ..layouts.distributed import LANE, REGISTER, WARP
from ..layouts.gf2 import Span
from ..layouts.linear import LinearLayout
from ..ttgir.ir import Block, Function, Module, Operation
from ..ttgir.traits import TRAITS

BARRIER = "ttg.barrier"

#: The attribute of a barrier that membar inserted (see mark_inserted).
INSERTED = "inserted"


class Need(IntEnum):
    """What must stand between two accesses, in ascending order."""

    NOTHING = 0
    SUBGROUP = 1
    WORKGROUP = 2


@dataclass(frozen=True)
class Frame:
    """What the offsets of an access are counted in: elements of ``element_bytes`` from byte ``start``, before
    ``padding`` (see layouts.shared.SharedLayout)."""

    start: int
    element_bytes: int
    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Access:
    """A read or write of workgroup memory within bytes ``start`` … ``end`` - 1, by ``operation``.

    ``places``: (register, lane, warp) to the element offsets in ``frame``; None where any invocation may touch any of
    the bytes.
    """

    operation: Operation
    start: int
    end: int
    write: bool
    places: LinearLayout | None = None
    frame: Frame | None = None


@dataclass(frozen=True)
class Footprint:
    """What an operation does to workgroup memory that upstream allocated: the accesses ``before``, then if ``waits`` a
    wait of all invocations (planning/barriers.py), then those ``after``."""

    before: tuple[Access, ...] = ()
    waits: bool = False
    after: tuple[Access, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether there is no access."""
        return not self.before and not self.after


NO_ACCESS = Footprint()

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
BY_LAYOUT = tuple(name for name, row in TRAITS.items() if row.by_layout)

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
class _Node:
    """A place on the paths through a function: ``accesses``, or the barrier of ``operation``, which is as strong as
    ``state`` and may be weakened where ``open``."""

    accesses: tuple[Access, ...] = ()
    operation: Operation | None = None
    state: Need = Need.NOTHING
    open: bool = False
    following: list[_Node] = field(default_factory=list)
    previous: list[_Node] = field(default_factory=list)


class _Unstructured(Exception):
    """A region of several blocks: its paths are not known."""


class _Paths:
    """The paths through a function whose regions have one block each: nodes for what concerns workgroup memory."""

    def __init__(self, function: Function, footprint: Callable[[Operation], Footprint]) -> None:
        self._footprint = footprint
        self.waits: list[_Node] = []
        self.barriers: list[_Node] = []
        assert function.body is not None
        self._block(_only_block(function.body.blocks), _Node())

    def _after(self, *nodes: _Node, **what: object) -> _Node:
        made = _Node(**what)  # type: ignore[arg-type]
        for node in nodes:
            _connect(node, made)
        return made

    def _block(self, block: Block, last: _Node) -> _Node:
        for operation in block.operations:
            structure = _STRUCTURES.get(operation.name)
            if structure is not None:
                last = structure(self, operation, last)
            elif operation.name == BARRIER:
                last = self._after(
                    last, operation=operation, state=Need.WORKGROUP, open=INSERTED in operation.attributes
                )
                self.barriers.append(last)
            else:
                last = self._plain(self._footprint(operation), operation, last)
        return last

    def _plain(self, footprint: Footprint, operation: Operation, last: _Node) -> _Node:
        if footprint.before:
            last = self._after(last, accesses=footprint.before)
        if footprint.waits:
            last = self._after(last, operation=operation, state=Need.WORKGROUP, open=footprint.silent)
            self.waits.append(last)
        if footprint.after:
            last = self._after(last, accesses=footprint.after)
        return last

    def _if(self, operation: Operation, last: _Node) -> _Node:
        ends = [self._block(_only_block(region.blocks), last) for region in operation.regions if region.blocks]
        return self._after(*ends, *([last] if len(ends) < 2 else []))

    def _for(self, operation: Operation, last: _Node) -> _Node:
        head = self._after(last)
        _connect(self._block(_only_block(operation.regions[0].blocks), head), head)
        return head

    def _while(self, operation: Operation, last: _Node) -> _Node:
        before, after = (_only_block(region.blocks) for region in operation.regions)
        head = self._after(last)
        checked = self._block(before, head)
        _connect(self._block(after, checked), head)
        return checked


_STRUCTURES: dict[str, Callable[[_Paths, Operation, _Node], _Node]] = {
    "scf.if": _Paths._if,
    "scf.for": _Paths._for,
    "scf.while": _Paths._while,
}


def _only_block(blocks: list[Block]) -> Block:
    if len(blocks) != 1:
        raise _Unstructured
    return blocks[0]


def _connect(first: _Node, second: _Node) -> None:
    first.following.append(second)
    second.previous.append(first)


def _reached(start: _Node, backwards: bool) -> list[Access]:
    """The accesses that come next to ``start`` on some path, up to the nearest workgroup barriers."""
    found: list[Access] = []
    seen = {id(start)}
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


def _judge(node: _Node, rules: Mapping[tuple[str, str], Rule]) -> Need:
    need = Need.NOTHING
    later = _reached(node, backwards=False)
    for first in _reached(node, backwards=True) if later else []:
        for second in later:
            need = max(need, pair_need(first, second, rules))
            if need == Need.WORKGROUP:
                return need
    return need


def barrier_needs(
    function: Function, footprint: Callable[[Operation], Footprint], rules: Mapping[tuple[str, str], Rule] = RULES
) -> dict[Operation, Need]:
    """What each of membar's barriers in ``function``, and each wait that it counts on at a silent operation, has to be,
    where less than a workgroup barrier. Empty for a function with branches between blocks."""
    try:
        paths = _Paths(function, footprint)
    except _Unstructured:
        return {}
    weaker: dict[Operation, Need] = {}
    # Waits first: one that a barrier right before it stands for is then no reason to remove that barrier.
    for node in [*paths.waits, *paths.barriers]:
        if node.open:
            node.state = _judge(node, rules)
            if node.state != Need.WORKGROUP:
                assert node.operation is not None
                weaker[node.operation] = node.state
    return weaker


# -- whose barriers ----------------------------------------------------------------------------------------------
def mark_inserted(module: Module, inserted: frozenset[int]) -> None:
    """Gives those of a module's barriers whose numbers, in the order of its text, are in ``inserted`` the attribute
    that lets them be judged, and takes it from all others."""
    barriers = (
        inner
        for function in module.functions.values()
        if function.body is not None
        for block in function.body.blocks
        for operation in block.operations
        for inner in operation.walk()
        if inner.name == BARRIER
    )
    for number, operation in enumerate(barriers):
        operation.attributes.pop(INSERTED, None)
        if number in inserted and operation.attributes.get("addrSpace") == "local":
            operation.attributes[INSERTED] = True
