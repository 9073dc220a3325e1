// A Vulkan device as the launch path sees it: buffers, and dispatches that are recorded, submitted and waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "vulkan_api.h"

namespace triton_spirv {

class Device;

// A buffer with its own memory. `address` is its device address; `host` its mapped address, or null.
class Buffer {
 public:
  Buffer(std::shared_ptr<Device> device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes,
         VkDeviceAddress address, void* host)
      : device_(std::move(device)), buffer_(buffer), memory_(memory), bytes_(bytes), address_(address), host_(host) {}
  ~Buffer() { free(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Gives the memory back. Nothing may be using it. A second call does nothing.
  void free();
  VkBuffer buffer() const { return buffer_; }
  VkDeviceSize bytes() const { return bytes_; }
  VkDeviceAddress address() const { return address_; }
  void* host() const { return host_; }

 private:
  std::shared_ptr<Device> device_;
  VkBuffer buffer_;
  VkDeviceMemory memory_;
  VkDeviceSize bytes_;
  VkDeviceAddress address_;
  void* host_;
};

// Where an allocation lies.
enum class MemoryKind {
  kDevice,   // device-local, for kernels
  kStaging,  // host-visible, coherent and, where there is such a type, cached
};

// A host range that is copied to the device before a dispatch and, where `write_back` is set, back after it.
struct StagedCopy {
  std::byte* host;      // first byte of the range
  VkDeviceSize bytes;   // of the range
  Buffer* staging;      // mapped; the range starts at its first byte
  Buffer* device;       // the kernel's copy
  VkDeviceSize offset;  // of the range in `device`
  bool write_back;
};

// One dispatch. `block` is the argument block of the ABI; `indirect` puts it into a buffer.
struct Dispatch {
  VkPipeline pipeline;
  uint32_t grid[3];
  const std::byte* block;
  uint32_t block_bytes;
  bool indirect;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  // The handles belong to the caller, who destroys them after close(). `timeout_ns`: how long a dispatch may take.
  Device(VkInstance instance, VkPhysicalDevice physical, VkDevice device, VkQueue queue, uint32_t queue_family,
         VkPipelineLayout layout, bool host_addresses, uint64_t timeout_ns);
  ~Device() { close(); }

  // Waits for all work and destroys what this object made. Later launches and allocations are refused.
  // False, with nothing destroyed, where a dispatch never ended, or in a forked child.
  bool close();

  std::unique_ptr<Buffer> allocate(VkDeviceSize bytes, MemoryKind kind);
  // Host memory as a buffer; pointer and size are multiples of minImportedHostPointerAlignment.
  std::unique_ptr<Buffer> import_host(void* pointer, VkDeviceSize bytes);

  // Runs the dispatch and returns when it is done. Thread-safe; call it without the GIL.
  void run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies);

  // Whether host addresses are device addresses, so that a dispatch may be given any host pointer.
  void set_host_addresses(bool holds) { host_addresses_ = holds; }
  const VkPhysicalDeviceLimits& limits() const { return limits_; }
  // Throws if this process was forked from the one that made the device, or the device is closed.
  void check_usable() const;

 private:
  friend class Buffer;
  // What one dispatch in flight needs. A free one is reused.
  struct Slot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    std::unique_ptr<Buffer> block;  // holds the argument block of an indirect dispatch
  };

  std::unique_ptr<Slot> acquire();
  void release(std::unique_ptr<Slot> slot);
  void destroy(Slot& slot);
  void record(Slot& slot, const Dispatch& dispatch, const std::vector<StagedCopy>& copies);
  void wait(Slot& slot);
  uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred) const;
  std::unique_ptr<Buffer> bind(VkBuffer buffer, uint32_t type, VkDeviceSize bytes, VkDeviceSize allocation, bool map,
                               const void* next);

  InstanceFunctions instance_functions_;
  DeviceFunctions vk_;
  VkDevice device_;
  VkQueue queue_;
  uint32_t queue_family_;
  VkPipelineLayout layout_;
  bool host_addresses_;
  uint64_t timeout_ns_;
  unsigned fork_generation_;
  bool closed_ = false;
  std::atomic<bool> stuck_{false};  // a dispatch did not end in time
  VkPhysicalDeviceLimits limits_{};
  VkPhysicalDeviceMemoryProperties memory_{};
  std::mutex slots_mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::mutex queue_mutex_;
};

}  // namespace triton_spirv
