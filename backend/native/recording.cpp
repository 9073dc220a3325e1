#include "recording.h"

#include <cstring>
#include <tuple>

namespace triton_spirv {

thread_local Recording* Recording::recording_ = nullptr;

Recorded::Recorded(std::shared_ptr<Device> of) : device(std::move(of)) {
  std::tie(pool, commands) = device->add_recording();
}

Recorded::~Recorded() { device->remove_recording(pool); }

Recording::Recording(std::shared_ptr<Device> device)
    : device_(std::move(device)), recorded_(std::make_shared<Recorded>(device_)) {}

Recording::~Recording() {
  if (recording_ == this) recording_ = nullptr;
  device_->keep(last_, std::move(recorded_));
}

Recording* Recording::current(const Device& device) {
  return recording_ != nullptr && recording_->device_.get() == &device ? recording_ : nullptr;
}

void Recording::begin() {
  if (recording_ != nullptr) throw std::runtime_error("this thread is capturing a graph already");
  if (begun_) throw std::runtime_error("this graph was captured already: make a new one");
  device_->begin(recorded_->commands);
  begun_ = true;
  recording_ = this;
}

void Recording::end(bool ready) {
  if (recording_ != this) throw std::runtime_error("this thread is not capturing this graph");
  recording_ = nullptr;
  const Device::Use use(*device_);
  try {
    device_->check_usable();
  } catch (const std::exception&) {
    if (ready) throw;
    return;  // the command buffer is gone or belongs to another process
  }
  device_->end(recorded_->commands);
  ready_ = ready;
}

uint64_t Recording::replay() {
  if (!ready_) throw std::runtime_error("this graph was not captured to its end, so it cannot be replayed");
  if (launches_ == 0) return 0;
  const uint64_t value = device_->submit_recording(recorded_->commands);
  uint64_t last = last_.load(std::memory_order_relaxed);
  while (last < value && !last_.compare_exchange_weak(last, value, std::memory_order_release)) {
  }
  if (host_) device_->wait(value);
  return value;
}

std::pair<VkCommandPool, VkCommandBuffer> Device::add_recording() {
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

void Device::remove_recording(VkCommandPool pool) {
  if (stuck_ || lost_ || forked()) return;
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  if (recording_pools_.erase(pool) != 0) vk_.vkDestroyCommandPool(device_, pool, nullptr);
}

void Device::begin(VkCommandBuffer recorded) {
  const Use use(*this);
  check_usable();
  // A replay may be submitted before the last one is done. The barrier before each launch orders them.
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, nullptr};
  checked(vk_.vkBeginCommandBuffer(recorded, &begin), "vkBeginCommandBuffer");
}

void Device::end(VkCommandBuffer recorded) {
  if (!host_addresses_) {
    // The host reads reports from mapped memory.
    barrier(recorded, kWorkStages, kWorkWrites, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  }
  checked(vk_.vkEndCommandBuffer(recorded), "vkEndCommandBuffer");
}

void Device::record(Recording& recording, const Dispatch& dispatch) {
  const Use use(*this);
  check_usable();
  Recorded& recorded = *recording.recorded_;
  Buffer* block = nullptr;
  if (dispatch.indirect) {
    recorded.blocks.push_back(allocate(dispatch.block_bytes, MemoryKind::kStaging));
    block = recorded.blocks.back().get();
    std::memcpy(block->host(), dispatch.block, dispatch.block_bytes);
  }
  barrier(recorded.commands, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  vk_.vkCmdBindPipeline(recorded.commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  push_and_dispatch(recorded.commands, dispatch, block);
  ++recording.launches_;
}

uint64_t Device::submit_recording(VkCommandBuffer commands) {
  check_usable();
  refuse_while_recording();
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
