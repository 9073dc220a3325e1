// How long launches take, as far as earlier launches of their kernels tell.
//
// A driver may end a submission that takes too long, and the device is lost with it. So submissions of such a device
// are timed, and what they teach says which launches may share one.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "dispatch.h"

namespace triton_spirv {

// One launch of a submission. `programs`: of its grid.
struct Launched {
  KernelHandle kernel;
  uint64_t programs;
};

class JobTimes {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  // The nanoseconds that a launch should take; kUnknown if nothing is known of its kernel. A launch of more programs
  // than were seen is taken to need as much time for each, and one of fewer programs as much as the whole.
  double estimate(const Launched& launch) const;
  // Takes a figure that was not measured, until one was.
  void expect(const Launched& launch, double ns);
  // Launches that were submitted together took so long. They share the time as was estimated.
  void learn(const std::vector<Launched>& launches, double ns);
  // The kernel's handle may become another kernel's.
  void forget(KernelHandle kernel);

 private:
  struct Known {
    uint64_t programs;
    double ns;
    bool guessed;
  };
  double estimated(const Launched& launch) const;  // with mutex_
  void note(const Launched& launch, double ns);    // with mutex_

  mutable std::mutex mutex_;
  // By the power of two of the programs: a few programs and many take a different time each.
  std::map<KernelHandle, std::map<unsigned, Known>> known_;
};

inline uint64_t programs_of(const uint32_t grid[3]) { return uint64_t{grid[0]} * grid[1] * grid[2]; }

}  // namespace triton_spirv
