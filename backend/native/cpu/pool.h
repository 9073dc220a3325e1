// Threads that share the programs of a launch.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cpu/kernel.h"

namespace triton_spirv::cpu {

// One turn of a loop that polls.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A thread's own memory for programs: it grows and is used again.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  // Returns at least `bytes`, or null if there is no memory.
  std::byte* get(uint64_t bytes);

 private:
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

using Clock = std::chrono::steady_clock;

// The calling thread of run() and `threads - 1` helpers, which start with the first launch that is worth it.
//
// Each thread has a part of the programs, the same one in each launch, so that its caches have what an earlier launch
// wrote; then it takes of the others' parts. Where programs may wait for each other, parts are stripes: neighbours,
// whose locks may share a line of a cache, and programs that are some power of two apart, which may share a lock, are
// one thread's. A program may wait for one of a lower number, so threads take stripes in ascending order, and what is
// next of a part whose thread is not there yet before stripes of higher numbers of their own.
class Pool {
 public:
  explicit Pool(unsigned threads);
  // Ends the helpers. No run() may be in progress.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs all programs and returns, with launch.fault set if one faulted. The caller lets one launch run at a time.
  // Throws std::bad_alloc if there is no memory for the kernel's scratch.
  void run(Launch& launch);
  // Makes all threads leave the running launch, which has been told to stop. The caller sees to it that run() does not
  // return meanwhile, or is one of its threads.
  void interrupt();
  unsigned threads() const { return threads_; }

 private:
  struct Seat;
  // Ranges of programs that one thread has run.
  struct Share {
    uint64_t programs = 0;
    uint64_t nanoseconds = 0;
  };
  struct alignas(64) Part {
    std::atomic<uint64_t> next{0};  // the first program that no thread has taken
    uint64_t end = 0;
    std::atomic<bool> begun{false};  // its thread is there
  };
  static void* begin_helper(void* seat);
  void help(unsigned thread, Scratch& scratch);
  void start_helpers();
  // Divides what is left of the launch, and calls so many threads with the caller.
  void share(unsigned threads);
  // Has so many threads, with the caller, look for programs, and wakes those that sleep.
  void call(unsigned threads);
  // What a thread calls of a kernel: Entry, or Updates.
  struct Call;
  static void call_entry(void* call);
  static void call_updates(void* call);
  // Runs ranges of programs on this thread until there are none. `alone`: no helper was called yet; `begin`: now.
  Share work(unsigned thread, std::byte* scratch, bool alone, Clock::time_point begin);
  // Takes the next range of the thread's part, or of another one. Returns false if there is none.
  bool take(unsigned thread, const Share& share, bool alone, uint64_t& first, uint64_t& last);
  bool take_of(Part& part, const Share& share, bool alone, uint64_t& first, uint64_t& last);
  bool take_stripe(unsigned thread, uint64_t& first, uint64_t& last);
  // Makes parts of the programs from `first` on. No helper may be inside.
  void divide(uint64_t first, uint64_t parts);
  bool enter();
  void leave();
  void close();

  const unsigned threads_;
  std::vector<std::unique_ptr<Seat>> helpers_;  // empty until the first launch that needs them
  bool started_ = false;
  Scratch own_;                           // of the thread that calls run()
  Clock::time_point ended_{};             // when the last launch ended
  Clock::time_point watched_{};           // when handlers of faults were last looked for
  float together_ = 0;                    // nanoseconds of the launches that followed each other until then
  std::atomic<Runner*> caller_{nullptr};  // that thread, during a launch

  // The launch that is running. Helpers look at it while they are inside.
  Launch* launch_ = nullptr;
  uint64_t programs_ = 0;
  unsigned called_ = 1;  // threads that look for its programs
  float most_ns_ = 0;    // then all do, if it is not 0
  std::atomic<bool> faulted_{false};
  uint64_t parts_ = 1;
  uint64_t stripe_ = 0;                 // programs of a stripe; 0: each part is one range of programs
  std::atomic<uint64_t> absent_{0};     // parts of stripes whose threads are not there yet
  const std::unique_ptr<Part[]> ours_;  // one for each thread
  // Those of threads that make updates of their logs (Updates). A launch that was stopped may leave them taken.
  struct alignas(kUpdateLockBytes) Lock {
    std::atomic<int32_t> taken{0};
  };
  Lock locks_[kUpdateLocks];
  // How many helpers are inside; with kClosed, no other may enter. None does before helpers are called: until then the
  // caller is alone, and one that was called for an earlier launch would take a program of this one.
  alignas(64) std::atomic<uint32_t> inside_{kClosed};
  static constexpr uint32_t kClosed = 1u << 31;
  // How often helpers were called, in the upper half, and for how many threads.
  alignas(64) std::atomic<uint64_t> calls_{0};
  std::mutex mutex_;
  // Helpers sleep in groups: 1, 2 and 3, 4 to 7, …
  struct Group {
    std::condition_variable woken;
    std::atomic<uint32_t> asleep{0};
  };
  Group groups_[32];
  std::condition_variable left_;
  bool ends_ = false;
};

}  // namespace triton_spirv::cpu
