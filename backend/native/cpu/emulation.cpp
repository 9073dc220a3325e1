#include "cpu/emulation.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <vector>

#include "cpu/emulated_counts.h"
#include "cpu/emulated_matrices.h"
#include "cpu/faults.h"

namespace triton_spirv::cpu {
namespace {

// Of a subgroup. Vectors of 64 lanes are many registers, which a kernel spills.
constexpr std::size_t kFiberStack = 2 << 20;
// Above a stack: what looks for callers may read so far (signal_faults.cpp).
constexpr std::size_t kAbove = 64 << 10;
// What shared memory holds before anything is stored: NaN in every float format, -1 in every integer.
constexpr int kPoison = 0xff;

std::atomic<uint64_t> order_seed{0};

using Subgroup = void (*)(const void* frame, uint32_t number);

// The stack of a subgroup, with a page below it that is not there.
class Stack {
 public:
  Stack() {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = page + kFiberStack + kAbove;
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(memory);
    mprotect(memory_, page, PROT_NONE);
    begin_ = memory_ + page;
  }
  ~Stack() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  std::byte* begin() const { return begin_; }

 private:
  std::byte* memory_ = nullptr;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

// Who accessed a byte of shared memory since the last barrier. Subgroups are bits.
struct Watched {
  uint32_t interval = 0;  // of the accesses below; those of another one are over
  uint32_t readers = 0, writers = 0, updaters = 0;
};

struct Fiber {
  ucontext_t context;
  bool ended = false;
};

// The workgroup that a thread runs. A fault leaves it as it is; the next workgroup begins anew.
struct Workgroup {
  std::vector<std::unique_ptr<Stack>> stacks;
  std::vector<Fiber> fibers;
  std::vector<uint32_t> order;
  std::vector<Watched> watched;
  ucontext_t back;
  Subgroup function = nullptr;
  const void* frame = nullptr;
  uint32_t running = 0;
  uint64_t shared = 0, shared_bytes = 0;
  uint32_t interval = 0;
  // The device memory that was accessed last.
  uint64_t known_begin = 1, known_end = 0, known_of = 0;
};
thread_local Workgroup group;

std::shared_mutex memory_mutex;
std::map<uint64_t, uint64_t> device_memory;  // address and length
std::atomic<uint64_t> memory_changes{1};

void begin_fiber() {
  Workgroup& here = group;
  const uint32_t number = here.running;
  here.function(here.frame, number);
  here.fibers[number].ended = true;
  swapcontext(&here.fibers[number].context, &here.back);
}

// The order of the subgroups up to the next barrier.
void shuffle_order(Workgroup& here, uint64_t seed) {
  std::iota(here.order.begin(), here.order.end(), 0u);
  if (seed == 0) return;
  uint64_t state = seed * 0x9E3779B97F4A7C15u + here.interval * 0xBF58476D1CE4E5B9u;
  for (std::size_t left = here.order.size(); left > 1; --left) {
    state ^= state >> 29;
    state = state * 0x94D049BB133111EBu + 1;
    std::swap(here.order[left - 1], here.order[(state >> 33) % left]);
  }
}

void next_interval(Workgroup& here) {
  if (++here.interval != 0) return;
  here.interval = 1;
  std::fill(here.watched.begin(), here.watched.end(), Watched{});
}

// Stacks for so many subgroups, each at its beginning.
void prepare(Workgroup& here, uint32_t count) {
  const Unguarded held;
  if (here.watched.size() < here.shared_bytes) here.watched.resize(here.shared_bytes);
  while (here.stacks.size() < count) here.stacks.push_back(std::make_unique<Stack>());
  here.fibers.resize(count);
  here.order.resize(count);
  for (uint32_t number = 0; number < count; ++number) {
    Fiber& fiber = here.fibers[number];
    fiber.ended = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = here.stacks[number]->begin();
    fiber.context.uc_stack.ss_size = kFiberStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, begin_fiber, 0);
  }
}

// Runs the subgroups of a workgroup. `shared`: its memory, in which nothing is stored yet.
void run_subgroups(Subgroup function, const void* frame, uint32_t count, std::byte* shared, uint64_t shared_bytes) {
  Workgroup& here = group;
  here.function = function;
  here.frame = frame;
  here.shared = reinterpret_cast<uint64_t>(shared);
  here.shared_bytes = shared_bytes;
  std::memset(shared, kPoison, shared_bytes);
  prepare(here, count);
  const uint64_t seed = order_seed.load(std::memory_order_relaxed);
  uint32_t ended = 0;
  while (ended < count) {
    if (ended != 0) raise_fault("has a barrier that some subgroups of a workgroup do not reach: they have ended", 0);
    next_interval(here);
    shuffle_order(here, seed);
    for (const uint32_t number : here.order) {
      here.running = number;
      swapcontext(&here.back, &here.fibers[number].context);
      ended += here.fibers[number].ended;
    }
  }
}

void count_instructions(uint32_t executed) { count(kInstructions, executed); }

void wait_at_barrier() {
  Workgroup& here = group;
  if (here.running == 0 && counted_banks.load(std::memory_order_relaxed) != 0) count(kBarriers, 1);
  if (here.fibers.size() < 2) {
    next_interval(here);
    return;
  }
  swapcontext(&here.fibers[here.running].context, &here.back);
}

enum Access : uint32_t { kRead = 0, kWrite = 1, kUpdate = 2 };

bool in_device_memory(Workgroup& here, uint64_t address, uint64_t bytes) {
  const uint64_t now = memory_changes.load(std::memory_order_acquire);
  if (now == here.known_of && here.known_begin <= address && address + bytes <= here.known_end) return true;
  const Unguarded held;
  const std::shared_lock<std::shared_mutex> lock(memory_mutex);
  auto found = device_memory.upper_bound(address);
  if (found == device_memory.begin()) return false;
  --found;
  if (address + bytes > found->first + found->second) return false;
  here.known_begin = found->first;
  here.known_end = found->first + found->second;
  here.known_of = now;
  return true;
}

thread_local char text[160];

[[noreturn]] void fail_outside(const char* verb, const char* where, uint64_t begin, uint64_t length, uint64_t caller) {
  if (length != 0) {
    std::snprintf(text, sizeof text, "%s shared memory outside of what its workgroup has: byte %lld of %llu", verb,
                  static_cast<long long>(begin), static_cast<unsigned long long>(length));
  } else {
    std::snprintf(text, sizeof text, "%s %s 0x%llx, which is in no tensor of the device; look for a missing mask", verb,
                  where, static_cast<unsigned long long>(begin));
  }
  raise_fault(text, caller);
}

// The verb of an access.
const char* verb_of(uint32_t access) {
  return access == kRead ? "reads from" : access == kWrite ? "writes to" : "updates";
}

void watch_shared(Workgroup& here, uint64_t address, uint32_t bytes, uint32_t access, uint64_t caller) {
  const uint64_t begin = address - here.shared;
  if (begin >= here.shared_bytes || begin + bytes > here.shared_bytes)
    fail_outside(verb_of(access), "", begin, here.shared_bytes, caller);
  const uint32_t own = 1u << (here.running & 31), interval = here.interval;
  for (uint64_t byte = begin; byte < begin + bytes; ++byte) {
    Watched& entry = here.watched[byte];
    if (entry.interval != interval) entry = {interval, 0, 0, 0};
    const uint32_t others = ~own;
    const uint32_t against = access == kRead    ? entry.writers | entry.updaters
                             : access == kWrite ? entry.writers | entry.readers | entry.updaters
                                                : entry.writers | entry.readers;
    if (against & others) {
      std::snprintf(text, sizeof text,
                    "%s byte %llu of shared memory in subgroup %u, which subgroup %d accesses with no barrier between "
                    "them",
                    verb_of(access), static_cast<unsigned long long>(byte), here.running,
                    __builtin_ctz(against & others));
      raise_fault(text, caller);
    }
    (access == kRead ? entry.readers : access == kWrite ? entry.writers : entry.updaters) |= own;
  }
}

// Looks at accesses of `bytes` at the places of the active lanes, before they happen.
template <bool kShared>
void watch(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, uint32_t access) {
  Workgroup& here = group;
  const uint64_t caller = reinterpret_cast<uint64_t>(__builtin_return_address(0)) - 1;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!active[lane]) continue;
    if (kShared) {
      watch_shared(here, places[lane], bytes, access, caller);
    } else if (!in_device_memory(here, places[lane], bytes)) {
      fail_outside(verb_of(access), "address", places[lane], 0, caller);
    }
  }
  const uint32_t banks = counted_banks.load(std::memory_order_relaxed);
  if (banks == 0) return;
  if (kShared) {
    count_shared_access(places, active, lanes, bytes, banks);
  } else {
    count_device_access(places, active, lanes, bytes, access != kWrite, access != kRead);
  }
}

}  // namespace

void set_subgroup_order(uint64_t seed) { order_seed.store(seed, std::memory_order_relaxed); }

void add_device_memory(uint64_t address, uint64_t bytes) {
  const std::unique_lock<std::shared_mutex> lock(memory_mutex);
  device_memory[address] = bytes;
  memory_changes.fetch_add(1, std::memory_order_release);
}

void remove_device_memory(uint64_t address) {
  const std::unique_lock<std::shared_mutex> lock(memory_mutex);
  device_memory.erase(address);
  memory_changes.fetch_add(1, std::memory_order_release);
}

uint64_t emulation_function(std::string_view name) {
  const auto address = [](auto* function) { return reinterpret_cast<uint64_t>(function); };
  if (name == "triton_spirv_run_subgroups") return address(run_subgroups);
  if (name == "triton_spirv_count_instructions") return address(count_instructions);
  if (name == "triton_spirv_barrier") return address(wait_at_barrier);
  if (name == "triton_spirv_watch_shared") return address(watch<true>);
  if (name == "triton_spirv_watch_device") return address(watch<false>);
  if (name == "triton_spirv_multiply_matrices") return address(multiply_matrices);
  return 0;
}

}  // namespace triton_spirv::cpu
