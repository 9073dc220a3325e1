"""What a device's driver reports about its matrix units (VK_KHR_cooperative_matrix)."""

from __future__ import annotations

from typing import Any

from ..device_kind import MatrixProperties
from .loader import Instance, check, vulkan

EXTENSION = "VK_KHR_cooperative_matrix"
_STRUCTURE_TYPE = 1000506001  # VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
_SCOPE_SUBGROUP = 3

#: VkComponentTypeKHR → the component type's name in matrices.py. The last are of later extensions than the ``vulkan``
#: package: VK_KHR_shader_bfloat16, VK_EXT_shader_float8.
COMPONENT_TYPES = {
    0: "f16",
    1: "f32",
    2: "f64",
    3: "s8",
    4: "s16",
    5: "s32",
    7: "u8",
    8: "u16",
    9: "u32",
    1000141000: "bf16",
    1000491002: "f8E4M3FN",
    1000491003: "f8E5M2",
}


def matrix_properties(instance: Instance, physical: Any) -> tuple[MatrixProperties, ...]:
    """What a VkPhysicalDevice of ``instance`` with the extension multiplies, as far as its types are known here."""
    vk = vulkan()
    ffi = vk.ffi
    name = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
    # A loader that does not know the extension finds the driver's function for this instance's devices alone.
    found = vk.lib.vkGetInstanceProcAddr(instance.handle, name.encode())
    if found == ffi.NULL:
        return ()
    function = ffi.cast("VkResult(*)(VkPhysicalDevice, uint32_t*, VkCooperativeMatrixPropertiesKHR*)", found)
    count = ffi.new("uint32_t*")
    check(function(physical, count, ffi.NULL), name)
    rows = ffi.new("VkCooperativeMatrixPropertiesKHR[]", max(1, count[0]))
    for index in range(count[0]):
        # The package's enumeration may not know the number.
        ffi.cast("uint32_t*", ffi.addressof(rows[index]))[0] = _STRUCTURE_TYPE
    check(function(physical, count, rows), name)
    return tuple(dict.fromkeys(filter(None, map(_read, rows[0 : count[0]]))))


def _read(row: Any) -> MatrixProperties | None:
    numbers = (int(vulkan().ffi.cast("uint32_t", value)) for value in (row.AType, row.BType, row.CType, row.ResultType))
    a, b, c, result = (COMPONENT_TYPES.get(number) for number in numbers)
    extents = row.MSize, row.NSize, row.KSize
    if a is None or b is None or c is None or result is None or int(row.scope) != _SCOPE_SUBGROUP:
        return None
    if any(extent < 1 or extent & (extent - 1) for extent in extents):
        return None
    return MatrixProperties(*extents, (a, b, c, result), bool(row.saturatingAccumulation))
