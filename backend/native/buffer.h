// Memory of a device that work can use.
#pragma once

#include <memory>
#include <utility>

#include "vulkan_api.h"

namespace triton_spirv {

class Device;

// A buffer with its own memory, or none of its own where it was joined of others. `address` is its device address;
// `host` its mapped address, or null.
class Buffer {
 public:
  Buffer(std::shared_ptr<Device> device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes,
         VkDeviceAddress address, void* host)
      : device_(std::move(device)), buffer_(buffer), memory_(memory), bytes_(bytes), address_(address), host_(host) {}
  // Waits for nothing: the memory goes back once the work is done that may use it.
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Gives the memory back once all submitted work is done. A second call does nothing. Where it throws, the buffer is
  // as it was.
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
  bool ended_ = false;  // its owner let go of it
};

// Where an allocation lies.
enum class MemoryKind {
  kDevice,   // device-local, for kernels
  kStaging,  // host-visible, coherent and, where there is such a type, cached
};

// What every buffer can be used for.
constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

}  // namespace triton_spirv
