"""Loops in which a program waits for another one, as for a lock.

The system may take the processor away from the thread that is waited for, and another thread that only polls keeps it
from working: a program that polls sleeps after a while (``wait`` of triton_spirv/symbols.hpp). On two threads of a busy
machine, 40,000 turns with one lock take 3.5 ms of the processor instead of 5, and at worst 20 ms by the clock
instead of 33.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..spirv.opcodes import MemoryAccess, StorageClass
from .decoded_module import KernelModule, ModuleInstruction
from .translation import Translation

#: Rounds that are made at once: a loop that repeats an update until no other thread came between has fewer.
_ROUNDS_AT_ONCE = 64


def polls(program: KernelModule, blocks: Collection[int]) -> bool:
    """Whether a loop does nothing to device memory but look at the same places, or try to change them, until another
    program has written there. One that counts its rounds may end by itself. Programs that are watched do not wait: they
    run one after the other."""
    if program.emulation is not None or program.watched:
        return False
    inside = {
        item.result: item for label in blocks for item in (*program.blocks[label].phis, *program.blocks[label].body)
    }
    accesses = [item for label in blocks for item in program.blocks[label].body if _accesses_device(program, item)]
    if not accesses or any(item.name == "OpPhi" and _counts(inside, item) for item in inside.values()):
        return False
    return all(_looks(program, item) and not _varies(inside, item.operands[0]) for item in accesses)


def _accesses_device(program: KernelModule, item: ModuleInstruction) -> bool:
    if item.name in ("OpFunctionCall", "OpCopyMemory"):
        return True
    return (item.name in ("OpLoad", "OpStore") or item.name.startswith("OpAtomic")) and program.type(
        item.operands[0]
    ).storage == StorageClass.PhysicalStorageBuffer


def _looks(program: KernelModule, item: ModuleInstruction) -> bool:
    """Whether an access leaves memory as it is, unless another program has changed it."""
    if item.name == "OpLoad":
        return bool(item.operands[1:] and item.operands[1] & MemoryAccess.Volatile)
    if item.name in ("OpAtomicLoad", "OpAtomicCompareExchange"):
        return True
    known = program.constants.get(item.operands[3]) if item.name != "OpAtomicStore" and item.operands[3:] else None
    return known is not None and (known.bits == 0 or item.name == "OpAtomicExchange")


def _varies(inside: Mapping[int, ModuleInstruction], value: int) -> bool:
    """Whether a value differs between rounds of the loop that has these instructions."""
    ahead, seen = [value], {value}
    while ahead:
        item = inside.get(ahead.pop())
        if item is None:
            continue
        if item.name in ("OpPhi", "OpLoad", "OpFunctionCall") or item.name.startswith("OpAtomic"):
            return True
        new = set(item.operands) - seen
        seen |= new
        ahead += new
    return False


def _counts(inside: Mapping[int, ModuleInstruction], phi: ModuleInstruction) -> bool:
    """Whether what a loop carries is computed from what it was a round before, without a look at memory."""
    ahead, seen = [(operand, False) for operand in phi.operands], set[tuple[int, bool]]()
    while ahead:
        value, computed = one = ahead.pop()
        item = inside.get(value)
        if value == phi.result and computed:
            return True
        if item is None or one in seen or item.name == "OpLoad" or item.name.startswith("OpAtomic"):
            continue
        seen.add(one)
        ahead += [(operand, computed or item.name != "OpPhi") for operand in item.operands]
    return False


def wait(t: Translation, turn: str) -> str:
    """Has a loop wait at the end of a round, given how many were before it; gives how many were with it."""
    code = t.code
    waits, after = code.name("waits"), code.name("after")
    code.branch(code.emit(f"icmp ult i32 {turn}, {_ROUNDS_AT_ONCE}"), after, waits)
    code.label(waits)
    code.call("triton_spirv_wait", "void", [("i32", turn)])
    code.jump(after)
    code.label(after)
    return code.emit(f"add i32 {turn}, 1")
