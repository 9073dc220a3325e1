// The processor as a device: kernels are machine code in this process, and device memory is host memory.
//
// Work runs in order, one piece at a time, each on the threads of one pool. A piece that is known to be short runs at
// once, on the thread that submits it. Another one is queued for a thread of the device, the worker, so that the thread
// that waits for it can look at signals, and can stop it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cpu/kernel.h"
#include "cpu/pool.h"
#include "cpu/program_races.h"
#include "device.h"

namespace triton_spirv {

// A kernel raised a signal, and its launch ended. The device goes on.
class KernelFault : public DeviceError {
 public:
  KernelFault(const std::string& message, KernelHandle kernel, const cpu::Fault& fault)
      : DeviceError(message), kernel(kernel), fault(fault) {}
  const KernelHandle kernel;
  const cpu::Fault fault;
};

class CpuDevice final : public Device {
 public:
  // `threads`: how many share a launch. `timeout_ns`: how long one may take. `host_addresses`: whether kernels use host
  // memory in place; otherwise it is copied for them, as for a GPU. `emulates`: kernels are another device's, and look
  // at their accesses (emulation.h).
  CpuDevice(unsigned threads, uint64_t timeout_ns, bool host_addresses, bool emulates);
  ~CpuDevice() override;

  bool stop() override;
  bool close() override;

  std::unique_ptr<Buffer> allocate(uint64_t bytes, MemoryKind kind) override;
  std::shared_ptr<void> adopt(Address address, uint64_t bytes, std::shared_ptr<void> owner) override;
  std::shared_ptr<Recorded> make_recorded() override;
  // Throws the error of a launch up to `value` that nobody waited for before, or of an earlier one.
  void wait(uint64_t value) override;
  bool launched_at_once(const Dispatch& dispatch) override;

  void upload(Address address, const std::byte* host, uint64_t bytes) override;
  void download(std::byte* host, Address address, uint64_t bytes) override;
  void copy(Address to, Address from, uint64_t bytes) override;
  void fill(Address address, uint64_t bytes, uint32_t word) override;
  bool owns(Address address, uint64_t bytes) override;
  bool overlaps(Address address, uint64_t bytes) override;

  // Timestamps are nanoseconds of the host's steady clock.
  bool has_timestamps() const override { return true; }
  Timestamp acquire_timestamp() override;
  void release_timestamp(const Timestamp& timestamp) override;
  void write_timestamp(Timestamp& timestamp, Stream* stream) override;
  double elapsed(const Timestamp& from, const Timestamp& to) override;

  unsigned threads() const { return threads_; }
  // A launch as it is queued or recorded: with a block of its own.
  class OwnedLaunch;
  // Queues launches that run one after the other. Returns the timeline's value when they are done.
  uint64_t submit(std::shared_ptr<const std::vector<OwnedLaunch>> launches);

 protected:
  uint64_t submit_launch(const Dispatch& dispatch, const ExternalWait* after) override;
  void run_now(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used) override;
  uint64_t look() override { return reached_.load(std::memory_order_acquire); }

 private:
  friend class CpuBuffer;
  friend class CpuForks;
  using Clock = std::chrono::steady_clock;

  // What a job does, with the turn. It runs its launches by execute().
  using Task = std::function<void()>;
  struct Job {
    uint64_t value;
    Task task;
    std::exception_ptr* error;  // where its submitter, who waits, finds its error; null if nobody waits
  };
  // The launch that is running, for those who may have to stop it.
  struct Running {
    cpu::Launch* launch = nullptr;
    const std::string* name = nullptr;
    Clock::time_point since;
    uint64_t value = 0;
    bool on_main_thread = false;  // which gets the program's signals
  };
  // When a launch may run on the thread that submits it: how long it is expected to take.
  enum class AtOnce { kIfIdle, kIfShort, kIfTiny };

  // A mutex is held during these: mutex_.
  bool idle() const { return !turn_ && queue_.empty(); }
  uint64_t begin_turn();
  void end_turn(uint64_t value);
  uint64_t enqueue(std::unique_lock<std::mutex>& lock, Task task, std::exception_ptr* error);
  void begin_worker();
  void set_running(cpu::Launch& launch, const std::string* name, uint64_t value, bool at_once);
  void clear_running();
  void stop_running(cpu::Stop why);
  // Stops the running launch if it has taken too long.
  void look_at_running();

  // Runs a launch at once and returns true, or returns false if it has to be queued.
  bool run_at_once(const Dispatch& dispatch, AtOnce when, uint64_t& value);
  // Does work whose submitter needs it to be done on return, or that is short.
  void run_in_turn(const Task& task);
  // Leaves a task that moves so many bytes to the thread, unless it is short and nothing is before it.
  void at_once_or_later(uint64_t bytes, const Task& task);
  void enqueue_and_wait(Task task);
  void run_programs(cpu::Launch& launch);
  // Runs a launch of the job that has the turn.
  void execute(const Dispatch& dispatch);
  void execute(cpu::Launch& launch, const std::string* name);
  void execute_copy(std::byte* to, const std::byte* from, uint64_t bytes);
  void execute_fill(std::byte* to, uint64_t bytes, uint32_t word);
  void throw_if_stopped(const cpu::Launch& launch, const std::string* name) const;
  void throw_earlier_error();
  // Waits until the timeline reaches a value. `on_throw` runs, with mutex_, if a signal handler throws.
  void wait_until(uint64_t value, const std::function<void()>& on_throw);
  void work();

  void check_range(Address address, uint64_t bytes);
  void add_memory(uint64_t address, uint64_t bytes);
  // Memory is the device's no more. `owned` is released when no submitted work can use it.
  void give_back(uint64_t address, std::shared_ptr<void> owned);

  // Around a fork: nothing changes meanwhile. In the child, the threads are gone, and with them what they had to do.
  void lock_for_fork();
  void unlock_after_fork();
  void begin_in_child();

  const unsigned threads_;
  const uint64_t timeout_ns_;
  const bool emulates_;
  std::unique_ptr<cpu::Pool> pool_;
  std::unique_ptr<cpu::ProgramRaces> races_;  // from the first launch that is watched on

  std::mutex mutex_;
  std::condition_variable work_;  // there is something for the worker
  std::condition_variable done_;  // the timeline moved
  bool turn_ = false;             // a thread runs work
  std::deque<Job> queue_;
  uint64_t executing_ = 0;  // the value of the job that has the turn
  Running running_;
  unsigned waiters_ = 0;
  std::exception_ptr error_;  // of work that nobody waited for
  std::atomic<bool> has_error_{false};
  pthread_t worker_{};
  bool has_worker_ = false;
  bool ends_ = false;
  // The worker looks now and then at launches that run at once, as long as there are some.
  bool watches_ = false;
  bool ran_at_once_ = false;
  std::shared_ptr<Device> kept_;  // this, if work never ended

  std::mutex buffers_mutex_;
  std::map<uint64_t, uint64_t> buffers_;  // address and length
  std::mutex timestamps_mutex_;
  std::deque<std::atomic<int64_t>> times_;
  std::vector<uint64_t> free_times_;
};

class CpuDevice::OwnedLaunch {
 public:
  explicit OwnedLaunch(const Dispatch& dispatch);
  // The launch. It points to the block here.
  Dispatch dispatch() const;

 private:
  Dispatch dispatch_;
  std::vector<std::byte> memory_;  // the block, and room to align it
};

}  // namespace triton_spirv
