#include "vulkan/job_times.h"

#include <algorithm>

namespace triton_spirv {
namespace {

// A time that is shorter than the known one counts so much: data may make the next launch as long as an earlier one.
constexpr double kFalling = 0.25;

unsigned power_of_two(uint64_t programs) {
  unsigned power = 0;
  while (programs >>= 1) ++power;
  return power;
}

}  // namespace

double JobTimes::estimate(const Launched& launch) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return estimated(launch);
}

double JobTimes::estimated(const Launched& launch) const {
  if (launch.programs == 0) return 0;
  const auto kernel = known_.find(launch.kernel);
  if (kernel == known_.end()) return kUnknown;
  const auto& sizes = kernel->second;
  const auto above = sizes.upper_bound(power_of_two(launch.programs));
  if (above == sizes.begin()) return above->second.ns;
  const Known& known = std::prev(above)->second;
  return known.ns * std::max(1.0, static_cast<double>(launch.programs) / static_cast<double>(known.programs));
}

void JobTimes::expect(const Launched& launch, double ns) {
  if (launch.programs == 0) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  auto& sizes = known_[launch.kernel];
  const auto found = sizes.find(power_of_two(launch.programs));
  if (found == sizes.end() || found->second.guessed) sizes[power_of_two(launch.programs)] = {launch.programs, ns, true};
}

void JobTimes::learn(const std::vector<Launched>& launches, double ns) {
  const std::lock_guard<std::mutex> guard(mutex_);
  double all = 0;
  std::vector<double> estimates;
  for (const Launched& launch : launches) {
    const double estimate = estimated(launch);
    estimates.push_back(estimate == kUnknown ? 0 : estimate);
    all += estimates.back();
  }
  for (std::size_t index = 0; index < launches.size(); ++index) {
    const double share = all > 0 ? estimates[index] / all : 1.0 / static_cast<double>(launches.size());
    if (launches[index].programs != 0) note(launches[index], ns * share);
  }
}

void JobTimes::note(const Launched& launch, double ns) {
  auto& sizes = known_[launch.kernel];
  const unsigned power = power_of_two(launch.programs);
  const auto found = sizes.find(power);
  if (found == sizes.end() || found->second.guessed) {
    sizes[power] = {launch.programs, ns, false};
    return;
  }
  Known& known = found->second;
  const double before = known.ns * static_cast<double>(launch.programs) / static_cast<double>(known.programs);
  known = {launch.programs, std::max(ns, before + kFalling * (ns - before)), false};
}

void JobTimes::forget(KernelHandle kernel) {
  const std::lock_guard<std::mutex> guard(mutex_);
  known_.erase(kernel);
}

}  // namespace triton_spirv
