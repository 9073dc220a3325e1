"""A loop over strips goes around the rounds that it is in, so that what they add up stays in registers.

    scf.for %k = … {                               scf.for %at = … {
      %x = tt.load …                                 %first = spirv.strip %total, %at
      scf.for %at = … {                              %last = scf.for %k = … iter_args(%t = %first) {
        %t = spirv.strip %total, %at      →            %x = tt.load …
        spirv.put %total, f(%t, %x), %at               scf.yield f(%t, %x)
      }                                              }
    }                                                spirv.put %total, %last, %at }

The rounds load, and write to no memory, so loads may change places. Those of a strip have to go on along their rows
from round to round: each strip then reads some rows from their beginning to their end, as a processor finds them ahead.
Tiles of 16 rows take one line of each in turn otherwise, and rows that are a power of two apart share a few sets of the
cache. Rounds that go from row to row stay outside: inside, strips would take the same pages one after the other.
"""

from __future__ import annotations

from ...analysis.places import constant
from ...layouts.strip_layouts import register_count
from ...ttgir.ir import Block, Function, Operation, Value
from ...ttgir.operations import Effect, definition_of
from ..rewriting import Rewriter
from ..strip_loops import ROLLED

#: Registers that a strip carries, at most.
_MOST = 16
#: Operations of arrays that change none.
_READS_ARRAYS = ("spirv.strip", "spirv.collect")
#: Operations whose result grows from round to round as their first operand does.
_KEEPS = ("tt.splat", "tt.broadcast", "tt.expand_dims", "ttg.convert_layout", "arith.extsi")


def put_rounds_inside(function: Function) -> bool:
    """Rewrites the loops of ``function`` in place. Whether there was one to rewrite."""
    loops = [one for one in function.walk() if one.name == "scf.for" and not one.flag(ROLLED)]
    return any([_rewrite(loop) for loop in loops])


def _rewrite(rounds: Operation) -> bool:
    body = rounds.regions[0].entry
    loops = [one for one in body.operations if one.regions]
    if len(loops) != 1 or not loops[0].flag(ROLLED) or loops[0].results or any(one.uses for one in rounds.results):
        return False
    strips = loops[0]
    inside = strips.regions[0].entry
    bounds = [bound for operand in strips.operands if (bound := constant(operand)) is not None]
    puts = {one["array"]: one for one in inside.operations if one.name == "spirv.put"}
    taken = [one for one in inside.operations if one.name == "spirv.strip" and one["array"] in puts]
    pure = [one for one in body.operations if one is not strips]
    pure += [one for one in inside.operations if one not in taken and one not in puts.values()]
    loads = [one for one in inside.operations if one.name == "tt.load"]
    if (
        not puts
        or len(bounds) < len(strips.operands)
        or any(not _only_reads(one) or not puts.keys().isdisjoint(one.operands) for one in pure)
        or len(taken) != len(puts)
        or any(_way(one) != _way(puts[one["array"]]) or one["at"] is not inside.arguments[0] for one in taken)
        or any(inside.operations.index(one) > inside.operations.index(puts[one["array"]]) for one in taken)
        or _registers(taken) > _MOST
        or not loads
        or not all(_goes_on(one, body) for one in loads)
    ):
        return False
    _exchange(rounds, strips, puts, taken, bounds)
    return True


def _exchange(
    rounds: Operation, strips: Operation, puts: dict[Value, Operation], taken: list[Operation], bounds: list[int]
) -> None:
    """Makes the new loops. As many strips as fit in registers share a round, and what it loads for all of them."""
    body, inside = rounds.regions[0].entry, strips.regions[0].entry
    first, last, step = bounds
    together = 1
    while 2 * together * _registers(taken) <= _MOST and (last - first) % (2 * together * step) == 0:
        together *= 2
    before = Rewriter.before(rounds)
    numbers = [before.integer(number) for number in (first, last, together * step)]
    _, outer = before.loop(numbers, [], {ROLLED: None})
    around = before.at_end(outer)
    places = [outer.arguments[0]]
    for number in range(1, together):
        apart = around.integer(number * step)
        places.append(around.make("arith.addi", [places[0], apart], [apart.type]).result)
    held = [around.copy(one, operands=[one["array"], place]).result for place in places for one in taken]
    loop, block = around.loop(rounds.operands[:3], [*rounds.operands[3:], *held], dict(rounds.attributes))
    inner, shared = around.at_end(block), dict(zip(body.arguments, block.arguments, strict=False))
    totals = iter(block.arguments[len(body.arguments) :])
    following = []
    for operation in body.operations[:-1]:
        if operation is not strips:
            inner.copy(operation, shared)
            continue
        for place in places:
            known = {**shared, inside.arguments[0]: place, **{one.result: next(totals) for one in taken}}
            for one in inside.operations[:-1]:
                if one not in taken and one not in puts.values():
                    inner.copy(one, known)
            following += [known.get(value, value) for value in (puts[one["array"]]["value"] for one in taken)]
    kept = [shared.get(value, value) for value in body.terminator.operands]
    inner.make("scf.yield", [*kept, *following])
    results = iter(loop.results[len(rounds.results) :])
    for place in places:
        for one in taken:
            around.copy(puts[one["array"]], operands=[one["array"], next(results), place])
    around.make("scf.yield")
    rounds.erase()


def _registers(taken: list[Operation]) -> int:
    return sum(register_count(one.result.tensor) for one in taken)


def _only_reads(operation: Operation) -> bool:
    """Whether it may run once for each strip: it writes to no memory and to no array."""
    if operation.name.startswith("spirv.") and operation.name not in _READS_ARRAYS:
        return False
    volatile = operation.name == "tt.load" and operation.attribute("isVolatile")
    return not (operation.regions or volatile or definition_of(operation).effects & ~Effect.READS_GLOBAL)


def _way(operation: Operation) -> tuple[object, ...]:
    return operation["at"], *(operation.attribute(name) for name in ("dim", "strips", "whole"))


def _goes_on(load: Operation, body: Block) -> bool:
    """Whether each round loads what follows in memory what the round before did, or less far."""
    growth = _growth(load["ptr"], body)
    return growth is not None and 0 <= growth <= load.result.tensor.shape[-1]


def _growth(value: Value, body: Block) -> int | None:
    """By how many elements a number or a pointer grows from one round to the next, if that is known now."""
    owner = value.owner
    if owner is body:
        if value.index == 0:
            assert body.holder is not None
            return constant(body.holder["step"])
        step = body.terminator.operands[value.index - 1].owner
        moves = isinstance(step, Operation) and step.name in ("arith.addi", "tt.addptr")
        first, by = step.operands if isinstance(step, Operation) and moves else (None, None)
        return constant(by) if first is value and by is not None else None
    if isinstance(owner, Block) or not body.holds(owner):
        return 0
    found = [_growth(operand, body) for operand in owner.operands]
    if owner.name in _KEEPS:
        return found[0]
    if owner.name in ("arith.addi", "tt.addptr"):
        return None if None in found else sum(one or 0 for one in found)
    return 0 if owner.name != "tt.load" and not any(one != 0 for one in found) else None
