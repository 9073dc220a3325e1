#include "cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/emulation.h"
#include "cpu/fault_text.h"
#include "cpu/forks.h"
#include "cpu/interrupts.h"
#include "platform/platform.h"
#include "recording.h"

namespace triton_spirv {
namespace {

// A launch that is expected to be shorter than this, in nanoseconds, runs at once on the thread that waits for it, even
// if that thread has to look at signals.
constexpr float kShort = 20e6f;
// A launch that nobody waits for runs at once if it is shorter than this, in nanoseconds: to queue it takes as long.
constexpr float kTiny = 20e3f;
// How long a thread that waits polls before it sleeps. A launch of a kernel's first time is often shorter.
constexpr auto kPollTime = std::chrono::microseconds(20);
// How often a thread that waits looks at signals and at the time limit.
constexpr auto kLook = std::chrono::milliseconds(50);
// How often the worker looks at launches that run at once, and how often it sees none before it sleeps.
constexpr auto kWatch = std::chrono::milliseconds(100);
constexpr int kQuietLooks = 10;
// A launch that has run for this long is stopped if a signal handler throws in a wait for it.
constexpr auto kLong = std::chrono::seconds(1);
// How long a launch may take to stop. Kernels are interrupted, so only code outside of them takes time.
constexpr auto kGrace = std::chrono::seconds(10);
// As many jobs are queued. Whoever submits more waits.
constexpr std::size_t kMostQueued = 4096;

// What is said of a launch that did not end, where it was watched for races and a program waited for another one.
constexpr const char* kWaits =
    "; a program of it waited for another one to write: while races between programs are looked for, they run one "
    "after "
    "another, and none may wait for one that comes later";

// Whether this is the thread that runs Python's signal handlers.
thread_local bool is_main_thread = platform::on_main_thread();
bool on_main_thread() { return is_main_thread; }

const cpu::Kernel& kernel_of(const Dispatch& dispatch) {
  return *reinterpret_cast<const cpu::Kernel*>(dispatch.kernel);
}

std::string named(const std::string* name) { return name != nullptr ? *name : "a kernel"; }

bool is_aligned(const std::byte* block) { return reinterpret_cast<uintptr_t>(block) % cpu::kBlockAlignment == 0; }

template <typename Call>
std::exception_ptr caught(const Call& call) {
  try {
    call();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

CpuDevice::OwnedLaunch::OwnedLaunch(const Dispatch& dispatch)
    : dispatch_(dispatch), memory_(dispatch.block_bytes + cpu::kBlockAlignment) {
  Dispatch moved = this->dispatch();
  if (dispatch.block_bytes != 0) std::memcpy(const_cast<std::byte*>(moved.block), dispatch.block, dispatch.block_bytes);
}

Dispatch CpuDevice::OwnedLaunch::dispatch() const {
  Dispatch result = dispatch_;
  const auto address = reinterpret_cast<uintptr_t>(memory_.data());
  result.block = memory_.data() + (-address & (cpu::kBlockAlignment - 1));
  return result;
}

CpuDevice::CpuDevice(unsigned threads, uint64_t timeout_ns, bool host_addresses, bool emulates)
    : Device(host_addresses),
      threads_(threads),
      timeout_ns_(timeout_ns),
      emulates_(emulates),
      pool_(std::make_unique<cpu::Pool>(threads)) {
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  constexpr uint32_t kLeast = 65535;  // what GPUs' drivers have at least along y and z
  const uint32_t along_yz = emulates ? kLeast : kMost;
  limits_ = {{kMost, along_yz, along_yz}, std::numeric_limits<uint32_t>::max()};
  CpuForks::add(*this);
}

CpuDevice::~CpuDevice() {
  CpuForks::remove(*this);
  try {
    close();
  } catch (...) {
    // A signal handler threw. The work is abandoned, and its threads with it.
  }
  if (pool_ != nullptr && stuck_) pool_.release();
}

bool CpuDevice::stop() {
  if (stuck_) return false;
  if (stopped_) return true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  try {
    wait_until(submitted(), {});
  } catch (...) {
    if (stuck_) return false;
    closed_ = false;
    throw;
  }
  stopped_ = true;
  return true;
}

bool CpuDevice::close() {
  if (gone_) return true;
  if (!stop()) return false;
  gone_ = true;
  if (!calls_returned()) return false;
  std::unique_lock<std::mutex> lock(mutex_);
  ends_ = true;
  const bool joins = has_worker_;
  has_worker_ = false;
  lock.unlock();
  work_.notify_all();
  if (joins) pthread_join(worker_, nullptr);
  pool_.reset();
  return true;
}

uint64_t CpuDevice::begin_turn() {
  turn_ = true;
  executing_ = submitted_.load(std::memory_order_relaxed) + 1;
  submitted_.store(executing_, std::memory_order_release);
  return executing_;
}

void CpuDevice::end_turn(uint64_t value) {
  turn_ = false;
  reached_.store(value, std::memory_order_release);
  if (!queue_.empty()) work_.notify_one();
  if (waiters_ != 0) done_.notify_all();
}

void CpuDevice::begin_worker() {
  if (has_worker_) {
    work_.notify_one();
    return;
  }
  const auto begin = [](void* device) -> void* {
    static_cast<CpuDevice*>(device)->work();
    return nullptr;
  };
  const int failed = platform::start_thread(worker_, "triton-cpu", begin, this);
  if (failed) throw DeviceError("the CPU device cannot start a thread: " + std::string(std::strerror(failed)));
  has_worker_ = true;
}

uint64_t CpuDevice::enqueue(std::unique_lock<std::mutex>& lock, Task task, std::exception_ptr* error) {
  while (queue_.size() >= kMostQueued) {
    const uint64_t first = queue_.front().value;
    lock.unlock();
    wait_until(first, {});
    lock.lock();
  }
  check_usable();
  begin_worker();
  const uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
  queue_.push_back({value, std::move(task), error});
  submitted_.store(value, std::memory_order_release);
  return value;
}

void CpuDevice::set_running(cpu::Launch& launch, const std::string* name, uint64_t value, bool at_once) {
  if (at_once && !watches_) {
    begin_worker();
    watches_ = true;
  }
  ran_at_once_ |= at_once;
  running_ = {&launch, name, launch.begun, value, at_once && on_main_thread()};
}

void CpuDevice::clear_running() {
  if (running_.on_main_thread) cpu::leave_to_program();
  running_ = {};
}

void CpuDevice::stop_running(cpu::Stop why) {
  if (running_.launch == nullptr) return;
  running_.launch->end(why);
  pool_->interrupt();
}

void CpuDevice::look_at_running() {
  if (running_.launch == nullptr) return;
  const auto spent = Clock::now() - running_.since;
  const auto nanoseconds = static_cast<uint64_t>(std::chrono::nanoseconds(spent).count());
  if (running_.launch->stopped() != cpu::Stop::kNo) {
    pool_->interrupt();
    if (nanoseconds < timeout_ns_ || spent - std::chrono::nanoseconds(timeout_ns_) < kGrace) return;
    if (!stuck_.exchange(true)) kept_ = shared_from_this();
    done_.notify_all();
  } else if (nanoseconds >= timeout_ns_) {
    stop_running(cpu::Stop::kTimeout);
  }
}

void CpuDevice::throw_if_stopped(const cpu::Launch& launch, const std::string* name) const {
  switch (launch.stopped()) {
    case cpu::Stop::kNo:
      return;
    case cpu::Stop::kFault:
      throw KernelFault(named(name) + " " + cpu::fault_text(launch.fault),
                        reinterpret_cast<KernelHandle>(launch.kernel), launch.fault);
    case cpu::Stop::kTimeout:
      throw DeviceError(named(name) + " did not end within the time limit of " + std::to_string(timeout_ns_ / 1000000) +
                        " ms (TRITON_SPIRV_TIMEOUT, in seconds) and was stopped: what it wrote is incomplete" +
                        (launch.waits ? kWaits : ""));
    case cpu::Stop::kInterrupt:
      throw DeviceError(named(name) + " was stopped by a signal: what it wrote is incomplete");
  }
}

void CpuDevice::throw_earlier_error() {
  if (!has_error_.load(std::memory_order_acquire)) return;
  std::exception_ptr error;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    error.swap(error_);
    has_error_ = false;
  }
  if (error) std::rethrow_exception(error);
}

void CpuDevice::run_programs(cpu::Launch& launch) {
  if (launch.kernel->watch().on) {
    if (races_ == nullptr) races_ = std::make_unique<cpu::ProgramRaces>();
    races_->run(*pool_, launch);
  } else {
    pool_->run(launch);
  }
  if (emulates_) launch.kernel->add_counts(cpu::take_counts());
}

bool CpuDevice::run_at_once(const Dispatch& dispatch, AtOnce when, uint64_t& value) {
  const cpu::Kernel& kernel = kernel_of(dispatch);
  if (!is_aligned(dispatch.block)) return false;
  cpu::Launch launch(dispatch);
  const cpu::LentMemory block(dispatch.block, emulates_ && dispatch.indirect ? dispatch.block_bytes : 0);
  const float expected = kernel.program_ns() * static_cast<float>(launch.programs());
  if (when != AtOnce::kIfIdle && (expected == 0 || expected > (when == AtOnce::kIfShort ? kShort : kTiny)))
    return false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_usable();
    if (!idle()) return false;
    set_running(launch, dispatch.name, submitted_.load(std::memory_order_relaxed) + 1, true);
    value = begin_turn();
  }
  const std::exception_ptr error = caught([&] { run_programs(launch); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    clear_running();
    end_turn(value);
  }
  if (error) std::rethrow_exception(error);
  if (launch.stopped() == cpu::Stop::kInterrupt && while_waiting != nullptr) while_waiting();
  throw_if_stopped(launch, dispatch.name);
  return true;
}

uint64_t CpuDevice::submit_launch(const Dispatch& dispatch, const ExternalWait* after) {
  if (after != nullptr) throw std::invalid_argument("the CPU device has no semaphores of other APIs");
  const Work use(*this);
  throw_earlier_error();
  uint64_t value = 0;
  if (run_at_once(dispatch, AtOnce::kIfTiny, value)) return value;
  auto launch = std::make_shared<OwnedLaunch>(dispatch);
  std::unique_lock<std::mutex> lock(mutex_);
  return enqueue(lock, [this, launch] { execute(launch->dispatch()); }, nullptr);
}

bool CpuDevice::launched_at_once(const Dispatch& dispatch) {
  if (Recording::current(*this) != nullptr) return false;
  const Work use(*this);
  throw_earlier_error();
  uint64_t value = 0;
  return run_at_once(dispatch, AtOnce::kIfTiny, value);
}

uint64_t CpuDevice::submit(std::shared_ptr<const std::vector<OwnedLaunch>> launches) {
  const Work use(*this);
  throw_earlier_error();
  std::unique_lock<std::mutex> lock(mutex_);
  return enqueue(
      lock,
      [this, launches = std::move(launches)] {
        for (const OwnedLaunch& launch : *launches) execute(launch.dispatch());
      },
      nullptr);
}

void CpuDevice::run_now(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used&) {
  const Work use(*this);
  throw_earlier_error();
  uint64_t value = 0;
  if (copies.empty() && run_at_once(dispatch, on_main_thread() ? AtOnce::kIfShort : AtOnce::kIfIdle, value)) return;
  const OwnedLaunch launch(dispatch);
  enqueue_and_wait([this, &copies, &launch] {
    for (const StagedCopy& copy : copies)
      execute_copy(static_cast<std::byte*>(copy.device->host()) + copy.offset, copy.host, copy.bytes);
    execute(launch.dispatch());
    for (const StagedCopy& copy : copies)
      if (copy.write_back)
        execute_copy(copy.host, static_cast<std::byte*>(copy.device->host()) + copy.offset, copy.bytes);
  });
}

void CpuDevice::enqueue_and_wait(Task task) {
  std::exception_ptr error;
  uint64_t value = 0;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    value = enqueue(lock, std::move(task), &error);
  }
  // The task has ended when this returns, whatever happens.
  wait_until(value, [&] {
    const auto queued =
        std::find_if(queue_.begin(), queue_.end(), [value](const Job& job) { return job.value == value; });
    if (queued != queue_.end()) {
      queued->task = [] {};
      queued->error = nullptr;
    } else {
      std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
      while (reached_.load(std::memory_order_relaxed) < value) {
        if (running_.value == value) stop_running(cpu::Stop::kInterrupt);
        done_.wait_for(lock, kLook);
      }
      lock.release();
    }
  });
  if (error) std::rethrow_exception(error);
}

void CpuDevice::run_in_turn(const Task& task) {
  std::unique_lock<std::mutex> lock(mutex_);
  check_usable();
  if (!idle()) {
    lock.unlock();
    enqueue_and_wait(task);
    return;
  }
  const uint64_t value = begin_turn();
  lock.unlock();
  const std::exception_ptr error = caught(task);
  lock.lock();
  end_turn(value);
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

void CpuDevice::execute(const Dispatch& dispatch) {
  cpu::Launch launch(dispatch);
  const cpu::LentMemory block(dispatch.block, emulates_ && dispatch.indirect ? dispatch.block_bytes : 0);
  execute(launch, dispatch.name);
}

void CpuDevice::execute(cpu::Launch& launch, const std::string* name) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_running(launch, name, executing_, false);
  }
  const std::exception_ptr error = caught([&] { run_programs(launch); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    clear_running();
  }
  if (error) std::rethrow_exception(error);
  throw_if_stopped(launch, name);
}

void CpuDevice::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int quiet = 0; !ends_;) {
    if (!turn_ && !queue_.empty()) {
      Job job = std::move(queue_.front());
      queue_.pop_front();
      turn_ = true;
      executing_ = job.value;
      lock.unlock();
      const std::exception_ptr error = caught(job.task);
      job.task = nullptr;  // what it owns goes before anyone hears of its end
      lock.lock();
      if (error && job.error != nullptr) {
        *job.error = error;
      } else if (error && !error_) {
        error_ = error;
        has_error_.store(true, std::memory_order_release);
      }
      end_turn(job.value);
      continue;
    }
    if (!watches_) {
      work_.wait(lock);
      continue;
    }
    if (work_.wait_for(lock, kWatch) == std::cv_status::no_timeout) continue;
    look_at_running();
    if (running_.on_main_thread && Clock::now() - running_.since > kWatch) cpu::take_interrupts(*running_.launch);
    quiet = ran_at_once_ || turn_ ? 0 : quiet + 1;
    ran_at_once_ = false;
    if (quiet < kQuietLooks) continue;
    quiet = 0;
    watches_ = false;
  }
}

void CpuDevice::wait(uint64_t value) {
  const Use use(*this);
  check_running();
  wait_until(value, [this] {
    // The kernel is probably one that never ends. Other work goes on.
    if (running_.launch != nullptr && Clock::now() - running_.since > kLong) stop_running(cpu::Stop::kInterrupt);
  });
  throw_earlier_error();
}

void CpuDevice::wait_until(uint64_t value, const std::function<void()>& on_throw) {
  const auto reached = [&] { return reached_.load(std::memory_order_acquire) >= value; };
  if (reached()) return;
  const auto start = Clock::now();
  while (Clock::now() - start < kPollTime) {
    for (int turn = 0; turn < 16; ++turn) {
      if (reached()) return;
      cpu::pause();
    }
  }
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiters_;
  const std::shared_ptr<void> leaving(nullptr, [this](void*) { --waiters_; });  // with the lock
  while (!reached()) {
    if (stuck_)
      throw DeviceError(named(running_.name) + " did not end within the time limit of " +
                            std::to_string(timeout_ns_ / 1000000) +
                            " ms (TRITON_SPIRV_TIMEOUT, in seconds) and cannot be stopped" + kOpenedAgain,
                        DeviceError::Kind::kTimeout);
    if (done_.wait_for(lock, kLook) == std::cv_status::no_timeout) continue;
    look_at_running();
    if (while_waiting == nullptr) continue;
    lock.unlock();
    try {
      while_waiting();
    } catch (...) {
      lock.lock();
      if (on_throw && !reached()) on_throw();
      throw;
    }
    lock.lock();
  }
}

void CpuDevice::lock_for_fork() {
  mutex_.lock();
  buffers_mutex_.lock();
  timestamps_mutex_.lock();
}

void CpuDevice::unlock_after_fork() {
  timestamps_mutex_.unlock();
  buffers_mutex_.unlock();
  mutex_.unlock();
}

void CpuDevice::begin_in_child() {
  is_main_thread = true;
  const bool lost = !idle();
  turn_ = false;
  for (Job& job : queue_) new Task(std::move(job.task));  // what it owns belongs to threads of the parent
  queue_.clear();
  running_ = {};
  waiters_ = 0;
  has_worker_ = watches_ = ran_at_once_ = false;
  new (&work_) std::condition_variable;  // threads of the parent wait for the old ones
  new (&done_) std::condition_variable;
  pool_.release();
  if (!gone_) pool_ = std::make_unique<cpu::Pool>(threads_);
  reached_.store(submitted_.load());
  uses_ = 0;
  adopt_fork();
  if (!lost || error_) return;
  error_ = std::make_exception_ptr(
      DeviceError("this process was forked while kernels were running: their results are missing here; call "
                  "synchronize() before a fork"));
  has_error_ = true;
}

}  // namespace triton_spirv
