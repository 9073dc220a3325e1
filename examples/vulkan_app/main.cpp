// A plain Vulkan program that launches a Triton kernel: out = x + scale * y.
//
//     triton-spirv compile kernel.py:add -s "*fp32, *fp32, *fp32, i32, fp32, 64" --bundle kernels.tsb
//     triton-spirv stubs kernels.tsb
//     cmake -S . -B build -DTRITON_SPIRV_INCLUDE=$(triton-spirv include) && cmake --build build
//     build/vulkan_app kernels.tsb
//
// kernels.tsb holds the kernel for several devices, and kernels.hpp its arguments with their types. A module alone
// (add.spv) can be given as well.
#include <cstdio>
#include <kernels.hpp>

namespace {

void check(VkResult result, const char *what) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(what) + " failed: VkResult " + std::to_string(result));
}

// Host-visible memory that kernels reach by its address.
struct Buffer {
  VkDevice device;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  float *data = nullptr;
  VkDeviceAddress address = 0;

  Buffer(VkPhysicalDevice physical, VkDevice device, size_t count) : device(device) {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = count * sizeof(float);
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    check(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, needs.size, 0};
    VkPhysicalDeviceMemoryProperties kinds;
    vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    while (allocate.memoryTypeIndex < kinds.memoryTypeCount &&
           (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) ||
            (kinds.memoryTypes[allocate.memoryTypeIndex].propertyFlags & wanted) != wanted))
      ++allocate.memoryTypeIndex;
    check(vkAllocateMemory(device, &allocate, nullptr, &memory), "vkAllocateMemory");
    check(vkBindBufferMemory(device, buffer, memory, 0), "vkBindBufferMemory");
    check(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void **>(&data)), "vkMapMemory");
    VkBufferDeviceAddressInfo where{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, buffer};
    address = vkGetBufferDeviceAddress(device, &where);
  }
  ~Buffer() {
    vkDestroyBuffer(device, buffer, nullptr);
    vkFreeMemory(device, memory, nullptr);
  }
};

uint32_t compute_family(VkPhysicalDevice physical) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  for (uint32_t family = 0; family < count; ++family)
    if (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) return family;
  throw std::runtime_error("the device has no queue for compute work");
}

int run(const std::string &module) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo instance_info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance_info.pApplicationInfo = &application;
  VkInstance instance;
  check(vkCreateInstance(&instance_info, nullptr, &instance), "vkCreateInstance");
  uint32_t count = 1;
  VkPhysicalDevice physical;
  VkResult found = vkEnumeratePhysicalDevices(instance, &count, &physical);
  if ((found != VK_SUCCESS && found != VK_INCOMPLETE) || count == 0)
    throw std::runtime_error("there is no Vulkan device");

  // What fits the device decides which features it is made with.
  const bool is_alone = module.size() > 4 && module.substr(module.size() - 4) == ".spv";
  triton_spirv::Bundle bundle;
  if (!is_alone) bundle = triton_spirv::Bundle::read(module);
  triton_spirv::Features features;
  if (!features.need(is_alone ? triton_spirv::read_abi(module) : bundle.pick(physical, "add")->abi).empty())
    throw std::runtime_error("the kernel needs a feature that triton_spirv.hpp does not know");
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_info.queueFamilyIndex = compute_family(physical);
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo device_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, features.head()};
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue_info;
  device_info.enabledExtensionCount = static_cast<uint32_t>(features.extensions().size());
  device_info.ppEnabledExtensionNames = features.extensions().data();
  VkDevice device;
  check(vkCreateDevice(physical, &device_info, nullptr, &device), "vkCreateDevice");
  VkQueue queue;
  vkGetDeviceQueue(device, queue_info.queueFamilyIndex, 0, &queue);

  int wrong = 0;
  {
    const int n = 1008;  // a multiple of 16, as the signature says, and of no block
    kernels::Add add(is_alone ? triton_spirv::Kernel(physical, device, module)
                              : bundle.kernel(physical, device, "add"));
    const uint32_t block = add.constant("BLOCK");
    Buffer x(physical, device, n), y(physical, device, n), out(physical, device, n + 1);
    for (int i = 0; i < n; ++i) x.data[i] = float(i), y.data[i] = float(2 * i);
    out.data[n] = -1;  // must stay

    VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.queueFamilyIndex = queue_info.queueFamilyIndex;
    VkCommandPool pool;
    check(vkCreateCommandPool(device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo commands_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool};
    commands_info.commandBufferCount = 1;
    VkCommandBuffer commands;
    check(vkAllocateCommandBuffers(device, &commands_info, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    using triton_spirv::pointer;
    add.record(commands, {(n + block - 1) / block, 1, 1}, pointer(x.address), pointer(y.address), pointer(out.address),
               n, 0.5f);
    // What the kernel wrote is to be read by the host.
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                            VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    check(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vkQueueWaitIdle(queue), "vkQueueWaitIdle");

    for (int i = 0; i < n; ++i) wrong += out.data[i] != x.data[i] + 0.5f * y.data[i];
    wrong += out.data[n] != -1;
    std::printf("%s: %d elements, %d wrong\n", add.kernel().abi().kernel.c_str(), n, wrong);
    vkDestroyCommandPool(device, pool, nullptr);
  }
  vkDestroyDevice(device, nullptr);
  vkDestroyInstance(instance, nullptr);
  return wrong != 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s kernels.tsb\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
