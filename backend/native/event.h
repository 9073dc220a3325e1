// A point on a device's timeline, and the time at which the device reached it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "device.h"

namespace triton_spirv {

class Event {
 public:
  // `timing`: whether elapsed_ms() will be called.
  Event(std::shared_ptr<Device> device, bool timing) : device_(std::move(device)), timing_(timing) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Sets the point behind all work that was submitted so far. A second call moves it.
  void record();
  // Whether the device has reached the point, or the point was never recorded.
  bool query() { return device_->done(value_); }
  void synchronize() { device_->wait(value_); }
  // Waits for both points, and returns the milliseconds from this point to `end`. Throws std::runtime_error if either
  // has no time.
  double elapsed_ms(Event& end);

 private:
  std::shared_ptr<Device> device_;
  bool timing_;
  std::mutex mutex_;
  std::optional<Timestamp> time_;  // with mutex_
  std::atomic<uint64_t> value_{0};
};

}  // namespace triton_spirv
