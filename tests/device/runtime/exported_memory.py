"""Memory of the device that another API could have made: exported as an opaque file descriptor."""

from triton.backends.spirv.runtime.context import Context
from triton.backends.spirv.runtime.vulkan.loader import check, vulkan

from benchmarks.submission import new

_OPAQUE_FD = 1
#: Storage, both ways of a transfer, and a device address.
_USAGE = 0x20 | 3 | 0x20000
_DEVICE_LOCAL, _DEVICE_ADDRESS = 1, 2


class ExportedMemory:
    """``bytes`` bytes of device memory; ``descriptor()`` gives a file descriptor, which is the caller's."""

    def __init__(self, context: Context, bytes: int) -> None:
        vk = vulkan()
        ffi, lib, self._device = vk.ffi, vk.lib, context.opened.handle
        external, info = new("VkExternalMemoryBufferCreateInfo"), new("VkBufferCreateInfo")
        external.handleTypes = _OPAQUE_FD
        info.size, info.usage, info.pNext = bytes, _USAGE, external
        buffer, needs = ffi.new("VkBuffer*"), ffi.new("VkMemoryRequirements*")
        check(lib.vkCreateBuffer(self._device, info, ffi.NULL, buffer), "vkCreateBuffer")
        lib.vkGetBufferMemoryRequirements(self._device, buffer[0], needs)
        lib.vkDestroyBuffer(self._device, buffer[0], ffi.NULL)
        assert needs.size == bytes
        properties = ffi.new("VkPhysicalDeviceMemoryProperties*")
        lib.vkGetPhysicalDeviceMemoryProperties(context.device.handle, properties)
        export, flags, allocation = (
            new(f"Vk{name}Info") for name in ("ExportMemoryAllocate", "MemoryAllocateFlags", "MemoryAllocate")
        )
        export.handleTypes = _OPAQUE_FD
        flags.flags, flags.pNext = _DEVICE_ADDRESS, export
        allocation.allocationSize, allocation.pNext = bytes, flags
        allocation.memoryTypeIndex = next(
            index
            for index in range(properties.memoryTypeCount)
            if needs.memoryTypeBits >> index & 1 and properties.memoryTypes[index].propertyFlags & _DEVICE_LOCAL
        )
        self._memory = ffi.new("VkDeviceMemory*")
        check(lib.vkAllocateMemory(self._device, allocation, ffi.NULL, self._memory), "vkAllocateMemory")
        self._export = ffi.cast("PFN_vkGetMemoryFdKHR", lib.vkGetDeviceProcAddr(self._device, b"vkGetMemoryFdKHR"))

    def descriptor(self) -> int:
        info, out = new("VkMemoryGetFdInfoKHR"), vulkan().ffi.new("int*")
        info.memory, info.handleType = self._memory[0], _OPAQUE_FD
        check(self._export(self._device, info, out), "vkGetMemoryFdKHR")
        return int(out[0])

    def free(self) -> None:
        vulkan().lib.vkFreeMemory(self._device, self._memory[0], vulkan().ffi.NULL)
