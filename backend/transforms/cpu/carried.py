"""What loops and branches carry: taking values out of it."""

from __future__ import annotations

from collections.abc import Collection

from ...ttgir.ir import Operation, Value


def drop_carried(holder: Operation, numbers: Collection[int]) -> None:
    """Takes results out of an ``scf.for`` or ``scf.if``, by their ``numbers``, with what is carried for them. Nothing
    uses them, nor the arguments of a loop's body that stand for them."""
    loops = holder.name == "scf.for"
    for region in holder.regions:
        for block in region.blocks:
            block.terminator.drop_operands(numbers)
            if loops:
                block.arguments[:] = _kept(block.arguments, {1 + number for number in numbers})
    if loops:
        holder.drop_operands({3 + number for number in numbers})
    holder.results[:] = _kept(holder.results, numbers)


def drop_passed(loop: Operation, numbers: Collection[int]) -> None:
    """Takes operands out of an ``scf.while``, by their ``numbers``, with the arguments of its first region and what its
    second yields."""
    before, after = (region.entry for region in loop.regions)
    after.terminator.drop_operands(numbers)
    before.arguments[:] = _kept(before.arguments, numbers)
    loop.drop_operands(numbers)


def drop_conditional(loop: Operation, numbers: Collection[int]) -> None:
    """Takes results out of an ``scf.while``, by their ``numbers``, with the arguments of its second region and what its
    condition passes on."""
    before, after = (region.entry for region in loop.regions)
    before.terminator.drop_operands({1 + number for number in numbers})
    after.arguments[:] = _kept(after.arguments, numbers)
    loop.results[:] = _kept(loop.results, numbers)


def _kept(values: list[Value], numbers: Collection[int]) -> list[Value]:
    kept = [value for number, value in enumerate(values) if number not in numbers]
    assert not any(value.uses for number, value in enumerate(values) if number in numbers)
    for index, value in enumerate(kept):
        value.index = index
    return kept
