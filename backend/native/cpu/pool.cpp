#include "cpu/pool.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include "cpu/program_races.h"
#include "platform/platform.h"
#include "triton_spirv/pages.hpp"

namespace triton_spirv::cpu {
namespace {

// Helpers are woken once a launch is expected to take longer than this, in nanoseconds. To wake one takes some 50 µs
// until it works, and 5 µs of the caller.
constexpr float kWorthWaking = 50e3f;
// Launches that follow each other and together took as long keep helpers awake: one that is expected to take longer
// than this is shared, too.
constexpr float kWorthSharing = 5e3f;
// Fewer threads are tried (sharing.h) for kernels whose programs may wait for each other alone: while another library's
// threads look for work on the other processors, one thread seems to be as fast. They get help once they have taken as
// many times longer than all threads take. Then they are not the faster way, and a trial costs little however long the
// launch is.
constexpr float kMostLonger = 2;
// A thread that may get help looks at its time after such a part of what is left.
constexpr uint64_t kLooks = 8;
// A range takes at least this long, in nanoseconds, so that taking it (0.1 µs, more if threads contend) does not show.
constexpr float kShortestRange = 5e3f;
// Each thread takes so many ranges of the programs that are left, at least. More even out programs of unequal length.
constexpr uint64_t kRangesOfThread = 4;
// Programs of a stripe, at least: the locks of neighbours, of four bytes, share a line of a cache.
constexpr uint64_t kStripe = 16;
// Programs that are so many apart should be one thread's: they often share a lock.
constexpr uint64_t kApart = 64;
// Each thread takes so many stripes, at least.
constexpr uint64_t kStripesOfThread = 8;
// How long a helper looks for the next launch before it sleeps. Launches that follow each other save the wake-up.
constexpr auto kHelperSpin = std::chrono::microseconds(200);
// How long run() looks whether helpers have left before it sleeps.
constexpr auto kLastRangeSpin = std::chrono::microseconds(20);
// Whether a program has taken the signals of faults since is looked at once in this time: asking the system takes as
// long as a short launch.
constexpr auto kUnwatched = std::chrono::microseconds(10);
constexpr std::size_t kScratchStep = 64 << 10;

// Looks at a condition for a while. Returns whether it holds.
template <typename Condition>
bool spin(std::chrono::microseconds time, Condition condition) {
  const auto end = Clock::now() + time;
  do {
    for (int turn = 0; turn < 16; ++turn) {
      if (condition()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

struct Pool::Call {
  Launch* launch;
  std::byte* scratch;
  struct {
    uint32_t grid[4];
    Lock* locks;
    uint32_t first_lock;
  } told;
  uint64_t first, last;
  const int32_t* stop() const {
    static_assert(sizeof(launch->stop) == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free);
    return reinterpret_cast<const int32_t*>(&launch->stop);
  }
};

void Pool::call_entry(void* argument) {
  const Call& call = *static_cast<const Call*>(argument);
  Launch& launch = *call.launch;
  if (launch.races != nullptr) {
    run_watched(launch, call.first, call.last, call.scratch);
    return;
  }
  launch.kernel->entry()(launch.block, call.first, call.last, call.told.grid, call.scratch, call.stop());
}

void Pool::call_updates(void* argument) {
  const Call& call = *static_cast<const Call*>(argument);
  call.launch->kernel->updates()(call.scratch, call.told.grid, call.stop(), 0);
}

Scratch::~Scratch() {
  if (memory_ != nullptr) pages::unmap(memory_, bytes_);
}

std::byte* Scratch::get(uint64_t bytes) {
  if (bytes <= bytes_ && memory_ != nullptr) return memory_;
  const uint64_t wanted = (std::max<uint64_t>(bytes, 1) + kScratchStep - 1) / kScratchStep * kScratchStep;
  void* const memory = pages::map(wanted);
  if (memory == nullptr) return nullptr;
  if (memory_ != nullptr) pages::unmap(memory_, bytes_);
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = wanted;
  return memory_;
}

struct Pool::Seat {
  Pool* pool;
  unsigned number;
  pthread_t thread;
  std::atomic<Runner*> runner{nullptr};  // from its first turn on
  Scratch scratch;
};

Pool::Pool(unsigned threads) : threads_(std::max(threads, 1u)), ours_(new Part[threads_]) {}

Pool::~Pool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  for (Group& group : groups_) group.woken.notify_all();
  for (const auto& seat : helpers_) pthread_join(seat->thread, nullptr);
}

void Pool::run(Launch& launch) {
  std::byte* const scratch = own_.get(launch.kernel->scratch());
  if (scratch == nullptr) throw std::bad_alloc();
  const Clock::time_point begin = launch.races == nullptr ? launch.begun : Clock::now();
  if (begin - watched_ > kUnwatched) {
    watch_faults();
    watched_ = begin;
  }
  make_room_for_handlers();
  caller_ = &this_runner();
  launch_ = &launch;
  programs_ = launch.programs();
  faulted_.store(false, std::memory_order_relaxed);
  divide(0, 1);
  if (begin - ended_ > kHelperSpin) together_ = 0;
  const float expected = launch.kernel->program_ns() * static_cast<float>(programs_);
  const bool shares =
      threads_ > 1 && launch.races == nullptr && expected >= (together_ < kWorthWaking ? kWorthWaking : kWorthSharing);
  Sharing* const learns = shares && launch.kernel->contends() ? &launch.kernel->sharing(programs_, threads_) : nullptr;
  const unsigned threads = learns != nullptr ? learns->threads() : shares ? threads_ : 1;
  const bool alone = threads == 1;
  called_ = 1;
  most_ns_ = learns != nullptr ? kMostLonger * learns->shared_ns() * static_cast<float>(programs_) : 0;
  if (!alone) share(threads);
  const Share share = [&] {
    const FloatMode mode;
    return work(0, scratch, alone, begin);
  }();
  close();
  caller_ = nullptr;
  ended_ = called_ == 1 ? begin + std::chrono::nanoseconds(share.nanoseconds) : Clock::now();
  const auto took = static_cast<float>(std::chrono::nanoseconds(ended_ - begin).count());
  together_ += took;
  if (launch.stopped() != Stop::kNo) {
    for (Lock& lock : locks_) lock.taken.store(0, std::memory_order_relaxed);
    return;
  }
  if (learns != nullptr) learns->add(took / static_cast<float>(programs_));
  if (share.programs == 0) return;
  const float now = std::max(1e-3f, static_cast<float>(share.nanoseconds) / static_cast<float>(share.programs));
  const float before = launch.kernel->program_ns();
  launch.kernel->set_program_ns(before == 0 ? now : before + (now - before) / 4);
}

void Pool::divide(uint64_t first, uint64_t parts) {
  const uint64_t left = programs_ - first, each = left / parts, longer = left % parts;
  const float ns = launch_->kernel->program_ns();
  absent_ = parts_ = parts;
  stripe_ = parts > 1 && launch_->kernel->contends() && launch_->kernel->updates() == nullptr ? 1 : 0;
  while (
      stripe_ != 0 && 2 * stripe_ * kStripesOfThread <= each &&
      ((stripe_ < kStripe && 2 * stripe_ * parts <= kApart) || ns * static_cast<float>(stripe_) < kShortestRange / 2))
    stripe_ *= 2;
  for (uint64_t number = 0; number < parts; ++number) {
    ours_[number].next.store(first, std::memory_order_relaxed);
    ours_[number].begun.store(false, std::memory_order_relaxed);
    first += stripe_ != 0 ? stripe_ : each + (number < longer ? 1 : 0);
    ours_[number].end = first;
  }
}

bool Pool::take_stripe(unsigned thread, uint64_t& first, uint64_t& last) {
  Part& own = ours_[thread % parts_];
  if (!own.begun.exchange(true)) --absent_;
  for (;;) {
    Part* part = &own;
    first = own.next.load(std::memory_order_relaxed);
    const bool helps = first >= programs_;
    for (uint64_t number = 0; number < parts_ && (helps || absent_ != 0); ++number) {
      const uint64_t next = ours_[number].next.load(std::memory_order_relaxed);
      if (next >= first || (!helps && ours_[number].begun)) continue;
      part = &ours_[number];
      first = next;
    }
    if (first >= programs_) return false;
    last = std::min(first + stripe_, programs_);
    if (part->next.compare_exchange_strong(first, first + stripe_ * parts_, std::memory_order_relaxed)) return true;
  }
}

bool Pool::take(unsigned thread, const Share& share, bool alone, uint64_t& first, uint64_t& last) {
  if (stripe_ != 0) return take_stripe(thread, first, last);
  for (uint64_t turn = 0; turn < parts_; ++turn)
    if (take_of(ours_[(thread + turn) % parts_], share, alone, first, last)) return true;
  return false;
}

bool Pool::take_of(Part& part, const Share& share, bool alone, uint64_t& first, uint64_t& last) {
  const float ns = launch_->kernel->program_ns();
  first = part.next.load(std::memory_order_relaxed);
  do {
    if (first >= part.end) return false;
    const uint64_t left = part.end - first;
    uint64_t length = 0;
    if (alone && most_ns_ > 0) {
      length = std::max(left / kLooks, static_cast<uint64_t>(std::min(kShortestRange / ns, 1e9f)));
    } else if (alone && (threads_ == 1 || launch_->races != nullptr || ns > 0)) {
      length = left;
    } else if (alone) {
      length = std::max<uint64_t>(share.programs, 1);  // nothing is known yet: the time is looked at often
    } else {
      length = left / std::max<uint64_t>(kRangesOfThread * threads_ / parts_, 1);
      if (ns > 0) length = std::max(length, static_cast<uint64_t>(std::min(kShortestRange / ns, 1e9f)));
    }
    last = first + std::clamp<uint64_t>(length, 1, left);
  } while (!part.next.compare_exchange_weak(first, last, std::memory_order_relaxed));
  return true;
}

Pool::Share Pool::work(unsigned thread, std::byte* scratch, bool alone, Clock::time_point begin) {
  Share share;
  const Updates updates = launch_->kernel->updates();
  const uint32_t* const grid = launch_->grid;
  Call call{launch_, scratch, {{grid[0], grid[1], grid[2], 1}, locks_, thread * kUpdateLocks / threads_}, 0, 0};
  const auto shares = [&] {
    call.told.grid[3] = updates == nullptr ? 0 : 3;
    if (updates != nullptr) updates(scratch, call.told.grid, call.stop(), 1);
  };
  const auto runs = [&](void (*function)(void*)) {
    const Ending ending = guarded(launch_->kernel->object(), launch_->stop, function, &call);
    if (ending.fault.signal != 0) {
      if (!faulted_.exchange(true)) launch_->fault = ending.fault;
      launch_->end(Stop::kFault);
      interrupt();  // others may wait for this program without an end
    }
    return ending.fault.signal == 0 && !ending.interrupted;
  };
  if (!alone) shares();
  while (launch_->stop.load(std::memory_order_relaxed) == 0 && take(thread, share, alone, call.first, call.last)) {
    if (!runs(call_entry)) return share;
    share.programs += call.last - call.first;
    share.nanoseconds = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
    const auto spent = static_cast<float>(share.nanoseconds);
    if (thread != 0 || called_ == threads_ || spent < most_ns_) continue;
    if (!alone) {
      if (most_ns_ > 0) this->call(threads_);
      continue;
    }
    const float left = static_cast<float>(programs_ - call.last) / static_cast<float>(share.programs);
    if (call.last == programs_ || left * spent < kWorthWaking) continue;
    this->share(threads_);
    alone = false;
    shares();
  }
  if (!alone && updates != nullptr && launch_->stop.load(std::memory_order_relaxed) == 0) runs(call_updates);
  return share;
}

bool Pool::enter() {
  uint32_t inside = inside_.load(std::memory_order_relaxed);
  do {
    if (inside & kClosed) return false;
  } while (!inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void Pool::leave() {
  if (inside_.fetch_sub(1, std::memory_order_acq_rel) != kClosed + 1) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  left_.notify_one();
}

void Pool::interrupt() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Runner* const runner = caller_.load()) cpu::interrupt(*runner);
  for (const auto& seat : helpers_)
    if (Runner* const runner = seat->runner.load()) cpu::interrupt(*runner);
}

void Pool::close() {
  const auto empty = [this] { return inside_.load(std::memory_order_acquire) == kClosed; };
  if (inside_.fetch_or(kClosed, std::memory_order_acq_rel) == 0 || spin(kLastRangeSpin, empty)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  left_.wait(lock, empty);
}

void Pool::share(unsigned threads) {
  if (!started_) start_helpers();
  const uint64_t first = ours_[0].next.load(std::memory_order_relaxed), left = programs_ - first;
  divide(first, std::clamp<uint64_t>(left, 1, std::min<uint64_t>(threads, helpers_.size() + 1)));
  inside_.store(0, std::memory_order_release);
  // Fewer programs than that, and no other thread will find any.
  call(left < threads ? static_cast<unsigned>(left) : threads);
}

void Pool::call(unsigned threads) {
  called_ = threads;
  calls_.store(((calls_.load(std::memory_order_relaxed) >> 32) + 1) << 32 | threads);
  for (unsigned group = 0; (1u << group) < threads; ++group) {
    if (groups_[group].asleep.load() == 0) continue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
    }
    groups_[group].woken.notify_all();
  }
}

void Pool::start_helpers() {
  started_ = true;
  for (unsigned number = 1; number < threads_; ++number) {
    auto seat = std::make_unique<Seat>();
    seat->pool = this;
    seat->number = number;
    char name[16];
    std::snprintf(name, sizeof name, "triton-cpu-%u", number % 10000);
    // With fewer threads than wanted the launch takes longer.
    if (platform::start_thread(seat->thread, name, begin_helper, seat.get()) != 0) break;
    const std::lock_guard<std::mutex> lock(mutex_);
    helpers_.push_back(std::move(seat));
  }
}

void* Pool::begin_helper(void* argument) {
  Seat& seat = *static_cast<Seat*>(argument);
  make_room_for_handlers();
  seat.runner = &this_runner();
  const FloatMode mode;
  seat.pool->help(seat.number, seat.scratch);
  return nullptr;
}

void Pool::help(unsigned thread, Scratch& scratch) {
  uint64_t seen = 0;
  Group* group = groups_;
  for (unsigned rest = thread; rest > 1; rest /= 2) ++group;
  for (;;) {
    const auto called = [&] {
      const uint64_t call = calls_.load();
      return call >> 32 != seen && thread < static_cast<uint32_t>(call);
    };
    if (!spin(kHelperSpin, called)) {
      std::unique_lock<std::mutex> lock(mutex_);
      group->asleep.fetch_add(1);
      group->woken.wait(lock, [&] { return ends_ || called(); });
      group->asleep.fetch_sub(1);
      if (ends_) return;
    }
    seen = calls_.load() >> 32;
    if (!enter()) continue;
    if (std::byte* const memory = scratch.get(launch_->kernel->scratch()); memory != nullptr)
      work(thread, memory, false, Clock::now());
    leave();
  }
}

}  // namespace triton_spirv::cpu
