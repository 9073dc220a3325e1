"""Which kernel arguments a pointer may have come from: what an access through it is checked against.

A forward dataflow over the values of a structured function: the set of a pointer is the union of the sets of the
pointers that it may be made of, through arithmetic, selections, loops and branches. Sets are bit masks, so that the
least fixed point is reached after at most one step for each argument of the function and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ttgir.ir import Function, Operation, Value
from ..ttgir.operations import Effect, Pointers, definition_of
from .pointer_range import carried, is_pointer

#: Pointer → the numbers of the arguments that it may have come from; none for a pointer that may be from elsewhere.
Roots = dict[Value, tuple[int, ...]]

#: Operations whose results are pointers of their operands.
_MOVES = (Pointers.KEPT, Pointers.EXCHANGED)


def pointer_roots(function: Function) -> Roots:
    """Pointer → the numbers of the arguments that it may have come from, in order.

    A pointer that may have come from elsewhere (out of memory, from an integer) is not in it; none is where addresses
    are made integers, because offsets that are computed from them may lead from one tensor to another.
    """
    assert function.body is not None
    if any(operation.name == "tt.ptr_to_int" for operation in function.walk()):
        return {}
    arguments = function.body.entry.arguments
    unknown = 1 << len(arguments)
    roots = {argument: 1 << number for number, argument in enumerate(arguments) if is_pointer(argument)}
    targets: dict[Value, list[Value]] = {}
    for operation in function.walk():
        for source, target in _flows(operation):
            targets.setdefault(source, []).append(target)
        if _makes_pointers(operation):
            roots.update((result, unknown) for result in operation.results if is_pointer(result))
        if definition_of(operation).pointers is not Pointers.CARRIED:
            roots.update(
                (argument, unknown)
                for region in operation.regions
                for inner in region.blocks
                for argument in inner.arguments
                if is_pointer(argument)
            )
    pending = list(roots)
    while pending:
        source = pending.pop()
        found = roots[source]
        for target in targets.get(source, ()):
            before = roots.get(target, 0)
            if found | before != before:
                roots[target] = found | before
                pending.append(target)
    return {
        value: tuple(number for number in range(len(arguments)) if found >> number & 1)
        for value, found in roots.items()
        if found < unknown
    }


def accesses(function: Function) -> Iterable[Operation]:
    """The operations that access device memory, in program order."""
    return (operation for operation in function.walk() if definition_of(operation).pointers is Pointers.ACCESSED)


def accessed(operation: Operation) -> Value:
    """The pointer of such an operation."""
    return operation.operands[0]


def written_in(operations: Iterable[Operation]) -> Iterator[Value | None]:
    """The pointers that these operations, among which are those of regions, may write through; None where that is not
    known."""
    for operation in operations:
        known = definition_of(operation)
        if Effect.WRITES_GLOBAL in known.effects:
            yield accessed(operation) if known.pointers is Pointers.ACCESSED else None


def written_arguments(function: Function) -> list[int] | None:
    """The numbers of the arguments that the function may write through; None if it may write through a pointer of
    unknown origin, or in a way that is not known."""
    roots = pointer_roots(function)
    found = [pointer and roots.get(pointer) for pointer in written_in(function.walk())]
    return sorted({number for numbers in found for number in numbers or ()}) if all(found) else None


def _makes_pointers(operation: Operation) -> bool:
    """Whether the pointers that it gives are of unknown origin."""
    pointers = definition_of(operation).pointers
    if pointers in (Pointers.POISON, Pointers.CARRIED):
        return False
    return pointers not in _MOVES or not any(map(is_pointer, operation.operands))


def _flows(operation: Operation) -> Iterable[tuple[Value, Value]]:
    """(from, to): the pointers that ``operation`` passes on."""
    pointers = definition_of(operation).pointers
    if pointers in _MOVES:
        yield from (
            (operand, result)
            for operand in operation.operands
            if is_pointer(operand)
            for result in operation.results
            if is_pointer(result)
        )
    elif pointers is Pointers.CARRIED:
        for targets, sources in carried(operation):
            for source in sources:
                for target in targets:
                    yield from ((one, other) for one, other in zip(source, target, strict=True) if is_pointer(one))
