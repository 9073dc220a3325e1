"""Facts about a kernel's tensors and memory that a page can draw: layouts, conversions, accesses, shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..analysis.axis_info import AxisInfoAnalysis
from ..analysis.barriers import BARRIER, Need
from ..layouts.buffer_layouts import buffer_bytes
from ..layouts.conversion import Identity, RegisterPermutation
from ..layouts.distributed import LANE, REGISTER, WARP, LayoutError, layout_of
from ..layouts.linear import LinearLayout
from ..layouts.shuffles import SubgroupShuffle
from ..layouts.through_shared import ThroughShared
from ..layouts.vectors import contiguous_registers
from ..planning.access_plans import CHECKED
from ..planning.kernel_plan import KernelPlan
from ..planning.memory_pools import POOL, aligned
from ..planning.plans import Conversion, GlobalAccess
from ..spirv.debug_reading import InlinedCalls
from ..spirv.decode import decode
from ..ttgir.ir import Function, Operation, Value
from ..ttgir.operations import in_loop, masks
from ..ttgir.spelling import Spelling
from ..ttgir.types import FloatType, PointerType, TensorType, Type
from .stage_lines import frames

#: The most rows and columns of a tensor that are drawn.
SHOWN = (32, 64)
#: The widest access of an invocation, in bits.
WIDEST = 128


def _layout(type_: Type) -> LinearLayout | None:
    if not isinstance(type_, TensorType) or type_.encoding is None:
        return None
    try:
        return layout_of(type_)
    except LayoutError:
        return None


Owners = dict[int, tuple[int, int, int, int]]


def owners(layout: LinearLayout) -> Owners:
    """Flat element → (warp, lane, register) of its first holder, and how many hold it."""
    found: Owners = {}
    registers, lanes, warps = (layout.images(name) for name in (REGISTER, LANE, WARP))
    for warp, of_warp in enumerate(warps):
        for lane, of_lane in enumerate(lanes):
            for register, of_register in enumerate(registers):
                element = of_warp ^ of_lane ^ of_register
                first = found.get(element)
                found[element] = (warp, lane, register, 1) if first is None else (*first[:3], first[3] + 1)
    return found


def _cells(layout: LinearLayout) -> tuple[list[list[list[int]]], tuple[int, int]]:
    """[warp, lane, register, copies] of the first SHOWN rows and columns of the last two dimensions, at 0 in the
    others; how many rows and columns those are."""
    shape = layout.shape
    rows = shape[-2] if len(shape) > 1 else 1
    columns = shape[-1] if shape else 1
    held = owners(layout)
    shown = min(rows, SHOWN[0]), min(columns, SHOWN[1])
    return [[list(held[row * columns + column]) for column in range(shown[1])] for row in range(shown[0])], shown


def layouts(function: Function, spelling: Spelling) -> list[dict[str, Any]]:
    """Each tensor type with an encoding, in the order of appearance: where its elements are. ``data``: it is of
    what the kernel loads, computes and stores, not of masks, pointers and indices."""
    found: dict[Type, dict[str, Any]] = {}
    moved = _moved(function)
    for operation in function.walk():
        for result in operation.results:
            type_ = result.type
            if type_ in found:
                found[type_]["places"] += frames(operation.location)[:1]
                continue
            layout = _layout(type_)
            if layout is None or layout.rank == 0:
                continue
            assert isinstance(type_, TensorType)
            cells, shown = _cells(layout)
            found[type_] = {
                "type": spelling.type(type_),
                "data": isinstance(type_.element, FloatType) or type_ in moved,
                "shape": list(layout.shape),
                "shown": list(shown),
                "registers": layout.input_size(REGISTER),
                "lanes": layout.input_size(LANE),
                "warps": layout.input_size(WARP),
                "cells": cells,
                "places": list(frames(operation.location)[:1]),
            }
    return list(found.values())


def _moved(function: Function) -> set[Type]:
    """The types of tensors that are loaded or stored."""
    found = set()
    for operation in function.walk():
        if operation.name == "tt.load":
            found.add(operation.result.type)
        elif operation.name == "tt.store":
            found.add(operation["value"].type)
    return found


def shape(function: Function, lanes: int) -> dict[str, Any] | None:
    """The shape of the largest tensor that is stored, or loaded where none is, and how a program's subgroups of
    ``lanes`` share it. None if the kernel has no tensors."""
    found = []
    for operation in function.walk():
        if operation.name in ("tt.store", "tt.load"):
            layout = _layout(operation["ptr"].type)
            if layout is not None and layout.rank:
                found.append((operation.name == "tt.store", layout.size, layout, operation))
    if not found:
        return None
    _, size, layout, operation = max(found, key=lambda one: one[:2])
    return {
        "what": "stored" if operation.name == "tt.store" else "loaded",
        "tile": list(layout.shape),
        "elements": size,
        "registers": layout.input_size(REGISTER),
        "lanes": lanes,
        "warps": layout.input_size(WARP),
        "places": list(frames(operation.location)[:1]),
    }


_HOW = {
    Identity: "nothing moves: both layouts hold the same elements in the same registers",
    RegisterPermutation: "registers are renamed; no instruction is needed",
    SubgroupShuffle: "lanes of a subgroup exchange registers by shuffles",
    ThroughShared: "through shared memory, with a barrier",
}


def conversions(function: Function, spelling: Spelling, plan: KernelPlan) -> list[dict[str, Any]]:
    """Each ``ttg.convert_layout``: how elements move from one layout to the other."""
    found = []
    for operation in function.walk():
        planned = plan.plans.get(operation)
        if operation.name != "ttg.convert_layout" or not isinstance(planned, Conversion):
            continue
        source, result = operation["src"].type, operation.result.type
        before, after = planned.source, planned.target
        assert before is not None and after is not None
        old, new = owners(before), owners(after)
        found.append(
            {
                "from": spelling.type(source),
                "to": spelling.type(result),
                "how": _HOW[type(planned.moves)],
                "why": planned.reason,
                "elements": before.size,
                "lane": sum(old[element][:2] != new[element][:2] for element in new),
                "warp": sum(old[element][0] != new[element][0] for element in new),
                "warps": _moves(old, new, 0, before.input_size(WARP)),
                "lanes": _moves(old, new, 1, before.input_size(LANE)),
                "places": list(frames(operation.location)[:1]),
            }
        )
    return found


def _moves(old: Owners, new: Owners, part: int, size: int) -> list[list[int]]:
    """How many elements go from each warp (``part`` 0) or lane (1), a row, to each, a column."""
    table = [[0] * size for _ in range(size)]
    for element, place in new.items():
        table[old[element][part]][place[part]] += 1
    return table


def _bits(type_: Type) -> int:
    element = type_.element if isinstance(type_, TensorType) else type_
    if isinstance(element, PointerType):
        return _bits(element.pointee)
    return max(8, int(getattr(element, "width", 64)))


def accesses(function: Function, plan: KernelPlan) -> list[dict[str, Any]]:
    """Each load and store of device memory: its width, and what keeps it from being wider."""
    info = AxisInfoAnalysis(function)
    found = []
    for operation in function.walk():
        if operation.name not in ("tt.load", "tt.store"):
            continue
        pointer = operation["ptr"]
        layout = _layout(pointer.type)
        bits = _bits(pointer.type)
        planned = plan.plans.get(operation)
        width = planned.width if isinstance(planned, GlobalAccess) else 1
        scalar, reasons = layout is None or not layout.rank, []
        if layout is None or not layout.rank:
            why = "one scalar"
        elif planned is not None and planned.reason == CHECKED:
            why = "every access is checked against its tensor, one element at a time"
        elif width * bits >= WIDEST:
            why = "as wide as an access can be"
        else:
            reasons = _limits(layout, info, pointer, next(iter(masks(operation)), None), bits, width)
            why = "; ".join([*reasons, *_lane(layout, width)]) or "it is as wide as the tensor"
        found.append(
            {
                "what": operation.name.removeprefix("tt."),
                "type": str(pointer.type),
                "bits": width * bits,
                "elements": width,
                "why": why,
                "scalar": scalar,
                "could": bool(reasons),
                "in_loop": in_loop(operation),
                "places": list(frames(operation.location)[:1]),
            }
        )
    return found


def _lane(layout: LinearLayout, width: int) -> list[str]:
    dim, registers = contiguous_registers(layout)
    if registers > width:
        return []
    return [
        f"a lane holds {_counted(registers, 'consecutive element')} along dimension {dim}: a larger block, or "
        "fewer warps, gives a lane more"
    ]


def _limits(
    layout: LinearLayout, info: AxisInfoAnalysis, pointer: Value, mask: Value | None, bits: int, width: int
) -> list[str]:
    """What keeps an access from being wider, beside how many elements a lane holds."""
    dim, _ = contiguous_registers(layout)
    known = info[pointer]
    contiguity, divisor = known.contiguity[dim], known.divisibility[dim]
    reasons = []
    if contiguity <= width:
        reasons.append(
            f"the addresses are known to be consecutive only for {_counted(contiguity, 'element')}: a stride that is "
            "passed at run time is not known to be 1"
        )
    if divisor * 8 // bits <= width:
        reasons.append(
            f"the addresses are known to be multiples of {_counted(divisor, 'byte')} only: align the tensor and its "
            "strides to 16 bytes, or say so with tl.multiple_of"
        )
    if mask is not None and info[mask].constancy[dim] <= width:
        reasons.append(
            f"the mask may change every {_counted(info[mask].constancy[dim], 'element')}: with a size that is a "
            "multiple of 16 it is constant for longer"
        )
    return reasons


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def shared_memory(function: Function, plan: KernelPlan) -> dict[str, Any]:
    """What lies where in shared memory while the kernel runs, by operation: buffers and scratch memory with their first
    and last use. ``total``: bytes that the kernel takes, ``extent``: the end of the last buffer."""
    steps = list(function.walk())
    number = {operation: place for place, operation in enumerate(steps)}
    whole = [one for one in steps if one.name == BARRIER or one in plan.reads_first.waits]
    barriers = {**plan.barriers, **dict.fromkeys(whole, Need.WORKGROUP)}
    buffers: list[dict[str, Any]] = []
    for operation in steps:
        start = end = number[operation]
        if operation.name == "ttg.local_alloc":
            type_ = operation.result.memdesc
            view = plan.buffers.get(operation.result)
            found = [(view.first, buffer_bytes(type_))] if view is not None else []
            end = max((_last(use, operation, number) for use in _uses(operation.result)), default=start)
        else:
            planned = plan.plans.get(operation)
            found = [(one.offset, one.size) for one in planned.scratch] if planned is not None else []
        buffers += [
            {
                "name": operation.name,
                "label": _label(operation),
                "offset": offset,
                "size": size,
                "start": start,
                "end": end,
                "places": list(frames(operation.location)[:1]),
            }
            for offset, size in dict.fromkeys(found)
        ]
    _put_pools_in_a_row(buffers)
    return {
        "total": plan.shared_bytes,
        "extent": max((buffer["offset"] + buffer["size"] for buffer in buffers), default=0),
        "limit": plan.view.limit,
        "steps": len(steps),
        "buffers": buffers,
        "barriers": [
            {
                "step": number[operation],
                "whose": _WHOSE[barriers[operation]],
                "places": list(frames(operation.location)[:1]),
            }
            for operation in steps
            if operation in barriers
        ],
    }


def _label(operation: Operation) -> str:
    """The Python variable that a buffer holds, or the operation that it is for."""
    value = operation.optional("src") if operation.name == "ttg.local_alloc" else None
    named = [operation.location.name]
    if value is not None:
        named += [value.location.name, value.owner.location.name if isinstance(value.owner, Operation) else ""]
    return next(filter(None, named), operation.name.partition(".")[2])


def _put_pools_in_a_row(buffers: list[dict[str, Any]]) -> None:
    """Offsets as if the arrays of all types lay one after the other."""
    start = 0
    for pool in sorted({buffer["offset"] // POOL for buffer in buffers}):
        own = [buffer for buffer in buffers if buffer["offset"] // POOL == pool]
        extent = max(aligned(buffer["offset"] % POOL + buffer["size"]) for buffer in own)
        for buffer in own:
            buffer["pool"] = pool
            buffer["moved"] = start + buffer["offset"] % POOL
        start += extent
    for buffer in buffers:
        buffer["offset"] = buffer.pop("moved")
        del buffer["pool"]


_WHOSE = {Need.SUBGROUP: "of the subgroup", Need.WORKGROUP: "of the workgroup"}


def _last(use: Operation, alloc: Operation, number: dict[Operation, int]) -> int:
    """The last step at which a buffer is needed for ``use``: in a loop that does not hold the buffer's allocation, that
    of the loop, which comes back to the use."""
    whole = use
    while whole.block is not alloc.block:
        region = whole.block.parent if whole.block is not None else None
        if region is None or region.parent is None:
            break
        whole = region.parent
    return max(number[inner] for inner in whole.walk())


def _uses(value: Value) -> Iterator[Operation]:
    """The operations that use a buffer, or a view of it."""
    for use in value.uses:
        yield use
        if use.name.startswith("ttg.memdesc_"):
            yield from _uses(use.result)


def instruction_mix(spirv: bytes) -> list[tuple[str, int]]:
    """Instructions of a module by family, the most frequent first. Debug information is none."""
    instructions = list(decode(spirv))
    described = InlinedCalls(instructions).describes
    counts = Counter(_family(entry.name) for entry in instructions if not described(entry))
    counts.pop("", None)
    return counts.most_common()


_FAMILIES = (
    ("", ("OpExtInstImport", "OpSource", "OpString", "OpSelectionMerge", "OpUndef")),  # a device executes none
    ("memory", ("OpLoad", "OpStore", "OpCopyMemory")),
    ("atomics", ("OpAtomic",)),
    ("matrix units", ("OpCooperativeMatrix",)),
    ("shuffles and votes", ("OpGroupNonUniform",)),
    ("barriers", ("OpControlBarrier", "OpMemoryBarrier")),
    ("floating-point arithmetic", ("OpFAdd", "OpFSub", "OpFMul", "OpFDiv", "OpFRem", "OpFNegate", "OpExtInst")),
    ("conversions", ("OpConvert", "OpFConvert", "OpUConvert", "OpSConvert", "OpBitcast")),
    ("comparisons and selections", ("OpFOrd", "OpFUnord", "OpIEqual", "OpINotEqual", "OpSelect", "OpLogical")),
    ("comparisons and selections", ("OpSLess", "OpSGreater", "OpULess", "OpUGreater", "OpIsNan", "OpIsInf")),
    ("control flow", ("OpBranch", "OpPhi", "OpReturn", "OpSwitch", "OpUnreachable", "OpFunctionCall")),
    ("addresses", ("OpAccessChain", "OpPtrAccessChain")),
    ("integer arithmetic", ("OpI", "OpS", "OpU", "OpBit", "OpShift", "OpNot")),
    ("vectors", ("OpComposite", "OpVector")),
)


def _family(name: str) -> str:
    """The family of an instruction; "" for what the device does not execute."""
    for family, beginnings in _FAMILIES:
        if name.startswith(beginnings):
            return family
    return ""
