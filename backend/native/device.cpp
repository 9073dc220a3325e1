// Opening and closing a device, and launches.
#include "device.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "recording.h"

namespace triton_spirv {
namespace {

// The number of forks between the first process and this one.
std::atomic<unsigned> fork_generation{0};

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1); });
  (void)registered;
}

// The size in bytes of the smallest buffer for an argument block.
constexpr uint32_t kSmallestBlock = 4096;

constexpr const char* kClosed = "the Vulkan device is closed";

constexpr const char* kGone =
    "this belongs to a Vulkan device that failed earlier, and was left: tensors, graphs and loaded files of before "
    "have to be made again";

// The largest number of kernels that an error names.
constexpr std::size_t kMostNamed = 3;

std::mutex left_mutex;
std::vector<std::weak_ptr<Device>> left_devices;
std::atomic<bool> some_left{false};

// How long close() waits for calls of other threads. Those calls no longer wait for the device.
constexpr auto kLastCalls = std::chrono::seconds(10);

}  // namespace

Device::Device(VkInstance instance, VkPhysicalDevice physical, VkDevice device, VkQueue queue, uint32_t queue_family,
               VkPipelineLayout layout, bool host_addresses, bool shares_semaphores, uint64_t timeout_ns)
    : instance_functions_(instance),
      vk_(instance_functions_, device),
      device_(device),
      queue_(queue),
      queue_family_(queue_family),
      layout_(layout),
      host_addresses_(host_addresses),
      timeout_ns_(timeout_ns),
      shares_semaphores_(shares_semaphores) {
  watch_forks();
  fork_generation_ = fork_generation.load();
  VkPhysicalDeviceMaintenance4Properties sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes};
  instance_functions_.vkGetPhysicalDeviceProperties2(physical, &properties);
  limits_ = properties.properties.limits;
  most_buffer_bytes_ = sizes.maxBufferSize;
  on_host_ = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  instance_functions_.vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  uint32_t count = 0;
  instance_functions_.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance_functions_.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  if (queue_family_ < count) {
    timestamp_bits_ = families[queue_family_].timestampValidBits;
    binds_sparse_ = (families[queue_family_].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT) && imports_into_sparse(physical);
  }
  make_ring();
}

VkSemaphore Device::make_timeline() {
  const VkExportSemaphoreCreateInfo exported{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, nullptr,
                                             VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       shares_semaphores_ ? &exported : nullptr, VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  VkSemaphore semaphore;
  check(vk_.vkCreateSemaphore(device_, &info, nullptr, &semaphore), "vkCreateSemaphore");
  return semaphore;
}

bool Device::forked() const { return fork_generation_ != fork_generation.load(std::memory_order_relaxed); }

void Device::check_usable() const {
  check_running();
  if (closed_) throw std::runtime_error(kClosed);
}

void Device::check_running() const {
  if (forked())
    throw std::runtime_error(
        "the Vulkan device was opened before this process was forked and cannot be used here; "
        "start workers with the 'spawn' or 'forkserver' method, or fork before the first launch");
  if (lost_)
    throw VulkanError(left_ ? std::string(kGone)
                            : std::string("the Vulkan device was lost in earlier work of this process") + kOpenedAgain,
                      VK_ERROR_DEVICE_LOST);
  if (stuck_) throw std::runtime_error(kGone);
  if (gone_) throw std::runtime_error(kClosed);
}

// Reports a failed call. If the device is lost, every later use of it raises an error too.
void Device::fail(const char* function, VkResult result) {
  if (result != VK_ERROR_DEVICE_LOST) throw VulkanError(function, result);
  const std::string work = running();
  lost_ = true;
  throw VulkanError(std::string(function) + " failed: VK_ERROR_DEVICE_LOST (-4): the device reset or " + work +
                        " accessed memory that is not there; results of unfinished kernels are lost" + kOpenedAgain,
                    result);
}

const std::string* kernel_label(const std::string& label) {
  static std::mutex mutex;
  static auto* const labels = new std::set<std::string>;
  const std::lock_guard<std::mutex> guard(mutex);
  return &*labels->insert(label).first;
}

// Launches that were submitted together cannot be told apart, because only the end of the last one is seen.
std::string Device::running() const {
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

void Device::leave() {
  const std::lock_guard<std::mutex> guard(left_mutex);
  if (left_.exchange(true)) return;
  left_devices.push_back(weak_from_this());
  some_left = true;
}

bool Device::any_left() { return some_left.load(std::memory_order_relaxed); }

bool Device::is_gone(VkDeviceAddress address, VkDeviceSize bytes) {
  if (!any_left()) return false;
  const std::lock_guard<std::mutex> guard(left_mutex);
  return std::any_of(left_devices.begin(), left_devices.end(), [&](const std::weak_ptr<Device>& one) {
    const std::shared_ptr<Device> device = one.lock();
    if (!device) return false;
    const std::lock_guard<std::mutex> buffers(device->buffers_mutex_);
    return std::any_of(device->buffers_.begin(), device->buffers_.end(), [&](const auto& buffer) {
      return address < buffer.first + buffer.second.bytes && buffer.first < address + bytes;
    });
  });
}

// Waits until no submitted work is running. On a lost device, waits until the device is idle.
void Device::finish() {
  if (!lost_) {
    wait_until(submitted());
    return;
  }
  const std::lock_guard<std::mutex> guard(queue_mutex_);
  vk_.vkDeviceWaitIdle(device_);
}

bool Device::stop() {
  if (forked() || stuck_) return false;
  if (stopped_) return true;
  {
    const std::scoped_lock guard(queue_mutex_, ring_mutex_);  // submitting threads check it under one of them
    closed_ = true;
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

bool Device::calls_returned() const {
  const auto start = std::chrono::steady_clock::now();
  while (uses_ != 0) {
    if (std::chrono::steady_clock::now() - start > kLastCalls) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

bool Device::close() {
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
  for (const VkCommandPool pool : recording_pools_) vk_.vkDestroyCommandPool(device_, pool, nullptr);
  recording_pools_.clear();
  if (pool_ != VK_NULL_HANDLE) vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  for (const VkSemaphore semaphore : incoming_) vk_.vkDestroySemaphore(device_, semaphore, nullptr);
  incoming_.clear();
  if (timeline_ != VK_NULL_HANDLE) vk_.vkDestroySemaphore(device_, timeline_, nullptr);
  return true;
}

void Device::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes, VkPipelineStageFlags to,
                     VkAccessFlags reads) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, writes, reads};
  vk_.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Device::order(Slot& slot) {
  if (!ordered_) barrier(slot.commands, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
  ordered_ = false;
}

Device::~Device() {
  try {
    close();
  } catch (...) {
    // A signal handler threw. The memory is kept until the process ends.
  }
  stop_flusher();
  // These objects are never freed: their work never ended, or Python is shutting down.
  for (Kept& kept : kept_) new std::shared_ptr<void>(std::move(kept.used));
}

void Device::record_dispatch(Slot& slot, const Dispatch& dispatch) {
  if (dispatch.indirect) {
    if (!slot.block || slot.block->bytes() < dispatch.block_bytes)
      slot.block = allocate(std::max(kSmallestBlock, 2 * dispatch.block_bytes), MemoryKind::kStaging);
    std::memcpy(slot.block->host(), dispatch.block, dispatch.block_bytes);
  }
  name_next(dispatch.kernel);
  if (bound_ != dispatch.pipeline) {
    vk_.vkCmdBindPipeline(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
    bound_ = dispatch.pipeline;
  }
  push_and_dispatch(slot.commands, dispatch, slot.block.get());
}

void Device::push_and_dispatch(VkCommandBuffer commands, const Dispatch& dispatch, const Buffer* block) {
  if (dispatch.indirect) {
    const VkDeviceAddress address = block->address();
    vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(address), &address);
  } else if (dispatch.block_bytes != 0) {
    vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, dispatch.block_bytes, dispatch.block);
  }
  vk_.vkCmdDispatch(commands, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]);
}

uint64_t Device::launch(const Dispatch& dispatch, const ExternalWait* after) {
  if (Recording* recording = Recording::current(*this); recording != nullptr && after == nullptr) {
    record(*recording, dispatch);
    return 0;  // nothing to wait for
  }
  return submit(
      [&](Slot& slot) {
        order(slot);
        record_dispatch(slot, dispatch);
      },
      dispatch.indirect ? Batch::kAlone : Batch::kWithOthers, after, &dispatch);
}

uint64_t Device::launch_nothing(VkPipeline pipeline) {
  const std::byte nothing[1] = {};
  const Dispatch dispatch{pipeline, {0, 1, 1}, nothing, 0, false, nullptr};
  return submit(
      [&](Slot& slot) {
        order(slot);
        record_dispatch(slot, dispatch);
      },
      Batch::kAlone, nullptr, &dispatch);
}

void Device::refuse_while_recording() const {
  if (Recording::current(*this) != nullptr)
    throw std::runtime_error(
        "a graph is being captured, which launches on device memory can be: no copies, fills, events, waits, replays "
        "or launches that copy their arguments; do that before or after");
}

void Device::synchronize_host() {
  if (!host_addresses_) {
    submit([&](Slot& slot) {
      barrier(slot.commands, kWorkStages, kWorkWrites, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    });
  }
  synchronize();
}

void Device::run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used) {
  Recording* const recording = Recording::current(*this);
  if (copies.empty() && (host_addresses_ || recording != nullptr)) {
    // The device is this machine's CPU, so the semaphore alone makes its writes visible to the host.
    if (recording != nullptr && host_addresses_) recording->host_ = true;
    const uint64_t value = launch(dispatch);
    try {
      wait(value);
    } catch (...) {
      if (used) keep(value, used());
      throw;
    }
    return;
  }
  refuse_while_recording();
  const Use use(*this);  // for the staging memory
  check_usable();
  for (const StagedCopy& copy : copies) std::memcpy(copy.staging->host(), copy.host, copy.bytes);
  wait(submit(
      [&](Slot& slot) {
        order(slot);
        for (const StagedCopy& copy : copies) {
          const VkBufferCopy region{0, copy.offset, copy.bytes};
          vk_.vkCmdCopyBuffer(slot.commands, copy.staging->buffer(), copy.device->buffer(), 1, &region);
        }
        barrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, kWorkStages, kWorkReads);
        record_dispatch(slot, dispatch);
        barrier(slot.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT);
        for (const StagedCopy& copy : copies) {
          const VkBufferCopy region{copy.offset, 0, copy.bytes};
          if (copy.write_back)
            vk_.vkCmdCopyBuffer(slot.commands, copy.device->buffer(), copy.staging->buffer(), 1, &region);
        }
        barrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_HOST_READ_BIT);
      },
      Batch::kAlone));
  for (const StagedCopy& copy : copies) {
    if (copy.write_back) std::memcpy(copy.host, copy.staging->host(), copy.bytes);
  }
}

}  // namespace triton_spirv
