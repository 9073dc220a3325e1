#include "event.h"

namespace triton_spirv {

Event::~Event() {
  // A query that the device has yet to write may be taken by another event: that one's write comes later.
  if (has_query_) device_->release_query(query_);
}

void Event::record() {
  if (!timing_) {
    device_->check_usable();
    device_->refuse_while_recording();
    value_ = device_->submitted();
    return;
  }
  if (!device_->has_timestamps())
    throw std::runtime_error("the queue of the Vulkan device has no timestamps: record events without enable_timing");
  if (!has_query_) {
    query_ = device_->acquire_query();
    has_query_ = true;
  }
  value_ = device_->write_timestamp(query_);
}

double Event::elapsed_ms(Event& end) {
  if (!has_query_ || !end.has_query_)
    throw std::runtime_error("elapsed_time() needs two recorded events that were made with enable_timing=True");
  if (device_ != end.device_) throw std::runtime_error("elapsed_time() needs two events of one device");
  synchronize();
  end.synchronize();
  return device_->elapsed(query_, end.query_) * 1e-6;
}

}  // namespace triton_spirv
