// How many threads share a kernel's launches fastest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace triton_spirv::cpu {

// Programs with atomic operations or volatile loads may wait for each other's locks, for updates in logs, or for lines
// of a cache that another processor has: then fewer threads are faster, or one. What a program takes of a launch's time
// by the clock says so, for all threads, for one, and for each power of two between. A slower number is tried after so
// many launches of the fastest that trials take a fiftieth of the time.
class Sharing {
 public:
  explicit Sharing(unsigned threads) {
    for (unsigned fewer = 1; fewer < threads; fewer *= 2) ways_.push_back({fewer});
    ways_.push_back({threads});
    best_ = now_ = ways_.size() - 1;
  }

  // How many threads are to run the next launch.
  unsigned threads() const { return ways_[now_].threads; }

  // What a program takes of the time of a launch that all threads share, in nanoseconds; 0 before the first.
  float shared_ns() const { return ways_.back().ns; }

  // A launch ended that ran as threads() said: the nanoseconds of the clock for each program.
  void add(float ns) {
    float& known = ways_[now_].ns;
    // Another process may have had the processor: a launch that took longer says little.
    const bool new_trial = now_ != best_ && tried_ == 0;
    known = known == 0 || ns < known || new_trial ? ns : known + (std::min(ns, 2 * known) - known) / 4;
    ++launches_;
    if (now_ != best_) {
      if (++tried_ < kTrials) return;
      choose();
    }
    tried_ = 0;
    now_ = best_;
    for (std::size_t way = 0; way < ways_.size(); ++way)
      if (way != best_ && due(ways_[way]) <= launches_) now_ = way;
  }

 private:
  struct Way {
    unsigned threads;
    float ns = 0;        // 0: not tried yet
    uint64_t tried = 0;  // how many launches had ended
  };

  // After how many launches a way is tried again.
  uint64_t due(const Way& way) const {
    if (way.ns == 0) return kFirst;
    const float ratio = std::clamp(way.ns / std::max(ways_[best_].ns, 1e-3f), 1.0f, kMostRatio);
    return way.tried + static_cast<uint64_t>(kRounds * ratio) * (ways_.size() - 1);
  }

  // After a trial.
  void choose() {
    ways_[now_].tried = ways_[best_].tried = launches_;
    for (std::size_t way = 0; way < ways_.size(); ++way)
      if (ways_[way].ns != 0 && ways_[way].ns < ways_[best_].ns) best_ = way;
    const float fast = kAsFast * ways_[best_].ns;
    for (std::size_t way = best_; way-- > 0;)
      if (ways_[way].ns != 0 && ways_[way].ns < fast) best_ = way;
  }

  // Launches before the first trials, and before another for each time that it takes as long.
  static constexpr uint64_t kFirst = 8;
  static constexpr float kRounds = 128, kMostRatio = 64;
  // Launches of a trial, of which the fastest counts: threads sleep before the first.
  static constexpr uint32_t kTrials = 3;
  // Fewer threads are taken where they take as much longer: they leave processors to others.
  static constexpr float kAsFast = 1.05f;
  std::vector<Way> ways_;  // by their threads, all last
  std::size_t best_ = 0, now_ = 0;
  uint32_t tried_ = 0;
  uint64_t launches_ = 0;
};

}  // namespace triton_spirv::cpu
