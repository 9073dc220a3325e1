"""Which integers are not negative, as signed numbers.

Program ids, ranges, constants and the counters of loops from 0 on are not, nor is what is computed of such numbers. Two
things are assumed, because nothing in a kernel shows them (docs/assumptions.md): a sum, a product or a shift of numbers
that are not negative does not wrap around, and what such a number is divided by, and is no constant, is not negative.
Arguments, numbers from memory and differences may be negative, unless ``tl.assume`` says that they are not.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ttgir.ir import Block, DenseAttr, Operation, Value
from ..places import constant
from ..pointer_range import carried
from .info import only_filled_once, width_of

#: Operations whose result is not negative if no operand is.
_OF_ALL = frozenset(
    {"arith.addi", "arith.muli", "arith.ori", "arith.xori", "arith.minsi", "arith.maxui", "arith.ceildivsi"}
    | {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.join", "tt.cat", "tt.split"}
    | {"tt.unsplat", "ttg.convert_layout", "spirv.strip"}
)
#: Those whose result is not negative if one operand is not.
_OF_ONE = frozenset({"arith.andi", "arith.maxsi", "arith.minui"})
#: Those whose result has the sign of the first operand, or is 0.
_OF_FIRST = frozenset({"arith.remsi", "arith.shli", "arith.shrsi", "arith.shrui", "tt.gather"})
_ALWAYS = frozenset({"tt.get_program_id", "tt.get_num_programs", "tt.make_range", "tt.histogram"})


def never_negative(value: Value) -> bool:
    """Whether no element of ``value``, an integer or a tensor of integers, is negative, under the assumptions above."""
    return _proven([value], set())


def _proven(values: Iterable[Value], assumed: set[Value]) -> bool:
    """Whether no value is negative. ``assumed`` has what the proof is about already: of what goes round a loop, that it
    follows from itself is enough."""
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in assumed:
            continue
        assumed.add(value)
        if _promised(value):
            continue
        needed = _needed(value, assumed)
        if needed is None:
            return False
        pending += needed
    return True


def _needed(value: Value, assumed: set[Value]) -> list[Value] | None:
    """The values of which none must be negative so that ``value`` is not; None where that is not known."""
    owner = value.owner
    if isinstance(owner, Block) or owner.regions:
        return _around(value)
    name, operands = owner.name, owner.operands
    if name in _ALWAYS:
        return []
    if name in _OF_ALL:
        return operands
    if name in _OF_FIRST:
        return operands[:1]
    if name in _OF_ONE:
        return [] if any(_proven([one], set(assumed)) for one in operands) else None
    if name == "spirv.spill":
        return operands if only_filled_once(value) else None
    if name == "arith.constant":
        return [] if _is_natural(owner) else None
    if name in ("arith.divsi", "arith.floordivsi"):
        divisor = constant(operands[1])
        return None if divisor is not None and divisor < 0 else operands[:1]
    if name in ("arith.divui", "arith.remui"):
        divisor = constant(operands[1])
        least = 2 if name == "arith.divui" else 1
        return [] if divisor is not None and divisor >= least else operands[:1]
    if name == "arith.select":
        return operands[1:]
    if name in ("arith.extsi", "arith.index_cast"):
        return operands if width_of(operands[0].type) > 1 else None
    if name == "arith.extui":
        return []
    return None


def _is_natural(operation: Operation) -> bool:
    value = operation.attribute("value")
    numbers = value.values if isinstance(value, DenseAttr) else (value,)
    return all(isinstance(number, int) and number >= 0 for number in numbers)


def _around(value: Value) -> list[Value] | None:
    """What a value of a loop or a branch may be."""
    owner = value.owner
    holder = owner.holder if isinstance(owner, Block) else owner
    if holder is None or holder.name not in ("scf.for", "scf.while", "scf.if"):
        return None
    if holder.name == "scf.for" and value is holder.regions[0].entry.arguments[0]:
        return None if holder.flag("unsignedCmp") else holder.operands[:1]
    sources: list[Value] = []
    for targets, lists in carried(holder):
        for target in targets:
            place = next((place for place, one in enumerate(target) if one is value), None)
            if place is not None:
                sources += [values[place] for values in lists]
    return sources or None


def _promised(value: Value) -> bool:
    """Whether a ``tl.assume`` says of a number that it is not negative: ``x >= 0`` or ``x > -1``, or by more."""
    return any(_says_natural(use, value) for use in value.uses if use.name == "arith.cmpi")


def _says_natural(compare: Operation, value: Value) -> bool:
    if not any(use.name == "llvm.intr.assume" and use.holder is None for use in compare.result.uses):
        return False  # what is promised in a branch may hold there alone
    predicate = compare.attribute("predicate")
    turned = {"sle": "sge", "slt": "sgt"}
    left, right = compare.operands
    if left is not value:
        left, right, predicate = right, left, turned.get(predicate, "")
    bound = constant(right)
    return bound is not None and bound >= {"sge": 0, "sgt": -1}.get(predicate, 1 << 64)
