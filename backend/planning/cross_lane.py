"""Plans of operations that exchange elements between invocations: conversions of layouts, reductions, scans, gathers,
histograms, results of atomic operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..analysis.code_size import GATHERED, UPDATED
from ..analysis.combinations import agrees, commutes
from ..analysis.places import order_is_free
from ..capabilities import Capabilities
from ..layouts.conversion import Moves, plan_conversion, plan_through_shared
from ..layouts.distributed import LANE, REGISTER, WARP, layout_of
from ..layouts.element_sizes import bits_in_memory, bytes_in_memory
from ..layouts.gather_plans import plan_gather
from ..layouts.linear import LinearLayout, same_copies
from ..layouts.reduction import ReductionError, ReductionPlan, extents_in_order, plan_reduction
from ..layouts.scan_plans import AcrossWarps, ScanError, plan_scan, simple_layout
from ..layouts.shuffles import SubgroupShuffle
from ..layouts.through_shared import ConversionError, ThroughShared
from ..layouts.vectors import contiguous_registers
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType, TensorType, Type, element_type
from .memory_pools import Room, Scratch, ScratchPart, SharedAccess
from .plans import Atomic, Conversion, Gather, Plan, Reduction, Rolled, Scan, Vote
from .rolling import rounds

Planned = TypeVar("Planned")

#: Bytes of workgroup memory that a conversion takes instead of shuffles, and the most that it takes.
USUAL_SCRATCH, LARGEST_SCRATCH = 4096, 16384

#: What histograms count in.
COUNTER = IntegerType(32)


@dataclass(frozen=True)
class Target:
    """What exchanges depend on: the device, and the kernel's shape."""

    capabilities: Capabilities
    warps: int
    lanes: int


def _sizes(operation: Operation) -> tuple[int, ...]:
    return tuple(bytes_in_memory(operand.type) for operand in operation.operands)


def _least(plan: Callable[[int], Planned], there: int, whole: int) -> Planned:
    """The plan for the bytes that are ``there``; where they do not suffice, for the least that do, ``whole`` at most:
    the kernel is refused then, with the bytes that it takes."""
    size = max(1, min(there, whole))
    while size < whole:
        try:
            return plan(size)
        except (ConversionError, ReductionError):
            size *= 2
    return plan(whole)


# -- conversions -------------------------------------------------------------------------------------------------
def plan_convert_layout(operation: Operation, room: Room, target: Target) -> Plan:
    """``ttg.convert_layout``."""
    source, result = operation["src"].type, operation.result.type
    return conversion(layout_of(source), layout_of(result), element_type(source), room, target)


def plan_reshape(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.reshape``: a conversion in row-major order."""
    source, result = layout_of(operation["src"].type), layout_of(operation.result.type)
    if order_is_free(operation) and same_copies(source, result):
        return Conversion(reason="the elements may come in any order")
    flat = (source.size,)
    return conversion(source.reshape(flat), result.reshape(flat), element_type(operation.result.type), room, target)


def conversion(source: LinearLayout, result: LinearLayout, element: Type, room: Room, target: Target) -> Conversion:
    """How ``element``\\ s in layout ``source`` get to layout ``result``: through memory for all of it, or in more
    rounds where there is less."""
    size = bytes_in_memory(element)
    whole = source.size * size
    there = max(room.free, whole // room.rounds) if room.rounds else room.free
    found = _least(lambda scratch: plan_conversion(source, result, size, scratch), there, whole)
    moves, reason = _few(found, source, result, size, room, target)
    if not isinstance(moves, ThroughShared):
        return Conversion((), (), reason, moves, source, result)
    scratch = room.place(ScratchPart(element, moves.size * size))
    return Conversion(_accesses(scratch, (element,)), scratch, reason, moves, source, result)


def _accesses(places: Sequence[Scratch], types: Sequence[Type]) -> tuple[SharedAccess, ...]:
    """Elements of each of ``types`` in the memory that there is for them."""
    return tuple(
        SharedAccess(type_, place.offset, place.offset + place.size) for place, type_ in zip(places, types, strict=True)
    )


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
    """``tt.reduce``: in as few rounds as the memory allows, because each has two barriers; in the order of the elements
    where the combination may not commute."""
    layout, sizes = layout_of(operation.operand_group("srcs")[0].type), _sizes(operation)
    types = [element_type(operand.type) for operand in operation.operands]
    axis, combination = int(operation.attribute("axis")), operation.regions[0]
    agreed = not agrees(combination)
    steps: list[ReductionPlan] = []
    places: list[tuple[Scratch, ...]] = []
    extents = layout.shape[axis : axis + 1] if commutes(combination) else extents_in_order(layout, axis)
    for extent in extents:
        whole = layout.size * sum(sizes)

        def plan(there: int, layout: LinearLayout = layout, extent: int = extent) -> ReductionPlan:
            return plan_reduction(*lowest_extent(layout, axis, extent), sizes, there, agreed)

        steps.append(_least(plan, room.free, whole))
        layout, across = steps[-1].result, steps[-1].across_warps
        if across is not None:
            sized = zip(types, sizes, strict=True)
            places.append(room.place(*(ScratchPart(type_, across.size * size) for type_, size in sized)))
            room = room.after(places[-1])
        else:
            places.append(())
    accesses = tuple(access for found in places if found for access in _accesses(found, types))
    scratch = tuple(one for found in places for one in found)
    reason = "several subgroups hold elements of one result" if scratch else ""
    return Reduction(accesses, scratch, reason, tuple(steps), tuple(places))


def lowest_extent(layout: LinearLayout, axis: int, extent: int) -> tuple[LinearLayout, int]:
    """The layout with a dimension for the lowest ``extent`` coordinates along ``axis``, and that dimension."""
    if extent == layout.shape[axis]:
        return layout, axis
    parts = layout.shape[axis] // extent, extent
    return layout.reshape((*layout.shape[:axis], *parts, *layout.shape[axis + 1 :])), axis + 1


def plan_vote(operation: Operation, room: Room, target: Target) -> Plan:
    """``spirv.beyond_halves`` and ``spirv.greatest``: a word of each subgroup."""
    if target.warps == 1:
        return Vote()
    word = IntegerType(32)
    scratch = room.place(ScratchPart(word, 4 * target.warps))
    return Vote(_accesses(scratch, (word,)), scratch, "several subgroups vote")


def plan_scan_operation(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.scan``, in another layout where its own cannot be scanned."""
    layout, sizes = layout_of(operation.operand_group("srcs")[0].type), _sizes(operation)
    types = [element_type(operand.type) for operand in operation.operands]
    axis, reverse = int(operation.attribute("axis")), bool(operation.attribute("reverse"))
    scratch: list[Scratch] = []
    accesses: list[SharedAccess] = []

    def used(found: Sequence[Scratch], what: Sequence[SharedAccess]) -> None:
        nonlocal room
        scratch.extend(found)
        accesses.extend(what)
        room = room.after(found)

    def moved(source: LinearLayout, result: LinearLayout) -> tuple[Conversion, ...]:
        made = []
        for type_ in types:
            made.append(conversion(source, result, type_, room, target))
            used(made[-1].scratch, made[-1].accesses)
        return tuple(made)

    before: tuple[Conversion, ...] = ()
    after: tuple[Conversion, ...] = ()
    reason, simple = "", layout
    try:
        steps = plan_scan(layout, axis, reverse, sizes)
    except ScanError as error:
        reason, simple = str(error), simple_layout(layout)
        steps = plan_scan(simple, axis, reverse, sizes)
        before = moved(layout, simple)
    places: list[tuple[Scratch, ...]] = []
    for step in steps.steps:
        if isinstance(step, AcrossWarps):
            sized = zip(types, sizes, strict=True)
            found = room.place(*(ScratchPart(type_, step.size * size) for type_, size in sized))
            places.append(found)
            used(found, _accesses(found, types))
    if before:
        after = moved(simple, layout)
    return Scan(tuple(accesses), tuple(scratch), reason, steps, tuple(places), before, after)


# -- gathers, histograms, atomics --------------------------------------------------------------------------------
def _registers(type_: Type) -> int:
    return 1 << len(layout_of(type_).bases[REGISTER]) if isinstance(type_, TensorType) else 1


def plan_gather_operation(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.gather``: by shuffles, else the whole source in workgroup memory."""
    source, indices = operation.operands
    layout = layout_of(source.type)
    shuffles = plan_gather(layout, layout_of(indices.type), int(operation.attribute("axis")))
    if shuffles is not None:
        return Gather((), (), "", shuffles)
    element = element_type(source.type)
    _, consecutive = contiguous_registers(layout.reshape((layout.size,)))
    stored = min(consecutive, room.view.width_limit(element))
    scratch = room.place(ScratchPart(element, layout.size * bytes_in_memory(element)))
    reason = "an index may name an element of another subgroup"
    loads = rounds(operation, GATHERED, _registers(indices.type), target.capabilities.traits)
    return Gather(_accesses(scratch, (element,)), scratch, reason, None, stored, loads)


#: Bytes of counters that there are several copies of, at most: a part of a processor's nearest cache.
_COUNTER_BYTES = 1 << 14


def plan_histogram(operation: Operation, room: Room, target: Target) -> Plan:
    """``tt.histogram``: a counter a bin."""
    result = operation.result.tensor
    size, traits = result.size * bytes_in_memory(COUNTER), target.capabilities.traits
    copies = traits.counter_copies if size * traits.counter_copies <= _COUNTER_BYTES else 1
    scratch = room.place(ScratchPart(COUNTER, copies * size))
    updates = _updates(operation, operation["src"].type, target, True)
    return Atomic(_accesses(scratch, (COUNTER,)), scratch, updates=updates, copies=copies)


def _updates(operation: Operation, type_: Type, target: Target, is_instruction: bool) -> Rolled:
    traits = target.capabilities.traits
    cost = traits.updated if is_instruction and traits.updated is not None else UPDATED
    return rounds(operation, cost, _registers(type_), traits)


def _is_instruction(operation: Operation, target: Target) -> bool:
    """Whether an atomic operation on an element is one instruction, and no loop that compares and swaps."""
    if operation.name != "tt.atomic_rmw":
        return False
    element = element_type(operation["val"].type)
    bits = bits_in_memory(element)
    if bits < 32 or isinstance(element, IntegerType):
        return bits >= 32
    return operation.attribute("atomic_rmw_op") == "fadd" and target.capabilities.has(f"float{bits}_atomic_add")


def plan_atomic(operation: Operation, room: Room, target: Target) -> Plan:
    """An atomic operation: one invocation acts for each element, and shares the result where it is used."""
    type_ = operation["dst" if operation.name == "ttg.local_atomic_scatter_rmw" else "ptr"].type
    alone = Atomic(updates=_updates(operation, type_, target, _is_instruction(operation, target)))
    if not any(result.uses for result in operation.results):
        return alone
    element = element_type(operation.result.type)
    if isinstance(operation.result.type, TensorType):
        layout = layout_of(operation.result.type)
        if all(basis for name in (LANE, WARP) for basis in layout.inputs[name]):
            return alone  # every invocation has elements of its own
        size = layout.size * bytes_in_memory(element)
    elif target.lanes == target.warps == 1:
        return alone
    else:
        size = bytes_in_memory(element)
    scratch = room.place(ScratchPart(element, size))
    reason = "several invocations hold the same element"
    return replace(alone, accesses=_accesses(scratch, (element,)), scratch=scratch, reason=reason)
