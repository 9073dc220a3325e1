// What all kinds of devices have in common: their life, what is kept for their work, and recordings.
#include "device.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "platform/platform.h"
#include "recording.h"

namespace triton_spirv {
namespace {

// The number of forks between the first process and this one.
std::atomic<unsigned> fork_generation{0};

unsigned current_generation() {
  static const int registered = platform::around_forks(nullptr, nullptr, [] { fork_generation.fetch_add(1); });
  (void)registered;
  return fork_generation.load();
}

std::mutex left_mutex;
std::vector<std::weak_ptr<Device>> left_devices;
std::atomic<bool> some_left{false};

// How long close() waits for calls of other threads, and how often it looks. Those calls no longer wait for the device.
constexpr auto kLastCalls = std::chrono::seconds(10);
constexpr auto kNap = std::chrono::microseconds(30);

}  // namespace

const std::string* kernel_label(const std::string& label) {
  static std::mutex mutex;
  static auto* const labels = new std::set<std::string>;
  const std::lock_guard<std::mutex> guard(mutex);
  return &*labels->insert(label).first;
}

Device::Device(bool host_addresses) : host_addresses_(host_addresses), fork_generation_(current_generation()) {}

Device::~Device() {
  // These objects are never freed: their work never ended, or Python is shutting down.
  for (Kept& kept : kept_) new std::shared_ptr<void>(std::move(kept.used));
}

bool Device::forked() const { return fork_generation_ != fork_generation.load(std::memory_order_relaxed); }

void Device::adopt_fork() { fork_generation_ = current_generation(); }

void Device::check_usable() const {
  check_running();
  if (closed_) throw std::runtime_error("the device is closed");
}

void Device::check_running() const {
  if (forked())
    throw std::runtime_error(
        "the device was opened before this process was forked and cannot be used here; start workers with the 'spawn' "
        "or 'forkserver' method, or fork before the first launch");
  if (!lost_ && !stuck_ && !gone_) return;
  const std::string failed =
      "this belongs to a device that failed earlier, and was left: tensors, graphs and loaded files of before have to "
      "be made again";
  if (lost_)
    throw_lost(left_ ? failed : std::string("the device was lost in earlier work of this process") + kOpenedAgain);
  throw std::runtime_error(stuck_ ? failed : "the device is closed");
}

void Device::throw_lost(const std::string& message) const { throw DeviceError(message, DeviceError::Kind::kLost); }

void Device::leave() {
  const std::lock_guard<std::mutex> guard(left_mutex);
  if (left_.exchange(true)) return;
  left_devices.push_back(weak_from_this());
  some_left = true;
}

bool Device::any_left() { return some_left.load(std::memory_order_relaxed); }

bool Device::is_gone(Address address, uint64_t bytes) {
  if (!any_left()) return false;
  const std::lock_guard<std::mutex> guard(left_mutex);
  return std::any_of(left_devices.begin(), left_devices.end(), [&](const std::weak_ptr<Device>& one) {
    const std::shared_ptr<Device> device = one.lock();
    return device && device->overlaps(address, bytes);
  });
}

bool Device::calls_returned() const {
  const auto start = std::chrono::steady_clock::now();
  while (uses_ != 0) {
    if (std::chrono::steady_clock::now() - start > kLastCalls) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

std::unique_ptr<Buffer> Device::import_host(void*, uint64_t) {
  throw std::runtime_error("host memory cannot be imported by the device");
}

Timestamp Device::acquire_timestamp() { throw std::runtime_error("the device has no timestamps"); }

void Device::write_timestamp(Timestamp&, Stream*) { throw std::runtime_error("the device has no timestamps"); }

double Device::elapsed(const Timestamp&, const Timestamp&) { throw std::runtime_error("the device has no timestamps"); }

std::shared_ptr<void> Device::adopt(Address, uint64_t, std::shared_ptr<void>) {
  throw std::runtime_error("the device has memory of its own");
}

uint64_t Device::launch(const Dispatch& dispatch, const ExternalWait* after) {
  if (Recording* recording = Recording::current(*this); recording != nullptr && after == nullptr) {
    recording->add(dispatch);
    return 0;  // nothing to wait for
  }
  return submit_launch(dispatch, after);
}

void Device::run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used) {
  Recording* const recording = Recording::current(*this);
  if (recording == nullptr || !copies.empty()) {
    run_now(dispatch, copies, used);
    return;
  }
  if (host_addresses_) recording->use_host_memory();
  recording->add(dispatch);
}

void Device::refuse_while_recording() const {
  if (Recording::current(*this) != nullptr)
    throw std::runtime_error(
        "a graph is being captured, which launches on device memory can be: no copies, fills, events, waits, replays "
        "or launches that copy their arguments; do that before or after");
}

bool Device::done(uint64_t value) {
  if (waiting_ != 0) tell();
  if (reached_.load(std::memory_order_acquire) >= value) return true;
  const Use use(*this);
  check_running();
  return seen(value);
}

bool Device::done_copies(uint64_t value) {
  if (copies_end_.load(std::memory_order_acquire) >= value) return true;
  const Use use(*this);
  check_running();
  return look_copies(value);
}

bool Device::seen(uint64_t value) {
  if (reached_.load(std::memory_order_acquire) >= value) return true;
  flush(value);
  return look() >= value;
}

Point Device::point(const Stream* stream) const {
  if (stream == nullptr || !overlaps_copies()) return {submitted(), first_copies_};
  return stream->point();
}

void Device::order(Stream* stream, const Point& point) {
  if (stream != nullptr)
    stream->wait_for(point);
  else
    Stream::raise(first_copies_, point.copies);
}

void Device::take_over(Address address, uint64_t bytes, uint64_t freed) {
  if (!overlaps_copies()) return;
  const std::shared_ptr<Stream> stream = Stream::current(*this);
  const Point before{freed, copies_end_ < copied() ? copy_in(address, bytes) : 0};
  if (stream || before.copies != 0) order(stream.get(), before);
}

bool Device::keep(const Point& point, std::shared_ptr<void> used) {
  if (passed(point) || gone_ || forked()) return false;
  const std::lock_guard<std::mutex> guard(kept_mutex_);
  kept_.push_back({point, std::move(used)});
  keeps_.store(true, std::memory_order_relaxed);
  return true;
}

void Device::let_go_of_done() {
  if (forked()) return;
  const Use use(*this);
  try {
    if (use) look(), look_copies(copied());
  } catch (const std::exception&) {
    return;  // the device is lost; closing it ends its work
  }
  std::vector<Kept> ended;  // destroying these may run any code
  const std::lock_guard<std::mutex> guard(kept_mutex_);
  std::vector<Kept> left;
  for (Kept& kept : kept_) (gone_ || passed(kept.point) ? ended : left).push_back(std::move(kept));
  kept_ = std::move(left);
  keeps_.store(!kept_.empty(), std::memory_order_relaxed);
}

}  // namespace triton_spirv
