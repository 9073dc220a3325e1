// A kernel's machine code, and one launch of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpu/emulated_counts.h"
#include "cpu/faults.h"
#include "cpu/object.h"
#include "cpu/sharing.h"
#include "dispatch.h"
#include "triton_spirv/processor.hpp"

namespace triton_spirv::cpu {

class ProgramRaces;

// How a kernel is watched for races between its programs (program_races.h), if it is: cells of 1 << shift bytes;
// whether it runs in both orders of its programs; whether writes of equal values are told; where the report buffer's
// address is in its arguments, which part of the buffer is for a race, how many bytes the buffer has; where the first
// program of a part of a grid is, 0 if it is the grid's; and where the addresses of its tensors are.
struct Watch {
  bool on = false, twice = false, equal = false;
  uint32_t shift = 0, reports = 0, part = 0, bytes = 0, first_program = 0;
  std::vector<uint32_t> pointers = {};
};

// A kernel that is loaded. Launches go by its address.
class Kernel {
 public:
  // `scratch`: the bytes that a thread needs for a program. `contends`: whether programs may wait for each other.
  Kernel(std::shared_ptr<const Object> object, const std::string& function, uint64_t scratch, const Watch& watch,
         bool contends)
      : object_(std::move(object)),
        entry_(reinterpret_cast<Entry>(function_of(*object_, function))),
        updates_(reinterpret_cast<Updates>(object_->function(function + std::string(kUpdates)))),
        scratch_(scratch),
        watch_(watch),
        contends_(contends) {}

  // For code of this module. It needs no scratch.
  explicit Kernel(Entry entry) : entry_(entry), scratch_(0) {}

  // Null for code of this module.
  const Object* object() const { return object_.get(); }
  Entry entry() const { return entry_; }
  // Null where all updates are made at once.
  Updates updates() const { return updates_; }
  uint64_t scratch() const { return scratch_; }
  const Watch& watch() const { return watch_; }
  bool contends() const { return contends_; }

  // How long a program took in earlier launches, in nanoseconds; 0 before the first.
  float program_ns() const { return program_ns_.load(std::memory_order_relaxed); }
  void set_program_ns(float ns) const { program_ns_.store(ns, std::memory_order_relaxed); }

  // Of launches of about so many programs that are worth sharing. A pool alone has it, for one launch at a time.
  Sharing& sharing(uint64_t programs, unsigned threads) const {
    int size = 0;
    while (programs >>= 1) ++size;
    return sharing_.try_emplace({threads, size}, threads).first->second;
  }

  // What its launches did that have ended, as far as that was counted.
  Counts counts() const {
    Counts result{};
    for (std::size_t what = 0; what < kCounts; ++what) result[what] = counts_[what].load(std::memory_order_relaxed);
    return result;
  }
  void add_counts(const Counts& more) const {
    for (std::size_t what = 0; what < kCounts; ++what) counts_[what].fetch_add(more[what], std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<const Object> object_;
  Entry entry_;
  Updates updates_ = nullptr;
  uint64_t scratch_;
  Watch watch_;
  bool contends_ = false;
  mutable std::atomic<float> program_ns_{0};
  mutable std::map<std::pair<unsigned, int>, Sharing> sharing_;
  mutable std::array<std::atomic<uint64_t>, kCounts> counts_{};
};

// Why a launch was told to stop.
enum class Stop : int32_t { kNo, kFault, kTimeout, kInterrupt };

// One launch. It lives until Pool::run() has returned.
struct Launch {
  // The block of `dispatch` is at a multiple of kBlockAlignment, and lives as long.
  explicit Launch(const Dispatch& dispatch)
      : kernel(reinterpret_cast<const Kernel*>(dispatch.kernel)),
        block(dispatch.block),
        arguments(dispatch.block),
        grid{dispatch.grid[0], dispatch.grid[1], dispatch.grid[2], 0} {
    if (dispatch.indirect) block = reinterpret_cast<const std::byte*>(&address);
  }
  Launch(const Kernel* kernel, const std::byte* block, uint32_t programs)
      : kernel(kernel), block(block), arguments(block), grid{programs, 1, 1, 0} {}

  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  const Kernel* kernel;
  const std::byte* block;
  const std::byte* arguments;                                                   // also where the block is their address
  alignas(kBlockAlignment) Address address = reinterpret_cast<Address>(block);  // what an indirect block's kernel reads
  uint32_t grid[4];  // as Entry's, of a thread that may not be alone
  std::atomic<int32_t> stop{0};
  ProgramRaces* races = nullptr;  // where it is watched
  bool waits = false;             // a program that was watched waited for another one at the end
  Fault fault{};                  // set once the launch has ended, if a program faulted

  uint64_t programs() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  Stop stopped() const { return static_cast<Stop>(stop.load(std::memory_order_relaxed)); }
  // The first reason counts.
  void end(Stop why) {
    int32_t none = 0;
    stop.compare_exchange_strong(none, static_cast<int32_t>(why), std::memory_order_relaxed);
  }
};

}  // namespace triton_spirv::cpu
