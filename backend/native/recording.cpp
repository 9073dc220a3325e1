#include "recording.h"

namespace triton_spirv {

thread_local Recording* Recording::recording_ = nullptr;

Recording::Recording(std::shared_ptr<Device> device)
    : device_(std::move(device)), recorded_(device_->make_recorded()) {}

Recording::~Recording() {
  if (recording_ == this) recording_ = nullptr;
  device_->keep(last_, std::move(recorded_));
}

Recording* Recording::current(const Device& device) {
  return recording_ != nullptr && recording_->device_.get() == &device ? recording_ : nullptr;
}

void Recording::begin() {
  if (recording_ != nullptr) throw std::runtime_error("this thread is capturing a graph already");
  if (begun_) throw std::runtime_error("this graph was captured already: make a new one");
  const Device::Use use(*device_);
  device_->check_usable();
  recorded_->begin();
  begun_ = true;
  recording_ = this;
}

void Recording::pause() {
  if (recording_ == this) recording_ = nullptr;
}

void Recording::go_on() { recording_ = this; }

void Recording::add(const Dispatch& dispatch) {
  const Device::Use use(*device_);
  device_->check_usable();
  recorded_->add(dispatch);
  ++launches_;
}

void Recording::end(bool ready) {
  if (recording_ != this) throw std::runtime_error("this thread is not capturing this graph");
  recording_ = nullptr;
  const Device::Use use(*device_);
  try {
    device_->check_usable();
  } catch (const std::exception&) {
    if (ready) throw;
    return;  // what was recorded is gone or belongs to another process
  }
  recorded_->end();
  ready_ = ready;
}

uint64_t Recording::replay() {
  if (!ready_) throw std::runtime_error("this graph was not captured to its end, so it cannot be replayed");
  if (launches_ == 0) return 0;
  device_->check_usable();
  device_->refuse_while_recording();
  const uint64_t value = recorded_->submit();
  uint64_t last = last_.load(std::memory_order_relaxed);
  while (last < value && !last_.compare_exchange_weak(last, value, std::memory_order_release)) {
  }
  if (host_) device_->wait(value);
  return value;
}

}  // namespace triton_spirv
