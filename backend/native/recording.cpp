#include "recording.h"

#include <cstring>

namespace triton_spirv {

thread_local Recording* Recording::recording_ = nullptr;

Recording::Recording(std::shared_ptr<Device> device) : device_(std::move(device)) { device_->add_recording(*this); }

Recording::~Recording() {
  if (recording_ == this) recording_ = nullptr;
  try {
    device_->wait(last_);
  } catch (const std::exception&) {
    // The device is lost, closed, or its work never ended: what it still uses stays until the process ends.
    for (std::unique_ptr<Buffer>& block : blocks_) block.release();
    for (std::shared_ptr<void>& used : kept_) new std::shared_ptr<void>(std::move(used));
  }
  device_->remove_recording(*this);
}

Recording* Recording::current(const Device& device) {
  return recording_ != nullptr && recording_->device_.get() == &device ? recording_ : nullptr;
}

void Recording::begin() {
  if (recording_ != nullptr) throw std::runtime_error("this thread is capturing a graph already");
  if (ready_ || launches_ != 0) throw std::runtime_error("this graph was captured already: make a new one");
  device_->check_usable();
  device_->begin(*this);
  recording_ = this;
}

void Recording::end(bool ready) {
  if (recording_ != this) throw std::runtime_error("this thread is not capturing this graph");
  recording_ = nullptr;
  device_->end(*this);
  ready_ = ready;
}

uint64_t Recording::replay() {
  if (!ready_) throw std::runtime_error("this graph was not captured to its end, so it cannot be replayed");
  if (launches_ == 0) return 0;
  last_ = device_->submit_recording(*this);
  if (host_) device_->wait(last_);
  return last_;
}

void Device::add_recording(Recording& recording) {
  check_usable();
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, queue_family_};
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &recording.pool_), "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, recording.pool_,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  const VkResult result = vk_.vkAllocateCommandBuffers(device_, &info, &recording.commands_);
  if (result != VK_SUCCESS) vk_.vkDestroyCommandPool(device_, recording.pool_, nullptr);
  check(result, "vkAllocateCommandBuffers");
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  recording_pools_.insert(recording.pool_);
}

void Device::remove_recording(Recording& recording) {
  if (stuck_ || lost_ || forked()) return;
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  if (recording_pools_.erase(recording.pool_) != 0) vk_.vkDestroyCommandPool(device_, recording.pool_, nullptr);
}

void Device::begin(Recording& recording) {
  // Replays may follow each other before the first is done; the barrier before each launch orders them.
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, nullptr};
  checked(vk_.vkBeginCommandBuffer(recording.commands_, &begin), "vkBeginCommandBuffer");
}

void Device::end(Recording& recording) {
  if (!host_addresses_) {
    // Reports are read from mapped memory.
    barrier(recording.commands_, kWorkStages, kWorkWrites, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  }
  checked(vk_.vkEndCommandBuffer(recording.commands_), "vkEndCommandBuffer");
}

void Device::record(Recording& recording, const Dispatch& dispatch) {
  Buffer* block = nullptr;
  if (dispatch.indirect) {
    recording.blocks_.push_back(allocate(dispatch.block_bytes, MemoryKind::kStaging));
    block = recording.blocks_.back().get();
    std::memcpy(block->host(), dispatch.block, dispatch.block_bytes);
  }
  barrier(recording.commands_, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  vk_.vkCmdBindPipeline(recording.commands_, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  push_and_dispatch(recording.commands_, dispatch, block);
  recording.pipelines_.insert(dispatch.pipeline);
  ++recording.launches_;
}

uint64_t Device::submit_recording(const Recording& recording) {
  check_usable();
  refuse_while_recording();
  const std::lock_guard<std::mutex> queue(queue_mutex_);
  Slot all;
  all.commands = recording.commands_;
  for (;;) {
    flush_locked(submitted_.load(std::memory_order_acquire));
    const std::lock_guard<std::mutex> ring(ring_mutex_);
    if (open_ != 0 || closed_count_ != 0) continue;  // another thread recorded meanwhile
    all.value = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(all.value, std::memory_order_release);
    waited_.store(false, std::memory_order_relaxed);
    last_recorded_ = std::chrono::steady_clock::now();
    break;
  }
  submit_slot(all);
  return all.value;
}

}  // namespace triton_spirv
