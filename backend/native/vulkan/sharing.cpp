// Memory and semaphores shared with other APIs.
#include "platform/platform.h"
#include "vulkan/vulkan_device.h"

namespace triton_spirv {

std::unique_ptr<Buffer> VulkanDevice::import_host(void* pointer, VkDeviceSize bytes) {
  const Work use(*this);
  if (vk_.vkGetMemoryHostPointerPropertiesEXT == nullptr)
    throw std::runtime_error("host memory cannot be imported: the Vulkan device lacks VK_EXT_external_memory_host");
  constexpr auto handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT properties{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  check(vk_.vkGetMemoryHostPointerPropertiesEXT(device_, handle, pointer, &properties),
        "vkGetMemoryHostPointerPropertiesEXT");
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle};
  const VkImportMemoryHostPointerInfoEXT memory{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr, handle,
                                                pointer};
  const External host{&external, &memory, properties.memoryTypeBits, nullptr, true};
  return make_buffer(bytes, {0, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT}, &host);
}

std::unique_ptr<Buffer> VulkanDevice::import_fd(int fd, VkDeviceSize bytes) {
  constexpr auto handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle};
  const VkImportMemoryFdInfoKHR memory{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, nullptr, handle, fd};
  bool taken = false;
  const External shared{&external, &memory, ~uint32_t{0}, &taken};
  const Use use(*this);
  try {
    check_usable();
    return make_buffer(bytes, {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT}, &shared);
  } catch (...) {
    if (!taken) platform::close_descriptor(fd);
    throw;
  }
}

// Whether imported memory may be bound to a sparse buffer.
bool VulkanDevice::imports_into_sparse(VkPhysicalDevice physical) const {
  const VkPhysicalDeviceExternalBufferInfo info{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO, nullptr,
                                                VK_BUFFER_CREATE_SPARSE_BINDING_BIT, kBufferUsage,
                                                VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalBufferProperties properties{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  instance_functions_.vkGetPhysicalDeviceExternalBufferProperties(physical, &info, &properties);
  return properties.externalMemoryProperties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
}

std::unique_ptr<Buffer> VulkanDevice::join(const std::vector<const Buffer*>& given) {
  const Work use(*this);
  if (!binds_sparse_ || vk_.vkQueueBindSparse == nullptr)
    throw std::runtime_error(
        "allocations cannot be put one behind the other: the Vulkan queue lacks sparse binding of imported memory");
  std::vector<const VulkanBuffer*> parts;
  for (const Buffer* part : given) parts.push_back(static_cast<const VulkanBuffer*>(part));
  VkDeviceSize total = 0;
  for (const VulkanBuffer* part : parts) {
    if (part->memory_ == VK_NULL_HANDLE || part->device_ == nullptr)
      throw std::invalid_argument("a buffer that is freed or joined has no memory to join");
    total += part->bytes();
  }
  constexpr auto handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle};
  const VkBuffer buffer = create_buffer(total, &external, VK_BUFFER_CREATE_SPARSE_BINDING_BIT);
  try {
    VkMemoryRequirements needs;
    vk_.vkGetBufferMemoryRequirements(device_, buffer, &needs);
    std::vector<VkSparseMemoryBind> binds;
    VkDeviceSize offset = 0;
    for (const VulkanBuffer* part : parts) {
      if (part->bytes() % needs.alignment != 0)
        throw std::runtime_error("an allocation of " + std::to_string(part->bytes()) + " bytes is no multiple of the " +
                                 std::to_string(needs.alignment) + " of the device's sparse blocks");
      binds.push_back({offset, part->bytes(), part->memory_, 0, 0});
      offset += part->bytes();
    }
    bind_sparse(buffer, binds);
  } catch (...) {
    if (!stuck_) vk_.vkDestroyBuffer(device_, buffer, nullptr);
    throw;
  }
  return adopt(buffer, VK_NULL_HANDLE, total, nullptr);
}

// Returns when the memory is bound, so that kernels submitted afterwards find it. If this is not done in time, the
// device is stuck, and the memory stays bound.
void VulkanDevice::bind_sparse(VkBuffer buffer, const std::vector<VkSparseMemoryBind>& parts) {
  const VkSparseBufferMemoryBindInfo whole{buffer, static_cast<uint32_t>(parts.size()), parts.data()};
  const uint64_t value = 1;
  const VkSemaphore bound = make_timeline();
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  VkBindSparseInfo info{VK_STRUCTURE_TYPE_BIND_SPARSE_INFO, &values};
  info.bufferBindCount = 1;
  info.pBufferBinds = &whole;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &bound;
  VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  wait.semaphoreCount = 1;
  wait.pSemaphores = &bound;
  wait.pValues = &value;
  const char* function = "vkQueueBindSparse";
  VkResult result;
  {
    const std::lock_guard<std::mutex> queue(queue_mutex_);
    const auto guard = layer_guard();
    result = vk_.vkQueueBindSparse(queues_.work, 1, &info, VK_NULL_HANDLE);
  }
  if (result == VK_SUCCESS) {
    function = "vkWaitSemaphores";
    result = vk_.vkWaitSemaphores(device_, &wait, timeout_ns_);
  }
  if (result == VK_TIMEOUT) {
    stuck_ = true;
    throw VulkanError("memory was not bound within the time limit of " + std::to_string(timeout_ns_ / 1000000) +
                          " ms (TRITON_SPIRV_TIMEOUT, in seconds)",
                      result);
  }
  vk_.vkDestroySemaphore(device_, bound, nullptr);
  checked(result, function);
}

int VulkanDevice::export_semaphore(VkSemaphore semaphore) {
  const Work use(*this);
  if (!shares_semaphores_ || vk_.vkGetSemaphoreFdKHR == nullptr)
    throw std::runtime_error("semaphores cannot be shared: the Vulkan device lacks VK_KHR_external_semaphore_fd");
  const VkSemaphoreGetFdInfoKHR info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR, nullptr, semaphore,
                                     VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  int fd = -1;
  checked(vk_.vkGetSemaphoreFdKHR(device_, &info, &fd), "vkGetSemaphoreFdKHR");
  return fd;
}

Incoming VulkanDevice::make_incoming() {
  check_usable();  // before the mutex, which a thread of the parent may hold in a forked child
  const std::lock_guard<std::mutex> guard(queue_mutex_);
  check_usable();
  incoming_.push_back(make_timeline());
  return {incoming_.size() - 1, export_semaphore(incoming_.back())};
}

SemaphoreWait VulkanDevice::incoming(const ExternalWait& wait) {
  check_usable();
  const std::lock_guard<std::mutex> guard(queue_mutex_);
  return {incoming_.at(wait.semaphore), wait.value};
}

}  // namespace triton_spirv
