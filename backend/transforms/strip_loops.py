"""The loop over strips, and the arrays that hold tensors that come into it and out of it as wholes.

A tensor that the loop only reads is put into an array before it, and read strip by strip; one that is needed behind it
is put into an array in it, and read as a whole there. The rules of these operations: ``lowering/register_arrays.py``.

    %array = spirv.spill %tensor                     a new array with the tensor's registers
    %array = spirv.array                             a new array of the result's type
    %strip = spirv.strip %array, %at                 the strip that begins at element %at
             spirv.put %array, %strip, %at
    %tensor = spirv.collect %array

An array in the order of rows is that of a tensor of another shape, too, where a ``tt.reshape`` moves nothing: the
attribute ``whole`` is that tensor's type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..analysis.axis_info.hints import of_strip
from ..analysis.pointer_roots import Roots
from ..layouts.strip_layouts import ROWS, in_memory
from ..ttgir.ir import Block, DenseAttr, Operation, Value
from ..ttgir.types import TensorType, strip_type
from .rewriting import Rewriter, erase_unused
from .strip_operations import ends
from .strip_reductions import first_tiles, fold, reduce_tiles, reduced_dim

#: The operation on arrays C, A and B (tile_dots.py). ``turned``: for A and B, the dimension of the array that each
#: dimension is; ``adds``.
MULTIPLY = "spirv.multiply"

#: The operation on an array C, tensors of pointers to A and B in the first round, and two i64: the bytes between rows
#: of B, and how many rounds there are (whole_loops.py). ``turned`` as above; ``neighbours``: a column of B has its
#: elements one behind the other.
ROUNDS = "spirv.multiply_rounds"

#: Attribute of the loops that are made here: a driver should not unroll them.
ROLLED = "spirv.rolled"

#: A value and the dimension that it is cut along.
Key = tuple[Value, int]


@dataclass
class Run:
    """What goes into one loop. ``sinks``: operations whose results nothing in the loop uses, in the order of the block,
    with the dimensions ``dims`` that they are cut along. ``cut``: the values that are computed in strips; ``inputs``:
    the values that are read in strips; ``outputs``: the values of ``cut`` that are needed whole; ``folds``: the sinks
    that are reductions along the loop's dimension; ``values``: the values of ``cut`` and ``inputs``."""

    sinks: list[Operation]
    dims: list[int]
    folds: list[Operation] = field(default_factory=list)
    cut: dict[Key, None] = field(default_factory=dict)
    inputs: dict[Key, None] = field(default_factory=dict)
    outputs: dict[Key, None] = field(default_factory=dict)
    loads: dict[Operation, None] = field(default_factory=dict)
    values: set[Value] = field(default_factory=set)

    @property
    def stores(self) -> list[Operation]:
        """The sinks that write to memory."""
        return [sink for sink in self.sinks if ends(sink)]

    @property
    def operations(self) -> dict[tuple[Operation, int], None]:
        """The operations that are repeated in the loop, each with the dimension that its results are cut along."""
        found = {(owner, dim): None for (value, dim) in self.cut if isinstance(owner := value.owner, Operation)}
        return {**found, **dict.fromkeys(zip(self.sinks, self.dims, strict=True))}


def roll(block: Block, run: Run, strips: int, arrays: dict[Key, Value], roots: Roots, rows: bool = False) -> None:
    """Puts ``run`` into a loop instead of its last sink. ``arrays``: those that hold values of the block already; new
    ones are added. ``roots``: those of the loop's pointers are added. ``rows``: arrays are in the order of rows, ROWS
    in the place of their dimension; what comes from before the block is put into one where it is computed."""
    chosen = run.operations
    last = run.sinks[-1]
    extent = max(_extent(run, sink, dim) for sink, dim in zip(run.sinks, run.dims, strict=True))
    rewriter = Rewriter.after(last)
    held = {key: _array_of(block, rewriter, *key, arrays, rows) for key in run.inputs}
    made = {
        (value, dim): rewriter.make("spirv.array", types=[value.type], attributes={"dim": _kept(dim, rows)}).result
        for value, dim in run.outputs
    }
    bounds = [rewriter.integer(value) for value in (0, extent, extent // strips)]
    first = [tile for reduction in run.folds for tile in first_tiles(rewriter, reduction)]
    loop, inside_loop = rewriter.loop(bounds, first, {ROLLED: None})
    body, (counter, *arguments) = rewriter.at_end(inside_loop), inside_loop.arguments
    known: dict[Key, Value] = {}
    counters = {extent: counter}

    def at(length: int) -> Value:
        """The first element of the strip of a dimension that is shorter, as that of packed numbers is."""
        if length not in counters:
            ratio = body.integer(extent // length)
            counters[length] = body.make("arith.divsi", [counter, ratio], [counter.type], location=last.location).result
        return counters[length]

    for (value, dim), array in held.items():
        attributes: dict[str, object] = {"dim": dim, "strips": strips}
        if array.type != value.type:
            attributes |= {"whole": value.type}
        known[value, dim] = body.make(
            "spirv.strip", [array, at(value.tensor.shape[dim])], [strip_type(value.tensor, dim, strips)], attributes
        ).result
    for operation, dim in _in_order(block, {one: None for one in chosen if one[0] not in run.folds}):
        _copy(body, operation, dim, at, strips, known)
    roots.update((known[value, dim], roots[value]) for value, dim in run.cut if value in roots)
    for (value, dim), array in made.items():
        place = at(value.tensor.shape[dim])
        body.make("spirv.put", [array, known[value, dim], place], (), {"dim": dim, "strips": strips})
    carried, tiles = iter(arguments), []
    for reduction in run.folds:
        held_tiles = [next(carried) for _ in reduction.operands]
        parts = [known[operand, reduction.attribute("axis")] for operand in reduction.operands]
        tiles += fold(body, reduction, held_tiles, parts, counter)
    body.make("scf.yield", tiles)
    inside = {operation for operation, _ in chosen}
    for (value, dim), array in made.items():
        kept = _kept(dim, rows)
        whole = rewriter.make("spirv.collect", [array], [value.type], {"dim": kept}).result
        value.replace_uses(whole, by=lambda user: user not in inside)
        arrays[whole, kept] = array
    results = iter(loop.results)
    for reduction in run.folds:
        reduce_tiles(rewriter, reduction, [next(results) for _ in reduction.operands])
    erase_unused([operation for operation, _ in chosen if operation not in run.folds])


def _kept(dim: int, rows: bool) -> int:
    """The dimension that an array is kept by, for a loop along ``dim``."""
    return ROWS if rows else dim


def _array_of(block: Block, rewriter: Rewriter, value: Value, dim: int, arrays: dict[Key, Value], rows: bool) -> Value:
    """The array that holds ``value`` at the place of ``rewriter``. One that was made for a later loop goes up."""
    while rows and (before := unmoved(value)) is not None:
        value = before
    key = value, _kept(dim, rows)
    old = arrays.get(key)
    if old is not None and rewriter.follows(old):
        return old
    owner = value.owner.block if isinstance(value.owner, Operation) else value.owner
    if old is not None or (rows and owner is not block):
        rewriter = Rewriter.behind(value)
    new = arrays[key] = rewriter.make("spirv.spill", [value], [value.type], {"dim": key[1]}).result
    if old is not None:
        old.replace_uses(new)
    return new


def unmoved(value: Value) -> Value | None:
    """The tensor that a ``tt.reshape`` is given whose result lies in an array in the order of rows as it does."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "tt.reshape" or owner.flag("allow_reorder"):
        return None
    before = owner["src"]
    return (
        before if in_memory(before.tensor) is not None and in_memory(before.tensor) == in_memory(value.tensor) else None
    )


def _extent(run: Run, sink: Operation, dim: int) -> int:
    type_ = sink.results[0].type if sink.results and sink not in run.folds else sink.operands[0].type
    assert isinstance(type_, TensorType)
    return type_.shape[dim]


def _in_order(block: Block, chosen: dict[tuple[Operation, int], None]) -> list[tuple[Operation, int]]:
    """With operands before their users, operations of the blocks around this one first."""

    def key(item: tuple[Operation, int]) -> tuple[int, int]:
        operation = item[0]
        assert operation.block is not None
        return len([*operation.holders()]), operation.block.operations.index(operation)

    return sorted(chosen, key=key)


def _copy(
    body: Rewriter, operation: Operation, dim: int, at: Callable[[int], Value], strips: int, known: dict[Key, Value]
) -> None:
    """The operation on strips. Operands that are not cut are used as they are."""
    inner = dim
    if operation.name == "tt.expand_dims":
        inner = dim - (operation.attribute("axis") < dim)
    elif operation.name == "tt.trans":
        inner = operation.attribute("order")[dim]
    elif operation.name == "tt.reduce":
        inner = reduced_dim(operation, dim)
    operands = [known.get((operand, inner), operand) for operand in operation.operands]
    types = [
        strip_type(result.type, dim, strips) for result in operation.results if isinstance(result.type, TensorType)
    ]
    attributes = of_strip(operation.attributes, types[0], dim) if types else dict(operation.attributes)
    if operation.name == "tt.make_range":
        attributes |= {"end": operation.attribute("start") + types[0].shape[0]}
    elif operation.name == "arith.constant":
        attributes |= {"value": DenseAttr(types[0], operation.attribute("value").values, True)}
    results = body.copy(operation, operands=operands, types=types, attributes=attributes).results
    if operation.name == "tt.make_range":
        first = at(operation.result.tensor.shape[0])
        step = body.make("tt.splat", [first], types, location=operation.location).result
        results = [body.make("arith.addi", [results[0], step], types, location=operation.location).result]
    for old, new in zip(operation.results, results, strict=True):
        known[old, dim] = new
