// Errors of the Khronos validation layer, collected for Python to raise.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "vulkan/vulkan_api.h"

namespace triton_spirv {

class Messenger {
 public:
  // The instance needs VK_EXT_debug_utils and must outlive close().
  explicit Messenger(VkInstance instance);
  ~Messenger() { close(); }
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  std::vector<std::string> take();
  void close();

 private:
  static VKAPI_ATTR VkBool32 VKAPI_CALL receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                VkDebugUtilsMessageTypeFlagsEXT types,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* self);

  VkInstance instance_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::vector<std::string> messages_;
};

}  // namespace triton_spirv
