"""What every module is, whatever has rewritten it: values are defined before they are used and know their users,
blocks and regions know what holds them, operations have the operands, types and encodings that they need.

``verify`` runs behind each rewrite where ``TRITON_SPIRV_VERIFY`` is set, as tests do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..errors import LoweringError
from ..ttgir.ir import Block, Function, Module, Operation, Region, Value
from ..ttgir.operations import End, definition_of
from ..ttgir.verify import call_faults, end_faults
from .type_rules import encoding_faults, type_faults


class InvalidTTGIR(LoweringError):
    """A module that a rewrite has left in pieces, or that does not mean anything."""


def verify(module: Module, after: str = "") -> None:
    """Raises InvalidTTGIR with the first fault of ``module``. ``after``: the rewrite that made it."""
    for operation, fault in _faults(module):
        place = f"{operation.location}: '{operation.name}': " if operation is not None else ""
        raise InvalidTTGIR(f"{place}{fault}" + (f", after the rewrite “{after}”" if after else ""))


def _faults(module: Module) -> Iterator[tuple[Operation | None, str]]:
    shape = (module.attribute("ttg.threads-per-warp"), module.attribute("ttg.num-warps"))
    for function in module.functions.values():
        if function.body is None:
            continue
        yield from _links(function)
        yield from _visible(function.body, set(), None)
        for operation in function.walk():
            faults = [*type_faults(operation), *encoding_faults(operation, shape)]
            if definition_of(operation).end is not End.NOT:
                faults += end_faults(operation, function)
            if operation.name == "tt.call":
                faults += call_faults(operation, module)
            yield from ((operation, fault) for fault in faults)


def _links(function: Function) -> Iterator[tuple[Operation | None, str]]:
    """Faults in what values, operations, blocks and regions know of each other."""
    assert function.body is not None
    used: dict[Value, Counter[Operation]] = {}
    for operation in function.walk():
        for operand in operation.operands:
            used.setdefault(operand, Counter())[operation] += 1
        if sum(operation.segments) != len(operation.operands):
            yield operation, f"segments {operation.segments} of {len(operation.operands)} operands"
        if any(region.parent is not operation for region in operation.regions):
            yield operation, "a region of it belongs to another operation"
        if any(value.owner is not operation or value.index != i for i, value in enumerate(operation.results)):
            yield operation, "a result of it belongs to something else"
    regions = [function.body, *(region for operation in function.walk() for region in operation.regions)]
    for block in (block for region in regions for block in region.blocks):
        if any(operation.block is not block for operation in block.operations):
            yield None, f"an operation of a block of @{function.name} belongs to another block"
        if any(value.owner is not block or value.index != i for i, value in enumerate(block.arguments)):
            yield None, f"an argument of a block of @{function.name} belongs to something else"
        ends = [operation for operation in block.operations if definition_of(operation).end is not End.NOT]
        if ends[:-1] or (ends and ends[-1] is not block.operations[-1]):
            yield ends[0], "it is not at the end of its block"
    if any(block.parent is not region for region in regions for block in region.blocks):
        yield None, f"a block of @{function.name} belongs to another region"
    for value in function.body.values():
        if Counter(value.uses) != used.pop(value, Counter()):
            owner = value.owner if isinstance(value.owner, Operation) else None
            yield owner, "the users that a value of it knows are not those that it has"
    for users in used.values():
        yield next(iter(users)), "an operand of it is not defined in the function"


def _visible(region: Region, known: set[Value], owner: Operation | None) -> Iterator[tuple[Operation | None, str]]:
    """Faults of operations that use what is not defined before them; ``known``: what is, around ``region``."""
    before = _dominated(region.blocks)
    for block in region.blocks:
        if block not in before:
            continue  # it is never reached
        here = {value for above in before[block] for value in _defined(above)} | {*block.arguments}
        seen = known | here
        for operation in block.operations:
            if any(operand not in seen for operand in operation.operands):
                yield operation, "it uses a value that is not defined before it"
            for inner in operation.regions:
                yield from _visible(inner, seen, operation)
            seen.update(operation.results)


def _defined(block: Block) -> Iterator[Value]:
    yield from block.arguments
    for operation in block.operations:
        yield from operation.results


def _dominated(blocks: Sequence[Block]) -> dict[Block, set[Block]]:
    """Block → the other blocks that every way to it passes, for those that can be reached."""
    if not blocks:
        return {}
    reached, pending = {blocks[0]}, [blocks[0]]
    sources: dict[Block, set[Block]] = {blocks[0]: set()}
    while pending:
        block = pending.pop()
        for successor in block.operations[-1].successors if block.operations else ():
            sources.setdefault(successor.block, set()).add(block)
            if successor.block not in reached:
                reached.add(successor.block)
                pending.append(successor.block)
    found = {block: set(reached) for block in reached}
    found[blocks[0]] = {blocks[0]}
    changed = True
    while changed:
        changed = False
        for block in reached - {blocks[0]}:
            new = set.intersection(*(found[source] for source in sources[block])) | {block}
            changed = changed or new != found[block]
            found[block] = new
    return {block: ways - {block} for block, ways in found.items()}
