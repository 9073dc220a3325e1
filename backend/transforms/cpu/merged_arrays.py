"""Arrays that hold one tensor after the other become one array, so that nothing is copied from one to the other.

What is assigned to an array, or spilled into it, has often been collected from another one: then arrays are copied. Two
arrays of a type become one where neither is written while the other's elements are still to be read. A loop over strips
that reads one and writes the other, strip by strip, may write what it has read: it is one step here.

Arrays that nothing reads, and what is written to them, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ttgir.ir import Block, Function, Operation, Value
from ...ttgir.operations import definition_of
from ..rewriting import Rewriter, erase_unused
from ..strip_loops import MULTIPLY, ROLLED, ROUNDS
from .carried_arrays import in_array

#: %to ← %from, arrays of one type.
COPY = "spirv.copy"

_MAKES = ("spirv.array", "spirv.spill")
_WRITES = ("spirv.assign", "spirv.put", COPY, MULTIPLY, ROUNDS)


def merge_arrays(function: Function) -> bool:
    """Rewrites ``function`` in place. Whether it has arrays."""
    assert function.body is not None
    arrays = [operation.result for operation in function.walk() if operation.name in _MAKES]
    if not arrays:
        return False
    _copy_arrays(function)
    erase_unused([operation for operation in function.walk() if operation.name == "spirv.collect"])
    while _merge_one(function):
        pass
    _leave_out_unread(function)
    return True


def _copy_arrays(function: Function) -> None:
    """Copies arrays as wholes where what was collected from one is spilled or assigned: nothing has changed there in
    between (carried_arrays.py)."""
    for operation in list(function.walk()):
        if operation.name not in ("spirv.spill", "spirv.assign"):
            continue
        held = in_array(operation["value"])
        target = operation["array"] if operation.name == "spirv.assign" else operation.result
        if held is None or held.type != target.type or _dim_of(held) != _dim_of(target):
            continue
        rewriter = Rewriter.before(operation)
        if operation.name == "spirv.spill":
            target = rewriter.make("spirv.array", types=[target.type], attributes=operation.attributes).result
            operation.result.replace_uses(target)
        rewriter.make(COPY, [target, held])
        operation.erase()


def _dim_of(array: Value) -> int:
    assert isinstance(array.owner, Operation)
    return int(array.owner.attribute("dim"))


@dataclass(eq=False)
class _Step:
    """What an operation, or a loop over strips, does with arrays: those that it ``reads`` and ``writes``, as wholes or
    not (``whole``). What it writes may be one with what it reads, if nothing reads that behind it (``beside``), or
    even then, if both are the same behind it (``same``). ``live``: what is read behind it before it is written as a
    whole."""

    reads: set[Value] = field(default_factory=set)
    writes: set[Value] = field(default_factory=set)
    whole: bool = True
    beside: set[tuple[Value, Value]] = field(default_factory=set)
    same: tuple[Value, Value] | None = None
    live: set[Value] = field(default_factory=set)

    def keeps_apart(self, one: Value, other: Value) -> bool:
        """Whether two arrays cannot be one because of this step."""
        return self._overwrites(one, other) or self._overwrites(other, one)

    def _overwrites(self, written: Value, other: Value) -> bool:
        if written not in self.writes or (written, other) == self.same:
            return False
        read = other in self.reads and (written, other) not in self.beside
        return read or other in self.live or other in self.writes


def _step(operation: Operation) -> _Step | None:
    """None for what is no access of arrays by itself."""
    name = operation.name
    if name == "spirv.spill":
        return _Step(writes={operation.result})
    if name == "spirv.assign":
        return _Step(writes={operation["array"]})
    if name == COPY:
        array, value = operation["array"], operation["value"]
        return _Step({value}, {array}, same=(array, value))
    if name in ("spirv.collect", "spirv.strip"):
        return _Step(reads={operation["array"]})
    if name == "spirv.put":
        return _Step(writes={operation["array"]}, whole=False)
    if name == MULTIPLY:
        total, factors = operation["total"], {operation["left"], operation["right"]}
        return _Step(factors | {total} if operation.attribute("adds") else factors, {total})
    if name == ROUNDS:
        return _Step({operation["total"]}, {operation["total"]})
    if name == "scf.for" and operation.flag(ROLLED):
        return _rolled(operation)
    return None


def _rolled(loop: Operation) -> _Step | None:
    """A loop over strips as one step."""
    body = loop.regions[0].entry
    counter, step = body.arguments[0], _Step()
    inside = [(operation, _cut_of(operation, counter)) for operation in body.operations]
    for place, (operation, cut) in enumerate(inside):
        if cut is None:
            for found in filter(None, map(_step, operation.walk())):
                step.reads |= found.reads
                step.writes |= found.writes
                step.whole = False
        elif operation.name == "spirv.strip":
            step.reads.add(operation["array"])
        else:
            written = operation["array"]
            step.writes.add(written)
            taken: dict[Value, set[object]] = {}
            for at, (other, how) in enumerate(inside):
                if other.name == "spirv.strip":
                    taken.setdefault(other["array"], set()).add((how, at < place))
            step.beside |= {(written, array) for array, ways in taken.items() if ways == {(cut, True)}}
    if not step.whole:
        step.beside.clear()
    return step if step.reads or step.writes else None


def _cut_of(operation: Operation, counter: Value) -> tuple[object, ...] | None:
    """How an operation takes or puts the strip at the loop's ``counter``; None if it does neither."""
    if operation.name in ("spirv.strip", "spirv.put") and operation["at"] is counter:
        return operation.attribute("dim"), operation.attribute("strips"), operation.attribute("whole")
    return None


class _Liveness:
    """The steps of a function, each with what is live behind it."""

    def __init__(self, function: Function) -> None:
        assert function.body is not None
        self._steps: dict[Operation, _Step | None] = {}
        self._inside: dict[Operation, bool] = {}
        self._block(function.body.entry, set())

    def apart(self, one: Value, other: Value) -> bool:
        """Whether two arrays have to be two."""
        return any(step is not None and step.keeps_apart(one, other) for step in self._steps.values())

    def _block(self, block: Block, live: set[Value]) -> set[Value]:
        """What is live before a block, for what is live behind it."""
        for operation in reversed(block.operations):
            if operation not in self._steps:
                self._steps[operation] = _step(operation)
            step = self._steps[operation]
            if step is not None:
                step.live |= live
                live = (live - step.writes if step.whole else live) | step.reads
            elif operation.regions:
                live = self._regions(operation, live)
        return live

    def _regions(self, holder: Operation, behind: set[Value]) -> set[Value]:
        blocks = [region.entry for region in holder.regions if region.blocks]
        if not definition_of(holder).loop:
            skipped = behind if len(blocks) == 1 else set()
            return skipped.union(*(self._block(block, behind) for block in blocks))
        live = set(behind)
        while True:  # each region may follow each
            before = live.union(*(self._block(block, live) for block in blocks))
            if before == live:
                return live
            live = before


def _merge_one(function: Function) -> bool:
    """Makes one array of two, or leaves out a copy of an array to itself. Whether there was any to merge. Copies in
    loops come first."""
    copies = [operation for operation in function.walk() if operation.name == COPY]
    liveness = _Liveness(function)
    for copy in sorted(copies, key=lambda one: -len([*one.holders()])):
        target, source = copy.operands
        if target is source:
            copy.erase()
            return True
        if target.type == source.type and not liveness.apart(target, source):
            copy.erase()
            _replace(function, source, target)
            return True
    return False


def _replace(function: Function, array: Value, by: Value) -> None:
    """Makes one array what another was. Both are there from the start."""
    for one in (array, by):
        owner = one.owner
        assert isinstance(owner, Operation)
        if owner.name == "spirv.spill":
            made = Rewriter.before(owner).make("spirv.array", types=[one.type], attributes=owner.attributes).result
            Rewriter.before(owner).make("spirv.assign", [made, owner["value"]])
            one.replace_uses(made)
            owner.erase()
            array, by = made if one is array else array, made if one is by else by
    assert function.body is not None and isinstance(by.owner, Operation) and isinstance(array.owner, Operation)
    entry = function.body.entry
    if by.owner is not entry.operations[0]:
        Rewriter(entry, entry.operations[0]).move(by.owner)
    array.replace_uses(by)
    array.owner.erase()


def _leave_out_unread(function: Function) -> None:
    """Takes out arrays that nothing reads, with what is written to them."""
    for operation in list(function.walk()):
        if operation.name not in _MAKES:
            continue
        uses = list(operation.result.uses)
        if all(use.name in _WRITES and use.operands[0] is operation.result for use in uses):
            for use in uses:
                use.erase()
            operation.erase()
