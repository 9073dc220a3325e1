"""A kernel that finds out which element of a cooperative matrix each component of each lane is.

It loads two matrices from device memory, of which one has each element's row and the other its column, and writes what
each lane has of them. Rows and columns are small integers, which every component type holds exactly.
"""

from __future__ import annotations

from typing import Any

from ...matrices import COMPONENTS, ComponentMap, Position
from ...spirv import opcodes as op
from ...spirv.function import FunctionBuilder
from ...spirv.module import ENCODED_FLOATS, ModuleBuilder
from ...spirv.opcodes import Capability_, ExecutionMode_, MemoryAccess, Scope, StorageClass
from .probing import read_inputs

#: Components that a lane's part of the results has room for, and what is there where it has no such component.
ROOM = 64
_NONE = 0x7F
_ROW_MAJOR = 0
_STORAGE = {
    8: (Capability_.StorageBuffer8BitAccess, "SPV_KHR_8bit_storage"),
    16: (Capability_.StorageBuffer16BitAccess, "SPV_KHR_16bit_storage"),
}


def probe_module(component: str, rows: int, columns: int, use: int, lanes: int) -> bytes:
    """The module. Its argument is the address of ``probe_data``."""
    module = ModuleBuilder()
    f = FunctionBuilder(module, module.void)
    bits = COMPONENTS[component].bits
    scalar = _scalar(module, component)
    uint = module.uint
    module.capability(Capability_.CooperativeMatrixKHR)
    module.extension("SPV_KHR_cooperative_matrix")
    if bits in _STORAGE:
        module.capability(_STORAGE[bits][0])
    matrix = module.cooperative_matrix(scalar, uint(Scope.Subgroup), rows, columns, use)
    address, lane = read_inputs(module, f)

    def at(element: int) -> int:
        """A pointer to an element (an id) of the data."""
        offset = f.zero_extend(f.mul(element, uint(bits // 8)), 64)
        return f.emit(
            op.ConvertUToPtr, module.pointer(StorageClass.PhysicalStorageBuffer, scalar), f.add(address, offset)
        )

    length = f.effect(op.CooperativeMatrixLengthKHR, module.u32, matrix)
    variable = f.variable(matrix)
    size = rows * columns
    for plane in range(2):
        loaded = f.effect(
            op.CooperativeMatrixLoadKHR,
            matrix,
            at(uint(plane * size)),
            uint(_ROW_MAJOR),
            uint(columns),
            MemoryAccess.Aligned,
            max(16, bits // 8),
        )
        f.store(variable, loaded)
        first = f.add(uint(2 * size + plane * lanes * ROOM), f.mul(lane, uint(ROOM)))

        def body(carried: list[int], first: int = first) -> list[int]:
            (number,) = carried
            pointer = f.access(module.pointer(StorageClass.Function, scalar), variable, number)
            f.store(at(f.add(first, number)), f.load(scalar, pointer), MemoryAccess.Aligned, bits // 8)
            return [f.add(number, uint(1))]

        f.loop([uint(0)], lambda carried: f.compare(op.ULessThan, carried[0], length), body)
    f.return_()
    function = f.finish()
    module.set_entry(f.id, "probe", [[ExecutionMode_.LocalSize, lanes, 1, 1]])
    return module.finish(function)


def _scalar(module: ModuleBuilder, component: str) -> int:
    if component in ENCODED_FLOATS:
        return module.encoded_component(component)
    bits = COMPONENTS[component].bits
    return module.int(bits) if component[0] in "su" else module.float(bits)


def probe_data(component: str, rows: int, columns: int, lanes: int) -> Any:
    """The array whose address the kernel gets: each element's row, each element's column, and room for the results."""
    import numpy as np

    numbers = np.full(2 * rows * columns + 2 * lanes * ROOM, _NONE)
    places = np.indices((rows, columns))
    numbers[: 2 * rows * columns] = places.reshape(-1)
    if component == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    kind = "f" if component[0] == "f" else "i" if component[0] == "s" else "u"
    return numbers.astype(f"{kind}{COMPONENTS[component].bits // 8}")


def read_map(data: Any, component: str, rows: int, columns: int, lanes: int) -> ComponentMap | None:
    """The map that the kernel found. None if it is not linear over GF(2), or does not cover the matrix."""
    import numpy as np

    if component == "bf16":
        data = (data.astype(np.uint32) << 16).view(np.float32)
    found = data[2 * rows * columns :].astype(np.int64).reshape(2, lanes, ROOM)
    lengths = {int(length) for length in (found[0] != _NONE).sum(axis=1)}
    (length,) = lengths if len(lengths) == 1 else (0,)
    if length < 1 or length & (length - 1) or lanes & (lanes - 1):
        return None

    def place(lane: int, number: int) -> Position:
        return int(found[0, lane, number]), int(found[1, lane, number])

    map_ = ComponentMap(
        tuple(place(0, 1 << bit) for bit in range(length.bit_length() - 1)),
        tuple(place(1 << bit, 0) for bit in range(lanes.bit_length() - 1)),
    )
    seen = set()
    for lane in range(lanes):
        for number in range(length):
            seen.add(place(lane, number))
            if map_.place(number, lane) != place(lane, number):
                return None
    return map_ if len(seen) == rows * columns else None
