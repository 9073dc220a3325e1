// Graphs and events of the CPU device.
#include "cpu/cpu_device.h"
#include "recording.h"

namespace triton_spirv {
namespace {

class RecordedLaunches final : public Recorded {
 public:
  explicit RecordedLaunches(std::shared_ptr<CpuDevice> device) : device_(std::move(device)) {}
  void begin() override {}
  void add(const Dispatch& dispatch) override { launches_->emplace_back(dispatch); }
  void end() override {}
  uint64_t submit() override { return device_->submit(launches_); }

 private:
  std::shared_ptr<CpuDevice> device_;
  std::shared_ptr<std::vector<CpuDevice::OwnedLaunch>> launches_ =
      std::make_shared<std::vector<CpuDevice::OwnedLaunch>>();
};

}  // namespace

std::shared_ptr<Recorded> CpuDevice::make_recorded() {
  return std::make_shared<RecordedLaunches>(std::static_pointer_cast<CpuDevice>(shared_from_this()));
}

Timestamp CpuDevice::acquire_timestamp() {
  const std::lock_guard<std::mutex> lock(timestamps_mutex_);
  if (free_times_.empty()) {
    times_.emplace_back(0);
    return {times_.size() - 1, {}};
  }
  const uint64_t slot = free_times_.back();
  free_times_.pop_back();
  return {slot, {}};
}

void CpuDevice::release_timestamp(const Timestamp& timestamp) {
  const std::lock_guard<std::mutex> lock(timestamps_mutex_);
  free_times_.push_back(timestamp.slot);
}

void CpuDevice::write_timestamp(Timestamp& timestamp, Stream*) {
  const Work use(*this);
  refuse_while_recording();
  std::atomic<int64_t>* time = nullptr;
  {
    const std::lock_guard<std::mutex> lock(timestamps_mutex_);
    time = &times_[timestamp.slot];
  }
  const auto write = [time] {
    time->store(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(), std::memory_order_release);
  };
  std::unique_lock<std::mutex> lock(mutex_);
  if (idle()) {
    write();
    timestamp.written = {submitted(), 0};
  } else {
    timestamp.written = {enqueue(lock, write, nullptr), 0};
  }
}

double CpuDevice::elapsed(const Timestamp& from, const Timestamp& to) {
  const std::lock_guard<std::mutex> lock(timestamps_mutex_);
  return static_cast<double>(times_[to.slot] - times_[from.slot]);
}

}  // namespace triton_spirv
