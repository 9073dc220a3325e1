// A Vulkan layer that makes the device fail, for tests of what the runtime does then.
//
// FAULTY_SUBMIT=<n>: the n-th vkQueueSubmit and all later ones report a lost device.
// FAULTY_FAULT=1: there is vkGetDeviceFaultInfoEXT, which says that a write to 0x12345678 was wrong, within 4 KiB.
// FAULTY_MEMORY=<bytes>: vkAllocateMemory has no room for more than that in all.
// FAULTY_MAP=<bytes>: vkMapMemory does not map an allocation of that size.
// FAULTY_BIND=1: vkBindBufferMemory has no room. A file is opened before, under the lowest number that is free.
// FAULTY_BARRIERS=1: vkCmdPipelineBarrier does nothing.
// FAULTY_PENDING=1: none of the device's work is seen to end, and each wait of the main thread is interrupted by
// SIGINT. It may be changed while the process runs, if it was 0 at its start.
// FAULTY_WAIT=1: vkWaitSemaphores fails in all threads but the main one.
// FAULTY_COMPILE=<ms>: vkCreateComputePipelines works so much longer. It may be changed while the process runs.
// FAULTY_OPEN=<ms>: vkCreateDevice takes so much longer. FAULTY_INSTANCE=<ms>: vkCreateInstance does.
// FAULTY_EXIT=1: while exit handlers of C libraries run, as a driver's do, says on stderr that a thread is in one of
// the functions below. They take 200 ms.
// FAULTY_CLOCK=<ns>: between two timestamps each program of the commands there takes so long.
//
// FAULTY_ADDRESSES=<n>: the first n buffers of a device have the address of the first device's latest buffer.
// FAULTY_TELL=1: vkDeviceWaitIdle, vkDestroyCommandPool and vkResetQueryPool say on stdout that they were called.
// FAULTY_TELL=2: so does vkBeginCommandBuffer.
//
// FAULTY_QUEUES=<ms>: there is a transfer queue beside the driver's only one. What is submitted to it begins so much
// later than it might; with a negative number what is submitted to the other one does. FAULTY_HELD=1: what would begin
// on the transfer queue never does. FAULTY_LOST=1: submissions and what asks a semaphore report a lost device; 2: the
// semaphores have their largest value, as some drivers' do then. Both may be changed while the process runs.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

PFN_vkGetInstanceProcAddr next_instance;
PFN_vkGetDeviceProcAddr next_device;
PFN_vkGetPhysicalDeviceQueueFamilyProperties next_families;
VkInstance the_instance;
std::atomic<VkDevice> the_device{};
std::atomic<long> submits{0};
std::mutex mutex;
std::map<VkDeviceMemory, VkDeviceSize> sizes;
VkDeviceSize used = 0;
VkDevice first_device;
VkDeviceAddress first_address = 0;
long same_addresses = 0;

float tick_ns = 1;
std::map<VkCommandBuffer, uint64_t> programs;                     // of all dispatches that were recorded there
std::map<std::pair<VkQueryPool, uint32_t>, uint64_t> timestamps;  // the programs before each

// The driver's function of a device.
#define NEXT(device, function) reinterpret_cast<PFN_##function>(next_device(device, #function))

long setting(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atol(text) : 0;
}

std::atomic<bool> exiting{false};
std::atomic<long> inside{0};

void complain(const char* what) {
  if (write(STDERR_FILENO, what, std::strlen(what)) < 0) std::abort();
}

void at_exit() {
  exiting = true;
  if (inside != 0) complain("the driver is in use at exit\n");
  usleep(200'000);
}

// A function of this layer that notices the end of the process.
template <auto function>
struct Watched;
template <typename Result, typename... Arguments, Result(VKAPI_PTR* function)(Arguments...)>
struct Watched<function> {
  static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
    struct Inside {
      Inside() { ++inside; }
      ~Inside() { --inside; }
    } const counted;
    if (exiting) complain("the driver is called after exit\n");
    return function(arguments...);
  }
};

// The link of the chain that the loader left for this layer.
template <typename Link>
Link* find_link(const void* next, VkStructureType type) {
  auto* link = static_cast<Link*>(const_cast<void*>(next));
  while (link != nullptr && !(link->sType == type && link->function == VK_LAYER_LINK_INFO))
    link = static_cast<Link*>(const_cast<void*>(link->pNext));
  return link;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* with,
                                               VkInstance* out) {
  auto* link = find_link<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create = reinterpret_cast<PFN_vkCreateInstance>(next_instance(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, with, out);
  the_instance = *out;
  next_families = reinterpret_cast<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
      next_instance(*out, "vkGetPhysicalDeviceQueueFamilyProperties"));  // later this layer's own would be found
  static const bool watches_exit = setting("FAULTY_EXIT") != 0 && std::atexit(at_exit) == 0;
  (void)watches_exit;
  usleep(static_cast<useconds_t>(setting("FAULTY_INSTANCE")) * 1000);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* with, VkDevice* out) {
  auto* link = find_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  usleep(static_cast<useconds_t>(setting("FAULTY_OPEN")) * 1000);
  auto create = reinterpret_cast<PFN_vkCreateDevice>(next_instance(the_instance, "vkCreateDevice"));
  VkDeviceCreateInfo driver_info = *info;
  if (setting("FAULTY_QUEUES") != 0) driver_info.queueCreateInfoCount = 1;
  const VkResult result = create(physical, &driver_info, with, out);
  the_device = *out;
  VkPhysicalDeviceProperties properties;
  reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(next_instance(the_instance, "vkGetPhysicalDeviceProperties"))(
      physical, &properties);
  tick_ns = properties.limits.timestampPeriod;
  return result;
}

// A queue that runs beside another one on the driver's only queue. A thread waits for its semaphores.
struct Beside {
  struct Submission {
    VkDevice device;
    VkCommandBuffer commands;
    std::vector<VkSemaphore> waits;
    std::vector<uint64_t> least;
    VkSemaphore signal;
    uint64_t value;
  };
  void* dispatch = nullptr;  // the loader's
  std::mutex mutex;
  std::condition_variable more;
  std::deque<Submission> waiting;
  long late_ms = 0;
  bool begun = false;
  void work();
};
auto& work_queue = *new Beside;
auto& transfer_queue = *new Beside;
VkQueue driver_queue;

void Beside::work() {
  static std::mutex one_at_a_time;
  for (;;) {
    std::unique_lock<std::mutex> lock(mutex);
    more.wait(lock, [this] { return !waiting.empty(); });
    const Submission next = waiting.front();
    waiting.pop_front();
    lock.unlock();
    VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    wait.semaphoreCount = static_cast<uint32_t>(next.waits.size());
    wait.pSemaphores = next.waits.data();
    wait.pValues = next.least.data();
    const auto await = NEXT(next.device, vkWaitSemaphores);
    while (!next.waits.empty() && next.device == the_device && await(next.device, &wait, 1'000'000) == VK_TIMEOUT) {
    }
    if (next.device != the_device) continue;  // it was opened again
    usleep(static_cast<useconds_t>(late_ms * 1000));
    if (this == &transfer_queue && setting("FAULTY_HELD") != 0) continue;
    VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    values.signalSemaphoreValueCount = 1;
    values.pSignalSemaphoreValues = &next.value;
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
    info.commandBufferCount = info.signalSemaphoreCount = 1;
    info.pCommandBuffers = &next.commands;
    info.pSignalSemaphores = &next.signal;
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    NEXT(the_device, vkQueueSubmit)(driver_queue, 1, &info, nullptr);
  }
}

void submit_beside(Beside& queue, const VkSubmitInfo& info) {
  const auto* values = static_cast<const VkTimelineSemaphoreSubmitInfo*>(info.pNext);
  const std::lock_guard<std::mutex> guard(queue.mutex);
  queue.waiting.push_back({the_device,
                           *info.pCommandBuffers,
                           {info.pWaitSemaphores, info.pWaitSemaphores + info.waitSemaphoreCount},
                           {values->pWaitSemaphoreValues, values->pWaitSemaphoreValues + info.waitSemaphoreCount},
                           *info.pSignalSemaphores,
                           *values->pSignalSemaphoreValues});
  if (!queue.begun) std::thread([&queue] { queue.work(); }).detach();
  queue.begun = true;
  queue.more.notify_one();
}

VKAPI_ATTR void VKAPI_CALL queue_families(VkPhysicalDevice physical, uint32_t* count, VkQueueFamilyProperties* out) {
  const uint32_t more = setting("FAULTY_QUEUES") != 0 ? 1 : 0;
  uint32_t own = out != nullptr ? *count - more : 0;
  next_families(physical, &own, out);
  if (out != nullptr && more != 0) out[own] = {VK_QUEUE_TRANSFER_BIT, 1, out[0].timestampValidBits, {1, 1, 1}};
  *count = own + more;
}

VKAPI_ATTR void VKAPI_CALL device_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue* out) {
  NEXT(device, vkGetDeviceQueue)(device, 0, index, &driver_queue);
  const long late_ms = setting("FAULTY_QUEUES");
  work_queue.late_ms = late_ms < 0 ? -late_ms : 0;
  transfer_queue.late_ms = late_ms > 0 ? late_ms : 0;
  *out = late_ms == 0 ? driver_queue : reinterpret_cast<VkQueue>(family == 0 ? &work_queue : &transfer_queue);
}

VKAPI_ATTR VkResult VKAPI_CALL create_command_pool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                                   const VkAllocationCallbacks* with, VkCommandPool* out) {
  VkCommandPoolCreateInfo own = *info;
  own.queueFamilyIndex = 0;
  return NEXT(device, vkCreateCommandPool)(device, &own, with, out);
}

VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  const long lost_at = setting("FAULTY_SUBMIT");
  if ((lost_at != 0 && ++submits >= lost_at) || setting("FAULTY_LOST") == 1) return VK_ERROR_DEVICE_LOST;
  for (Beside* one : {&work_queue, &transfer_queue}) {
    if (queue == reinterpret_cast<VkQueue>(one)) return submit_beside(*one, *infos), VK_SUCCESS;
  }
  return NEXT(the_device, vkQueueSubmit)(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL compute_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                 const VkComputePipelineCreateInfo* infos,
                                                 const VkAllocationCallbacks* with, VkPipeline* out) {
  const auto busy = [] {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
  };
  for (const auto end = busy() + setting("FAULTY_COMPILE"); busy() < end;) {
  }
  return NEXT(device, vkCreateComputePipelines)(device, cache, count, infos, with, out);
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                               const VkAllocationCallbacks* with, VkDeviceMemory* out) {
  const std::lock_guard<std::mutex> guard(mutex);
  const auto limit = static_cast<VkDeviceSize>(setting("FAULTY_MEMORY"));
  if (limit != 0 && used + info->allocationSize > limit) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkResult result = NEXT(device, vkAllocateMemory)(device, info, with, out);
  if (result == VK_SUCCESS) used += sizes[*out] = info->allocationSize;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                          VkDeviceSize bytes, VkMemoryMapFlags flags, void** out) {
  const std::lock_guard<std::mutex> guard(mutex);
  if (sizes[memory] == static_cast<VkDeviceSize>(setting("FAULTY_MAP"))) return VK_ERROR_MEMORY_MAP_FAILED;
  return NEXT(device, vkMapMemory)(device, memory, offset, bytes, flags, out);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_buffer_memory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                                                  VkDeviceSize offset) {
  if (setting("FAULTY_BIND") != 0 && open("/dev/null", O_RDONLY) >= 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return NEXT(device, vkBindBufferMemory)(device, buffer, memory, offset);
}

VKAPI_ATTR VkDeviceAddress VKAPI_CALL buffer_address(VkDevice device, const VkBufferDeviceAddressInfo* info) {
  const VkDeviceAddress address = NEXT(device, vkGetBufferDeviceAddress)(device, info);
  const std::lock_guard<std::mutex> guard(mutex);
  if (first_device == VK_NULL_HANDLE) first_device = device;
  if (device == first_device) return first_address = address;
  return same_addresses++ < setting("FAULTY_ADDRESSES") ? first_address : address;
}

VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* with) {
  const std::lock_guard<std::mutex> guard(mutex);
  used -= sizes[memory];
  sizes.erase(memory);
  NEXT(device, vkFreeMemory)(device, memory, with);
}

VKAPI_ATTR void VKAPI_CALL pipeline_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                            VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t count,
                                            const VkMemoryBarrier* memory, uint32_t buffer_count,
                                            const VkBufferMemoryBarrier* buffers, uint32_t image_count,
                                            const VkImageMemoryBarrier* images) {
  if (setting("FAULTY_BARRIERS") != 0) return;
  NEXT(the_device, vkCmdPipelineBarrier)(commands, from, to, flags, count, memory, buffer_count, buffers, image_count,
                                         images);
}

VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  if (setting("FAULTY_WAIT") != 0 && syscall(SYS_gettid) != getpid()) return VK_ERROR_OUT_OF_HOST_MEMORY;
  if (setting("FAULTY_LOST") == 1) return VK_ERROR_DEVICE_LOST;
  if (setting("FAULTY_PENDING") == 0) return NEXT(device, vkWaitSemaphores)(device, info, timeout);
  if (syscall(SYS_gettid) == getpid()) raise(SIGINT);
  return VK_TIMEOUT;
}

VKAPI_ATTR VkResult VKAPI_CALL counter_value(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  *value = setting("FAULTY_LOST") == 2 ? ~0ull : 0;
  if (setting("FAULTY_LOST") == 1) return VK_ERROR_DEVICE_LOST;
  if (setting("FAULTY_PENDING") != 0 || *value != 0) return VK_SUCCESS;
  return NEXT(device, vkGetSemaphoreCounterValue)(device, semaphore, value);
}

void tell(const char* what, long level = 1) {
  if (setting("FAULTY_TELL") < level) return;
  if (write(STDOUT_FILENO, what, std::strlen(what)) < 0) std::abort();
}

VKAPI_ATTR VkResult VKAPI_CALL device_wait_idle(VkDevice device) {
  tell("idle\n");
  return NEXT(device, vkDeviceWaitIdle)(device);
}

VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice device, VkCommandPool pool,
                                                const VkAllocationCallbacks* with) {
  tell("destroyed\n");
  NEXT(device, vkDestroyCommandPool)(device, pool, with);
}

VKAPI_ATTR void VKAPI_CALL reset_query_pool(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count) {
  tell(("query " + std::to_string(reinterpret_cast<uintptr_t>(pool)) + " " + std::to_string(first) + "\n").c_str());
  NEXT(device, vkResetQueryPool)(device, pool, first, count);
}

VKAPI_ATTR VkResult VKAPI_CALL begin_command_buffer(VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
  tell("begun\n", 2);
  return NEXT(the_device, vkBeginCommandBuffer)(commands, info);
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  const std::lock_guard<std::mutex> guard(mutex);
  programs[commands] += uint64_t{x} * y * z;
  NEXT(the_device, vkCmdDispatch)(commands, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL write_timestamp(VkCommandBuffer commands, VkPipelineStageFlagBits stage, VkQueryPool pool,
                                           uint32_t query) {
  const std::lock_guard<std::mutex> guard(mutex);
  timestamps[{pool, query}] = programs[commands];
  NEXT(the_device, vkCmdWriteTimestamp)(commands, stage, pool, query);
}

// Of 64 bits, without gaps.
VKAPI_ATTR VkResult VKAPI_CALL query_results(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count,
                                             size_t bytes, void* data, VkDeviceSize stride, VkQueryResultFlags flags) {
  const VkResult result = NEXT(device, vkGetQueryPoolResults)(device, pool, first, count, bytes, data, stride, flags);
  const float ticks = static_cast<float>(setting("FAULTY_CLOCK")) / tick_ns;
  const std::lock_guard<std::mutex> guard(mutex);
  for (uint32_t index = 0; ticks != 0 && index < count; ++index)
    static_cast<uint64_t*>(data)[index] =
        static_cast<uint64_t>(static_cast<float>(timestamps[{pool, first + index}]) * ticks);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL fault_info(VkDevice, VkDeviceFaultCountsEXT* counts, VkDeviceFaultInfoEXT* info) {
  counts->addressInfoCount = 1;
  counts->vendorInfoCount = 0;
  counts->vendorBinarySize = 0;
  if (info == nullptr) return VK_SUCCESS;
  std::strcpy(info->description, "page fault");
  info->pAddressInfos[0] = {VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT, 0x12345678, 4096};
  return VK_SUCCESS;
}

PFN_vkVoidFunction own(const char* name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = own(name);
  return found != nullptr ? found : next_device(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = own(name);
  return found != nullptr ? found : next_instance(instance, name);
}

PFN_vkVoidFunction own(const char* name) {
  const struct {
    const char* name;
    PFN_vkVoidFunction function;
  } functions[] = {
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(Watched<create_instance>::call)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(Watched<create_device>::call)},
      {"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(instance_function)},
      {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(device_function)},
      {"vkCreateComputePipelines", reinterpret_cast<PFN_vkVoidFunction>(Watched<compute_pipelines>::call)},
      {"vkGetPhysicalDeviceQueueFamilyProperties", reinterpret_cast<PFN_vkVoidFunction>(queue_families)},
      {"vkGetDeviceQueue", reinterpret_cast<PFN_vkVoidFunction>(device_queue)},
      {"vkCreateCommandPool", reinterpret_cast<PFN_vkVoidFunction>(create_command_pool)},
      {"vkQueueSubmit", reinterpret_cast<PFN_vkVoidFunction>(Watched<queue_submit>::call)},
      {"vkAllocateMemory", reinterpret_cast<PFN_vkVoidFunction>(Watched<allocate_memory>::call)},
      {"vkMapMemory", reinterpret_cast<PFN_vkVoidFunction>(Watched<map_memory>::call)},
      {"vkBindBufferMemory", reinterpret_cast<PFN_vkVoidFunction>(Watched<bind_buffer_memory>::call)},
      {"vkGetBufferDeviceAddress", reinterpret_cast<PFN_vkVoidFunction>(Watched<buffer_address>::call)},
      {"vkFreeMemory", reinterpret_cast<PFN_vkVoidFunction>(Watched<free_memory>::call)},
      {"vkCmdPipelineBarrier", reinterpret_cast<PFN_vkVoidFunction>(Watched<pipeline_barrier>::call)},
      {"vkWaitSemaphores", reinterpret_cast<PFN_vkVoidFunction>(Watched<wait_semaphores>::call)},
      {"vkDeviceWaitIdle", reinterpret_cast<PFN_vkVoidFunction>(Watched<device_wait_idle>::call)},
      {"vkDestroyCommandPool", reinterpret_cast<PFN_vkVoidFunction>(Watched<destroy_command_pool>::call)},
      {"vkResetQueryPool", reinterpret_cast<PFN_vkVoidFunction>(Watched<reset_query_pool>::call)},
      {"vkCmdDispatch", reinterpret_cast<PFN_vkVoidFunction>(Watched<dispatch>::call)},
      {"vkCmdWriteTimestamp", reinterpret_cast<PFN_vkVoidFunction>(Watched<write_timestamp>::call)},
      {"vkGetQueryPoolResults", reinterpret_cast<PFN_vkVoidFunction>(Watched<query_results>::call)},
      {"vkBeginCommandBuffer", reinterpret_cast<PFN_vkVoidFunction>(Watched<begin_command_buffer>::call)},
      {"vkGetSemaphoreCounterValue", reinterpret_cast<PFN_vkVoidFunction>(Watched<counter_value>::call)},
  };
  if (std::strcmp(name, "vkGetDeviceFaultInfoEXT") == 0 && setting("FAULTY_FAULT") != 0)
    return reinterpret_cast<PFN_vkVoidFunction>(fault_info);
  for (const auto& entry : functions) {
    if (std::strcmp(entry.name, name) == 0) return entry.function;
  }
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = instance_function;
  version->pfnGetDeviceProcAddr = device_function;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
