"""Loops and branches carry large tensors in arrays of the invocation's own (strip_loops.py), not in registers.

    %r = scf.for … iter_args(%t = %first)      →    %array = spirv.array
      …                                             spirv.assign %array, %first
      scf.yield %next                               scf.for …
                                                      %t = spirv.collect %array
                                                      …
                                                      spirv.assign %array, %next
                                                    %r = spirv.collect %array

Where a round passes on another of the tensors that it was given, that is put into an array of its own before anything
is assigned. Until merged_arrays.py has run, an array is written in one place, or at the ends of regions alone: what was
collected from it may be read from it until the region ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...analysis.pointer_range import is_pointer
from ...layouts.distributed import LayoutError
from ...layouts.strip_layouts import ROWS, register_count
from ...ttgir.ir import Block, Function, Operation, Value
from ...ttgir.types import TensorType
from ..rewriting import Rewriter
from .carried import drop_carried, drop_conditional, drop_passed

#: Registers of a tensor from which on it is carried in an array, and the same of what a product of tiles gives: what
#: is in an array already. More than a processor has vector registers for.
_LARGE, _TILES = 32, 8


def carry_arrays(function: Function) -> bool:
    """Rewrites ``function`` in place. Whether anything is carried in an array."""
    changed = False
    for holder in [one for one in function.walk() if one.name in _ROWS]:
        changed = _ROWS[holder.name](holder) or changed
    return changed


def in_array(value: Value) -> Value | None:
    """The array that holds a tensor's registers, where it was collected from one."""
    owner = value.owner
    return owner["array"] if isinstance(owner, Operation) and owner.name == "spirv.collect" else None


def collected(rewriter: Rewriter, array: Value) -> Value:
    """The tensor that an array holds."""
    return rewriter.make("spirv.collect", [array], [array.type], {"dim": ROWS}).result


def new_array(rewriter: Rewriter, type_: TensorType) -> Value:
    """An array for a tensor."""
    return rewriter.make("spirv.array", types=[type_], attributes={"dim": ROWS}).result


def spilled(rewriter: Rewriter, value: Value) -> Value:
    """A new array with a tensor's registers."""
    return rewriter.make("spirv.spill", [value], [value.type], {"dim": ROWS}).result


def _is_large(values: Iterable[Value]) -> bool:
    """Whether what is one of ``values`` at a time goes into an array."""
    values = list(values)
    type_ = values[0].type
    if not isinstance(type_, TensorType) or is_pointer(values[0]):
        return False
    tile = any(in_array(value) is not None for value in values)
    try:
        return register_count(type_) >= (_TILES if tile else _LARGE)
    except LayoutError:
        return False


def _assign(block: Block, arrays: dict[Value, Value], given: set[Value]) -> None:
    """At the end of ``block``, puts tensors into arrays. ``arrays``: array → tensor; ``given``: the arrays that tensors
    of the block were collected from which change here."""
    rewriter = Rewriter.before(block.terminator)
    kept = {
        array: collected(rewriter, spilled(rewriter, value))
        if (source := in_array(value)) in given and source is not array
        else value
        for array, value in arrays.items()
    }
    for array, value in kept.items():
        if in_array(value) is not array:
            rewriter.make("spirv.assign", [array, value])


def _collect(values: dict[Value, Value], rewriter: Rewriter) -> None:
    """Makes the users of tensors use what arrays hold. ``values``: array → tensor."""
    for array, value in values.items():
        if value.uses:
            value.replace_uses(collected(rewriter, array))


def _at_start(block: Block) -> Rewriter:
    return Rewriter(block, block.operations[0], block.operations[0].location)


def _for(loop: Operation) -> bool:
    body = loop.regions[0].entry
    large = [
        number
        for number, value in enumerate(body.arguments[1:])
        if _is_large((value, loop.operands[3 + number], body.terminator.operands[number]))
    ]
    before = Rewriter.before(loop)
    arrays = {number: new_array(before, body.arguments[1 + number].tensor) for number in large}
    for number, array in arrays.items():
        before.make("spirv.assign", [array, loop.operands[3 + number]])
    _collect({array: body.arguments[1 + number] for number, array in arrays.items()}, _at_start(body))
    following = {array: body.terminator.operands[number] for number, array in arrays.items()}
    _assign(body, following, set(arrays.values()))
    _collect({array: loop.results[number] for number, array in arrays.items()}, Rewriter.after(loop))
    drop_carried(loop, large)
    return bool(large)


def _if(branch: Operation) -> bool:
    blocks = [region.entry for region in branch.regions if region.blocks]
    large = [
        number
        for number, value in enumerate(branch.results)
        if _is_large((value, *(block.terminator.operands[number] for block in blocks)))
    ]
    before = Rewriter.before(branch)
    arrays = {number: new_array(before, branch.results[number].tensor) for number in large}
    for block in blocks:
        _assign(block, {array: block.terminator.operands[number] for number, array in arrays.items()}, set())
    _collect({array: branch.results[number] for number, array in arrays.items()}, Rewriter.after(branch))
    drop_carried(branch, large)
    return bool(large)


def _while(loop: Operation) -> bool:
    before, after = (region.entry for region in loop.regions)
    outside = Rewriter.before(loop)
    given = {
        number: new_array(outside, value.tensor)
        for number, value in enumerate(before.arguments)
        if _is_large((value, loop.operands[number], after.terminator.operands[number]))
    }
    passed = {
        number: new_array(outside, value.tensor)
        for number, value in enumerate(after.arguments)
        if _is_large((value, before.terminator.operands[1 + number]))
    }
    for number, array in given.items():
        outside.make("spirv.assign", [array, loop.operands[number]])
    _collect({array: before.arguments[number] for number, array in given.items()}, _at_start(before))
    _collect({array: after.arguments[number] for number, array in passed.items()}, _at_start(after))
    _collect({array: loop.results[number] for number, array in passed.items()}, Rewriter.after(loop))
    _assign(before, {array: before.terminator.operands[1 + number] for number, array in passed.items()}, set())
    _assign(after, {array: after.terminator.operands[number] for number, array in given.items()}, set(given.values()))
    drop_passed(loop, given)
    drop_conditional(loop, passed)
    return bool(given or passed)


_ROWS = {"scf.for": _for, "scf.if": _if, "scf.while": _while}
