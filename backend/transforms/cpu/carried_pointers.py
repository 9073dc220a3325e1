"""A tensor of pointers that a loop moves by the same distance everywhere becomes one number that the loop carries.

scf.for … iter_args(%p = %first)          →    scf.for … iter_args(%moved = 0)
  …                                              %p = tt.addptr %first, tt.splat %moved
  scf.yield tt.addptr %p, tt.splat %step         scf.yield %moved + %step
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.places import constant
from ...analysis.pointer_range import is_pointer
from ...ttgir.ir import Block, Function, Operation, Value
from ...ttgir.type_reader import PLAIN_TYPES
from ...ttgir.types import TensorType
from ..rewriting import Rewriter, erase_unused
from .carried import drop_carried

_I64 = PLAIN_TYPES["i64"]


def carry_offsets(function: Function) -> bool:
    """Rewrites every ``scf.for`` of ``function`` in place. Whether any carries fewer tensors."""
    changed = False
    for loop in [operation for operation in function.walk() if operation.name == "scf.for"]:
        body = loop.regions[0].entry
        for number, carried in reversed([*enumerate(body.arguments[1:])]):
            step = body.terminator.operands[number].owner
            if (
                isinstance(carried.type, TensorType)
                and is_pointer(carried)
                and isinstance(step, Operation)
                and step.name == "tt.addptr"
                and step["ptr"] is carried
                and step.block is body
            ):
                changed = _carry_offset(loop, number, step) or changed
    return changed


def _carry_offset(loop: Operation, number: int, step: Operation) -> bool:
    body = loop.regions[0].entry
    carried, first, yielding = body.arguments[1 + number], loop.operands[3 + number], body.terminator
    distance = step["offset"]
    owner, known = distance.owner, constant(distance)
    before = Rewriter.before(yielding)
    if known is not None:
        moved_by = Rewriter.before(loop).integer(known, _I64)
    elif isinstance(owner, Operation) and owner.name == "tt.splat":
        moved_by = owner["src"]
        if moved_by.type != _I64:
            inside = _is_inside(moved_by, body)
            moved_by = (before if inside else Rewriter.before(loop)).make("arith.extsi", [moved_by], [_I64]).result
    else:
        return False

    def pointers(rewriter: Rewriter, moved: Value) -> Value:
        offsets = rewriter.make("tt.splat", [moved], [replace(carried.tensor, element=_I64)]).result
        return rewriter.make("tt.addptr", [first, offsets], [carried.type]).result

    moved = Value(_I64, body, len(body.arguments))
    body.arguments.append(moved)
    yielding.add_operand(before.make("arith.addi", [moved, moved_by], [_I64]).result)
    loop.add_operand(Rewriter.before(loop).integer(0, _I64))
    loop.results.append(Value(_I64, loop, len(loop.results)))
    carried.replace_uses(pointers(Rewriter(body, body.operations[0], loop.location), moved))
    if loop.results[number].uses:
        loop.results[number].replace_uses(pointers(Rewriter.after(loop), loop.results[-1]))
    drop_carried(loop, {number})
    erase_unused([step])
    return True


def _is_inside(value: Value, body: Block) -> bool:
    """Whether a value is made in a loop's body."""
    owner = value.owner
    return owner is body if isinstance(owner, Block) else body.holds(owner)
