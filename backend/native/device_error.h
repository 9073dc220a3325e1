// The error of a device: what it was doing, and whether giving memory back, or opening the device again, helps.
#pragma once

#include <stdexcept>
#include <string>

#include "shared.h"

namespace triton_spirv {

class DeviceError : public std::runtime_error {
 public:
  enum class Kind {
    kOther,
    kNoMemory,  // memory that is given back may help
    kTimeout,   // work did not end in time
    kLost,      // the device runs nothing any more
  };
  explicit DeviceError(const std::string& message, Kind kind = Kind::kOther)
      : std::runtime_error(message), kind(kind) {}
  // Whether the device is abandoned, and its next use opens it again.
  bool abandons() const { return kind == Kind::kTimeout || kind == Kind::kLost; }
  const Kind kind;
};

// Sets the Python error of a device's error, whatever its kind of device. Python's lock is held.
USED_BY_TORCH void set_device_error(const DeviceError& error);

}  // namespace triton_spirv
