"""Long element-by-element code in a loop over strips of its tensors.

A lane that holds hundreds of a tensor's elements repeats the code of each operation as often, and some drivers compile
such code in more than linear time. Where loads, arithmetic and stores need nothing but each other, all of it goes into
one loop whose tensors are strips, cut where a lane's last registers begin: the loop's counter takes their place.

    tt.store %out + range(0, 131072), f(…)    →    for %at = 0 to 131072 step 4096:
                                                       tt.store %out + (%at + range(0, 4096)), f(…)

What stays in order: loads and stores of one element, all barriers, atomic operations. Whatever else touches memory
between loads and stores ends a run. A later strip is loaded after an earlier one is stored, so accesses that may meet
(they come from one argument) must be at one pointer for each element, and at different pointers for different strips:
a tile that is reversed in place stays whole. Arguments that overlap, such as x[1:] and x[:-1], are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..analysis.places import distinct, elementwise, may_share, same_pointer
from ..analysis.pointer_roots import Roots, pointer_roots
from ..layouts.distributed import INPUTS, REGISTER, LayoutError, distributed_layout
from ..layouts.linear import flatten, unflatten
from ..ttgir.ir import Block, DenseAttr, Function, Operation, Region, Value
from ..ttgir.traits import Effect, traits
from ..ttgir.types import IntegerType, TensorType
from .rewriting import append, drop_uses

I32 = IntegerType(32)

#: Attribute of the loops that are made here: a driver should not unroll them.
ROLLED = "spirv.rolled"


class _NotCut(Exception):
    """A tensor that comes from what cannot be cut."""


Key = tuple[Value, int]


@dataclass
class _Run:
    """Stores that go into one loop, in the order of the block, and what they need of it. ``cut``: values with the
    dimension along which they are cut."""

    stores: list[Operation]
    dims: list[int]
    cut: dict[Key, None] = field(default_factory=dict)
    loads: dict[Operation, None] = field(default_factory=dict)

    @property
    def operations(self) -> dict[tuple[Operation, int], None]:
        """Those that are repeated in the loop, each for the dimension that its results are cut along."""
        found = {(owner, dim): None for (value, dim) in self.cut if isinstance(owner := value.owner, Operation)}
        return {**found, **dict.fromkeys(zip(self.stores, self.dims, strict=True))}


def cut_in_strips(function: Function, budget: int) -> bool:
    """Rewrites every block of ``function`` in place. ``budget``: of instructions that are unrolled.
    Whether there was anything to rewrite."""
    assert function.body is not None
    blocks = [block for outer in function.body.blocks for block in _blocks(outer)]
    if not any(_groups(block) for block in blocks):
        return False
    roots = pointer_roots(function)
    return any([_cut_block(block, roots, budget) for block in blocks])


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for operation in block.operations:
        if not operation.name.startswith(("tt.reduce", "tt.scan", "tt.map_elementwise")):
            for region in operation.regions:
                for inner in region.blocks:
                    yield from _blocks(inner)


def _cut_block(block: Block, roots: Roots, budget: int) -> bool:
    changed = False
    for stores in _groups(block):
        while stores:
            # As many of them in one loop as can be; each is otherwise the first of the next.
            count = next(
                (count for count in range(len(stores), 0, -1) if _cut_run(block, stores[:count], roots, budget)), 0
            )
            changed = changed or count > 0
            stores = stores[max(count, 1) :]
    return changed


def _groups(block: Block) -> list[list[Operation]]:
    """Stores of tensors between which nothing else touches memory."""
    groups: list[list[Operation]] = [[]]
    for operation in block.operations:
        if operation.name == "tt.store" and isinstance(operation.operands[0].type, TensorType):
            groups[-1].append(operation)
        elif operation.regions or traits(operation).effects:
            groups.append([])
    return [group for group in groups if group]


def _cut_run(block: Block, stores: list[Operation], roots: Roots, budget: int) -> bool:
    """Puts ``stores`` and what they need into a loop, where that is long and can be cut."""
    types = [store.operands[0].type for store in stores]
    shapes = {type_.shape for type_ in types if isinstance(type_, TensorType)}
    for dim in range(min(len(shape) for shape in shapes)):
        if len({shape[dim] for shape in shapes}) > 1:
            continue
        run = _Run(stores, [dim] * len(stores))
        try:
            for store in stores:
                for operand in store.operands:
                    _trace(block, operand, dim, run)
        except _NotCut:
            continue
        if not _movable(block, run) or _reordered(run, dim, roots):
            continue
        strips = _strips(run, budget)
        if strips > 1:
            _rewrite(block, run, strips)
            return True
    return False


def _trace(block: Block, value: Value, dim: int, run: _Run) -> None:
    """Adds ``value``, cut along ``dim``, and all that it is computed from. Raises _NotCut."""
    type_ = value.type
    if not isinstance(type_, TensorType) or (value, dim) in run.cut or type_.shape[dim] == 1:
        return
    if any(other is value for other, _ in run.cut):
        raise _NotCut  # along two dimensions
    owner = value.owner
    if not isinstance(owner, Operation) or owner.regions:
        raise _NotCut
    run.cut[value, dim] = None
    for result in owner.results:
        run.cut[result, dim] = None
    if owner.name == "tt.load":
        if owner.block is not block or owner.attributes.get("isVolatile"):
            raise _NotCut
        run.loads[owner] = None
        inner = dim
    elif owner.name in ("tt.splat", "tt.make_range"):
        return
    elif owner.name == "arith.constant":
        if not (isinstance(attribute := owner.attributes["value"], DenseAttr) and attribute.splat):
            raise _NotCut
        return
    elif owner.name == "tt.expand_dims":
        inner = dim - (owner.attributes["axis"] < dim)
    elif owner.name == "tt.trans":
        inner = owner.attributes["order"][dim]
    elif owner.name == "tt.broadcast" or elementwise(owner):
        inner = dim
    else:
        raise _NotCut
    for operand in owner.operands:
        _trace(block, operand, inner, run)


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def _movable(block: Block, run: _Run) -> bool:
    """Whether loads may move down to the last store: nothing else reads what they load, nothing that touches memory is
    passed."""
    users = {operation for operation, _ in run.operations}
    places = {operation: place for place, operation in enumerate(block.operations)}
    if any(use not in users for load in run.loads for use in load.results[0].uses):
        return False
    first_store, last_store = places[run.stores[0]], places[run.stores[-1]]
    if any(places[load] > first_store for load in run.loads):
        return False
    first = min([places[load] for load in run.loads], default=first_store)
    return all(
        operation in users
        or not (operation.regions or traits(operation).effects & ~Effect.READS_GLOBAL)
        and (place < first_store or not traits(operation).effects)
        for place, operation in enumerate(block.operations[first:last_store], first)
    )


# -- accesses that may meet --------------------------------------------------------------------------------------
def _reordered(run: _Run, dim: int, roots: Roots) -> bool:
    """Whether an element that one strip stores may be one that another strip loads or stores."""
    stored = [store.operands[0] for store in run.stores]
    pointers = [*(load.operands[0] for load in run.loads), *stored]
    return any(
        place != len(run.loads) + number
        and may_share(pointer, other, roots)
        and not (same_pointer(pointer, other) and distinct(pointer, dim))
        for number, pointer in enumerate(stored)
        for place, other in enumerate(pointers)
    )


# -- how many strips ---------------------------------------------------------------------------------------------
def _strips(run: _Run, budget: int) -> int:
    """As few as bring the loop's body within the budget, a power of two; fewer where the layouts allow no more."""
    cost = 0
    for operation, _ in run.operations:
        type_ = operation.results[0].type if operation.results else operation.operands[0].type
        length = traits(operation).length
        if length and isinstance(type_, TensorType):
            assert type_.encoding is not None
            try:
                registers = 1 << len(distributed_layout(type_.encoding, type_.shape).bases[REGISTER])
            except LayoutError:
                return 1
            cost += registers * length
    strips = 1
    while cost > budget * strips and all(_fits(value, dim, 2 * strips) for value, dim in _cut_values(run)):
        strips *= 2
    return strips


def _cut_values(run: _Run) -> list[Key]:
    stored = [
        (operand, dim)
        for store, dim in zip(run.stores, run.dims, strict=True)
        for operand in store.operands
        if _is_tensor(operand)
    ]
    return [*run.cut, *stored]


def _cut_type(type_: TensorType, dim: int, strips: int) -> TensorType:
    shape = tuple(extent // strips if axis == dim else extent for axis, extent in enumerate(type_.shape))
    return TensorType(shape, type_.element, type_.encoding)


def _fits(value: Value, dim: int, strips: int) -> bool:
    """Whether a strip is what the tensor's layout has without the registers of the highest bits of ``dim``."""
    type_ = value.type
    assert isinstance(type_, TensorType) and type_.encoding is not None
    if type_.shape[dim] % strips:
        return False
    part = _cut_type(type_, dim, strips)
    try:
        whole, strip = (distributed_layout(one.encoding, one.shape) for one in (type_, part))  # type: ignore[arg-type]
    except LayoutError:
        return False
    beyond = [
        flatten([part.shape[dim] << bit if axis == dim else 0 for axis in range(type_.rank)], type_.shape)
        for bit in range(strips.bit_length() - 1)
    ]
    bases = {
        name: [flatten(unflatten(basis, part.shape), type_.shape) for basis in strip.inputs[name]] for name in INPUTS
    }
    registers = [basis for basis in whole.inputs[REGISTER] if basis not in beyond]
    return (
        len(registers) + len(beyond) == len(whole.inputs[REGISTER])
        and registers == bases[REGISTER]
        and all(bases[name] == list(whole.inputs[name]) for name in INPUTS if name != REGISTER)
    )


# -- the loop ----------------------------------------------------------------------------------------------------
def _rewrite(block: Block, run: _Run, strips: int) -> None:
    chosen = run.operations
    last = run.stores[-1]
    extent = max(_extent(store, dim) for store, dim in zip(run.stores, run.dims, strict=True))
    place = block.operations.index(last)
    after = block.operations[place + 1 :]
    del block.operations[place + 1 :]
    bounds = [
        append(block, "arith.constant", types=[I32], attributes={"value": value}, location=last.location).result
        for value in (0, extent, extent // strips)
    ]
    body = Block()
    region = Region([body])
    body.parent = region
    counter = Value(I32, body, 0)
    body.arguments.append(counter)
    append(block, "scf.for", bounds, (), {ROLLED: True}, [region], segments=(1, 1, 1, 0), location=last.location)
    known: dict[Key, Value] = {}
    for operation, dim in _in_order(block, chosen):
        _copy(body, operation, dim, counter, extent, strips, known)
    append(body, "scf.yield", segments=(0,), location=last.location)
    block.operations += after
    for operation in (*reversed(run.stores), *run.loads):
        drop_uses(operation)
        block.operations.remove(operation)
    _drop_unused([operation for operation, _ in chosen if operation not in run.loads and operation not in run.stores])


def _extent(store: Operation, dim: int) -> int:
    type_ = store.operands[0].type
    assert isinstance(type_, TensorType)
    return type_.shape[dim]


def _in_order(block: Block, chosen: dict[tuple[Operation, int], None]) -> list[tuple[Operation, int]]:
    """With operands before their users: those of blocks around this one first."""

    def key(item: tuple[Operation, int]) -> tuple[int, int]:
        within = item[0].block
        assert within is not None
        depth, above = 0, within
        while above.parent is not None and above.parent.parent is not None:
            owner = above.parent.parent
            assert owner.block is not None
            depth, above = depth + 1, owner.block
        return depth, within.operations.index(item[0])

    return sorted(chosen, key=key)


def _copy(
    body: Block, operation: Operation, dim: int, counter: Value, extent: int, strips: int, known: dict[Key, Value]
) -> None:
    """The operation on strips. Operands that are not cut are used as they are."""
    inner = dim
    if operation.name == "tt.expand_dims":
        inner = dim - (operation.attributes["axis"] < dim)
    elif operation.name == "tt.trans":
        inner = operation.attributes["order"][dim]
    operands = [known.get((operand, inner), operand) for operand in operation.operands]
    attributes: dict[str, Any] = dict(operation.attributes)
    types = [_cut_type(result.type, dim, strips) for result in operation.results if isinstance(result.type, TensorType)]
    if operation.name == "tt.make_range":
        attributes["end"] = attributes["start"] + types[0].shape[0]
    elif operation.name == "arith.constant":
        attributes["value"] = DenseAttr(types[0], attributes["value"].values, True)
    made = append(
        body, operation.name, operands, types, attributes, segments=operation.segments, location=operation.location
    )
    results = made.results
    if operation.name == "tt.make_range":
        step = append(body, "tt.splat", [counter], types, location=operation.location).result
        results = [append(body, "arith.addi", [results[0], step], types, location=operation.location).result]
    for old, new in zip(operation.results, results, strict=True):
        known[old, dim] = new


def _drop_unused(operations: list[Operation]) -> None:
    """Removes pure operations whose results nothing uses any more, users first."""
    pending = list(operations)
    while True:
        unused = [one for one in pending if not any(result.uses for result in one.results)]
        if not unused:
            return
        for operation in unused:
            pending.remove(operation)
            assert operation.block is not None
            drop_uses(operation)
            operation.block.operations.remove(operation)
