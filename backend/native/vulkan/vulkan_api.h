// The Vulkan functions that the launch path calls, loaded from libvulkan.so.1 at run time.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "device_error.h"

#define TRITON_SPIRV_INSTANCE_FUNCTIONS(X)       \
  X(vkGetDeviceProcAddr)                         \
  X(vkGetPhysicalDeviceExternalBufferProperties) \
  X(vkGetPhysicalDeviceMemoryProperties)         \
  X(vkGetPhysicalDeviceMemoryProperties2)        \
  X(vkGetPhysicalDeviceProperties2)              \
  X(vkGetPhysicalDeviceQueueFamilyProperties)

#define TRITON_SPIRV_DEVICE_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers)            \
  X(vkAllocateMemory)                    \
  X(vkBeginCommandBuffer)                \
  X(vkBindBufferMemory)                  \
  X(vkCmdBindPipeline)                   \
  X(vkCmdCopyBuffer)                     \
  X(vkCmdDispatch)                       \
  X(vkCmdFillBuffer)                     \
  X(vkCmdPipelineBarrier)                \
  X(vkCmdPushConstants)                  \
  X(vkCmdUpdateBuffer)                   \
  X(vkCmdWriteTimestamp)                 \
  X(vkCreateBuffer)                      \
  X(vkCreateCommandPool)                 \
  X(vkCreateQueryPool)                   \
  X(vkCreateSemaphore)                   \
  X(vkDestroyBuffer)                     \
  X(vkDestroyCommandPool)                \
  X(vkDestroyQueryPool)                  \
  X(vkDestroySemaphore)                  \
  X(vkDeviceWaitIdle)                    \
  X(vkEndCommandBuffer)                  \
  X(vkFreeMemory)                        \
  X(vkGetBufferDeviceAddress)            \
  X(vkGetBufferMemoryRequirements)       \
  X(vkGetQueryPoolResults)               \
  X(vkGetSemaphoreCounterValue)          \
  X(vkMapMemory)                         \
  X(vkQueueSubmit)                       \
  X(vkResetQueryPool)                    \
  X(vkWaitSemaphores)

namespace triton_spirv {

// A Vulkan call that failed. `result` is its VkResult.
class VulkanError : public DeviceError {
 public:
  VulkanError(const char* function, VkResult result);
  VulkanError(const std::string& message, VkResult result);
  VkResult result;
};

// Throws VulkanError unless `result` is VK_SUCCESS.
inline void check(VkResult result, const char* function) {
  if (result != VK_SUCCESS) throw VulkanError(function, result);
}

// Returns vkGetInstanceProcAddr of libvulkan.so.1. Throws std::runtime_error if the loader is missing.
PFN_vkGetInstanceProcAddr load_loader();

struct InstanceFunctions {
  explicit InstanceFunctions(VkInstance instance);
#define X(name) PFN_##name name = nullptr;
  TRITON_SPIRV_INSTANCE_FUNCTIONS(X)
#undef X
};

struct DeviceFunctions {
  DeviceFunctions(const InstanceFunctions& instance, VkDevice device);
#define X(name) PFN_##name name = nullptr;
  TRITON_SPIRV_DEVICE_FUNCTIONS(X)
#undef X
  // Absent without VK_EXT_external_memory_host.
  PFN_vkGetMemoryHostPointerPropertiesEXT vkGetMemoryHostPointerPropertiesEXT = nullptr;
  // Absent if no queue binds sparse memory.
  PFN_vkQueueBindSparse vkQueueBindSparse = nullptr;
  // Absent without VK_EXT_device_fault.
  PFN_vkGetDeviceFaultInfoEXT vkGetDeviceFaultInfoEXT = nullptr;
  // Absent without VK_KHR_external_semaphore_fd.
  PFN_vkGetSemaphoreFdKHR vkGetSemaphoreFdKHR = nullptr;
};

}  // namespace triton_spirv
