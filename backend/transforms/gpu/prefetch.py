"""Loads the next iteration's dot operands before the current iteration computes with its own.

Without it each iteration of a matrix product waits for device memory, stores to shared memory, waits at a barrier and
computes, one after the other. Here the loaded tiles become values that the loop carries: iteration i starts the loads
of iteration i + 1, computes, and only then needs them. The last iteration loads its own tiles once more, because loads
in a branch of their own cost more: products of float16 take 1.13 to 1.19 times as long with them on an H100. On some
drivers they start ``behind`` the barrier after which
this iteration's tiles are in shared memory, and take their registers: before the first dot behind their buffers
(analysis/barriers.py). Elsewhere they start where the loads were, which takes more registers and leaves more time.

A load qualifies where it can be repeated ahead of time: its address and mask are pure functions of the loop's carried
values, and nothing in the loop writes to device memory. It is worth it for what goes to shared memory, as it is or
through elementwise operations, and for what takes few registers.

Loops of one stage (``num_stages`` of the launch, or of ``tl.range``) are left as they are. More stages than two change
nothing: the next tiles are in registers, and the tiles of one more iteration would take too many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...analysis.barriers import AHEAD, BARRIER
from ...analysis.overwriting import orders_device_memory
from ...layouts.strip_layouts import register_count
from ...ttgir.ir import Block, DenseAttr, Function, Operation, Value
from ...ttgir.operations import TOUCHES_SHARED, Effect, Pointers, definition_of
from ...ttgir.types import IntegerType, TensorType, Type
from ..rewriting import Rewriter, carry, erase_unused

BOOL = IntegerType(1)
#: Effects that a loop may have whose loads are moved ahead of time.
_ALLOWED = Effect.READS_GLOBAL | TOUCHES_SHARED
#: Attribute of an scf.if that is hardly ever entered, reads no device memory, and gives its tensors on otherwise.
RARE = "spirv.rare"
#: Registers of a load that is worth it whatever it is for.
FEW_REGISTERS = 4


def prefetch_dot_operands(function: Function, stages: int = 2, behind: bool = False) -> bool:
    """Rewrites every qualifying ``scf.for`` of ``function`` in place. ``stages``: of loops that do not say.
    Whether any load was moved."""
    changed = False
    for loop in prefetched_loops(function, stages):
        for load in [operation for operation in loop.regions[0].entry.operations if _is_worth_it(operation)]:
            changed = _prefetch(loop, load, behind) or changed
    return changed


def prefetched_loops(function: Function, stages: int) -> list[Operation]:
    """The loops whose loads may be moved ahead: those with dots, of two stages or more, that write nothing."""
    return [
        loop
        for loop in function.walk()
        if loop.name == "scf.for"
        and int(stages if (own := loop.attribute("tt.num_stages")) is None else own) >= 2
        and any(operation.name == "tt.dot" for operation in loop.regions[0].entry.operations)
        and _only_reads(loop.regions[0].entry)
    ]


def _only_reads(body: Block) -> bool:
    """Whether nothing in the body writes to device memory or waits for it; a body with loops and branches of its own
    is left as it is, but for those that are RARE."""
    return all(
        (definition_of(inner).pointers is not Pointers.CARRIED or inner.flag(RARE))
        and (
            not definition_of(inner).effects & ~_ALLOWED or (inner.name == BARRIER and not orders_device_memory(inner))
        )
        for operation in body.operations
        for inner in operation.walk()
    )


def _is_worth_it(operation: Operation) -> bool:
    """Whether an operation is a plain load whose value goes to shared memory and nowhere else, or is small."""
    if operation.name != "tt.load" or operation.attribute("isVolatile"):
        return False
    type_ = operation.result.type
    if not isinstance(type_, TensorType) or type_.encoding is None or not operation.result.uses:
        return False
    return _goes_to_buffers(operation.result) or register_count(type_) <= FEW_REGISTERS


def _goes_to_buffers(value: Value) -> bool:
    """Whether all that is computed of a value is stored to shared memory, or voted on."""
    return bool(value.uses) and all(
        use.name in ("ttg.local_alloc", "spirv.beyond_halves")
        or _is_rare(use)
        or (definition_of(use).elementwise and all(map(_goes_to_buffers, use.results)))
        for use in value.uses
    )


def _is_rare(use: Operation) -> bool:
    """Whether a use is in a branch that is RARE."""
    return use.holder is not None and use.holder.flag(RARE)


@dataclass
class _Cloner:
    """Repeats pure operations of a loop's body with its carried values replaced. ``made`` are the copies in order."""

    body: Block
    known: dict[Value, Value]
    made: list[Operation] = field(default_factory=list)

    def value(self, value: Value) -> Value | None:
        """The copy of ``value``; None where it depends on something that cannot be repeated."""
        if value in self.known:
            return self.known[value]
        owner = value.owner
        if not isinstance(owner, Operation) or owner.block is not self.body:
            # Defined outside the loop: the same value. An argument of the body is in ``known``.
            return value
        if not definition_of(owner).repeatable or owner.regions:
            return None
        copy = self.operation(owner)
        if copy is None:
            return None
        for old, new in zip(owner.results, copy.results, strict=True):
            self.known[old] = new
        return self.known[value]

    def operation(self, operation: Operation) -> Operation | None:
        """The copy of an operation."""
        operands: list[Value] = []
        for operand in operation.operands:
            copied = self.value(operand)
            if copied is None:
                return None
            operands.append(copied)
        return self.make(
            operation.name,
            operands,
            [result.type for result in operation.results],
            dict(operation.attributes),
            operation,
            operation.segments,
        )

    def make(
        self,
        name: str,
        operands: list[Value],
        types: list[Type],
        attributes: dict[str, object],
        like: Operation,
        segments: tuple[int, ...] = (),
    ) -> Operation:
        """A new operation at the location of ``like``."""
        segments = segments or (1,) * len(operands)
        self.made.append(Operation.make(name, operands, types, attributes, segments, location=like.location))
        return self.made[-1]


def is_repeatable(load: Operation, body: Block) -> bool:
    """Whether the address and mask of a load in ``body`` are pure functions of what comes from outside, so that it may
    be loaded ahead."""
    cloner = _Cloner(body, {argument: argument for argument in body.arguments})
    copied = cloner.operation(load) is not None
    for operation in cloner.made:
        operation.drop_uses()
    return copied


def _guarded_load(cloner: _Cloner, load: Operation, position: Value, bound: Value, predicate: str) -> Operation | None:
    """A copy of ``load`` that reads nothing unless ``position`` is below ``bound``."""
    copy = cloner.operation(load)
    if copy is None:
        return None
    cloner.made.pop().drop_uses()
    result = load.result.tensor
    mask_type = TensorType(result.shape, BOOL, result.encoding)
    inside = cloner.make("arith.cmpi", [position, bound], [BOOL], {"predicate": predicate}, load).result
    mask = cloner.make("tt.splat", [inside], [mask_type], {}, load).result
    pointer, old_mask, other = (copy.operand_group(name) for name in ("ptr", "mask", "other"))
    if old_mask:
        mask = cloner.make("arith.andi", [old_mask[0], mask], [mask_type], {}, load).result
    return cloner.make("tt.load", [*pointer, mask, *other], [result], dict(load.attributes), load, (1, 1, len(other)))


def _prefetch(loop: Operation, load: Operation, behind: bool) -> bool:
    """Moves ``load`` one iteration ahead. Returns whether it could be."""
    lower, upper, step, *initial = loop.operands
    body = loop.regions[0].entry
    induction, *carried = body.arguments
    terminator = body.terminator
    predicate = "ult" if loop.flag("unsignedCmp") else "slt"
    if loop.block is None:
        return False

    # The first iteration's load, before the loop.
    first = _Cloner(body, {induction: lower, **dict(zip(carried, initial, strict=True))})
    early = _guarded_load(first, load, lower, upper, predicate)
    # The next iteration's load, where this one's was.
    now = _Cloner(body, {})
    following = now.make("arith.addi", [induction, step], [induction.type], {}, load).result
    yields: dict[Value, Value] = {induction: following}
    for argument, value in zip(carried, terminator.operands, strict=True):
        yields[argument] = value
    # A yielded value is computed later in the body; what of it is needed is repeated here with today's values.
    today = _Cloner(body, {argument: argument for argument in body.arguments}, now.made)
    ahead = _Cloner(body, {}, now.made)
    # The counter is below the bound here, and their distance fits where the next counter may wrap around.
    left = now.make("arith.subi", [upper, induction], [induction.type], {}, load).result
    inside = now.make("arith.cmpi", [left, step], [BOOL], {"predicate": "ugt"}, load).result
    late: Operation | None = None
    for argument in _arguments_used(body, load):
        tomorrow = following if argument is induction else today.value(yields[argument])
        if tomorrow is None:
            break
        ahead.known[argument] = _if_inside(now, inside, tomorrow, argument, load)
    else:
        late = ahead.operation(load)
    if early is None or late is None:
        for operation in (*first.made, *now.made):
            operation.drop_uses()
        return False

    Rewriter.before(loop).insert(first.made)
    reader = _first_dot(load.result, body) if behind else None
    if reader is not None:
        late.set_flag(AHEAD)
    Rewriter.before(reader or load).insert(now.made)
    old = list(terminator.operands)
    terminator.set_operands(
        # What nothing uses after the loop may be the last iteration's own.
        [
            value if result.uses else ahead.known.get(argument, value)
            for argument, value, result in zip(carried, old, loop.results, strict=True)
        ]
    )
    load.result.replace_uses(carry(loop, early.result, late.result))
    load.erase()
    replaced = {value.owner for value in old if isinstance(value.owner, Operation) and value.owner.block is body}
    erase_unused([*now.made, *(one for one in replaced if definition_of(one).repeatable)])
    return True


def _if_inside(cloner: _Cloner, inside: Value, tomorrow: Value, today: Value, load: Operation) -> Value:
    """``tomorrow`` or ``today``, which carries it. Where every iteration adds the same, what is added is chosen: a
    number for all pointers of a tensor."""
    owner = tomorrow.owner
    if isinstance(owner, Operation) and owner.name in ("tt.addptr", "arith.addi") and owner.operands[0] is today:
        step = owner.operands[1]
        zero: Any = DenseAttr(step.type, (0,), True) if isinstance(step.type, TensorType) else 0
        nothing = cloner.make("arith.constant", [], [step.type], {"value": zero}, load).result
        chosen = cloner.make("arith.select", [inside, step, nothing], [step.type], {}, load).result
        return cloner.make(owner.name, [today, chosen], [today.type], dict(owner.attributes), owner).result
    return cloner.make("arith.select", [inside, tomorrow, today], [today.type], {}, load).result


def _first_dot(value: Value, body: Block) -> Operation | None:
    """The first dot of a loop's body behind the buffers that what comes of ``value`` is stored to, or the first that
    multiplies it. None if no dot does."""
    reached, pending = set(value.uses), list(value.uses)
    while pending:
        new = [use for result in pending.pop().results for use in result.uses if use not in reached]
        reached.update(new)
        pending += new
    if not any(one.name == "tt.dot" and one in reached for one in body.operations):
        return None
    stored = [place for place, one in enumerate(body.operations) if one.name == "ttg.local_alloc" and one in reached]
    rest = body.operations[stored[-1] + 1 if stored else 0 :]
    return next((one for one in rest if one.name == "tt.dot" and (stored or one in reached)), None)


def _arguments_used(body: Block, load: Operation) -> list[Value]:
    """The block arguments that the operands of ``load`` depend on."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    pending = list(load.operands)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.owner is body:
            found[value] = None
        elif isinstance(value.owner, Operation) and value.owner.block is body:
            pending += value.owner.operands
    return list(found)
