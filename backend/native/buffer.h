// Device memory that submitted work can use.
#pragma once

#include <memory>
#include <utility>

#include "vulkan_api.h"

namespace triton_spirv {

class Device;

// A buffer. A joined buffer has no memory of its own; every other buffer has. `address` is its device address, and
// `host` its mapped address or null.
class Buffer {
 public:
  Buffer(std::shared_ptr<Device> device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes,
         VkDeviceAddress address, void* host)
      : device_(std::move(device)), buffer_(buffer), memory_(memory), bytes_(bytes), address_(address), host_(host) {}
  // Does not wait: the memory is freed when no submitted work can use it any more.
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Waits for all submitted work and frees the memory. A second call does nothing. If it throws, the buffer is
  // unchanged.
  void free();
  VkBuffer buffer() const { return buffer_; }
  VkDeviceSize bytes() const { return bytes_; }
  VkDeviceAddress address() const { return address_; }
  void* host() const { return host_; }

 private:
  friend class Device;
  void give_back();

  std::shared_ptr<Device> device_;
  VkBuffer buffer_;
  VkDeviceMemory memory_;
  VkDeviceSize bytes_;
  VkDeviceAddress address_;
  void* host_;
  bool ended_ = false;  // its owner released it
};

// Where an allocation lies.
enum class MemoryKind {
  kDevice,   // device-local, for kernels
  kStaging,  // host-visible and coherent; cached if the device has such memory
};

// The uses of every buffer.
constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

}  // namespace triton_spirv
