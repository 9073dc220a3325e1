// A point on a device's timeline, with the time at which it was reached.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "device.h"

namespace triton_spirv {

class Event {
 public:
  // `timing`: whether elapsed_ms() will be asked for.
  Event(std::shared_ptr<Device> device, bool timing) : device_(std::move(device)), timing_(timing) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // The point is reached when all work submitted until now is done. A second call moves it.
  void record();
  // Whether it was reached, or never recorded.
  bool query() { return device_->done(value_); }
  void synchronize() { device_->wait(value_); }
  // Milliseconds from this point to `end`, waiting for both. Throws std::runtime_error where either has no time.
  double elapsed_ms(Event& end);

 private:
  std::shared_ptr<Device> device_;
  bool timing_;
  std::mutex mutex_;
  std::optional<Query> query_;  // with mutex_
  std::atomic<uint64_t> value_{0};
};

}  // namespace triton_spirv
