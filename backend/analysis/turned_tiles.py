"""Loops that turn a tile around and carry it on: a transposition, or another change of its shape, on the way from one
iteration to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..ttgir.ir import Function, Operation, Region, Value
from ..ttgir.operations import OPERATIONS, Layouts, Pointers, definition_of
from ..ttgir.types import TensorType
from .pointer_range import carried

#: Operations whose operand and result cannot have one layout.
TURNS = frozenset(name for name, row in OPERATIONS.items() if row.layouts is Layouts.TURNED)

#: Operations that carry values from one iteration to the next.
LOOPS = frozenset(name for name, row in OPERATIONS.items() if row.loop)

#: Their results have a layout that does not depend on their operands'.
_ENDS = frozenset({"tt.dot", "tt.dot_scaled", "tt.atomic_rmw", "tt.atomic_cas"})


@dataclass(frozen=True)
class Yielded:
    """What a loop hands to its next iteration: the operand of that ``number`` of the ``scf.yield`` at its ``end``."""

    end: Operation
    number: int


#: Where a tensor is, and what is computed from it.
_Place: TypeAlias = Value | Yielded
_Ways: TypeAlias = dict[_Place, list[_Place]]


def turned_carried_tiles(function: Function) -> list[Yielded]:
    """What loops of ``function`` yield, so that every turn of a tile that is computed from the turn's own result of an
    iteration before has one in between: of the innermost loop that carries it."""
    turns = [] if function.body is None else list(_turns([function.body]))
    if not any(ends for _, ends in turns):
        return []
    found: list[Yielded] = []
    ways = _ways(function)
    cycles = _cycles(ways)
    for turn, ends in turns:
        while (own := cycles[turn.results[0]]) in {cycles[operand] for operand in turn.operands}:
            carrying = [place for place in ways if isinstance(place, Yielded) and cycles[place] == own]
            found.append(next(place for end in ends for place in carrying if place.end is end))
            del ways[found[-1]]
            cycles = _cycles(ways)
    return found


def _turns(
    regions: Iterable[Region], ends: tuple[Operation, ...] = ()
) -> Iterator[tuple[Operation, tuple[Operation, ...]]]:
    """Each of TURNS in ``regions``, with the ends of the loops that it is in, the innermost first."""
    for region in regions:
        for block in region.blocks:
            for operation in block.operations:
                if operation.name in TURNS:
                    yield operation, ends
                inside = (operation.regions[-1].entry.terminator, *ends) if operation.name in LOOPS else ends
                yield from _turns(operation.regions, inside)


def _ways(function: Function) -> _Ways:
    """Tensors, and what loops yield → what is computed from each."""
    ways: _Ways = {}

    def add(source: _Place, *results: _Place) -> None:
        ways.setdefault(source, []).extend(results)
        for result in results:
            ways.setdefault(result, [])

    for operation in function.walk():
        if definition_of(operation).pointers is Pointers.CARRIED:
            end = operation.regions[-1].entry.terminator if operation.name in LOOPS else None
            for groups, sources in carried(operation):
                for source in sources:
                    for number, (value, *targets) in enumerate(zip(source, *groups, strict=True)):
                        if not isinstance(value.type, TensorType):
                            continue
                        if end is not None and source is end.operands:
                            add(value, Yielded(end, number))
                            add(Yielded(end, number), *targets)
                        else:
                            add(value, *targets)
        elif operation.name not in _ENDS:
            for operand in operation.operands:
                if isinstance(operand.type, TensorType):
                    add(operand, *(result for result in operation.results if isinstance(result.type, TensorType)))
    return ways


def _cycles(ways: _Ways) -> dict[_Place, int]:
    """Place → a number. Two places have one number if each is computed from the other: the strongly connected
    components, as Kosaraju finds them."""
    back: _Ways = {place: [] for place in ways}
    for place, targets in ways.items():
        for target in targets:
            if target in back:
                back[target].append(place)
    seen: set[_Place] = set()
    order = [place for start in ways for place in _finished(start, ways, seen)]
    seen = set()
    return {place: number for number, start in enumerate(reversed(order)) for place in _finished(start, back, seen)}


def _finished(start: _Place, ways: _Ways, seen: set[_Place]) -> list[_Place]:
    """What is reached from ``start`` by way of nothing ``seen``, each behind all that is reached from it first."""
    if start in seen:
        return []
    seen.add(start)
    order, path = [], [(start, iter(ways[start]))]
    while path:
        place, targets = path[-1]
        target = next((one for one in targets if one in ways and one not in seen), None)
        if target is None:
            order.append(place)
            path.pop()
        else:
            seen.add(target)
            path.append((target, iter(ways[target])))
    return order
