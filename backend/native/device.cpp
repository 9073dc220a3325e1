#include "device.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "recording.h"

namespace triton_spirv {
namespace {

// Counts the forks between the first process and this one.
std::atomic<unsigned> fork_generation{0};

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1); });
  (void)registered;
}

// Most kernels that a user waits for are short. Asking the semaphore this long before sleeping on it saves a wake-up.
constexpr auto kPollTime = std::chrono::microseconds(100);
// A sleep is cut into pieces of this length, so that Ctrl-C is heard.
constexpr uint64_t kSleepNs = 200'000'000;
// While work comes in, the flusher looks this often whether the device runs out of it. Nobody has to wake it then: a
// wake-up costs the launching thread more than recording a launch.
constexpr auto kNap = std::chrono::microseconds(30);
// The flusher sleeps until it is woken where nothing was recorded for so long.
constexpr auto kQuiet = std::chrono::milliseconds(1);

// Bytes of the smallest buffer for an argument block.
constexpr uint32_t kSmallestBlock = 4096;

// A breath of a polling loop. `yields`: the device's work is done by this machine's processors.
inline void pause_or_yield(bool yields) {
  if (yields) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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
  VkPhysicalDeviceProperties properties;
  instance_functions_.vkGetPhysicalDeviceProperties(physical, &properties);
  limits_ = properties.limits;
  on_host_ = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  instance_functions_.vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  uint32_t count = 0;
  instance_functions_.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance_functions_.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  if (queue_family_ < count) {
    timestamp_bits_ = families[queue_family_].timestampValidBits;
    binds_sparse_ = families[queue_family_].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT;
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

void Device::make_ring() {
  timeline_ = make_timeline();
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                     VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queue_family_};
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
  std::array<VkCommandBuffer, kRing> commands;
  const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, kRing};
  check(vk_.vkAllocateCommandBuffers(device_, &info, commands.data()), "vkAllocateCommandBuffers");
  for (std::size_t index = 0; index < kRing; ++index) ring_[index].commands = commands[index];
}

bool Device::forked() const { return fork_generation_ != fork_generation.load(std::memory_order_relaxed); }

void Device::check_usable() const {
  if (forked())
    throw std::runtime_error(
        "the Vulkan device was opened before this process was forked and cannot be used here; "
        "start workers with the 'spawn' or 'forkserver' method, or fork before the first launch");
  if (lost_)
    throw VulkanError(std::string("the Vulkan device was lost in earlier work of this process; restart the process"),
                      VK_ERROR_DEVICE_LOST);
  if (stuck_) throw std::runtime_error("a kernel on the Vulkan device did not end in time; restart the process");
  if (closed_) throw std::runtime_error("the Vulkan device is closed");
}

// A call that failed: the device may be lost, which every later use is told.
void Device::fail(const char* function, VkResult result) {
  if (result != VK_ERROR_DEVICE_LOST) throw VulkanError(function, result);
  lost_ = true;
  throw VulkanError(std::string(function) +
                        " failed: VK_ERROR_DEVICE_LOST (-4): the device reset or a kernel accessed memory that is not "
                        "there; results of unfinished kernels are lost; restart the process",
                    result);
}

// Waits until nothing that was submitted is running: on a lost device, that nothing runs any more.
void Device::finish() {
  if (!lost_) {
    synchronize();
    return;
  }
  const std::lock_guard<std::mutex> guard(queue_mutex_);
  vk_.vkDeviceWaitIdle(device_);
}

bool Device::close() {
  if (forked() || stuck_) return false;
  if (closed_) return true;
  try {
    finish();
  } catch (const std::exception&) {
    if (stuck_) return false;
  }
  stop_flusher();
  for (Slot& slot : ring_) slot.block.reset();
  outgrown_.clear();
  for (Chunk& chunk : chunks_) chunk.buffer.reset();
  const std::scoped_lock guard(queue_mutex_, ring_mutex_);
  closed_ = true;
  for (const auto& [address, range] : buffers_) {  // what tensors still hold
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

void Device::wait_for_slot(std::unique_lock<std::mutex>& ring, bool alone) {
  for (;;) {
    check_usable();
    if (alone && open_ != 0) close_slot();
    const uint64_t value = ring_[next_slot_].value;
    if (open_ != 0 || reached_.load(std::memory_order_acquire) >= value) return;
    ring.unlock();
    wait_until(value);
    ring.lock();
  }
}

Device::Slot& Device::open_slot() {
  Slot& slot = ring_[next_slot_];
  if (open_ != 0) return slot;
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  checked(vk_.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  bound_ = VK_NULL_HANDLE;
  return slot;
}

void Device::close_slot(const ExternalWait* after) {
  Slot& slot = ring_[next_slot_];
  open_ = 0;
  const VkResult result = vk_.vkEndCommandBuffer(slot.commands);
  if (result != VK_SUCCESS) {
    lost_ = true;  // as in submit_slot
    fail("vkEndCommandBuffer", result);
  }
  slot.value = submitted_.load(std::memory_order_relaxed);
  slot.after = after != nullptr ? *after : ExternalWait{};
  next_slot_ = (next_slot_ + 1) % kRing;
  ++closed_count_;
}

void Device::submit_slot(const Slot& slot) {
  const VkPipelineStageFlags everything = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &slot.value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &slot.commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  if (slot.after.semaphore != VK_NULL_HANDLE) {
    values.waitSemaphoreValueCount = 1;
    values.pWaitSemaphoreValues = &slot.after.value;
    info.waitSemaphoreCount = 1;
    info.pWaitSemaphores = &slot.after.semaphore;
    info.pWaitDstStageMask = &everything;
  }
  VkResult result;
  {
    const auto guard = layer_guard();
    result = vk_.vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
  }
  if (result != VK_SUCCESS) {
    lost_ = true;  // whatever the reason: launches that have returned were not handed over
    fail("vkQueueSubmit", result);
  }
  queued_before_.store(flushed_.load(std::memory_order_relaxed), std::memory_order_release);
  flushed_.store(slot.value, std::memory_order_release);
}

void Device::flush(uint64_t value) {
  if (flushed_.load(std::memory_order_acquire) >= value) return;
  check_usable();  // before the mutex: in a forked child it may be held by a thread that stayed in the parent
  const std::lock_guard<std::mutex> queue(queue_mutex_);
  flush_locked(value);
}

void Device::flush_locked(uint64_t value) {
  while (flushed_.load(std::memory_order_relaxed) < value) {
    check_usable();
    Slot* slot;
    {
      const std::lock_guard<std::mutex> ring(ring_mutex_);
      if (closed_count_ == 0) {
        if (open_ == 0) return;
        close_slot();
      }
      slot = &ring_[(next_slot_ + kRing - closed_count_) % kRing];
      --closed_count_;
    }
    submit_slot(*slot);  // others record meanwhile
  }
}

void Device::wake_flusher() {
  if (flusher_awake_) return;
  if (!flusher_.joinable()) flusher_ = std::thread([this] { flush_when_idle(); });
  flusher_awake_ = true;
  wake_.notify_one();
}

void Device::flush_when_idle() {
  prctl(PR_SET_TIMERSLACK, 1000);  // ns; the usual 50 µs are longer than a nap
  std::unique_lock<std::mutex> ring(ring_mutex_);
  while (!closing_) {
    if (open_ == 0 && std::chrono::steady_clock::now() - last_recorded_ >= kQuiet) {
      flusher_awake_ = false;
      wake_.wait(ring, [this] { return closing_ || flusher_awake_; });
    }
    ring.unlock();
    std::this_thread::sleep_for(kNap);
    try {
      if (lost_) return;  // the next call says so
      const uint64_t recorded = submitted();
      if (flushed_.load(std::memory_order_acquire) < recorded) {
        const uint64_t value = queued_before_.load(std::memory_order_acquire);
        const VkResult result = done(value) ? VK_SUCCESS : wait_semaphore(value, kSleepNs);
        if (result != VK_TIMEOUT) {
          checked(result, "vkWaitSemaphores");
          if (nearly_idle()) flush(submitted());
        }
      }
    } catch (const std::exception&) {
      return;  // the device is lost: the next call says so
    }
    ring.lock();
  }
}

void Device::stop_flusher() {
  if (!flusher_.joinable()) return;
  if (forked()) {
    flusher_.detach();  // it stayed in the parent
    return;
  }
  {
    const std::lock_guard<std::mutex> guard(ring_mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  flusher_.join();
}

Device::~Device() {
  close();
  stop_flusher();
  // Of work that never ended, or of Python where it is ending.
  for (Kept& kept : kept_) new std::shared_ptr<void>(std::move(kept.used));
}

VkResult Device::wait_semaphore(uint64_t value, uint64_t timeout_ns) {
  if (validated) {
    const auto start = std::chrono::steady_clock::now();
    while (!done(value)) {
      if (std::chrono::steady_clock::now() - start >= std::chrono::nanoseconds(timeout_ns)) return VK_TIMEOUT;
      std::this_thread::sleep_for(kNap);
    }
    return VK_SUCCESS;
  }
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  return vk_.vkWaitSemaphores(device_, &info, timeout_ns);
}

bool Device::done(uint64_t value) {
  if (reached_.load(std::memory_order_acquire) >= value) return true;
  flush(value);
  return look() >= value;
}

uint64_t Device::look() {
  uint64_t now = 0;
  {
    const auto guard = layer_guard();
    checked(vk_.vkGetSemaphoreCounterValue(device_, timeline_, &now), "vkGetSemaphoreCounterValue");
  }
  // Some drivers report a lost device as the largest value.
  if (now > submitted_.load(std::memory_order_acquire) + 1) fail("vkGetSemaphoreCounterValue", VK_ERROR_DEVICE_LOST);
  uint64_t seen = reached_.load(std::memory_order_relaxed);
  while (seen < now && !reached_.compare_exchange_weak(seen, now)) {
  }
  return now;
}

bool Device::keep(uint64_t value, std::shared_ptr<void> used) {
  if (reached_.load(std::memory_order_acquire) >= value || closed_ || forked()) return false;
  const std::lock_guard<std::mutex> guard(kept_mutex_);
  kept_.push_back({value, std::move(used)});
  keeps_.store(true, std::memory_order_relaxed);
  return true;
}

void Device::let_go_of_done() {
  if (forked()) return;
  try {
    if (!closed_) look();
  } catch (const std::exception&) {
    return;  // the device is lost: what it still does ends when it is closed
  }
  const uint64_t reached = reached_.load(std::memory_order_acquire);
  std::vector<Kept> ended;  // whose destruction may do anything
  const std::lock_guard<std::mutex> guard(kept_mutex_);
  std::vector<Kept> left;
  for (Kept& kept : kept_) (closed_ || kept.value <= reached ? ended : left).push_back(std::move(kept));
  kept_ = std::move(left);
  keeps_.store(!kept_.empty(), std::memory_order_relaxed);
}

void Device::wait(uint64_t value) {
  wait_until(value);
  waited_.store(true, std::memory_order_relaxed);
}

void Device::wait_until(uint64_t value) {
  if (reached_.load(std::memory_order_acquire) >= value) return;
  check_usable();
  flush(value);
  const auto start = std::chrono::steady_clock::now();
  while (!done(value)) {
    const auto spent = std::chrono::steady_clock::now() - start;
    if (spent < kPollTime) {
      pause_or_yield(on_host_);
      continue;
    }
    const auto spent_ns = static_cast<uint64_t>(std::chrono::nanoseconds(spent).count());
    if (spent_ns >= timeout_ns_) {
      stuck_ = true;
      throw VulkanError(
          "the kernel did not end within the time limit of " + std::to_string(timeout_ns_ / 1000000) +
              " ms (TRITON_SPIRV_TIMEOUT, in seconds); it may still be running and writing to its arguments",
          VK_TIMEOUT);
    }
    const VkResult result = wait_semaphore(value, std::min(kSleepNs, timeout_ns_ - spent_ns));
    if (result == VK_TIMEOUT) {
      if (while_waiting != nullptr) while_waiting();
    } else {
      checked(result, "vkWaitSemaphores");
    }
  }
}

void Device::record_dispatch(Slot& slot, const Dispatch& dispatch) {
  if (dispatch.indirect) {
    if (!slot.block || slot.block->bytes() < dispatch.block_bytes) {
      // Freeing a buffer waits for work, for which this is no place.
      if (slot.block) outgrown_.push_back(std::move(slot.block));
      slot.block = allocate(std::max(kSmallestBlock, 2 * dispatch.block_bytes), MemoryKind::kStaging);
    }
    std::memcpy(slot.block->host(), dispatch.block, dispatch.block_bytes);
  }
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
        barrier(slot.commands, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
        record_dispatch(slot, dispatch);
      },
      dispatch.indirect ? Batch::kAlone : Batch::kWithOthers, after);
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
    // The device is this processor: the semaphore alone makes what it wrote visible here.
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
  for (const StagedCopy& copy : copies) std::memcpy(copy.staging->host(), copy.host, copy.bytes);
  wait(submit([&](Slot& slot) {
    barrier(slot.commands, kWorkStages, kWorkWrites, kWorkStages, kWorkReads);
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
  }, Batch::kAlone));
  for (const StagedCopy& copy : copies) {
    if (copy.write_back) std::memcpy(copy.host, copy.staging->host(), copy.bytes);
  }
}

}  // namespace triton_spirv
