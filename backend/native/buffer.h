// Device memory that submitted work can use.
#pragma once

#include <cstdint>

#include "dispatch.h"

namespace triton_spirv {

// A range of a device's memory. `address` is its device address, 0 once it is freed, and `host` its mapped address or
// null. The destructor does not wait: the memory is given back when no submitted work can use it any more.
class Buffer {
 public:
  Buffer(uint64_t bytes, Address address, void* host) : bytes_(bytes), address_(address), host_(host) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Waits for all submitted work and frees the memory. A second call does nothing. If it throws, the buffer is
  // unchanged.
  virtual void free() = 0;
  uint64_t bytes() const { return bytes_; }
  Address address() const { return address_; }
  void* host() const { return host_; }

 protected:
  uint64_t bytes_;
  Address address_;
  void* host_;
};

// Where an allocation lies.
enum class MemoryKind {
  kDevice,   // for kernels
  kRead,     // the same, and the host may read it, if the device has such memory
  kStaging,  // mapped, and what either side writes is visible to the other
};

}  // namespace triton_spirv
