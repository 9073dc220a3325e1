#include "vulkan/recorded.h"

#include <cstring>
#include <tuple>

namespace triton_spirv {

RecordedCommands::RecordedCommands(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {
  std::tie(pool_, commands_) = device_->add_recording();
}

RecordedCommands::~RecordedCommands() { device_->remove_recording(pool_); }

void RecordedCommands::begin() {
  // A replay may be submitted before the last one is done. The barrier before each launch orders them.
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, nullptr};
  device_->checked(device_->vk_.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
}

void RecordedCommands::add(const Dispatch& dispatch) {
  VulkanBuffer* block = nullptr;
  if (dispatch.indirect) {
    blocks_.push_back(device_->allocate_buffer(dispatch.block_bytes, MemoryKind::kStaging));
    block = blocks_.back().get();
    std::memcpy(block->host(), dispatch.block, dispatch.block_bytes);
  }
  device_->barrier(commands_, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  device_->vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_of(dispatch.kernel));
  device_->push_and_dispatch(commands_, dispatch, block);
}

void RecordedCommands::end() {
  if (!device_->host_addresses_) {
    // The host reads reports from mapped memory.
    device_->barrier(commands_, kWorkStages, kWorkWrites, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  }
  device_->checked(device_->vk_.vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
}

uint64_t RecordedCommands::submit() { return device_->submit_recording(commands_); }

std::shared_ptr<Recorded> VulkanDevice::make_recorded() {
  return std::make_shared<RecordedCommands>(std::static_pointer_cast<VulkanDevice>(shared_from_this()));
}

std::pair<VkCommandPool, VkCommandBuffer> VulkanDevice::add_recording() {
  const Use use(*this);
  check_usable();
  VkCommandPool made;
  VkCommandBuffer commands;
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, queue_family_};
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &made), "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, made,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  const VkResult result = vk_.vkAllocateCommandBuffers(device_, &info, &commands);
  if (result != VK_SUCCESS) vk_.vkDestroyCommandPool(device_, made, nullptr);
  check(result, "vkAllocateCommandBuffers");
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  recording_pools_.insert(made);
  return {made, commands};
}

void VulkanDevice::remove_recording(VkCommandPool pool) {
  if (stuck_ || lost_ || forked()) return;
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  if (recording_pools_.erase(pool) != 0) vk_.vkDestroyCommandPool(device_, pool, nullptr);
}

uint64_t VulkanDevice::submit_recording(VkCommandBuffer commands) {
  const std::lock_guard<std::mutex> queue(queue_mutex_);
  check_usable();
  Submission all;
  all.commands = commands;
  for (;;) {
    flush_locked(submitted_.load(std::memory_order_acquire));
    const std::lock_guard<std::mutex> ring(ring_mutex_);
    if (open_ != 0 || closed_count_ != 0) continue;  // another thread recorded meanwhile
    name_next(nullptr);
    all.value = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(all.value, std::memory_order_release);
    waited_.store(false, std::memory_order_relaxed);
    last_recorded_ = std::chrono::steady_clock::now();
    break;
  }
  hand_over(all);
  return all.value;
}

}  // namespace triton_spirv
