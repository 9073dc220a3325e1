#include "device.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace triton_spirv {
namespace {

// Counts the forks between the first process and this one.
std::atomic<unsigned> fork_generation{0};

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1); });
  (void)registered;
}

constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

// Most kernels that a user waits for are short. Asking the fence this long before sleeping on it saves a wake-up.
constexpr auto kPollTime = std::chrono::microseconds(100);

}  // namespace

void Buffer::free() {
  if (!device_) return;
  // A forked child must not touch its parent's memory; a closed device has none left.
  if (!device_->closed_ && device_->fork_generation_ == fork_generation.load(std::memory_order_relaxed)) {
    device_->vk_.vkDestroyBuffer(device_->device_, buffer_, nullptr);
    device_->vk_.vkFreeMemory(device_->device_, memory_, nullptr);
  }
  device_.reset();
  host_ = nullptr;
  address_ = 0;
}

Device::Device(VkInstance instance, VkPhysicalDevice physical, VkDevice device, VkQueue queue, uint32_t queue_family,
               VkPipelineLayout layout, bool host_addresses, uint64_t timeout_ns)
    : instance_functions_(instance),
      vk_(instance_functions_, device),
      device_(device),
      queue_(queue),
      queue_family_(queue_family),
      layout_(layout),
      host_addresses_(host_addresses),
      timeout_ns_(timeout_ns) {
  watch_forks();
  fork_generation_ = fork_generation.load();
  VkPhysicalDeviceProperties properties;
  instance_functions_.vkGetPhysicalDeviceProperties(physical, &properties);
  limits_ = properties.limits;
  instance_functions_.vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
}

void Device::check_usable() const {
  if (fork_generation_ != fork_generation.load(std::memory_order_relaxed))
    throw std::runtime_error(
        "the Vulkan device was opened before this process was forked and cannot be used here; "
        "start workers with the 'spawn' or 'forkserver' method, or fork before the first launch");
  if (stuck_) throw std::runtime_error("a kernel on the Vulkan device did not end in time; restart the process");
  if (closed_) throw std::runtime_error("the Vulkan device is closed");
}

bool Device::close() {
  if (fork_generation_ != fork_generation.load(std::memory_order_relaxed) || stuck_) return false;
  if (closed_) return true;
  vk_.vkDeviceWaitIdle(device_);
  const std::lock_guard<std::mutex> guard(slots_mutex_);
  for (auto& slot : slots_) destroy(*slot);
  slots_.clear();
  closed_ = true;
  return true;
}

uint32_t Device::memory_type(uint32_t allowed, VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred) const {
  for (const VkMemoryPropertyFlags wanted : {required | preferred, required}) {
    for (uint32_t index = 0; index < memory_.memoryTypeCount; ++index) {
      if ((allowed >> index & 1) && (memory_.memoryTypes[index].propertyFlags & wanted) == wanted) return index;
    }
  }
  throw std::runtime_error("the Vulkan device has no memory type for this buffer");
}

std::unique_ptr<Buffer> Device::bind(VkBuffer buffer, uint32_t type, VkDeviceSize bytes, VkDeviceSize allocation,
                                     bool map, const void* next) {
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, next,
                                  VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, 0};
  const VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, allocation, type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* host = nullptr;
  try {
    check(vk_.vkAllocateMemory(device_, &info, nullptr, &memory), "vkAllocateMemory");
    check(vk_.vkBindBufferMemory(device_, buffer, memory, 0), "vkBindBufferMemory");
    if (map) check(vk_.vkMapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
  } catch (const VulkanError& error) {
    vk_.vkDestroyBuffer(device_, buffer, nullptr);
    if (memory != VK_NULL_HANDLE) vk_.vkFreeMemory(device_, memory, nullptr);
    throw VulkanError("a Vulkan buffer of " + std::to_string(bytes) + " bytes could not be made: " + error.what(),
                      error.result);
  }
  const VkBufferDeviceAddressInfo where{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, buffer};
  const VkDeviceAddress address = vk_.vkGetBufferDeviceAddress(device_, &where);
  return std::make_unique<Buffer>(shared_from_this(), buffer, memory, bytes, address, host);
}

std::unique_ptr<Buffer> Device::allocate(VkDeviceSize bytes, MemoryKind kind) {
  check_usable();
  if (bytes == 0) throw std::invalid_argument("a Vulkan buffer needs at least one byte");
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = kBufferUsage;
  VkBuffer buffer;
  check(vk_.vkCreateBuffer(device_, &info, nullptr, &buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vk_.vkGetBufferMemoryRequirements(device_, buffer, &needs);
  const bool staging = kind == MemoryKind::kStaging;
  const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  uint32_t type;
  try {
    type = staging ? memory_type(needs.memoryTypeBits, mapped, VK_MEMORY_PROPERTY_HOST_CACHED_BIT)
                   : memory_type(needs.memoryTypeBits, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  } catch (...) {
    vk_.vkDestroyBuffer(device_, buffer, nullptr);
    throw;
  }
  return bind(buffer, type, bytes, needs.size, staging, nullptr);
}

std::unique_ptr<Buffer> Device::import_host(void* pointer, VkDeviceSize bytes) {
  check_usable();
  if (vk_.vkGetMemoryHostPointerPropertiesEXT == nullptr)
    throw std::runtime_error("host memory cannot be imported: the Vulkan device lacks VK_EXT_external_memory_host");
  constexpr auto handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT properties{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  check(vk_.vkGetMemoryHostPointerPropertiesEXT(device_, handle, pointer, &properties),
        "vkGetMemoryHostPointerPropertiesEXT");
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = bytes;
  info.usage = kBufferUsage;
  VkBuffer buffer;
  check(vk_.vkCreateBuffer(device_, &info, nullptr, &buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vk_.vkGetBufferMemoryRequirements(device_, buffer, &needs);
  uint32_t type;
  try {
    type = memory_type(needs.memoryTypeBits & properties.memoryTypeBits, 0, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  } catch (...) {
    vk_.vkDestroyBuffer(device_, buffer, nullptr);
    throw;
  }
  const VkImportMemoryHostPointerInfoEXT import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr, handle,
                                                pointer};
  return bind(buffer, type, bytes, bytes, false, &import);
}

std::unique_ptr<Device::Slot> Device::acquire() {
  {
    const std::lock_guard<std::mutex> guard(slots_mutex_);
    check_usable();
    if (!slots_.empty()) {
      auto slot = std::move(slots_.back());
      slots_.pop_back();
      return slot;
    }
  }
  auto slot = std::make_unique<Slot>();
  try {
    const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                       VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queue_family_};
    check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &slot->pool), "vkCreateCommandPool");
    const VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, slot->pool,
                                               VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    check(vk_.vkAllocateCommandBuffers(device_, &commands, &slot->commands), "vkAllocateCommandBuffers");
    const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    check(vk_.vkCreateFence(device_, &fence, nullptr, &slot->fence), "vkCreateFence");
  } catch (...) {
    destroy(*slot);
    throw;
  }
  return slot;
}

void Device::release(std::unique_ptr<Slot> slot) {
  const std::lock_guard<std::mutex> guard(slots_mutex_);
  slots_.push_back(std::move(slot));
}

void Device::destroy(Slot& slot) {
  slot.block.reset();
  if (slot.fence != VK_NULL_HANDLE) vk_.vkDestroyFence(device_, slot.fence, nullptr);
  if (slot.pool != VK_NULL_HANDLE) vk_.vkDestroyCommandPool(device_, slot.pool, nullptr);
}

void Device::record(Slot& slot, const Dispatch& dispatch, const std::vector<StagedCopy>& copies) {
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  check(vk_.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  const auto barrier = [&](VkPipelineStageFlags from, VkAccessFlags writes, VkPipelineStageFlags to,
                           VkAccessFlags reads) {
    const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, writes, reads};
    vk_.vkCmdPipelineBarrier(slot.commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  };
  const VkAccessFlags kernel_access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  for (const StagedCopy& copy : copies) {
    const VkBufferCopy region{0, copy.offset, copy.bytes};
    vk_.vkCmdCopyBuffer(slot.commands, copy.staging->buffer(), copy.device->buffer(), 1, &region);
  }
  if (!copies.empty())
    barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            kernel_access);

  vk_.vkCmdBindPipeline(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  if (dispatch.indirect) {
    const VkDeviceAddress address = slot.block->address();
    vk_.vkCmdPushConstants(slot.commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(address), &address);
  } else if (dispatch.block_bytes != 0) {
    vk_.vkCmdPushConstants(slot.commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, dispatch.block_bytes,
                           dispatch.block);
  }
  vk_.vkCmdDispatch(slot.commands, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]);

  bool writes_back = false;
  for (const StagedCopy& copy : copies) writes_back |= copy.write_back;
  if (writes_back) {
    barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT);
    for (const StagedCopy& copy : copies) {
      const VkBufferCopy region{copy.offset, 0, copy.bytes};
      if (copy.write_back)
        vk_.vkCmdCopyBuffer(slot.commands, copy.device->buffer(), copy.staging->buffer(), 1, &region);
    }
    barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT);
  } else if (!host_addresses_) {
    // Imported host memory. Where host addresses are device addresses the device is this processor: the fence does.
    barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT);
  }
  check(vk_.vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");
}

void Device::wait(Slot& slot) {
  const auto deadline = std::chrono::steady_clock::now() + kPollTime;
  VkResult result;
  while ((result = vk_.vkGetFenceStatus(device_, slot.fence)) == VK_NOT_READY &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  if (result == VK_NOT_READY) result = vk_.vkWaitForFences(device_, 1, &slot.fence, VK_TRUE, timeout_ns_);
  if (result == VK_TIMEOUT) {
    stuck_ = true;
    throw VulkanError(
        "the kernel did not end within the time limit of " + std::to_string(timeout_ns_ / 1000000) +
            " ms (TRITON_SPIRV_TIMEOUT, in seconds); it may still be running and writing to its arguments",
        result);
  }
  check(result, "vkWaitForFences");
  check(vk_.vkResetFences(device_, 1, &slot.fence), "vkResetFences");
}

void Device::run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies) {
  auto slot = acquire();
  bool submitted = false;
  try {
    if (dispatch.indirect) {
      if (!slot->block || slot->block->bytes() < dispatch.block_bytes)
        slot->block = allocate(dispatch.block_bytes, MemoryKind::kStaging);
      std::memcpy(slot->block->host(), dispatch.block, dispatch.block_bytes);
    }
    for (const StagedCopy& copy : copies) std::memcpy(copy.staging->host(), copy.host, copy.bytes);
    record(*slot, dispatch, copies);
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &slot->commands;
    {
      const std::lock_guard<std::mutex> guard(queue_mutex_);
      check(vk_.vkQueueSubmit(queue_, 1, &submit, slot->fence), "vkQueueSubmit");
    }
    submitted = true;
    wait(*slot);
  } catch (...) {
    // What was submitted may still be in use by the device: such a slot is given up.
    if (submitted)
      (void)slot.release();
    else
      destroy(*slot);
    throw;
  }
  for (const StagedCopy& copy : copies) {
    if (copy.write_back) std::memcpy(copy.host, copy.staging->host(), copy.bytes);
  }
  release(std::move(slot));
}

}  // namespace triton_spirv
