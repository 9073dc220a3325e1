// Opening and closing a device, and launches.
#include "vulkan/vulkan_device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

namespace triton_spirv {
namespace {

// The size in bytes of the smallest buffer for an argument block.
constexpr uint32_t kSmallestBlock = 4096;

// The largest number of kernels that an error names.
constexpr std::size_t kMostNamed = 3;

// The copies of a launch are between buffers of its device.
VkBuffer handle_of(const Buffer* buffer) { return static_cast<const VulkanBuffer*>(buffer)->buffer(); }

}  // namespace

VulkanDevice::VulkanDevice(VkInstance instance, VkPhysicalDevice physical, VkDevice device, const Queues& queues,
                           VkPipelineLayout layout, bool host_addresses, bool shares_semaphores, uint64_t timeout_ns,
                           const Care& care)
    : Device(host_addresses),
      instance_functions_(instance),
      physical_(physical),
      vk_(instance_functions_, device),
      device_(device),
      queues_(queues),
      layout_(layout),
      timeout_ns_(timeout_ns),
      shares_semaphores_(shares_semaphores),
      care_(care) {
  bounded_ = care_.job_ns > 0;
  VkPhysicalDeviceMaintenance3Properties allocations{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceMaintenance4Properties sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
                                               &allocations};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes};
  instance_functions_.vkGetPhysicalDeviceProperties2(physical, &properties);
  const VkPhysicalDeviceLimits& limits = properties.properties.limits;
  for (std::size_t axis = 0; axis < limits_.grid.size(); ++axis)
    limits_.grid[axis] = limits.maxComputeWorkGroupCount[axis];
  limits_.block_bytes = limits.maxPushConstantsSize;
  timestamp_period_ = limits.timestampPeriod;
  most_buffer_bytes_ = sizes.maxBufferSize;
  if (care_.holds_allocations) most_allocation_bytes_ = allocations.maxMemoryAllocationSize;
  shares_memory_with_host_ = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  on_host_ = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  instance_functions_.vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  uint32_t count = 0;
  instance_functions_.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance_functions_.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  if (const uint32_t family = queues_.work_family; family < count) {
    timestamp_bits_ = families[family].timestampValidBits;
    binds_sparse_ = (families[family].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT) && imports_into_sparse(physical);
  }
  make_ring();
}

VkSemaphore VulkanDevice::make_timeline() {
  const VkExportSemaphoreCreateInfo exported{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, nullptr,
                                             VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       shares_semaphores_ ? &exported : nullptr, VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  VkSemaphore semaphore;
  check(vk_.vkCreateSemaphore(device_, &info, nullptr, &semaphore), "vkCreateSemaphore");
  return semaphore;
}

void VulkanDevice::throw_lost(const std::string& message) const { throw VulkanError(message, VK_ERROR_DEVICE_LOST); }

// Reports a failed call. If the device is lost, every later use of it raises an error too.
void VulkanDevice::fail(const char* function, VkResult result) {
  if (result != VK_ERROR_DEVICE_LOST) throw VulkanError(function, result);
  const std::string work = running();
  lost_ = true;
  throw VulkanError(std::string(function) + " failed: VK_ERROR_DEVICE_LOST (-4): the device reset or " + work +
                        " accessed memory that is not there" + fault() + "; results of unfinished kernels are lost" +
                        kOpenedAgain,
                    result);
}

// Launches that were submitted together cannot be told apart, because only the end of the last one is seen.
std::string VulkanDevice::running() const {
  const uint64_t first = reached_.load(std::memory_order_acquire) + 1;
  const uint64_t last = std::min<uint64_t>(flushed_.load(std::memory_order_acquire), first + kBatch - 1);
  std::vector<const std::string*> kernels;
  for (uint64_t value = first; value <= last; ++value) {
    const std::string* const kernel = named_[value % kNamed].load(std::memory_order_relaxed);
    if (kernel != nullptr && std::find(kernels.begin(), kernels.end(), kernel) == kernels.end())
      kernels.push_back(kernel);
  }
  if (kernels.empty()) return "a kernel";
  std::string text = kernels.size() == 1 ? "" : "one of ";
  for (std::size_t index = 0; index < std::min(kernels.size(), kMostNamed); ++index)
    text += (index == 0 ? "" : ", ") + *kernels[index];
  if (kernels.size() > kMostNamed) text += " and " + std::to_string(kernels.size() - kMostNamed) + " others";
  return text;
}

// Waits until no submitted work is running. On a lost device, waits until the device is idle.
void VulkanDevice::finish() {
  if (!lost_) {
    wait_until(submitted());
    wait_copies(copied());
    return;
  }
  const std::lock_guard<std::mutex> guard(queue_mutex_);
  vk_.vkDeviceWaitIdle(device_);
}

bool VulkanDevice::stop() {
  if (forked() || stuck_) return false;
  if (stopped_) return true;
  while (!closed_) {
    std::unique_lock<std::mutex> ring(ring_mutex_);
    await_later(ring, [this] { return later_.empty() || failed(); }, false);
    ring.unlock();
    const std::scoped_lock guard(queue_mutex_, ring_mutex_);  // submitting threads check it under one of them
    closed_ = later_.empty() || failed();
    for (const Dropped& one : dropped_)
      if (one.told.empty()) std::fprintf(stderr, "triton-spirv: %s\n", one.what.c_str());
    waiting_ -= dropped_.size();
    dropped_.clear();
  }
  try {
    finish();
  } catch (const VulkanError&) {
    if (stuck_) return false;
    // The submission of the last work may have failed while earlier work is still running.
    const std::lock_guard<std::mutex> guard(queue_mutex_);
    vk_.vkDeviceWaitIdle(device_);
  } catch (...) {
    if (stuck_) return false;
    closed_ = false;
    throw;
  }
  stopped_ = true;
  return true;
}

bool VulkanDevice::close() {
  if (gone_ && !forked()) return true;
  if (!stop()) return false;
  gone_ = true;
  if (!calls_returned()) return false;
  stop_flusher();
  for (Slot& slot : ring_) slot.block.reset();
  for (Chunk& chunk : chunks_) chunk.buffer.reset();
  parked_.clear();
  const std::scoped_lock guard(queue_mutex_, ring_mutex_, buffers_mutex_);
  for (const auto& [address, range] : buffers_) {  // buffers that tensors still hold
    destroy(range.buffer, range.memory);
  }
  buffers_.clear();
  for (const VkQueryPool pool : query_pools_) vk_.vkDestroyQueryPool(device_, pool, nullptr);
  query_pools_.clear();
  if (job_queries_ != VK_NULL_HANDLE) vk_.vkDestroyQueryPool(device_, job_queries_, nullptr);
  for (const VkCommandPool pool : recording_pools_) vk_.vkDestroyCommandPool(device_, pool, nullptr);
  recording_pools_.clear();
  if (pool_ != VK_NULL_HANDLE) vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  for (const VkSemaphore semaphore : incoming_) vk_.vkDestroySemaphore(device_, semaphore, nullptr);
  incoming_.clear();
  if (copies_pool_ != VK_NULL_HANDLE) vk_.vkDestroyCommandPool(device_, copies_pool_, nullptr);
  for (const VkSemaphore semaphore : {timeline_, copies_}) {
    if (semaphore != VK_NULL_HANDLE) vk_.vkDestroySemaphore(device_, semaphore, nullptr);
  }
  return true;
}

void VulkanDevice::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes,
                           VkPipelineStageFlags to, VkAccessFlags reads) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, writes, reads};
  vk_.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void VulkanDevice::order(Slot& slot) {
  if (!ordered_) barrier(slot.commands, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  ordered_ = false;
}

VulkanDevice::~VulkanDevice() {
  try {
    close();
  } catch (...) {
    // A signal handler threw. The memory is kept until the process ends.
  }
  stop_flusher();
}

void VulkanDevice::record_dispatch(Slot& slot, const Dispatch& dispatch) {
  if (dispatch.indirect) {
    if (!slot.block || slot.block->bytes() < dispatch.block_bytes)
      slot.block = allocate_buffer(std::max(kSmallestBlock, 2 * dispatch.block_bytes), MemoryKind::kStaging);
    std::memcpy(slot.block->host(), dispatch.block, dispatch.block_bytes);
  }
  name_next(dispatch.name);
  if (is_bounded()) slot.launches.push_back({dispatch.kernel, programs_of(dispatch.grid)});
  if (bound_ != dispatch.kernel) {
    vk_.vkCmdBindPipeline(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_of(dispatch.kernel));
    bound_ = dispatch.kernel;
  }
  push_and_dispatch(slot.commands, dispatch, slot.block.get());
}

void VulkanDevice::push_and_dispatch(VkCommandBuffer commands, const Dispatch& dispatch, const VulkanBuffer* block) {
  if (dispatch.indirect) {
    const VkDeviceAddress address = block->address();
    vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(address), &address);
  } else if (dispatch.block_bytes != 0) {
    vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, dispatch.block_bytes, dispatch.block);
  }
  vk_.vkCmdDispatch(commands, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]);
}

uint64_t VulkanDevice::submit_launch(const Dispatch& dispatch, const ExternalWait* after) {
  if (waiting_ != 0 && after == nullptr) {
    const uint64_t value =
        leave(&dispatch, [this, later = dispatch,
                          block = std::vector<std::byte>(dispatch.block, dispatch.block + dispatch.block_bytes)] {
          Dispatch own = later;
          own.block = block.data();
          submit_launch(own, nullptr);
        });
    if (value != 0) return value;
  }
  const SemaphoreWait wait = after != nullptr ? incoming(*after) : SemaphoreWait{};
  return submit(
      [&](Slot& slot) {
        order(slot);
        record_dispatch(slot, dispatch);
      },
      dispatch.indirect ? Batch::kAlone : Batch::kWithOthers, after != nullptr ? &wait : nullptr, &dispatch);
}

uint64_t VulkanDevice::launch_nothing(KernelHandle kernel) {
  const std::byte nothing[1] = {};
  const Dispatch dispatch{kernel, {0, 1, 1}, nothing, 0, false, nullptr};
  return submit(
      [&](Slot& slot) {
        order(slot);
        record_dispatch(slot, dispatch);
      },
      Batch::kAlone, nullptr, &dispatch);
}

void VulkanDevice::run_now(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used) {
  if (copies.empty() && host_addresses_) {
    // The device is this machine's CPU, so the semaphore alone makes its writes visible to the host.
    const uint64_t value = submit_launch(dispatch, nullptr);
    try {
      wait(value);
    } catch (...) {
      if (used) keep(value, used());
      throw;
    }
    return;
  }
  refuse_while_recording();
  const Work use(*this);  // for the staging memory
  await_pipeline(dispatch);
  for (const StagedCopy& copy : copies) std::memcpy(copy.staging->host(), copy.host, copy.bytes);
  wait(submit(
      [&](Slot& slot) {
        order(slot);
        for (const StagedCopy& copy : copies) {
          const VkBufferCopy region{0, copy.offset, copy.bytes};
          vk_.vkCmdCopyBuffer(slot.commands, handle_of(copy.staging), handle_of(copy.device), 1, &region);
        }
        barrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, kWorkStages, kWorkReads);
        record_dispatch(slot, dispatch);
        barrier(slot.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
        for (const StagedCopy& copy : copies) {
          const VkBufferCopy region{copy.offset, 0, copy.bytes};
          if (copy.write_back)
            vk_.vkCmdCopyBuffer(slot.commands, handle_of(copy.device), handle_of(copy.staging), 1, &region);
        }
      },
      Batch::kAlone));
  for (const StagedCopy& copy : copies) {
    if (copy.write_back) std::memcpy(copy.host, copy.staging->host(), copy.bytes);
  }
}

}  // namespace triton_spirv
