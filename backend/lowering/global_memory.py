"""Accesses to device memory by address (SPV_KHR_physical_storage_buffer): a pointer is a 64-bit integer until here."""

from __future__ import annotations

from collections.abc import Sequence

from ..spirv.opcodes import Capability_, MemoryAccess
from ..ttgir.types import Type, element_type
from .element_types import MEMORY_FEATURE
from .emitter import Emitter
from .errors import missing
from .packing import PackedElements, pack, packing, unpack

MEMORY_CAPABILITY = {8: Capability_.StorageBuffer8BitAccess, 16: Capability_.StorageBuffer16BitAccess}


def _pointer(emitter: Emitter, address: int, how: PackedElements) -> int:
    module = emitter.module
    bits = module.kinds[how.part][1]
    if bits in MEMORY_FEATURE:
        feature = MEMORY_FEATURE[bits]
        if not emitter.capabilities.has(feature):
            raise missing(emitter.capabilities.driver, f"cannot access {bits}-bit elements in memory", feature)
        module.capability(MEMORY_CAPABILITY[bits])
    return emitter.device_pointer(address, how.type_id(emitter))


def load_elements(emitter: Emitter, address: int, type_: Type, count: int, volatile: bool = False) -> list[int]:
    """Loads ``count`` consecutive elements of ``type_`` from an address aligned to all of them."""
    how = packing(emitter, element_type(type_), count)
    access = emitter.global_access | (MemoryAccess.Volatile if volatile else 0)
    pointer = _pointer(emitter, _lane_address(emitter, address), how)
    return unpack(emitter, how, emitter.f.load(how.type_id(emitter), pointer, access, how.bits // 8))


def _lane_address(emitter: Emitter, address: int) -> int:
    """The address; for a driver with the fault ``unmasked_loads`` one that depends on the lane: with a zero
    that is made of the lane's number. Outside of selections and loops all lanes are active."""
    f = emitter.f
    if not f.nesting or not emitter.capabilities.traits.faults.unmasked_loads:
        return address
    base, offset = f.base_and_constant(address)
    return f.add(f.add(base, emitter.lane_zero()), emitter.module.uint(offset, 64))


def store_elements(emitter: Emitter, address: int, type_: Type, values: Sequence[int]) -> None:
    """Stores consecutive elements of ``type_`` at an address aligned to all of them."""
    how = packing(emitter, element_type(type_), len(values))
    emitter.f.store(_pointer(emitter, address, how), pack(emitter, how, values), emitter.global_access, how.bits // 8)
