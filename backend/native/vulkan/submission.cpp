// Submitting work to the driver: the ring of command buffers, and the flusher.

#include <array>
#include <cstring>
#include <utility>

#include "platform/platform.h"
#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

// If nothing was recorded for this long, the flusher sleeps until it is woken.
constexpr auto kQuiet = std::chrono::milliseconds(1);

}  // namespace

void VulkanDevice::make_ring() {
  timeline_ = make_timeline();
  copies_ = make_timeline();
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                     VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queues_.work_family};
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
  std::array<VkCommandBuffer, kRing> commands;
  const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, kRing};
  check(vk_.vkAllocateCommandBuffers(device_, &info, commands.data()), "vkAllocateCommandBuffers");
  for (std::size_t index = 0; index < kRing; ++index) ring_[index].commands = commands[index];
  if (!is_bounded() || timestamp_bits_ == 0) return;
  VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 2 * kRing;
  check(vk_.vkCreateQueryPool(device_, &queries, nullptr, &job_queries_), "vkCreateQueryPool");
  for (std::size_t index = 0; index < kRing; ++index) ring_[index].queries = static_cast<uint32_t>(2 * index);
}

void VulkanDevice::wait_for_slot(std::unique_lock<std::mutex>& ring, bool alone, const Dispatch* launch) {
  for (;;) {
    if (waiting_ != 0) await_later(ring, [&] { return later_.empty() && is_made(launch); });
    check_usable();
    if (alone && open_ != 0) close_slot();
    const uint64_t value = ring_[next_slot_].value;
    if (open_ != 0 || reached_.load(std::memory_order_acquire) >= value) return;
    ring.unlock();
    wait_until(value);
    ring.lock();
  }
}

VkResult VulkanDevice::begin(Slot& slot, VkCommandBufferUsageFlags usage) {
  slot.key = {};
  slot.begun = false;
  learn(slot);
  slot.launches.clear();
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, usage, nullptr};
  const VkResult result = vk_.vkBeginCommandBuffer(slot.commands, &begin);
  if (result == VK_SUCCESS) begin_timing(slot);
  return result;
}

Slot& VulkanDevice::open_slot(bool again) {
  Slot& slot = ring_[next_slot_];
  if (open_ != 0) return slot;
  ordered_ = slot.begun;
  bound_ = 0;
  if (slot.begun)
    slot.begun = false;
  else
    checked(begin(slot, again ? 0 : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT), "vkBeginCommandBuffer");
  return slot;
}

void VulkanDevice::begin_ahead() {
  if (!missed_.exchange(false, std::memory_order_relaxed)) return;
  const std::unique_lock<std::mutex> ring(ring_mutex_, std::try_to_lock);
  if (!ring || open_ != 0 || closed_) return;
  Slot& slot = ring_[next_slot_];
  if (slot.begun || slot.value > reached_.load(std::memory_order_acquire)) return;
  if (begin(slot, 0) != VK_SUCCESS) return;  // the next recording tries again
  barrier(slot.commands, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  slot.begun = true;
}

bool VulkanDevice::take_again(const CommandsKey& key, const Dispatch* launch) {
  const uint64_t reached = reached_.load(std::memory_order_acquire);
  for (std::size_t back = 1; back <= kRing; ++back) {  // from the latest one on
    Slot& earlier = ring_[(next_slot_ + kRing - back) % kRing];
    if (earlier.value > reached || !(earlier.key == key)) continue;
    Slot& next = ring_[next_slot_];
    learn(earlier);
    if (&earlier != &next) std::swap(earlier, next);  // both are done
    Slot& behind = ring_[(next_slot_ + 1) % kRing];
    if (earlier.begun && &earlier != &behind && behind.value <= reached) std::swap(earlier, behind);
    if (launch != nullptr && launch->indirect) std::memcpy(next.block->host(), launch->block, launch->block_bytes);
    return true;
  }
  return false;
}

void VulkanDevice::forget(KernelHandle kernel) {
  times_.forget(kernel);
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  for (Slot& slot : ring_) {
    slot.timed = false;  // its handle may become another kernel's
    if (slot.key.is_of(kernel)) slot.key = {};
  }
}

void VulkanDevice::close_slot(Commands commands, const SemaphoreWait* after, uint64_t copies) {
  Slot& slot = ring_[next_slot_];
  open_ = 0;
  open_ns_ = 0;
  timing_ = false;
  if (commands == Commands::kOpen) to_host(slot.commands);
  end_timing(slot, commands == Commands::kOpen);
  const VkResult result = commands == Commands::kOpen ? vk_.vkEndCommandBuffer(slot.commands) : VK_SUCCESS;
  if (result != VK_SUCCESS) {
    lost_ = true;  // as in submit_to()
    fail("vkEndCommandBuffer", result);
  }
  slot.value = recorded();
  slot.after = after != nullptr ? *after : SemaphoreWait{};
  slot.copies = copies;
  Stream::raise(ordered_copies_, copies);
  next_slot_ = (next_slot_ + 1) % kRing;
  ++closed_count_;
}

void VulkanDevice::submit_to(VkQueue queue, VkCommandBuffer commands, std::initializer_list<SemaphoreWait> waits,
                             const SemaphoreWait& signal) {
  constexpr std::size_t kMost = 2;
  const VkPipelineStageFlags everything[kMost] = {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                                  VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
  VkSemaphore semaphores[kMost];
  uint64_t least[kMost];
  uint32_t count = 0;
  for (const SemaphoreWait& wait : waits) {
    if (wait.semaphore == VK_NULL_HANDLE) continue;
    semaphores[count] = wait.semaphore;
    least[count++] = wait.value;
  }
  VkTimelineSemaphoreSubmitInfo values{
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, count, least, 1, &signal.value};
  const VkSubmitInfo info{
      VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, count, semaphores, everything, 1, &commands, 1, &signal.semaphore};
  VkResult result;
  {
    const auto guard = layer_guard();
    result = vk_.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE);
  }
  if (result != VK_SUCCESS) {
    lost_ = true;  // for any error, because launches that have returned were not submitted
    fail("vkQueueSubmit", result);
  }
}

void VulkanDevice::hand_over(const Submission& submission) {
  if (care_.drains) {
    const uint64_t before = flushed_.load(std::memory_order_acquire);
    while (!seen(before)) {
      const VkResult waited = wait_semaphore(before, kSleepNs);
      if (waited != VK_TIMEOUT) checked(waited, "vkWaitSemaphores");
    }
  }
  const SemaphoreWait copies{submission.copies != 0 ? copies_ : VK_NULL_HANDLE, submission.copies};
  submit_to(queues_.work, submission.commands, {submission.after, copies}, {timeline_, submission.value});
  queued_before_.store(flushed_.load(std::memory_order_relaxed), std::memory_order_release);
  flushed_.store(submission.value, std::memory_order_release);
}

void VulkanDevice::flush(uint64_t value) {
  if (flushed_.load(std::memory_order_acquire) >= value) return;
  check_running();  // before the mutex, which a thread of the parent may hold in a forked child
  const std::lock_guard<std::mutex> queue(queue_mutex_);
  flush_locked(value);
}

void VulkanDevice::flush_locked(uint64_t value) {
  while (flushed_.load(std::memory_order_relaxed) < value) {
    check_running();
    Submission next;  // a copy: once the work is done, another launch may take the slot
    {
      const std::lock_guard<std::mutex> ring(ring_mutex_);
      if (closed_count_ == 0) {
        if (open_ == 0) return;
        close_slot();
      }
      next = ring_[(next_slot_ + kRing - closed_count_) % kRing];
      --closed_count_;
    }
    hand_over(next);  // other threads can record meanwhile
  }
}

void VulkanDevice::wake_flusher() {
  if (flusher_awake_) return;
  if (!flusher_.joinable()) flusher_ = std::thread([this] { flush_when_idle(); });
  flusher_awake_ = true;
  wake_.notify_one();
}

void VulkanDevice::flush_when_idle() {
  platform::nap_precisely();
  std::unique_lock<std::mutex> ring(ring_mutex_);
  while (!closing_) {
    if (open_ == 0 && closed_count_ == 0 && std::chrono::steady_clock::now() - last_recorded_ >= kQuiet) {
      flusher_awake_ = false;
      wake_.wait(ring, [this] { return closing_ || flusher_awake_; });
    }
    ring.unlock();
    std::this_thread::sleep_for(kNap);
    ring.lock();
    if (timing_ && std::chrono::steady_clock::now() - last_recorded_ < kRow) continue;
    ring.unlock();
    try {
      const Use use(*this);
      if (lost_) return;  // the next call raises the error
      const uint64_t recorded = submitted();
      if (flushed_.load(std::memory_order_acquire) < recorded) {
        const uint64_t value = queued_before_.load(std::memory_order_acquire);
        const VkResult result = seen(value) ? VK_SUCCESS : wait_semaphore(value, kSleepNs);
        if (result != VK_TIMEOUT) {
          checked(result, "vkWaitSemaphores");
          if (nearly_idle()) flush(submitted());
        }
      }
    } catch (const std::exception&) {
      if (lost_ || stuck_ || gone_) return;  // the next call raises the error
    }
    ring.lock();
  }
}

void VulkanDevice::stop_flusher() {
  if (!flusher_.joinable()) return;
  if (forked()) {
    flusher_.detach();  // the thread stayed in the parent
    return;
  }
  {
    const std::lock_guard<std::mutex> guard(ring_mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  flusher_.join();
}

}  // namespace triton_spirv
