// Launches that are recorded once and submitted again and again, as one submission each time.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "device.h"

namespace triton_spirv {

// Launches as a kind of device records them, and everything that they use. From begin() to end() it is used by one
// thread.
class Recorded {
 public:
  Recorded() = default;
  virtual ~Recorded() = default;
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  virtual void begin() = 0;
  // Adds a launch, whose block it copies.
  virtual void add(const Dispatch& dispatch) = 0;
  virtual void end() = 0;
  // Submits all launches in order, behind all earlier work. Returns the timeline's value when they are done.
  virtual uint64_t submit() = 0;

  std::vector<std::shared_ptr<void>> kept;
};

class Recording {
 public:
  explicit Recording(std::shared_ptr<Device> device);
  // Keeps what the launches use until the last replay is done.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // From begin() to end(), the calling thread's launches on the device are recorded and not run. Copies, fills and
  // events of that thread are refused. Throws std::runtime_error if the thread is already recording, or if this object
  // was recorded before.
  void begin();
  // `ready`: whether the recording may be replayed.
  void end(bool ready);
  // Between pause() and go_on(), the recording thread's work is done and not recorded.
  void pause();
  void go_on();
  // The calling thread's recording on `device`, or nullptr.
  USED_BY_TORCH static Recording* current(const Device& device);
  // Keeps an object that the recorded launches use until this object is destroyed and all replays are done.
  void keep(std::shared_ptr<void> used) { recorded_->kept.push_back(std::move(used)); }
  // Called before a launch of `kernel`. `tensors` stands for the launch's tensors.
  void note(KernelHandle kernel, std::shared_ptr<void> tensors) {
    kernels_.insert(kernel);
    tensors_.push_back(std::move(tensors));
  }
  // Called for a launch of this thread.
  void add(const Dispatch& dispatch);
  // A launch uses host memory.
  void use_host_memory() { host_ = true; }
  const std::vector<std::shared_ptr<void>>& tensors() const { return tensors_; }
  const std::set<KernelHandle>& kernels() const { return kernels_; }

  // Submits all launches in order, behind all earlier work. Returns the timeline's value when they are done. If a
  // launch uses host memory, waits until they are done.
  uint64_t replay();
  // Returns when all replays are done.
  void wait() { device_->wait(last_.load(std::memory_order_acquire)); }
  std::size_t launches() const { return launches_; }

 private:
  static thread_local Recording* recording_;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Recorded> recorded_;
  std::vector<std::shared_ptr<void>> tensors_;
  std::set<KernelHandle> kernels_;
  std::size_t launches_ = 0;
  bool host_ = false;  // a launch uses host memory
  bool begun_ = false;
  bool ready_ = false;             // recorded completely
  std::atomic<uint64_t> last_{0};  // of the last replay
};

}  // namespace triton_spirv
