"""Accesses of emulated devices, which are looked at before they happen (native/cpu/emulation.cpp), and instructions,
which are counted where that is asked for."""

from __future__ import annotations

from ..spirv.opcodes import StorageClass
from .divergence import Key
from .program import BasicBlock, ModuleInstruction
from .translation import Translation

_FUNCTIONS = {
    StorageClass.Workgroup: "triton_spirv_watch_shared",
    StorageClass.PhysicalStorageBuffer: "triton_spirv_watch_device",
}
_READ, _WRITE, _UPDATE = range(3)


def watch(t: Translation, item: ModuleInstruction, address: Key, size: int) -> None:
    """Has an access of ``size`` bytes at each active lane's place looked at; nothing on the processor itself."""
    function = _FUNCTIONS.get(t.program.type(item.operands[0]).storage)
    if t.program.emulation is None or function is None:
        return
    kind = _UPDATE if item.name.startswith("OpAtomic") else _WRITE if "Store" in item.name else _READ
    watch_places(t, function, t.vector(address), size, kind)


def watch_places(t: Translation, function: str, places: str, size: int, kind: int = _READ) -> None:
    """Watches a vector of places."""
    code = t.code
    at = t.pointer(code.emit(f"add i64 %own, {t.told}"))
    code.do(f"store {t.spread('i64')} {places}, ptr {at}, align 64")
    active = code.emit(f"zext {t.mask_type} {t.active()} to {t.spread('i8')}")
    bytes_ = code.emit(f"getelementptr i8, ptr {at}, i64 {8 * t.lanes}")
    code.do(f"store {t.spread('i8')} {active}, ptr {bytes_}, align 1")
    arguments = [("ptr", at), ("ptr", bytes_), ("i32", str(t.lanes)), ("i32", str(size)), ("i32", str(kind))]
    code.call(function, "void", arguments)


def function_of(storage: int) -> str | None:
    """The function that looks at accesses of a storage class."""
    return _FUNCTIONS.get(storage)


def count_instructions(t: Translation, block: BasicBlock) -> None:
    """Counts the instructions of a block, with its phis and its branch, where a lane of the subgroup is active."""
    if t.program.emulation is None or not t.program.emulation.counts:
        return
    count = str(len(block.phis) + len(block.body) + 1)
    if t.mask is not None:
        count = t.code.emit(f"select i1 {t.any_of(t.mask)}, i32 {count}, i32 0")
    t.code.call("triton_spirv_count_instructions", "void", [("i32", count)])
