// Waiting for work.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

// Most kernels that a user waits for are short. Polling the semaphore for this long before sleeping saves a wake-up.
constexpr auto kPollTime = std::chrono::microseconds(100);

// One pause in a polling loop. `yields`: this machine's CPU does the device's work.
inline void pause_or_yield(bool yields) {
  if (yields) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

template <typename IsReached>
VkResult VulkanDevice::wait_semaphore(VkSemaphore timeline, uint64_t value, uint64_t timeout_ns,
                                      IsReached&& is_reached) {
  if (validated) {
    const auto start = std::chrono::steady_clock::now();
    while (!is_reached(value)) {
      if (std::chrono::steady_clock::now() - start >= std::chrono::nanoseconds(timeout_ns)) return VK_TIMEOUT;
      std::this_thread::sleep_for(kNap);
    }
    return VK_SUCCESS;
  }
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline;
  info.pValues = &value;
  return vk_.vkWaitSemaphores(device_, &info, timeout_ns);
}

VkResult VulkanDevice::wait_semaphore(uint64_t value, uint64_t timeout_ns) {
  return wait_semaphore(timeline_, value, timeout_ns, [this](uint64_t least) { return seen(least); });
}

uint64_t VulkanDevice::counter(VkSemaphore timeline, const std::atomic<uint64_t>& submitted,
                               std::atomic<uint64_t>& reached) {
  uint64_t now = 0;
  {
    const auto guard = layer_guard();
    checked(vk_.vkGetSemaphoreCounterValue(device_, timeline, &now), "vkGetSemaphoreCounterValue");
  }
  // Some drivers report a lost device as the largest value.
  if (now > submitted.load(std::memory_order_acquire) + 1) fail("vkGetSemaphoreCounterValue", VK_ERROR_DEVICE_LOST);
  Stream::raise(reached, now);
  return now;
}

uint64_t VulkanDevice::look() { return counter(timeline_, submitted_, reached_); }

bool VulkanDevice::look_copies(uint64_t value) {
  if (copies_end_.load(std::memory_order_acquire) >= value) return true;
  const uint64_t now = counter(copies_, copied_, copies_end_);
  const std::lock_guard<std::mutex> guard(copies_mutex_);
  while (!pending_.empty() && pending_.front().value <= now) pending_.pop_front();
  return now >= value;
}

bool VulkanDevice::waits_outside() {
  SemaphoreWait first;
  {
    const std::lock_guard<std::mutex> ring(ring_mutex_);
    const uint64_t reached = reached_.load(std::memory_order_acquire);
    uint64_t value = UINT64_MAX;
    for (const Slot& slot : ring_) {
      if (slot.value <= reached || slot.value >= value) continue;
      value = slot.value;
      first = slot.after;
    }
  }
  if (first.semaphore == VK_NULL_HANDLE) return false;
  uint64_t now = 0;
  checked(vk_.vkGetSemaphoreCounterValue(device_, first.semaphore, &now), "vkGetSemaphoreCounterValue");
  return now < first.value;
}

uint64_t VulkanDevice::copies_before_work(uint64_t value) {
  if (copies_end_.load(std::memory_order_acquire) >= copied()) return 0;
  uint64_t copies = 0;
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  const uint64_t reached = reached_.load(std::memory_order_acquire);
  for (const Slot& slot : ring_)
    if (reached < slot.value && slot.value <= value) copies = std::max(copies, slot.copies);
  return copies;
}

void VulkanDevice::wait(uint64_t value) {
  wait_until(value);
  waited_.store(true, std::memory_order_relaxed);
}

template <typename IsReached, typename GoesOn, typename What>
void VulkanDevice::poll(VkSemaphore timeline, uint64_t value, IsReached&& is_reached, GoesOn&& goes_on, What&& what) {
  auto start = std::chrono::steady_clock::now();
  while (!is_reached(value)) {
    const auto now = std::chrono::steady_clock::now();
    if (now - start < kPollTime) {
      pause_or_yield(on_host_);
      continue;
    }
    check_running();  // another thread may have lost or closed the device
    const uint64_t timeout_ns = timeout_ns_.load(std::memory_order_relaxed);
    auto spent_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now - start).count());
    if (goes_on(spent_ns >= timeout_ns)) {
      start = now - kPollTime;
      spent_ns = 0;
    }
    if (spent_ns >= timeout_ns) {
      const auto [work, writes] = what();
      stuck_ = true;
      throw VulkanError(work + " did not end within the time limit of " + std::to_string(timeout_ns / 1000000) +
                            " ms (TRITON_SPIRV_TIMEOUT, in seconds); it may still be running" + writes + kOpenedAgain,
                        VK_TIMEOUT);
    }
    const VkResult result = wait_semaphore(timeline, value, std::min(kSleepNs, timeout_ns - spent_ns), is_reached);
    if (result == VK_TIMEOUT) {
      if (while_waiting != nullptr) while_waiting();
    } else {
      checked(result, "vkWaitSemaphores");
    }
  }
}

void VulkanDevice::wait_copies(uint64_t value) {
  if (copies_end_.load(std::memory_order_acquire) >= value) return;
  const Use use(*this);
  check_running();
  uint64_t after = 0;
  {
    const std::lock_guard<std::mutex> guard(copies_mutex_);
    for (const Copy& copy : pending_) {
      if (copy.value <= value) after = std::max(after, copy.after);
    }
  }
  wait_until(after);  // so that the time limit is that of the copies
  uint64_t end = copies_end_.load(std::memory_order_acquire);
  poll(
      copies_, value, [this](uint64_t least) { return look_copies(least); },
      [&](bool) { return end != std::exchange(end, copies_end_.load(std::memory_order_acquire)); },
      [] { return std::pair<std::string, const char*>("a copy", ""); });
}

void VulkanDevice::wait_until(uint64_t value) {
  catch_up(value);
  if (reached_.load(std::memory_order_acquire) >= value) return;
  const Use use(*this);
  check_running();
  flush(value);
  begin_ahead();
  wait_copies(copies_before_work(value));  // so that the time limit is that of the work
  uint64_t reached = reached_.load(std::memory_order_acquire);
  poll(
      timeline_, value, [this](uint64_t least) { return seen(least); },
      [&](bool is_late) {
        const uint64_t before = std::exchange(reached, reached_.load(std::memory_order_acquire));
        return before != reached || (is_late && waits_outside());
      },
      [this] { return std::pair<std::string, const char*>(running(), " and writing to its arguments"); });
}

}  // namespace triton_spirv
