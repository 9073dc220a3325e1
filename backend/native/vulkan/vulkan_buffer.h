// A buffer of a Vulkan device.
#pragma once

#include <memory>
#include <utility>

#include "buffer.h"
#include "vulkan/vulkan_api.h"

namespace triton_spirv {

class VulkanDevice;

// A joined buffer has no memory of its own; every other buffer has.
class VulkanBuffer : public Buffer {
 public:
  VulkanBuffer(std::shared_ptr<VulkanDevice> device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes,
               VkDeviceAddress address, void* host)
      : Buffer(bytes, address, host), device_(std::move(device)), buffer_(buffer), memory_(memory) {}
  ~VulkanBuffer() override;

  void free() override;
  VkBuffer buffer() const { return buffer_; }

 private:
  friend class VulkanDevice;
  void give_back();

  std::shared_ptr<VulkanDevice> device_;
  VkBuffer buffer_;
  VkDeviceMemory memory_;
  bool ended_ = false;  // its owner released it
};

// The uses of every buffer.
constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

}  // namespace triton_spirv
