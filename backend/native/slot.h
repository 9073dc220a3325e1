// A command buffer of a device's ring: what is submitted with it, and which launch it holds.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "buffer.h"

namespace triton_spirv {

// One dispatch. `block` is the argument block of the ABI; `indirect` puts it into a buffer. `kernel`: the
// kernel's name in errors, from kernel_label().
struct Dispatch {
  VkPipeline pipeline;
  uint32_t grid[3];
  const std::byte* block;
  uint32_t block_bytes;
  bool indirect;
  const std::string* kernel;
};

// Returns a kernel's name in errors. It is kept until the process ends, because work may outlive the submitting object.
const std::string* kernel_label(const std::string& label);

// A semaphore of another API and the value to wait for.
struct ExternalWait {
  VkSemaphore semaphore;
  uint64_t value;
};

// Commands that are submitted to the driver together.
struct Submission {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  uint64_t value = 0;    // the value of the last work in them
  ExternalWait after{};  // the semaphore that they wait for, if any
};

// Identifies a launch whose commands may run again. Launches with equal keys record equal commands.
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
  LaunchKey launch;               // set if the commands are one launch and can run again
  bool begun = false;             // only the barrier at the beginning is recorded yet
};

}  // namespace triton_spirv
