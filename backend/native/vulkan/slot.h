// A command buffer of a device's ring: what is submitted with it, and which launch it holds.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dispatch.h"
#include "vulkan/job_times.h"
#include "vulkan/vulkan_buffer.h"

namespace triton_spirv {

// A semaphore of another API and the value to wait for.
struct SemaphoreWait {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

// Commands that are submitted to the driver together.
struct Submission {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  uint64_t value = 0;     // the value of the last work in them
  SemaphoreWait after{};  // the semaphore that they wait for, if any
  uint64_t copies = 0;    // the value of the transfer queue's timeline that they wait for, if any
};

// Identifies a launch whose commands may run again. Equal keys stand for equal commands.
class CommandsKey {
 public:
  CommandsKey() = default;
  explicit CommandsKey(const Dispatch& dispatch);
  bool operator==(const CommandsKey& other) const { return hash_ == other.hash_ && bytes_ == other.bytes_; }
  bool is_of(KernelHandle kernel) const;
  explicit operator bool() const { return !bytes_.empty(); }

 private:
  void append(const void* data, std::size_t bytes);
  void finish();

  std::size_t hash_ = 0;
  std::vector<std::byte> bytes_;
};

struct Slot : Submission {
  std::vector<Launched> launches;       // on a device whose submissions are bounded
  uint32_t queries = 0;                 // of two that its commands write, where they are timed
  bool timed = false;                   // submitted, and not yet learnt from
  std::unique_ptr<VulkanBuffer> block;  // holds the argument block of an indirect dispatch
  CommandsKey key;                      // set if the commands are one launch and can run again
  bool begun = false;                   // only the barrier at the beginning is recorded yet
};

}  // namespace triton_spirv
