"""Long element-by-element code in loops over strips of its tensors.

A lane that holds hundreds of a tensor's elements repeats the code of each operation as often, and some drivers compile
such code in more than linear time. Where loads, arithmetic and stores need nothing but each other, all of it goes into
one loop whose tensors are strips, cut where a lane's last registers begin: the loop's counter takes their place.

    tt.store %out + range(0, 131072), f(…)    →    for %at = 0 to 131072 step 4096:
                                                       tt.store %out + (%at + range(0, 4096)), f(…)

Tensors that come from elsewhere (a reduction, another layout, an iteration before) are read from an array of the
invocation's own, and those that are needed elsewhere are written to one (strip_loops.py).

What stays in order: loads and stores of one element, all barriers, atomic operations. Whatever else touches memory
between loads and stores ends a run. A later strip is loaded after an earlier one is stored, so accesses that may meet
(they come from one argument) must be at one pointer for each element, and at different pointers for different strips:
a tile that is reversed in place stays whole. A load goes past a barrier only where no store of the kernel may meet it.
Arguments that overlap, such as x[1:] and x[:-1], are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.places import distinct, elementwise, may_share, same_pointer
from ..analysis.pointer_range import is_pointer
from ..analysis.pointer_roots import pointer_roots
from ..layouts.distributed import LayoutError
from ..layouts.strips import cut_fits, register_count
from ..ttgir.ir import Block, DenseAttr, Function, Operation, Value
from ..ttgir.traits import Effect, Memory, traits
from ..ttgir.types import TensorType
from .strip_loops import Key, Run, roll

#: Accesses to memory → the group of their operands that the mask is; instructions of one under a mask, a branch of its
#: own.
_MASKS = {"tt.load": 1, "tt.store": 2}
_MASKED = 32

#: Operations without operands that are tensors.
_SOURCES = ("tt.splat", "tt.make_range", "arith.constant")

#: Arrays cost something themselves: they are worth it for code of more than so many budgets.
_ARRAYS = 2.25


class _NotCut(Exception):
    """A tensor that comes from what cannot be cut."""


def cut_in_strips(function: Function, budget: int) -> bool:
    """Rewrites every block of ``function`` in place. ``budget``: of instructions that are unrolled.
    Whether there was anything to rewrite."""
    assert function.body is not None
    blocks = [block for outer in function.body.blocks for block in _blocks(outer)]
    long = [block for block in blocks if _cost(block.operations) > budget]
    if not long:
        return False
    strips = _Strips(function, budget)
    return any([strips.cut(block) for block in long])


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for operation in block.operations:
        if not operation.name.startswith(("tt.reduce", "tt.scan", "tt.map_elementwise")):
            for region in operation.regions:
                for inner in region.blocks:
                    yield from _blocks(inner)


def _cost(operations: list[Operation]) -> int:
    """Instructions that operations take which could be in a loop, roughly."""
    total = 0
    for operation in operations:
        if not _may_be_cut(operation):
            continue
        type_, length = _sunk(operation).type, traits(operation).length
        if operation.name in _MASKS and operation.operand_group(_MASKS[operation.name]):
            length = _MASKED
        if length and isinstance(type_, TensorType):
            try:
                total += register_count(type_) * length
            except LayoutError:
                pass  # it is refused where it is lowered
    return total


def _may_be_cut(operation: Operation) -> bool:
    """Whether a strip of the operation's tensors is computed from strips of its operands."""
    name = operation.name
    if name == "tt.load":
        return not operation.attributes.get("isVolatile") and _is_tensor(operation.result)
    if name == "arith.constant":
        return isinstance(attribute := operation.attributes["value"], DenseAttr) and attribute.splat
    if name == "tt.store":
        return _is_tensor(operation.operands[0])
    return name in (*_SOURCES, "tt.expand_dims", "tt.trans", "tt.broadcast") or (
        not operation.regions and elementwise(operation)
    )


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def _ends_group(operation: Operation) -> bool:
    """Whether an operation other than loads and stores touches memory, or may do so in its regions."""
    row = traits(operation)
    return bool(row.effects) or (bool(operation.regions) and row.memory is Memory.NONE)


def _sunk(operation: Operation) -> Value:
    """A tensor of the shape that a sink is cut by."""
    return operation.results[0] if operation.results else operation.operands[0]


def _size(operation: Operation) -> int:
    type_ = _sunk(operation).type
    return type_.size if isinstance(type_, TensorType) else 1


class _Strips:
    """The rewriting of one function."""

    def __init__(self, function: Function, budget: int) -> None:
        assert function.body is not None
        self._budget = budget
        self._roots = pointer_roots(function)
        self._writes = [
            inner
            for block in function.body.blocks
            for operation in block.operations
            for inner in operation.walk()
            if Effect.WRITES_GLOBAL in traits(inner).effects
        ]
        self._indices: dict[Value, bool] = {}
        self._arrays: dict[Key, Value] = {}
        self._whole: set[Operation] = set()
        #: Operation → the number of its group, in the block that is rewritten.
        self._group: dict[Operation, int] = {}

    def cut(self, block: Block) -> bool:
        """Rewrites a block. Whether anything went into a loop."""
        self._arrays = {}
        self._whole = set()
        changed = False
        for sinks in self._groups(block):
            while sinks:
                # As many of one size in one loop as can be; each is otherwise the first of the next.
                first = _size(sinks[0])
                alike = next((place for place, sink in enumerate(sinks) if _size(sink) != first), len(sinks))
                count = next((count for count in range(alike, 0, -1) if self._cut_run(block, sinks[:count])), 0)
                changed = changed or count > 0
                if not count:
                    self._whole.update(self._traced(block, sinks[0]))
                sinks = sinks[max(count, 1) :]
        return changed

    def _groups(self, block: Block) -> list[list[Operation]]:
        """Stores, and operations whose results are needed by what cannot be cut, between which nothing else touches
        memory."""
        self._group = {}
        number = 0
        for operation in block.operations:
            number += not _may_be_cut(operation) and _ends_group(operation)
            self._group[operation] = number
        groups: dict[int, list[Operation]] = {}
        for operation in block.operations:
            if _may_be_cut(operation) and (operation.name == "tt.store" or self._needed(operation)):
                groups.setdefault(self._group[operation], []).append(operation)
        return list(groups.values())

    def _needed(self, operation: Operation) -> bool:
        """Whether something needs the results that is not in the operation's group, or cannot be cut."""
        return not self._is_index(operation.results[0]) and any(
            not _may_be_cut(use) or self._group.get(use) != self._group[operation]
            for result in operation.results
            for use in result.uses
        )

    def _is_index(self, value: Value) -> bool:
        """Whether a tensor is computed from scalars and ranges alone: cheap enough to be computed twice."""
        known = self._indices.get(value)
        if known is None:
            owner = value.owner
            known = self._indices[value] = (
                isinstance(owner, Operation)
                and owner.name != "tt.load"
                and _may_be_cut(owner)
                and traits(owner).length <= 2
                and all(self._is_index(operand) for operand in owner.operands if _is_tensor(operand))
            )
        return known

    # -- one loop --------------------------------------------------------------------------------------------------
    def _cut_run(self, block: Block, sinks: list[Operation]) -> bool:
        """Puts ``sinks`` and what they need into a loop, where that is long and can be cut."""
        shapes = {type_.shape for sink in sinks if isinstance(type_ := _sunk(sink).type, TensorType)}
        for dim in range(min(len(shape) for shape in shapes)):
            if len({shape[dim] for shape in shapes}) > 1:
                continue
            try:
                run, past_barriers = self._run(block, sinks, dim)
            except _NotCut:
                continue
            if self._strips(run) == 1 or self._reordered(run, dim):
                continue
            if any([self._cut_run(block, [load]) for load in past_barriers]):
                return self._cut_run(block, sinks) or True
            roll(block, run, self._strips(run), self._arrays)
            return True
        return False

    def _run(self, block: Block, sinks: list[Operation], dim: int) -> tuple[Run, list[Operation]]:
        """The run, and the loads that it does not have because they would go past a barrier. Raises _NotCut."""
        places = {operation: place for place, operation in enumerate(block.operations)}
        whole, past_barriers = set(self._whole), []
        while True:
            run = Run(sinks, [dim] * len(sinks))
            for sink in sinks:
                for value in sink.results or sink.operands:
                    self._trace(value, dim, run, whole)
            outside = self._outputs(block, run, places)
            outside += (barred := self._past_barriers(block, run, places))
            past_barriers += barred
            if not outside:
                break
            if not whole.isdisjoint(sinks) or any(operation in sinks for operation in outside):
                raise _NotCut
            whole.update(outside)
        if not self._movable(block, run, places):
            raise _NotCut
        return run, past_barriers

    def _traced(self, block: Block, sink: Operation) -> list[Operation]:
        """The operations that a sink is computed from, it included, apart from indices."""
        found: dict[Operation, None] = {}
        pending = [sink]
        while pending:
            operation = pending.pop()
            if operation in found or operation.block is not block or not _may_be_cut(operation):
                continue
            if operation.results and self._is_index(operation.results[0]):
                continue
            found[operation] = None
            pending += [value.owner for value in operation.operands if isinstance(value.owner, Operation)]
        return list(found)

    def _trace(self, value: Value, dim: int, run: Run, whole: set[Operation]) -> None:
        """Adds ``value``, cut along ``dim``, and all that it is computed from. Raises _NotCut."""
        type_, key = value.type, (value, dim)
        if not isinstance(type_, TensorType) or type_.shape[dim] == 1 or key in run.cut or key in run.inputs:
            return
        if any(other is value for other, _ in (*run.cut, *run.inputs)):
            raise _NotCut  # along two dimensions
        owner = value.owner
        inner = [dim]
        if (
            not isinstance(owner, Operation)
            or owner in whole
            or not _may_be_cut(owner)
            or not (self._group.get(owner) == self._group[run.sinks[-1]] or self._is_index(value))
        ):
            run.inputs[key] = None
            return
        run.cut[key] = None
        for result in owner.results:
            run.cut[result, dim] = None
        if owner.name in _SOURCES:
            return
        if owner.name == "tt.load":
            run.loads[owner] = None
        elif owner.name == "tt.expand_dims":
            inner = [dim - (owner.attributes["axis"] < dim)]
        elif owner.name == "tt.trans":
            inner = [owner.attributes["order"][dim]]
        for operand in owner.operands:
            self._trace(operand, inner[0], run, whole)

    def _outputs(self, block: Block, run: Run, places: dict[Operation, int]) -> list[Operation]:
        """Fills ``run.outputs``. The operations that have to stay outside, since what they give is needed before the
        loop's end, or is small."""
        inside = {operation for operation, _ in run.operations}
        largest, last = max(map(_size, run.sinks)), places[run.sinks[-1]]
        outside: list[Operation] = []
        run.outputs.clear()
        for value, dim in run.cut:
            owner = value.owner
            assert isinstance(owner, Operation)
            users = [use for use in value.uses if use not in inside]
            if not users or self._is_index(value):
                continue
            behind = all(_place(block, use, places) > last for use in users)
            assert isinstance(value.type, TensorType)
            if not behind or (value.type.size < largest and owner not in run.sinks) or is_pointer(value):
                outside.append(owner)
            else:
                run.outputs[value, dim] = None
        return outside

    def _past_barriers(self, block: Block, run: Run, places: dict[Operation, int]) -> list[Operation]:
        """The loads that would go past a barrier behind which somebody may write what they load."""
        last, found = places[run.sinks[-1]], []
        for load in run.loads:
            between = block.operations[places[load] + 1 : last]
            waits = any(
                traits(operation).memory is not Memory.NONE or Effect.WAITS in traits(operation).effects
                for operation in between
            )
            pointer = load.operands[0]
            if waits and any(
                not write.operands or may_share(pointer, write.operands[0], self._roots) for write in self._writes
            ):
                found.append(load)
        return found

    @staticmethod
    def _movable(block: Block, run: Run, places: dict[Operation, int]) -> bool:
        """Whether loads and stores may move down to the last sink: nothing that touches memory is passed."""
        inside = {operation for operation, _ in run.operations}
        last = places[run.sinks[-1]]
        first_store = min([places[store] for store in run.stores], default=last)
        if any(places[load] > first_store for load in run.loads):
            return False
        first = min([places[load] for load in run.loads], default=first_store)
        return all(
            operation in inside
            or not traits(operation).effects & ~Effect.READS_GLOBAL
            and (place < first_store or not traits(operation).effects)
            for place, operation in enumerate(block.operations[first:last], first)
        )

    def _reordered(self, run: Run, dim: int) -> bool:
        """Whether an element that one strip stores may be one that another strip loads or stores."""
        stored = [store.operands[0] for store in run.stores]
        pointers = [*(load.operands[0] for load in run.loads), *stored]
        return any(
            place != len(run.loads) + number
            and may_share(pointer, other, self._roots)
            and not (same_pointer(pointer, other) and distinct(pointer, dim))
            for number, pointer in enumerate(stored)
            for place, other in enumerate(pointers)
        )

    def _strips(self, run: Run) -> int:
        """As few as bring the loop's body within the budget, a power of two; fewer where the layouts allow no more."""
        cost = _cost([operation for operation, _ in run.operations])
        strips = 1
        if (run.inputs or run.outputs) and cost <= _ARRAYS * self._budget:
            return strips
        while cost > self._budget * strips and all(_fits(value, dim, 2 * strips) for value, dim in _cut_values(run)):
            strips *= 2
        return strips


def _place(block: Block, operation: Operation, places: dict[Operation, int]) -> int:
    """The place in ``block`` of an operation in it, or of the one in whose region it is."""
    while operation.block is not block:
        assert operation.block is not None and operation.block.parent is not None
        owner = operation.block.parent.parent
        assert owner is not None
        operation = owner
    return places[operation]


def _cut_values(run: Run) -> list[Key]:
    stored = [
        (operand, dim)
        for sink, dim in zip(run.sinks, run.dims, strict=True)
        if not sink.results
        for operand in sink.operands
        if _is_tensor(operand)
    ]
    return [*run.cut, *run.inputs, *stored]


def _fits(value: Value, dim: int, strips: int) -> bool:
    assert isinstance(value.type, TensorType)
    return cut_fits(value.type, dim, strips)
