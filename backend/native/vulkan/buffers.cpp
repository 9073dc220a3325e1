// Buffers of a device: their memory, and the lookup of a buffer by address.
#include <algorithm>
#include <utility>

#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

// Allocations of so many bytes ask how much memory there is, where the driver gives more than that.
constexpr VkDeviceSize kAsked = VkDeviceSize{64} << 20;

}  // namespace

VulkanBuffer::~VulkanBuffer() {
  if (!device_) return;
  const std::shared_ptr<VulkanDevice> device = device_;
  const Point point{device->submitted(), device->copied()};
  if (ended_ || device->closed_ || device->forked() || device->passed(point)) {
    give_back();
    return;
  }
  const auto left = std::make_shared<VulkanBuffer>(std::move(device_), buffer_, memory_, bytes_, address_, host_);
  left->ended_ = true;
  device->keep(point, left);
}

void VulkanBuffer::free() {
  const std::shared_ptr<VulkanDevice> device = device_;
  if (!device) return;
  const VulkanDevice::Use use(*device);
  if (!device->closed_ && !device->forked()) device->finish();
  give_back();
}

// Called when no work can use the buffer any more.
void VulkanBuffer::give_back() {
  const std::shared_ptr<VulkanDevice> device = std::move(device_);
  if (!device) return;
  const VkDeviceAddress address = address_;
  host_ = nullptr;
  address_ = 0;
  const VulkanDevice::Use use(*device);
  // A forked child must not touch its parent's memory. A closed device has freed its buffers.
  if (device->closed_ || device->forked()) return;
  {
    const std::lock_guard<std::mutex> guard(device->buffers_mutex_);
    auto [found, end] = device->buffers_.equal_range(address);
    while (found != end && found->second.buffer != buffer_) ++found;
    if (found == end) return;  // another thread or a signal handler was faster
    device->buffers_.erase(found);
  }
  device->destroy(buffer_, memory_);
}

uint32_t VulkanDevice::memory_type(uint32_t allowed, VkMemoryPropertyFlags required,
                                   VkMemoryPropertyFlags preferred) const {
  for (const VkMemoryPropertyFlags wanted : {required | preferred, required}) {
    for (uint32_t index = 0; index < memory_.memoryTypeCount; ++index) {
      if ((allowed >> index & 1) && (memory_.memoryTypes[index].propertyFlags & wanted) == wanted) return index;
    }
  }
  throw std::runtime_error("the Vulkan device has no memory type for this buffer");
}

std::unique_ptr<VulkanBuffer> VulkanDevice::bind(VkBuffer buffer, uint32_t type, VkDeviceSize bytes,
                                                 VkDeviceSize allocation, const Wanted& wanted,
                                                 const External* external) {
  const VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                        external != nullptr ? external->memory : nullptr,
                                        VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, 0};
  const VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, allocation, type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* host = nullptr;
  try {
    if (external == nullptr) check_room(allocation, type);
    check(vk_.vkAllocateMemory(device_, &info, nullptr, &memory), "vkAllocateMemory");
    if (external != nullptr && external->taken != nullptr) *external->taken = true;
    check(vk_.vkBindBufferMemory(device_, buffer, memory, 0), "vkBindBufferMemory");
    if (wanted.mapped) check(vk_.vkMapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
  } catch (const VulkanError& error) {
    vk_.vkDestroyBuffer(device_, buffer, nullptr);
    if (memory != VK_NULL_HANDLE) vk_.vkFreeMemory(device_, memory, nullptr);
    throw VulkanError("a Vulkan buffer of " + std::to_string(bytes) + " bytes could not be made: " + error.what(),
                      error.result);
  }
  return adopt(buffer, memory, bytes, host, external != nullptr && external->on_host, wanted.read);
}

std::unique_ptr<VulkanBuffer> VulkanDevice::adopt(VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes,
                                                  void* host, bool on_host, bool read) {
  const VkBufferDeviceAddressInfo where{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, buffer};
  const VkDeviceAddress address = vk_.vkGetBufferDeviceAddress(device_, &where);
  auto made = std::make_unique<VulkanBuffer>(std::static_pointer_cast<VulkanDevice>(shared_from_this()), buffer, memory,
                                             bytes, address, host);
  const std::lock_guard<std::mutex> guard(buffers_mutex_);
  const std::byte* const reads = read ? static_cast<const std::byte*>(host) : nullptr;
  buffers_.emplace(address, Range{bytes, buffer, memory, on_host || (host != nullptr && !read), reads});
  return made;
}

void VulkanDevice::destroy(VkBuffer buffer, VkDeviceMemory memory) {
  vk_.vkDestroyBuffer(device_, buffer, nullptr);
  vk_.vkFreeMemory(device_, memory, nullptr);  // does nothing for a null handle
}

std::unique_ptr<VulkanBuffer> VulkanDevice::allocate_buffer(VkDeviceSize bytes, MemoryKind kind) {
  const Work use(*this);
  if (bytes == 0) throw std::invalid_argument("a Vulkan buffer needs at least one byte");
  constexpr VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  if (kind == MemoryKind::kStaging) return make_buffer(bytes, {mapped, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, true});
  const auto make = [&]() -> std::unique_ptr<VulkanBuffer> {
    if (kind == MemoryKind::kRead) {
      try {
        return make_buffer(bytes, {mapped | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0, true, true});
      } catch (const std::runtime_error&) {
        // The device has no such memory, or few megabytes of it.
      }
    }
    return make_buffer(bytes, {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT});
  };
  std::unique_ptr<VulkanBuffer> made = make();
  // Only the address tells a tensor of an abandoned device from a tensor of this device, so such addresses are avoided.
  while (is_gone(made->address(), made->bytes())) {
    std::unique_ptr<VulkanBuffer> other = make();
    const std::lock_guard<std::mutex> guard(buffers_mutex_);
    parked_.push_back(std::exchange(made, std::move(other)));
  }
  return made;
}

VkBuffer VulkanDevice::create_buffer(VkDeviceSize bytes, const void* next, VkBufferCreateFlags flags) {
  // VUID-VkBufferCreateInfo-size-06409 forbids larger buffers.
  if (bytes > most_buffer_bytes_)
    throw VulkanError("a Vulkan buffer of " + std::to_string(bytes) +
                          " bytes cannot be made: the device's buffers have at most " +
                          std::to_string(most_buffer_bytes_) + " bytes (maxBufferSize)",
                      VK_ERROR_OUT_OF_DEVICE_MEMORY);
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, next, flags};
  info.size = bytes;
  info.usage = kBufferUsage;
  const uint32_t families[2] = {queues_.work_family, queues_.copies_family};
  if (families[0] != families[1]) {  // kernels are as fast on an H200, and each copy is spared two barriers
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = 2;
    info.pQueueFamilyIndices = families;
  }
  VkBuffer buffer;
  check(vk_.vkCreateBuffer(device_, &info, nullptr, &buffer), "vkCreateBuffer");
  return buffer;
}

std::unique_ptr<VulkanBuffer> VulkanDevice::make_buffer(VkDeviceSize bytes, const Wanted& wanted,
                                                        const External* external) {
  uint32_t left = ~0u;  // memory types whose heap is not known to be full
  for (;;) {
    const VkBuffer buffer = create_buffer(bytes, external != nullptr ? external->buffer : nullptr, 0);
    VkMemoryRequirements needs;
    vk_.vkGetBufferMemoryRequirements(device_, buffer, &needs);
    const uint32_t types = left & (external != nullptr ? needs.memoryTypeBits & external->types : needs.memoryTypeBits);
    uint32_t type;
    try {
      type = memory_type(types, wanted.required, wanted.preferred);
    } catch (...) {
      vk_.vkDestroyBuffer(device_, buffer, nullptr);
      throw;
    }
    try {
      // Imported memory keeps its size.
      return bind(buffer, type, bytes, external != nullptr ? bytes : needs.size, wanted, external);
    } catch (const VulkanError& error) {
      // The device-local heap of an integrated GPU is a part of the memory that it can use.
      const uint32_t others = in_other_heaps(types, type);
      if (error.result != VK_ERROR_OUT_OF_DEVICE_MEMORY || external != nullptr || !shares_memory_with_host_ ||
          others == 0)
        throw;
      left = others;
    }
  }
}

uint32_t VulkanDevice::in_other_heaps(uint32_t allowed, uint32_t type) const {
  uint32_t found = 0;
  for (uint32_t index = 0; index < memory_.memoryTypeCount; ++index) {
    if (memory_.memoryTypes[index].heapIndex != memory_.memoryTypes[type].heapIndex) found |= allowed & 1u << index;
  }
  return found;
}

void VulkanDevice::check_room(VkDeviceSize bytes, uint32_t type) const {
  if (bytes > most_allocation_bytes_)
    throw VulkanError("the driver's allocations have at most " + std::to_string(most_allocation_bytes_) +
                          " bytes (maxMemoryAllocationSize), and larger ones are known to fail or to give wrong values",
                      VK_ERROR_OUT_OF_DEVICE_MEMORY);
  if (!care_.asks_budget || bytes < kAsked) return;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget};
  instance_functions_.vkGetPhysicalDeviceMemoryProperties2(physical_, &properties);
  const uint32_t heap = memory_.memoryTypes[type].heapIndex;
  const VkDeviceSize used = budget.heapUsage[heap], most = budget.heapBudget[heap];
  if (used <= most && bytes <= most - used) return;
  throw VulkanError(
      "this process uses " + std::to_string(used) + " of the " + std::to_string(most) +
          " bytes that it may use of the device's memory, and the driver loses the device if it gets more",
      VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

VulkanDevice::Location VulkanDevice::find(VkDeviceAddress address, VkDeviceSize bytes) {
  const std::lock_guard<std::mutex> guard(buffers_mutex_);
  auto after = buffers_.upper_bound(address);
  if (after != buffers_.begin()) {
    const auto& [base, buffer] = *std::prev(after);
    if (address - base <= buffer.bytes && bytes <= buffer.bytes - (address - base))
      return {buffer.buffer, address - base, buffer.on_host,
              buffer.read != nullptr ? buffer.read + (address - base) : nullptr};
  }
  throw std::invalid_argument("the " + std::to_string(bytes) + " bytes at device address " + std::to_string(address) +
                              " are not memory of this device, or were freed");
}

bool VulkanDevice::owns(VkDeviceAddress address, VkDeviceSize bytes) {
  const std::lock_guard<std::mutex> guard(buffers_mutex_);
  auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return false;
  const auto& [base, buffer] = *std::prev(after);
  return address - base <= buffer.bytes && bytes <= buffer.bytes - (address - base);
}

bool VulkanDevice::overlaps(VkDeviceAddress address, VkDeviceSize bytes) {
  const std::lock_guard<std::mutex> guard(buffers_mutex_);
  return std::any_of(buffers_.begin(), buffers_.end(), [&](const auto& buffer) {
    return address < buffer.first + buffer.second.bytes && buffer.first < address + bytes;
  });
}

}  // namespace triton_spirv
