// A command buffer of a device's ring: what is handed over with it, and which launch it holds.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "buffer.h"

namespace triton_spirv {

// One dispatch. `block` is the argument block of the ABI; `indirect` puts it into a buffer. `kernel`: what errors call
// it, of kernel_label().
struct Dispatch {
  VkPipeline pipeline;
  uint32_t grid[3];
  const std::byte* block;
  uint32_t block_bytes;
  bool indirect;
  const std::string* kernel;
};

// A kernel's name in errors, kept until the process ends: work may outlive whoever submitted it.
const std::string* kernel_label(const std::string& label);

// A semaphore of another API and the value to wait for.
struct ExternalWait {
  VkSemaphore semaphore;
  uint64_t value;
};

// Commands that are handed to the driver together.
struct Submission {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  uint64_t value = 0;    // of the last work in them
  ExternalWait after{};  // what they wait for, if it has a semaphore
};

// A launch as commands that may run again: two that are equal record the same.
class LaunchKey {
 public:
  LaunchKey() = default;
  explicit LaunchKey(const Dispatch& dispatch);
  bool operator==(const LaunchKey& other) const { return hash_ == other.hash_ && bytes_ == other.bytes_; }
  bool is_of(VkPipeline pipeline) const;
  explicit operator bool() const { return !bytes_.empty(); }

 private:
  std::size_t hash_ = 0;
  std::vector<std::byte> bytes_;
};

struct Slot : Submission {
  std::unique_ptr<Buffer> block;  // holds the argument block of an indirect dispatch
  LaunchKey launch;               // what the commands do, where they are one launch and can run again
  bool begun = false;             // they begin with a barrier, and nothing else is recorded yet
};

}  // namespace triton_spirv
