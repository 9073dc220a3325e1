#include "vulkan/vulkan_api.h"

#include "platform/platform.h"

namespace triton_spirv {
namespace {

const char* result_name(VkResult result) {
  switch (result) {
#define CASE(name) \
  case name:       \
    return #name;
    CASE(VK_NOT_READY)
    CASE(VK_TIMEOUT)
    CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
    CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    CASE(VK_ERROR_INITIALIZATION_FAILED)
    CASE(VK_ERROR_DEVICE_LOST)
    CASE(VK_ERROR_MEMORY_MAP_FAILED)
    CASE(VK_ERROR_TOO_MANY_OBJECTS)
    CASE(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    CASE(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
#undef CASE
    default:
      return "an error without a known name";
  }
}

DeviceError::Kind kind_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:  // of memory
      return DeviceError::Kind::kNoMemory;
    case VK_TIMEOUT:
      return DeviceError::Kind::kTimeout;
    case VK_ERROR_DEVICE_LOST:
      return DeviceError::Kind::kLost;
    default:
      return DeviceError::Kind::kOther;
  }
}

}  // namespace

VulkanError::VulkanError(const char* function, VkResult result)
    : VulkanError(std::string(function) + " failed: " + result_name(result) + " (" +
                      std::to_string(static_cast<int>(result)) + ")",
                  result) {}

VulkanError::VulkanError(const std::string& message, VkResult result)
    : DeviceError(message, kind_of(result)), result(result) {}

PFN_vkGetInstanceProcAddr load_loader() {
  // The library is never closed, because driver threads may run until the process ends.
  static void* library = platform::load_library(platform::kVulkanLoader);
  if (library == nullptr)
    throw std::runtime_error(std::string(platform::kVulkanLoader) + " could not be loaded; " +
                             platform::kInstallVulkan);
  auto function = reinterpret_cast<PFN_vkGetInstanceProcAddr>(platform::function_of(library, "vkGetInstanceProcAddr"));
  if (function == nullptr)
    throw std::runtime_error(std::string(platform::kVulkanLoader) + " has no vkGetInstanceProcAddr");
  return function;
}

InstanceFunctions::InstanceFunctions(VkInstance instance) {
  const PFN_vkGetInstanceProcAddr get = load_loader();
#define X(name)                                              \
  name = reinterpret_cast<PFN_##name>(get(instance, #name)); \
  if (name == nullptr) throw std::runtime_error("the Vulkan loader has no " #name);
  TRITON_SPIRV_INSTANCE_FUNCTIONS(X)
#undef X
}

DeviceFunctions::DeviceFunctions(const InstanceFunctions& instance, VkDevice device) {
#define X(name)                                                                     \
  name = reinterpret_cast<PFN_##name>(instance.vkGetDeviceProcAddr(device, #name)); \
  if (name == nullptr) throw std::runtime_error("the Vulkan driver has no " #name);
  TRITON_SPIRV_DEVICE_FUNCTIONS(X)
#undef X
  vkGetMemoryHostPointerPropertiesEXT = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      instance.vkGetDeviceProcAddr(device, "vkGetMemoryHostPointerPropertiesEXT"));
  vkQueueBindSparse =
      reinterpret_cast<PFN_vkQueueBindSparse>(instance.vkGetDeviceProcAddr(device, "vkQueueBindSparse"));
  vkGetDeviceFaultInfoEXT =
      reinterpret_cast<PFN_vkGetDeviceFaultInfoEXT>(instance.vkGetDeviceProcAddr(device, "vkGetDeviceFaultInfoEXT"));
  vkGetSemaphoreFdKHR =
      reinterpret_cast<PFN_vkGetSemaphoreFdKHR>(instance.vkGetDeviceProcAddr(device, "vkGetSemaphoreFdKHR"));
}

}  // namespace triton_spirv
