"""Accesses that are looked at before they happen: those of emulated devices (native/cpu/emulation.cpp), and those of
kernels that are watched for races between programs (native/cpu/program_races.cpp); and instructions of emulated
devices, which are counted where that is asked for."""

from __future__ import annotations

from ..spirv.opcodes import Scope, Semantics, StorageClass
from .decoded_module import BasicBlock, ModuleInstruction
from .divergence import Key
from .translation import Translation

_FUNCTIONS = {
    StorageClass.Workgroup: "triton_spirv_watch_shared",
    StorageClass.PhysicalStorageBuffer: "triton_spirv_watch_device",
}
_READ, _WRITE, _UPDATE = range(3)
#: How atomic instructions access memory, as program_races.h numbers it; the others update it.
_ATOMIC = {"OpAtomicLoad": 3, "OpAtomicStore": 4, "OpAtomicCompareExchange": 5}
#: Scopes that reach other programs.
_WIDE = (Scope.CrossDevice, Scope.Device, Scope.QueueFamily)


def watch(t: Translation, item: ModuleInstruction, address: Key, size: int) -> None:
    """Has an access of ``size`` bytes at each active lane's place looked at, where something looks."""
    storage = t.program.type(item.operands[0]).storage
    kind = _UPDATE if item.name.startswith("OpAtomic") else _WRITE if "Store" in item.name else _READ
    if functions_of(t, storage):
        watch_places(t, storage, t.vector(address), size, kind, _ATOMIC.get(item.name, kind))


def functions_of(t: Translation, storage: int) -> list[str]:
    """The functions that look at accesses of a storage class."""
    found = [_FUNCTIONS[storage]] if t.program.emulation is not None and storage in _FUNCTIONS else []
    if t.program.watched and storage == StorageClass.PhysicalStorageBuffer:
        found.append("triton_spirv_watch_program")
    return found


def watch_places(
    t: Translation, storage: int, places: str, size: int, kind: int = _READ, detailed: int = _READ
) -> None:
    """Watches a vector of places."""
    functions = functions_of(t, storage)
    if not functions:
        return
    code = t.code
    at = t.pointer(code.emit(f"add i64 %own, {t.told}"))
    code.do(f"store {t.spread('i64')} {places}, ptr {at}, align 64")
    active = code.emit(f"zext {t.mask_type} {t.active()} to {t.spread('i8')}")
    bytes_ = code.emit(f"getelementptr i8, ptr {at}, i64 {8 * t.lanes}")
    code.do(f"store {t.spread('i8')} {active}, ptr {bytes_}, align 1")
    for function in functions:
        # A fault and a race are told by the line of the call: calls of two lines stay two.
        code.declarations.add(f"declare void @{function}(ptr, ptr, i32, i32, i32) nomerge")
        said = detailed if function == "triton_spirv_watch_program" else kind
        arguments = [("ptr", at), ("ptr", bytes_), ("i32", str(t.lanes)), ("i32", str(size)), ("i32", str(said))]
        code.call(function, "void", arguments, declared=True)


def order_program(t: Translation, item: ModuleInstruction) -> None:
    """Has a barrier order accesses of device memory with those of other programs, if it does."""
    *_, scope, semantics = (t.program.constants[operand].bits for operand in item.operands)
    if t.program.watched and scope in _WIDE and semantics & Semantics.UniformMemory:
        t.code.call("triton_spirv_order_program", "void", [])


def count_instructions(t: Translation, block: BasicBlock) -> None:
    """Counts the instructions of a block, with its phis and its branch, where a lane of the subgroup is active."""
    if t.program.emulation is None or not t.program.emulation.counts:
        return
    count = str(len(block.phis) + len(block.body) + 1)
    if t.mask is not None:
        count = t.code.emit(f"select i1 {t.any_of(t.mask)}, i32 {count}, i32 0")
    t.code.call("triton_spirv_count_instructions", "void", [("i32", count)])
