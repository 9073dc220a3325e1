#include "event.h"

namespace triton_spirv {

Event::~Event() {
  if (time_) device_->release_timestamp(*time_);
}

void Event::order(Stream* stream) {
  if (device_->failed()) device_->check_usable();
  if (stream != nullptr) stream->go_on(*device_);
  device_->order(stream, point());
}

void Event::record(Stream* stream) {
  if (stream != nullptr) stream->go_on(*device_);
  if (!timing_) {
    device_->check_usable();
    device_->refuse_while_recording();
    const std::lock_guard<std::mutex> guard(mutex_);
    point_ = device_->point(stream);
    return;
  }
  if (!device_->has_timestamps())
    throw std::runtime_error("the device has no timestamps: record events without enable_timing");
  Timestamp time = device_->acquire_timestamp();
  try {
    device_->write_timestamp(time, stream);
  } catch (...) {
    device_->release_timestamp(time);
    throw;
  }
  std::optional<Timestamp> before = time;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    point_ = time.written;
    time_.swap(before);
  }
  if (before) device_->release_timestamp(*before);
}

double Event::elapsed_ms(Event& end) {
  device_->check_usable();  // before the mutexes, which threads of the parent may hold in a forked child
  const auto read = [](Event& event) {
    const std::lock_guard<std::mutex> guard(event.mutex_);
    return event.time_;
  };
  const std::optional<Timestamp> from = read(*this), to = read(end);
  if (!from || !to)
    throw std::runtime_error("elapsed_time() needs two recorded events that were made with enable_timing=True");
  if (device_ != end.device_) throw std::runtime_error("elapsed_time() needs two events of one device");
  device_->await(from->written);
  device_->await(to->written);
  return device_->elapsed(*from, *to) * 1e-6;
}

}  // namespace triton_spirv
