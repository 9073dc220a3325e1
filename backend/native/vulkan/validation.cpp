#include "vulkan/validation.h"

#include <string_view>

namespace triton_spirv {

Messenger::Messenger(VkInstance instance) : instance_(instance) {
  const auto create =
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(load_loader()(instance, "vkCreateDebugUtilsMessengerEXT"));
  if (create == nullptr) throw std::runtime_error("the Vulkan instance lacks VK_EXT_debug_utils");
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT;
  info.pfnUserCallback = receive;
  info.pUserData = this;
  check(create(instance, &info, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

VkBool32 Messenger::receive(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                            const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  // Layers of 2023 report this if two threads wait for a timeline, and add that the report is most likely wrong.
  if (data->pMessageIdName != nullptr &&
      std::string_view(data->pMessageIdName) == "UNASSIGNED-VkSemaphore-state-timeout")
    return VK_FALSE;
  auto* messenger = static_cast<Messenger*>(self);
  const std::lock_guard<std::mutex> guard(messenger->mutex_);
  messenger->messages_.emplace_back(data->pMessage);
  return VK_FALSE;
}

std::vector<std::string> Messenger::take() {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<std::string> taken;
  taken.swap(messages_);
  return taken;
}

void Messenger::close() {
  if (messenger_ == VK_NULL_HANDLE) return;
  const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      load_loader()(instance_, "vkDestroyDebugUtilsMessengerEXT"));
  destroy(instance_, messenger_, nullptr);
  messenger_ = VK_NULL_HANDLE;
}

}  // namespace triton_spirv
