"""Plans of operations that exchange elements between invocations: conversions of layouts, reductions, scans, gathers,
histograms, results of atomic operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.places import order_is_free
from ..capabilities import Capabilities
from ..layouts.conversion import Moves, plan_conversion, plan_through_shared
from ..layouts.distributed import LANE, WARP, distributed_layout
from ..layouts.element_sizes import bytes_in_memory, element_type
from ..layouts.gather import plan_gather
from ..layouts.linear import LinearLayout, same_copies
from ..layouts.reduction import ReductionPlan, plan_reduction
from ..layouts.scan import AcrossWarps, ScanError, plan_scan, simple_layout
from ..layouts.shuffles import SubgroupShuffle
from ..layouts.through_shared import ConversionError, ThroughShared
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType, TensorType, Type
from .plans import Conversion, Gather, Plan, Reduction, Scan, Shared
from .shared_memory import Room, Scratch, SharedAccess

#: Bytes of workgroup memory that a conversion takes in place of shuffles, and the most that it takes.
USUAL_SCRATCH, LARGEST_SCRATCH = 4096, 16384

#: What histograms count in.
COUNTER = IntegerType(32)

#: Bytes of the scratch memory that an operation owns, given their number → where they are.
Places = Callable[[int], Scratch]


@dataclass(frozen=True)
class Target:
    """What exchanges depend on: the device, and the kernel's shape."""

    capabilities: Capabilities
    warps: int
    lanes: int


def layout_of(type_: Type) -> LinearLayout:
    """The layout of a tensor type: which (register, lane, warp) holds which element."""
    assert isinstance(type_, TensorType) and type_.encoding is not None, str(type_)
    return distributed_layout(type_.encoding, type_.shape)


def _owned(operation: Operation) -> tuple[int | None, int]:
    """Where upstream's scratch memory of an operation is, and how large."""
    offset = operation.attributes.get("allocation.offset")
    return None if offset is None else int(offset), int(operation.attributes.get("allocation.size", 0))


def _places(operation: Operation, room: Room) -> Places:
    return lambda size: room.scratch(size, *_owned(operation))


def _sizes(operation: Operation) -> tuple[int, ...]:
    return tuple(bytes_in_memory(operand.type) for operand in operation.operands)


# -- conversions -------------------------------------------------------------------------------------------------
def plan_convert_layout(operation: Operation, room: Room, target: Target) -> Plan:
    """``ttg.convert_layout``; scratch memory is the operation's where that suffices."""
    source, result = operation.operands[0].type, operation.result.type
    offset, owned = _owned(operation)
    element, places = element_type(source), _places(operation, room)
    there = room.limit - (offset or 0)
    return conversion(layout_of(source), layout_of(result), element, owned, there, room, target, places)


def plan_reshape(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.reshape``: a conversion in row-major order. Upstream gives it no scratch memory."""
    source, result = layout_of(operation.operands[0].type), layout_of(operation.result.type)
    if order_is_free(operation) and same_copies(source, result):
        return Conversion(reason="the elements may come in any order")
    flat = (source.size,)
    return move(source.reshape(flat), result.reshape(flat), element_type(operation.result.type), room, target)


def move(source: LinearLayout, result: LinearLayout, element: Type, room: Room, target: Target) -> Conversion:
    """A conversion for an operation that owns no scratch memory: where some is needed, it is beyond upstream's."""
    whole = source.size * bytes_in_memory(element)
    places: Places = lambda size: Scratch(room.start, size, True)  # noqa: E731
    return conversion(source, result, element, whole, room.beyond, room, target, places)


def conversion(
    source: LinearLayout,
    result: LinearLayout,
    element: Type,
    owned: int,
    there: int,
    room: Room,
    target: Target,
    places: Places,
) -> Conversion:
    """How ``element``\\ s in layout ``source`` get to layout ``result``, with ``owned`` bytes of scratch memory, or in
    more rounds with the bytes that are ``there``, where these are fewer and that is possible."""
    size = bytes_in_memory(element)
    try:
        found = plan_conversion(source, result, size, max(0, min(owned, there)) if room.rounds else owned)
    except ConversionError:
        found = plan_conversion(source, result, size, owned)
    moves, reason = _few(found, source, result, size, room, target)
    if not isinstance(moves, ThroughShared):
        return Conversion((), (), reason, moves, source, result)
    scratch = places(moves.size * size)
    limit = room.width_limit(element)
    stored = min(min(len(vector), limit) for step in moves.rounds for vector in step.stores)
    access = SharedAccess(element, scratch.offset, scratch.offset + scratch.size, stored)
    return Conversion((access,), (scratch,), reason, moves, source, result)


def _few(
    moves: Moves, source: LinearLayout, result: LinearLayout, size: int, room: Room, target: Target
) -> tuple[Moves, str]:
    """``moves``, or others through workgroup memory where the driver makes too much of the shuffles."""
    if isinstance(moves, ThroughShared):
        return moves, "elements move between subgroups"
    most = target.capabilities.traits.most_shuffles
    if not isinstance(moves, SubgroupShuffle):
        return moves, ""
    count = len(moves.shuffles) * max(1, size // 4)
    if most is None or count <= most:
        return moves, "elements move between lanes"
    whole = source.size * size
    free = min(LARGEST_SCRATCH, room.share)
    for scratch in sorted({min(whole, USUAL_SCRATCH), whole}):
        through = plan_through_shared(source, result, size, scratch) if scratch <= free else None
        if through is not None:
            return through, f"{count} shuffles are more than the driver's {most}"
    return moves, f"{count} shuffles are more than the driver's {most}, but {free} bytes are too few"


# -- reductions and scans ----------------------------------------------------------------------------------------
def plan_reduce(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.reduce``. Upstream allocates for one partial result a lane; several registers then take turns, two barriers
    each time, so more memory is taken where there is some."""
    layout, sizes = layout_of(operation.operands[0].type), _sizes(operation)
    steps, beyond = _reduction(operation, layout, sizes, room.beyond)
    across = steps.across_warps
    if across is None:
        return Reduction((), (), "", steps)
    total = across.size * sum(sizes)
    offset, owned = _owned(operation)
    if beyond:
        scratch = Scratch(room.start, total, True)
    else:
        assert offset is not None, "no scratch memory for a reduction across subgroups"
        scratch = Scratch(offset, owned)
    types = [element_type(operand.type) for operand in operation.operands]
    width = min(across.width, *(room.width_limit(type_) for type_ in types))
    stored = min(min(width, len(groups)) for groups in across.rounds)
    accesses = tuple(
        SharedAccess(type_, scratch.offset + start, scratch.offset + start + across.size * size, stored)
        for type_, start, size in zip(types, across.operand_offsets, sizes, strict=True)
    )
    return Reduction(accesses, (scratch,), "several subgroups hold elements of one result", steps)


def _reduction(
    operation: Operation, layout: LinearLayout, sizes: tuple[int, ...], room: int
) -> tuple[ReductionPlan, bool]:
    """The plan for operands of ``layout`` whose elements have ``sizes`` bytes, and whether its workgroup memory lies
    beyond upstream's allocation, where there are ``room`` bytes."""
    axis, owned = int(operation.attributes["axis"]), _owned(operation)[1]
    plan = plan_reduction(layout, axis, sizes, owned)
    across = plan.across_warps
    if across is None or len(across.rounds) == 1:
        return plan, False
    taken = min(owned * len(across.rounds), room)
    if taken > owned:
        wider = plan_reduction(layout, axis, sizes, taken)
        assert wider.across_warps is not None
        if len(wider.across_warps.rounds) < len(across.rounds):
            return wider, True
    return plan, False


def plan_scan_operation(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.scan``, in another layout where its own cannot be scanned."""
    layout, sizes = layout_of(operation.operands[0].type), _sizes(operation)
    types = [element_type(operand.type) for operand in operation.operands]
    axis, reverse = int(operation.attributes["axis"]), bool(operation.attributes["reverse"])
    before: tuple[Conversion, ...] = ()
    after: tuple[Conversion, ...] = ()
    reason = ""
    try:
        steps = plan_scan(layout, axis, reverse, sizes)
    except ScanError as error:
        reason, simple = str(error), simple_layout(layout)
        steps = plan_scan(simple, axis, reverse, sizes)
        before = tuple(move(layout, simple, type_, room, target) for type_ in types)
        after = tuple(move(simple, layout, type_, room, target) for type_ in types)
    places: list[Scratch] = []
    accesses: list[SharedAccess] = []
    for step in steps.steps:
        if isinstance(step, AcrossWarps):
            place = _places(operation, room)(step.bytes)
            places.append(place)
            starts = [place.offset + offset for offset in step.operand_offsets]
            accesses += [
                SharedAccess(type_, start, start + step.size * size, 1)
                for type_, start, size in zip(types, starts, sizes, strict=True)
            ]
    moved = [*before, *after]
    accesses += [access for one in moved for access in one.accesses]
    scratch = (*places, *(place for one in moved for place in one.scratch))
    return Scan(tuple(accesses), scratch, reason, steps, tuple(places), before, after)


# -- gathers, histograms, atomics --------------------------------------------------------------------------------
def plan_gather_operation(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.gather``: by shuffles, else the whole source in workgroup memory."""
    source, indices = operation.operands
    layout = layout_of(source.type)
    shuffles = plan_gather(layout, layout_of(indices.type), int(operation.attributes["axis"]))
    if shuffles is not None:
        return Gather((), (), "", shuffles)
    scratch = _places(operation, room)(layout.size * bytes_in_memory(source.type))
    access = SharedAccess(element_type(source.type), scratch.offset, scratch.offset + scratch.size, 1)
    return Gather((access,), (scratch,), "an index may name an element of another subgroup", None)


def plan_histogram(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.histogram``: a counter a bin."""
    result = operation.result.type
    assert isinstance(result, TensorType)
    scratch = _places(operation, room)(result.size * bytes_in_memory(COUNTER))
    access = SharedAccess(COUNTER, scratch.offset, scratch.offset + scratch.size, 1)
    return Shared((access,), (scratch,))


def plan_atomic(operation: Operation, room: Room, target: Target) -> Plan:
    """An atomic operation whose result is used: one invocation acts for each element and shares the result."""
    if not any(result.uses for result in operation.results):
        return Shared()
    element = element_type(operation.result.type)
    if isinstance(operation.result.type, TensorType):
        layout = layout_of(operation.result.type)
        if all(basis for name in (LANE, WARP) for basis in layout.inputs[name]):
            return Shared()  # every invocation has elements of its own
        size = layout.size * bytes_in_memory(element)
    elif target.lanes == target.warps == 1:
        return Shared()
    else:
        size = bytes_in_memory(element)
    offset, _ = _owned(operation)
    scratch = Scratch(room.start, size, True) if offset is None else Scratch(offset, size)
    access = SharedAccess(element, scratch.offset, scratch.offset + size, 1)
    return Shared((access,), (scratch,), "several invocations hold the same element")
