// Submissions that are bounded in time, because the driver ends a job that takes longer.
#include <cmath>
#include <cstdio>

#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

// Parts of a launch are to take so much of the time that there is: their times differ.
constexpr double kFilled = 0.75;
// A launch is told of from so many times that time on. Twice that time is what the driver allows.
constexpr double kTold = 1.5;

}  // namespace

double VulkanDevice::expected(KernelHandle kernel, uint64_t programs) const {
  return times_.estimate({kernel, programs}) / 1e9;
}

void VulkanDevice::expect(KernelHandle kernel, uint64_t programs, double seconds) {
  times_.expect({kernel, programs}, seconds * 1e9);
}

uint64_t VulkanDevice::parts(KernelHandle kernel, uint64_t programs) const {
  if (!is_bounded()) return 1;
  const double ns = times_.estimate({kernel, programs});
  if (ns == JobTimes::kUnknown || ns <= care_.job_ns) return 1;
  return std::min<uint64_t>(programs, static_cast<uint64_t>(std::ceil(ns / (kFilled * care_.job_ns))));
}

double VulkanDevice::bounded_estimate(const Dispatch& dispatch) {
  const double ns = times_.estimate({dispatch.kernel, programs_of(dispatch.grid)});
  if (ns == JobTimes::kUnknown || ns <= kTold * care_.job_ns || dispatch.name == nullptr) return ns;
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  if (told_.insert(dispatch.name).second)
    std::fprintf(
        stderr,
        "triton-spirv: one launch of %s takes about %.2g s, and the system may end work that takes longer than "
        "%.2g s, with the device: launch fewer programs at a time\n",
        dispatch.name->c_str(), ns / 1e9, 2 * care_.job_ns / 1e9);
  return ns;
}

// The time is taken when all earlier work is done, which includes that of earlier submissions.
void VulkanDevice::begin_timing(Slot& slot) {
  if (job_queries_ == VK_NULL_HANDLE) return;
  vk_.vkResetQueryPool(device_, job_queries_, slot.queries, 2);
  vk_.vkCmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, job_queries_, slot.queries);
}

void VulkanDevice::end_timing(Slot& slot, bool recorded) {
  if (job_queries_ == VK_NULL_HANDLE) return;
  if (recorded)
    vk_.vkCmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, job_queries_, slot.queries + 1);
  else
    vk_.vkResetQueryPool(device_, job_queries_, slot.queries, 2);
  slot.timed = true;
}

void VulkanDevice::learn(Slot& slot) {
  if (!slot.timed || slot.value > reached_.load(std::memory_order_acquire)) return;
  slot.timed = false;
  if (slot.launches.empty()) return;
  uint64_t at[2] = {};
  if (vk_.vkGetQueryPoolResults(device_, job_queries_, slot.queries, 2, sizeof(at), at, sizeof(at[0]),
                                VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
    return;
  const uint64_t mask = timestamp_bits_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << timestamp_bits_) - 1;
  times_.learn(slot.launches, static_cast<double>((at[1] - at[0]) & mask) * static_cast<double>(timestamp_period_));
}

}  // namespace triton_spirv
