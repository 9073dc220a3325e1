// A stream of a device beside its first one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "dispatch.h"

namespace triton_spirv {

class Device;

// What a thread submits to a device goes to the stream that is current there. The kernels of all streams run in the
// order in which they were submitted, on one queue. A stream's copies between pinned memory and the device may run on
// another queue, the transfer queue, beside kernels: they come after what the stream did or waited for before, and what
// the stream does later comes after them.
class Stream {
 public:
  explicit Stream(std::weak_ptr<const Device> device) : device_(std::move(device)) {}

  // The stream of this thread on a device; null for the first one.
  static std::shared_ptr<Stream> current(const Device& device);
  static void make_current(const Device& device, std::shared_ptr<Stream> stream);

  bool is_of(const Device& device) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return device_.lock().get() == &device;
  }
  // Begins anew on a device that was opened in place of its own, which failed: what it did there is gone.
  void go_on(const Device& device);
  // What was done and waited for until now.
  Point point() const { return {work_.load(std::memory_order_acquire), copies_.load(std::memory_order_acquire)}; }
  // Later work and copies come after `point`.
  void wait_for(const Point& point) {
    raise(work_, point.work);
    raise(copies_, point.copies);
  }
  static void raise(std::atomic<uint64_t>& value, uint64_t least) {
    uint64_t before = value.load(std::memory_order_relaxed);
    while (before < least && !value.compare_exchange_weak(before, least, std::memory_order_acq_rel)) {
    }
  }

 private:
  mutable std::mutex mutex_;
  std::weak_ptr<const Device> device_;  // with mutex_
  std::atomic<uint64_t> work_{0}, copies_{0};
};

}  // namespace triton_spirv
