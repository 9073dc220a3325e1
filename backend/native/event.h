// A point on a device's timeline, and the time at which the device reached it.
#pragma once

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

  // Sets the point behind what the stream, the first one for null, did and waited for until now. A second call moves
  // it.
  void record(Stream* stream);
  std::shared_ptr<Stream> current_stream() const { return Stream::current(*device_); }
  // Whether the device has reached the point, or the point was never recorded.
  bool query() { return device_->done(point()); }
  void synchronize() { device_->await(point()); }
  // What the stream does later comes after the point.
  void order(Stream* stream);
  // Waits for both points, and returns the milliseconds from this point to `end`. Throws std::runtime_error if either
  // has no time.
  double elapsed_ms(Event& end);

 private:
  std::shared_ptr<Device> device_;
  bool timing_;
  std::mutex mutex_;
  std::optional<Timestamp> time_;  // with mutex_
  Point point_;                    // with mutex_
  Point point() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return point_;
  }
};

}  // namespace triton_spirv
