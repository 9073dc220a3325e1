#include "vulkan/recorded.h"

#include <cstring>
#include <tuple>
#include <utility>

namespace triton_spirv {

RecordedCommands::RecordedCommands(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {
  VkCommandBuffer first;
  std::tie(pool_, first) = device_->add_recording();
  commands_.push_back(first);
}

RecordedCommands::~RecordedCommands() { device_->remove_recording(pool_); }

void RecordedCommands::begin() { begin_commands(); }

void RecordedCommands::begin_commands() {
  // A replay may be submitted before the last one is done. The barrier before each launch orders them.
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, nullptr};
  device_->checked(device_->vk_.vkBeginCommandBuffer(commands_.back(), &begin), "vkBeginCommandBuffer");
  open_ns_ = 0;
}

void RecordedCommands::add(const Dispatch& dispatch) {
  if (device_->is_bounded()) {
    const double expected = device_->bounded_estimate(dispatch);
    if (open_ns_ > 0 && open_ns_ + expected > device_->care_.job_ns) {
      end_commands();
      commands_.push_back(device_->add_commands(pool_));
      begin_commands();
    }
    // Behind a launch of unknown length nothing else is added.
    open_ns_ += expected;
  }
  device_->await_pipeline(dispatch);
  VulkanBuffer* block = nullptr;
  if (dispatch.indirect) {
    blocks_.push_back(device_->allocate_buffer(dispatch.block_bytes, MemoryKind::kStaging));
    block = blocks_.back().get();
    std::memcpy(block->host(), dispatch.block, dispatch.block_bytes);
  }
  device_->barrier(commands_.back(), kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  device_->vk_.vkCmdBindPipeline(commands_.back(), VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_of(dispatch.kernel));
  device_->push_and_dispatch(commands_.back(), dispatch, block);
}

void RecordedCommands::end() {
  device_->to_host(commands_.back());
  end_commands();
}

void RecordedCommands::end_commands() {
  device_->checked(device_->vk_.vkEndCommandBuffer(commands_.back()), "vkEndCommandBuffer");
}

uint64_t RecordedCommands::submit() { return device_->submit_recording(commands_); }

std::shared_ptr<Recorded> VulkanDevice::make_recorded() {
  return std::make_shared<RecordedCommands>(std::static_pointer_cast<VulkanDevice>(shared_from_this()));
}

std::pair<VkCommandPool, VkCommandBuffer> VulkanDevice::add_recording() {
  const Work use(*this);
  VkCommandPool made;
  VkCommandBuffer commands;
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, queues_.work_family};
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &made), "vkCreateCommandPool");
  try {
    commands = add_commands(made);
  } catch (...) {
    vk_.vkDestroyCommandPool(device_, made, nullptr);
    throw;
  }
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  recording_pools_.insert(made);
  return {made, commands};
}

VkCommandBuffer VulkanDevice::add_commands(VkCommandPool pool) {
  const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  VkCommandBuffer commands;
  check(vk_.vkAllocateCommandBuffers(device_, &info, &commands), "vkAllocateCommandBuffers");
  return commands;
}

void VulkanDevice::remove_recording(VkCommandPool pool) {
  if (stuck_ || lost_ || forked()) return;
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  if (recording_pools_.erase(pool) != 0) vk_.vkDestroyCommandPool(device_, pool, nullptr);
}

uint64_t VulkanDevice::submit_recording(const std::vector<VkCommandBuffer>& commands) {
  const std::shared_ptr<Stream> stream = Stream::current(*this);
  std::unique_lock<std::mutex> queue(queue_mutex_, std::defer_lock);
  uint64_t copies = 0, before;
  for (;;) {
    if (queue) queue.unlock();
    catch_up(submitted());
    queue.lock();
    check_usable();
    flush_locked(submitted_.load(std::memory_order_acquire));
    const std::lock_guard<std::mutex> ring(ring_mutex_);
    // Another thread may have recorded meanwhile.
    if (open_ != 0 || closed_count_ != 0 || !later_.empty()) continue;
    before = submitted_.load(std::memory_order_relaxed);
    copies = copies_before(stream.get());
    Stream::raise(ordered_copies_, copies);
    for (std::size_t index = 0; index < commands.size(); ++index) {
      name_next(nullptr);
      submitted_.fetch_add(1, std::memory_order_release);
    }
    waited_.store(false, std::memory_order_relaxed);
    last_recorded_ = std::chrono::steady_clock::now();
    break;
  }
  for (const VkCommandBuffer one : commands) {
    Submission part;
    part.commands = one;
    part.value = ++before;
    part.copies = std::exchange(copies, 0);
    hand_over(part);
  }
  if (stream) stream->wait_for({before, 0});
  return before;
}

}  // namespace triton_spirv
