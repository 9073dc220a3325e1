// One launch as a device gets it, and what goes with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace triton_spirv {

class Buffer;

// An address that kernels use.
using Address = uint64_t;

// A kernel that is loaded on a device, as its kind of device names it. It is never 0.
using KernelHandle = uint64_t;

// One dispatch. `block` is the argument block of the ABI; `indirect`: the kernel reads it from a buffer. `name`: the
// kernel's name in errors, from kernel_label(), or null. The block is the caller's, and may be gone after the call.
struct Dispatch {
  KernelHandle kernel;
  uint32_t grid[3];
  const std::byte* block;
  uint32_t block_bytes;
  bool indirect;
  const std::string* name;
};

// Returns a kernel's name in errors. It is kept until the process ends, because work may outlive the submitting object.
const std::string* kernel_label(const std::string& label);

// A host range that is copied to the device before a dispatch, and copied back after it if `write_back` is set.
struct StagedCopy {
  std::byte* host;  // first byte of the range
  uint64_t bytes;   // length of the range
  Buffer* staging;  // mapped; the range starts at its first byte
  Buffer* device;   // the kernel's copy
  uint64_t offset;  // start of the range in `device`
  bool write_back;
};

// A semaphore of another API, by its number on the device, and the value to wait for.
struct ExternalWait {
  std::size_t semaphore;
  uint64_t value;
};

// Values of a device's two timelines: that of its work, and that of what ran on its transfer queue.
struct Point {
  uint64_t work = 0;
  uint64_t copies = 0;
};

// The time at which a device reached a point of its timelines. `slot`: where the device has it; `written`: the point
// when it is there.
struct Timestamp {
  uint64_t slot;
  Point written;
};

// Returns an owner of everything that a dispatch uses.
using Used = std::function<std::shared_ptr<void>()>;

}  // namespace triton_spirv
