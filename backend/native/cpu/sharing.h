// Whether threads that share a kernel's launches are faster than one thread alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace triton_spirv::cpu {

// Programs with atomic operations or volatile loads may wait for each other's locks, for updates in logs, or for lines
// of a cache that another processor has: then one thread is faster. What a program takes of a launch's time by the
// clock says so, both ways. The slower way is tried after so many launches of the other that trials take a hundredth of
// the time.
class Sharing {
 public:
  // Whether one thread is to run the next launch.
  bool alone() const { return alone_ != tries(); }

  // What a program takes of the time of a launch that threads share, in nanoseconds; 0 before the first.
  float shared_ns() const { return ns_[false]; }

  // A launch ended that ran as alone() said: the nanoseconds of the clock for each program.
  void add(float ns) {
    float& known = ns_[alone()];
    // Another process may have had the processor: a launch that took longer says little.
    known = known == 0 || ns < known || launches_ == rounds_ ? ns : known + (std::min(ns, 2 * known) - known) / 4;
    if (++launches_ < rounds_ + kTrials) return;
    alone_ = ns_[true] < ns_[false];
    const float ratio = ns_[!alone_] / std::max(ns_[alone_], 1e-3f);
    rounds_ = static_cast<uint32_t>(kRounds * std::clamp(ratio, 1.0f, kMostRatio));
    launches_ = 0;
  }

 private:
  bool tries() const { return launches_ >= rounds_; }

  // Launches before the first trial, and before another for each time that it takes as long.
  static constexpr uint32_t kFirst = 8;
  static constexpr float kRounds = 128, kMostRatio = 64;
  // Launches of a trial, of which the fastest counts: threads sleep before the first.
  static constexpr uint32_t kTrials = 3;
  std::array<float, 2> ns_{};  // shared, alone
  bool alone_ = false;
  uint32_t launches_ = 0, rounds_ = kFirst;
};

}  // namespace triton_spirv::cpu
