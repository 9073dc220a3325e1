"""Operands of matrix dots that do not change in a loop are loaded from shared memory before it, once.

Upstream loads them where they are multiplied, such as the queries of attention in each iteration over keys. Loaded
as soon as they are stored, they stay in registers, and their buffer is free for others, which takes less shared memory
and fewer barriers. Loops that follow one another share what they load. That is right for a buffer that is written once.

It is worth it while the loop's values leave registers for them, or if only then another workgroup finds room beside
this one. A schedule that has them ``held`` asks for it in any case. An operand that would not leave that room either,
because it is large, gets into its layout without a buffer, in rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...analysis.matrix_dots import feeds_matrix_dots
from ...layouts.buffer_layouts import buffer_bytes
from ...layouts.distributed import LayoutError, layout_of
from ...layouts.element_sizes import bits_in_memory
from ...ttgir.ir import Block, Module, Operation, Value
from ...ttgir.operations import definition_of
from ...ttgir.types import PointerType, TensorType
from ..rewriting import Rewriter
from .loop_buffers import fills, loop_bytes

#: Of a lane's registers, how many the values below may take: others are for addresses and fragments. On an H100,
#: attention with heads of 64 and 128×64, and the gradients of its queries with 128×32, four warps each, take 0.8 and
#: 0.82. They went from 195 to 278 and from 216 to 320 TFLOP/s.
_SHARE = 0.86


@dataclass(frozen=True)
class Capacity:
    """32-bit ``registers`` of a lane; bytes of ``shared`` memory that a workgroup may take; ``held``: whether operands
    are loaded before loops in any case."""

    registers: int
    shared: int
    held: bool = False


def hoist_invariant_operands(module: Module, room: Capacity) -> bool:
    """Moves loads out of every ``scf.for``, as far as there is ``room``. Whether any was moved."""
    loaded: list[Operation] = []
    for operation in list(module.walk()):
        if operation.name == "scf.for":
            loaded += _hoist(operation, room)
    for load in dict.fromkeys(loaded):
        _convert(load, room)
    return bool(loaded)


def _hoist(loop: Operation, room: Capacity) -> list[Operation]:
    """Moves a loop's loads before it. Gives what it has instead: those, or the same ones of an earlier loop."""
    body, loaded = loop.regions[0].entry, list[Operation]()
    if not any(operation.name == "tt.dot" for operation in body.operations):
        return loaded
    held, budget = _held(loop, body), room.registers * _SHARE
    filled = sum(buffer_bytes(one.result.memdesc) for one in fills(body))
    anyway = room.held or filled <= room.shared < loop_bytes(body)
    for load in [operation for operation in body.operations if _is_invariant(operation, body)]:
        size = _words(load.result)
        if held + size > budget and not anyway:
            continue
        held += size
        same = _loaded_before(loop, load)
        if same is not None:
            load.result.replace_uses(same.result)
            load.erase()
            loaded.append(same)
            continue
        view, allocation = load["src"].owner, _allocation(load)
        assert isinstance(view, Operation)
        ready = allocation if view.block is body else view
        there = Rewriter.after(ready) if ready.block is loop.block else Rewriter.before(loop)
        if view.block is body:
            there.move(view)
            there = Rewriter.after(view)
        there.move(load)
        loaded.append(load)
    return loaded


def _convert(load: Operation, room: Capacity) -> None:
    """Changes the layout of what a load reads instead of storing it, if the buffer is larger than the room, and no
    other operation reads it."""
    allocation = load["src"].owner
    assert isinstance(allocation, Operation)
    alone = allocation.name == "ttg.local_alloc" and allocation.block is load.block
    if alone and allocation.result.uses == [load] and buffer_bytes(allocation.result.memdesc) > room.shared:
        converted = Rewriter.before(load).make("ttg.convert_layout", allocation.operands, [load.result.type])
        load.result.replace_uses(converted.result)
        load.erase()
        allocation.erase()


def _loaded_before(loop: Operation, load: Operation) -> Operation | None:
    """A load of the same buffer for an earlier loop. With one of its own, this loop would keep the buffer from what the
    earlier one stores."""
    for operation in loop.block.operations if loop.block is not None else ():
        if operation is loop:
            break
        alike = operation.name == load.name and operation.operands == load.operands
        if alike and operation.result.type == load.result.type:
            return operation
    return None


def _held(loop: Operation, body: Block) -> int:
    """Words of a lane that live through an iteration: what the loop carries, other results of dots, and tiles on their
    way."""
    held = sum(_words(value) for value in loop.results)
    for operation in body.operations:
        if operation.name == "tt.dot" and operation.result not in body.terminator.operands:
            held += _words(operation.result)
        if operation.name == "ttg.local_alloc" and operation.operands:
            held += _words(operation["src"])
    return held


def _is_invariant(load: Operation, body: Block) -> bool:
    """Whether it loads an operand of dots of fragments from a buffer that was filled before the loop."""
    if load.name != "ttg.local_load" or len(load.operands) != 1 or not feeds_matrix_dots(load.result):
        return False
    allocation = _allocation(load)
    if not isinstance(allocation, Operation) or allocation.name != "ttg.local_alloc" or allocation.block is body:
        return False
    return not allocation.result.memdesc.mutable


def _allocation(load: Operation) -> Any:
    """What defines the buffer that a load reads, or reads a view of."""
    owner = load["src"].owner
    return owner["src"].owner if isinstance(owner, Operation) and definition_of(owner).view else owner


def _words(value: Value) -> int:
    """32-bit registers that a lane has of a tensor; none of pointers, of which one stands for many."""
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.encoding is None or isinstance(type_.element, PointerType):
        return 0
    try:
        layout = layout_of(type_)
    except LayoutError:
        return 0
    return max(1, (bits_in_memory(type_.element) << len(layout.bases["register"])) // 32)
