"""Long element-by-element code in loops over strips of its tensors.

A lane that holds hundreds of a tensor's elements repeats the code of each operation as often, and some drivers compile
such code in more than linear time. Where loads, arithmetic and stores need nothing but each other, all of it goes into
one loop whose tensors are strips, cut where a lane's last registers begin: the loop's counter takes their place.

    tt.store %out + range(0, 131072), f(…)    →    for %at = 0 to 131072 step 4096:
                                                       tt.store %out + (%at + range(0, 4096)), f(…)

Tensors that come from elsewhere (a reduction, another layout, an iteration before) are read from an array of the
invocation's own, and those that are needed elsewhere are written to one (strip_loops.py).

What stays in order: loads and stores of one element, all barriers, atomic operations. Whatever else touches memory
between loads and stores ends a run. On the CPU device, atomic updates are in loops as stores are, if what they find is
not used, and no program of the kernel can see those of another one: what they update comes from registers, not from the
stack. A later strip is loaded after an
earlier one is stored, so accesses that may meet (they come from one argument) must be at one pointer for each element,
no two of them equal: a tile that is reversed in place is loaded in a loop of its own. No access goes past a wait of the
workgroup, since arguments may overlap (x[1:] and x[:-1]): where nothing waits between their accesses, that is up to the
kernel. What a loop stores to is read from its body (analysis/pointer_roots.py), whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.places import may_share, no_two_alike, same_pointer
from ..analysis.pointer_range import is_pointer
from ..analysis.pointer_roots import pointer_roots, written_in
from ..driver_quirks import Driver
from ..layouts.distributed import layout_of
from ..layouts.strip_layouts import ROWS, cut_fits, register_count
from ..ttgir.ir import Block, Function, Operation, Value
from ..ttgir.operations import Effect, Memory, definition_of
from ..ttgir.types import FloatType, TensorType
from .rewriting import erase_unused
from .strip_loops import ROUNDS, Key, Run, roll
from .strip_operations import (
    DIVISIONS,
    SOURCES,
    converts,
    converts_strips,
    cost_of,
    ends,
    is_light,
    is_tensor,
    may_be_cut,
    sees_updates,
    size_of,
    sunk,
    updates,
)
from .strip_reductions import folds, keeps_strips, reduced_dim

#: Arrays cost something themselves: they are worth it for code of more than so many budgets. On Mesa's CPU driver a
#: softmax of 16,384 elements is compiled in 0.2 s instead of 0.8 with arrays, and takes 1.5 times as long. Where a
#: tensor is in one already, its registers cost something: as much is spared with code of so many budgets.
_ARRAYS = 2.25
_IN_ARRAYS = 0.125

#: Instructions of an update of a register's elements, one after the other; of neighbours, which are updated together.
_UPDATED, _UPDATED_APART = 64, 8

#: Strips of a loop in another, at least. What top-k selects from has two along each dimension: five loops in each
#: other, with copies, took 77 µs for the top 16 of 64×1000 instead of 54.
_FEWEST_AGAIN = 4

#: Where arrays are in the order of rows, a tensor of integers so many times as long as another is computed from that
#: again.
_SHORT = 16
#: So much longer may a block be that scans and computes little besides, where arrays are in the order of rows: a scan
#: of a whole tensor is 1.15 to 1.5 times as fast as one between arrays.
_SCANNING = 20


def cut_in_strips(function: Function, driver: Driver, rows: bool = False, alone: bool = False) -> bool:
    """Rewrites every block of ``function`` in place that is longer than the ``driver`` has budget for
    (``unrolled_elementwise``). ``rows``: arrays are in the order of rows, and tensors may be in some already
    (carried_arrays.py). ``alone``: all lanes run together, so that none waits for another. Whether there was anything
    to rewrite."""
    assert function.body is not None
    changed, seen = False, set[Block]()
    while True:
        blocks = [block for outer in function.body.blocks for block in _blocks(outer) if block not in seen]
        room = {
            block: driver.unrolled_elementwise * (_SCANNING if rows and _scans_alone(block) else 1) for block in blocks
        }
        long = [block for block in blocks if cost_of(block.operations, driver) > room[block]]
        if seen:  # the bodies of loops that were made: of rows, which have loops over strips inside if they are reduced
            long = [block for block in long if any(one.name == "tt.reduce" for one in block.operations)]
        if not long:
            return changed
        strips = _Strips(function, driver, rows, alone, _FEWEST_AGAIN if seen else 2)
        changed = any([strips.cut(block) for block in long]) or changed
        if not rows:
            return changed
        seen.update(blocks)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for operation in block.operations:
        if not operation.name.startswith(("tt.reduce", "tt.scan", "tt.map_elementwise")):
            for region in operation.regions:
                for inner in region.blocks:
                    yield from _blocks(inner)


def _scans_alone(block: Block) -> bool:
    """Whether it scans tensors, one at a time, and neither reduces any nor computes functions of them."""
    scans = [one for one in block.operations if one.name == "tt.scan"]
    others = any(one.name == "tt.reduce" or one.name.startswith("math.") for one in block.operations)
    return bool(scans) and not others and all(len(one.operands) == 1 for one in scans)


def _is_short(value: Value, among: Value) -> bool:
    """Whether integers are few, so that an array of them is read in place of one of those that are computed of them."""
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and owner.name == "ttg.convert_layout"
        and not isinstance(value.tensor.element, FloatType)
        and value.tensor.size * _SHORT <= among.tensor.size
    )


def _ends_group(operation: Operation) -> bool:
    """Whether an operation other than loads and stores touches memory, or may do so in its regions. Loads go down past
    one that loads a number."""
    if operation.name == "tt.load":
        return bool(operation.attribute("isVolatile"))
    row = definition_of(operation)
    return bool(row.effects) or (bool(operation.regions) and row.memory is Memory.NONE)


class _Strips:
    """The rewriting of one function."""

    def __init__(self, function: Function, driver: Driver, rows: bool, alone: bool, fewest: int) -> None:
        assert function.body is not None
        self._driver, self._rows, self._alone, self._fewest = driver, rows, alone, fewest
        self._updates = alone and not sees_updates(function)
        self._roots = pointer_roots(function)
        self._indices: dict[Value, bool] = {}
        self._arrays: dict[Key, Value] = {}
        self._whole: set[Operation] = set()
        self._waiting: dict[Operation, bool] = {}
        self._cuttable: dict[Operation, bool] = {}
        #: Operation → the number of its group, in the block that is rewritten.
        self._group: dict[Operation, int] = {}

    def cut(self, block: Block) -> bool:
        """Rewrites a block. Whether anything went into a loop."""
        self._arrays = self._given_arrays(block) if self._rows else {}
        self._whole = set()
        changed = False
        for sinks in self._groups(block):
            while sinks:
                # As many of one size in one loop as can be; each is otherwise the first of the next.
                first = size_of(sinks[0])
                alike = next((place for place, sink in enumerate(sinks) if size_of(sink) != first), len(sinks))
                count = next((count for count in range(alike, 0, -1) if self._cut_run(block, sinks[:count])), 0)
                changed = changed or count > 0
                if not count:
                    self._whole.update(self._traced(block, sinks[0]))
                sinks = sinks[max(count, 1) :]
        left = ("spirv.collect", "spirv.spill", *(("tt.reshape",) if self._rows else ()))
        erase_unused([one for one in block.operations if one.name in left])
        return changed

    @staticmethod
    def _given_arrays(block: Block) -> dict[Key, Value]:
        """The arrays of all that was collected from one where a block can use it."""
        found: dict[Key, Value] = {}
        here: Block | None = block
        while here is not None:
            for operation in here.operations:
                if operation.name == "spirv.collect" and operation.attribute("dim") == ROWS:
                    found[operation.result, ROWS] = operation["array"]
            here = None if here.holder is None else here.holder.block
        return found

    def _groups(self, block: Block) -> list[list[Operation]]:
        """Stores, and operations whose results are needed by what cannot be cut, between which nothing else touches
        memory."""
        self._group = {}
        number = 0
        for operation in block.operations:
            number += not self._may_be_cut(operation) and _ends_group(operation)
            self._group[operation] = number
        groups: dict[int, list[Operation]] = {}
        for operation in block.operations:
            if folds(operation) or (self._may_be_cut(operation) and (ends(operation) or self._needed(operation))):
                groups.setdefault(self._group[operation], []).append(operation)
        return list(groups.values())

    def _needed(self, operation: Operation) -> bool:
        """Whether something needs the results that is not in the operation's group, or cannot be cut."""
        return not self._is_index(operation.results[0]) and any(
            not (self._may_be_cut(use) or folds(use))
            or (self._group.get(use) != self._group[operation] and not (use in self._group and is_light(operation)))
            for result in operation.results
            for use in result.uses
            if use.name != ROUNDS  # of tensors it has pointers alone, of which it reads a few
        )

    def _may_be_cut(self, operation: Operation) -> bool:
        known = self._cuttable.get(operation)
        if known is None:
            known = self._cuttable[operation] = may_be_cut(operation) or (
                self._rows
                and (
                    operation.name == "ttg.fp4_to_fp"
                    or converts(operation, self._driver.most_shuffles)
                    or (self._updates and updates(operation))
                )
            )
        return known

    def _is_index(self, value: Value) -> bool:
        """Whether a tensor is computed from scalars and ranges alone: cheap enough to be computed twice."""
        known = self._indices.get(value)
        if known is None:
            owner = value.owner
            known = self._indices[value] = (
                isinstance(owner, Operation)
                and owner.name != "tt.load"
                and self._may_be_cut(owner)
                and is_light(owner)
                and not (self._rows and owner.name in DIVISIONS)
                and all(
                    self._is_index(operand) or (self._rows and _is_short(operand, value))
                    for operand in owner.operands
                    if is_tensor(operand)
                )
            )
        return known

    def _is_address(self, value: Value) -> bool:
        """Whether a tensor from before a loop is computed in it again, since it is no number to compute with."""
        owner = value.owner
        return (
            isinstance(owner, Operation)
            and owner not in self._group
            and self._may_be_cut(owner)
            and is_light(owner)
            and owner.name not in DIVISIONS
            and not isinstance(value.tensor.element, FloatType)
        )

    # -- one loop --------------------------------------------------------------------------------------------------
    def _cut_run(self, block: Block, sinks: list[Operation]) -> bool:
        """Puts ``sinks`` and what they need into a loop, where that is long and can be cut."""
        shapes = {type_.shape for sink in sinks if isinstance(type_ := sunk(sink).type, TensorType)}
        along = {sink.attribute("axis") for sink in sinks if folds(sink)}
        best, most, spared = None, 1, 0.0
        for dim in self._dims(sinks, min(len(shape) for shape in shapes)):
            extents = {shape[dim] for shape in shapes}
            if len(extents) > 1 or extents == {1} or along - {dim} or not _may_fit(sinks, dim):
                continue
            found = self._run(block, sinks, dim)
            if found is None:
                continue
            strips, enough = self._strips(found[0])
            cost = cost_of((operation for operation, _ in found[0].operations), self._driver)
            if strips >= self._fewest and (spares := cost - cost / strips) > spared:
                best, most, spared = found, strips, spares
                if enough or not self._rows:
                    break
        if best is None:
            return False
        run, apart = best
        # One of them may be in the loop of another, whose place it gives.
        if any([load in block.operations and self._cut_run(block, [load]) for load in apart]):
            return self._cut_run(block, sinks) or True
        roll(block, run, most, self._arrays, self._roots, self._rows)
        return True

    def _dims(self, sinks: list[Operation], rank: int) -> list[int]:
        """The dimensions that a run may be cut along, the best first: where arrays are in the order of rows, that of
        the last registers."""
        dims = list(range(rank))
        if self._rows and is_tensor(sunk(sinks[0])) and (bases := layout_of(sunk(sinks[0]).type).bases["register"]):
            dims.sort(key=lambda dim: dim >= len(bases[-1]) or not bases[-1][dim])
        return dims

    def _run(self, block: Block, sinks: list[Operation], dim: int) -> tuple[Run, list[Operation]] | None:
        """The run, and the loads that it does not have because they have to come before; None where something cannot be
        cut."""
        places = {operation: place for place, operation in enumerate(block.operations)}
        whole, apart = set(self._whole), list[Operation]()
        folded = [sink for sink in sinks if folds(sink)]
        if any(
            _place(block, use, places) <= places[sinks[-1]]
            for sink in folded
            for value in sink.results
            for use in value.uses
        ):
            return None
        last = [value for sink in sinks for value in (sink.operands if sink in folded or ends(sink) else sink.results)]
        while True:
            run = Run(sinks, [dim] * len(sinks), folded)
            if not all(self._trace(value, dim, run, whole) for value in last):
                return None
            outside = self._outputs(block, run, places)
            past, stored = self._past_waits(block, run, places), self._stored_to(block, run, places)
            if past is None or stored is None:
                return None
            before = dict.fromkeys((*past, *stored))
            outside += before
            apart += before
            if not outside:
                return (run, apart) if self._movable(block, run, places) else None
            if not whole.isdisjoint(sinks) or any(operation in sinks for operation in outside):
                return None
            whole.update(outside)

    def _traced(self, block: Block, sink: Operation) -> list[Operation]:
        """The operations that a sink is computed from, it included, apart from indices."""
        found: dict[Operation, None] = {}
        pending = [sink]
        while pending:
            operation = pending.pop()
            if operation in found or operation.block is not block or not self._may_be_cut(operation):
                continue
            if operation.results and self._is_index(operation.results[0]):
                continue
            found[operation] = None
            pending += [value.owner for value in operation.operands if isinstance(value.owner, Operation)]
        return list(found)

    def _trace(self, value: Value, dim: int, run: Run, whole: set[Operation]) -> bool:
        """Adds ``value``, cut along ``dim``, and all that it is computed from. False where one of them would be cut
        along two dimensions."""
        type_, key = value.type, (value, dim)
        if not isinstance(type_, TensorType) or type_.shape[dim] == 1 or key in run.cut or key in run.inputs:
            return True
        if value in run.values:
            return False
        run.values.add(value)
        owner = value.owner
        if (
            not isinstance(owner, Operation)
            or owner in whole
            or not self._may_be_cut(owner)
            or not (
                self._group.get(owner) == self._group[run.sinks[-1]]
                or (owner in self._group and is_light(owner))
                or self._is_index(value)
                or (self._rows and self._is_address(value))
            )
        ):
            run.inputs[key] = None
            return True
        run.cut[key] = None
        for result in owner.results:
            run.cut[result, dim] = None
            run.values.add(result)
        if owner.name in SOURCES:
            return True
        if owner.name == "tt.load":
            run.loads[owner] = None
        elif owner.name == "tt.expand_dims":
            dim -= owner.attribute("axis") < dim
        elif owner.name == "tt.trans":
            dim = owner.attribute("order")[dim]
        elif owner.name == "tt.reduce":
            dim = reduced_dim(owner, dim)
        elif owner.name == "tt.join" and dim == type_.rank - 1:
            return False
        return all(self._trace(operand, dim, run, whole) for operand in owner.operands)

    def _outputs(self, block: Block, run: Run, places: dict[Operation, int]) -> list[Operation]:
        """Fills ``run.outputs``. The operations that have to stay outside, since what they give is needed before the
        loop's end, or is small."""
        inside = {operation for operation, _ in run.operations}
        largest, last = max(map(size_of, run.sinks)), places[run.sinks[-1]]
        outside: list[Operation] = []
        run.outputs.clear()
        for value, dim in run.cut:
            owner = value.owner
            assert isinstance(owner, Operation)
            users = [use for use in value.uses if use not in inside]
            if not users or self._is_index(value) or owner.block is not block:
                continue
            behind = all(_place(block, use, places) > last for use in users)
            if not behind or (value.tensor.size < largest and owner not in run.sinks) or is_pointer(value):
                outside.append(owner)
            else:
                run.outputs[value, dim] = None
        return outside

    def _past_waits(self, block: Block, run: Run, places: dict[Operation, int]) -> list[Operation] | None:
        """The loads that would go down past a wait, behind which somebody may write what they load. None for a store
        that would, and for what would go up past the wait of a reduction in the run, which is behind the loop."""
        first_fold = min([places[reduction] for reduction in run.folds], default=len(places))
        if any(places[access] > first_fold for access in (*run.loads, *run.stores)):
            return None
        if not run.stores and (self._alone or not run.loads):
            return []
        before = block.operations[: places[run.sinks[-1]]]
        inside = {operation for operation, _ in run.operations}
        last_wait = next(
            (places[operation] for operation in reversed(before) if self._waits(operation) and operation not in inside),
            -1,
        )
        if any(places[store] < last_wait for store in run.stores):
            return None
        return [load for load in run.loads if places[load] < last_wait]

    def _waits(self, operation: Operation) -> bool:
        """Whether invocations wait for each other in it."""
        known = self._waiting.get(operation)
        if known is None:
            row = definition_of(operation)
            known = self._waiting[operation] = Effect.WAITS in row.effects or (
                row.memory is not Memory.NONE and not keeps_strips(operation)
            )
        return known

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
            or not definition_of(operation).effects & ~Effect.READS_GLOBAL
            and (place < first_store or not any(definition_of(one).effects for one in operation.walk()))
            for place, operation in enumerate(block.operations[first:last], first)
        )

    def _stored_to(self, block: Block, run: Run, places: dict[Operation, int]) -> list[Operation] | None:
        """The loads of what another strip may store, or a loop that they would go down past; None for two stores that
        may meet so."""
        pointers = [store["ptr"] for store in run.stores]
        for number, pointer in enumerate(pointers):
            if any(self._meet(pointer, other) for other in pointers[:number]):
                return None
        loops = [one for one in block.operations[: places[run.sinks[-1]]] if one.regions and run.loads]
        stored = [(places[loop], pointer) for loop in loops for pointer in written_in(loop.walk())]
        return [
            load
            for load in run.loads
            if any(self._meet(load["ptr"], pointer) for pointer in pointers)
            or any(places[load] < place and may_share(load["ptr"], pointer, self._roots) for place, pointer in stored)
        ]

    def _meet(self, pointer: Value, other: Value) -> bool:
        """Whether an element of one may be another element of the other."""
        return may_share(pointer, other, self._roots) and not (same_pointer(pointer, other) and no_two_alike(pointer))

    def _strips(self, run: Run) -> tuple[int, bool]:
        """The number of strips: as few as bring the loop's body within the budget, a power of two; fewer where the
        layouts allow no more. Whether the body is within it."""
        budget = self._driver.unrolled_elementwise
        cost = cost_of((operation for operation, _ in run.operations), self._driver)
        for store in run.stores:
            apart = _UPDATED_APART if no_two_alike(store["ptr"]) else _UPDATED
            cost += apart * register_count(sunk(store).tensor) if store.results else 0
        strips = 1
        arrays = [*run.inputs, *run.outputs]
        held = any((value, ROWS if self._rows else dim) in self._arrays for value, dim in run.inputs)
        least = _IN_ARRAYS if held else _ARRAYS
        if arrays and cost <= least * budget:
            return 1, True
        cost += self._driver.each_lane * sum(
            register_count(value.type) for value, _ in arrays if isinstance(value.type, TensorType)
        )
        while cost > budget * strips and all(
            cut_fits(value.tensor, dim, 2 * strips) for value, dim in _cut_values(run)
        ):
            strips *= 2
        most = self._driver.most_shuffles
        if most is not None and not all(
            converts_strips(operation, dim, strips, most)
            for operation, dim in run.operations
            if operation.name == "ttg.convert_layout"
        ):
            return 1, False
        return strips, cost <= budget * strips


def _place(block: Block, operation: Operation, places: dict[Operation, int]) -> int:
    """The place in ``block`` of an operation in it, or of the one in whose region it is."""
    return next(places[one] for one in (operation, *operation.holders()) if one.block is block)


def _cut_values(run: Run) -> list[Key]:
    stored = [
        (operand, dim)
        for sink, dim in zip(run.sinks, run.dims, strict=True)
        if ends(sink)
        for operand in sink.operands
        if is_tensor(operand)
    ]
    return [*run.cut, *run.inputs, *stored]


def _may_fit(sinks: Sequence[Operation], dim: int) -> bool:
    """Whether the tensors that ``sinks`` give, fold or store can be cut in two."""
    return all(
        cut_fits(value.tensor, dim, 2)
        for sink in sinks
        for value in (sink.operands if folds(sink) or ends(sink) else sink.results)
        if is_tensor(value)
    )
