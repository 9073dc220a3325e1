// triton_spirv.hpp on a device that is played: for test_header_forms.py.
//
// fake MODULE.spv JSON DRIVER LACKING GRID   creates the kernel from memory, moves it and launches it; DRIVER is a
// VkDriverId, LACKING a feature's name or "", GRID the programs along y. Prints what was dispatched, or the error.
#define VK_NO_PROTOTYPES
#include <cstdio>
#include <triton_spirv.hpp>

using namespace triton_spirv;

static uint32_t driver_id;
static std::string lacking;
static int alive = 0;

template <class T>
static T *find(void *chain, VkStructureType type) {
  for (auto *at = static_cast<VkBaseOutStructure *>(chain); at; at = at->pNext)
    if (at->sType == type) return reinterpret_cast<T *>(at);
  return nullptr;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice, VkPhysicalDeviceProperties2 *all) {
  std::strcpy(all->properties.deviceName, "played");
  VkPhysicalDeviceLimits &limits = all->properties.limits;
  limits.maxComputeSharedMemorySize = 49152;
  limits.maxPushConstantsSize = 128;
  limits.maxComputeWorkGroupInvocations = 1024;
  for (int axis = 0; axis < 3; ++axis) {
    limits.maxComputeWorkGroupCount[axis] = axis ? 65535 : 0x7fffffff;
    limits.maxComputeWorkGroupSize[axis] = 1024;
  }
  find<VkPhysicalDeviceDriverProperties>(all->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)->driverID =
      static_cast<VkDriverId>(driver_id);
  auto *sizes = find<VkPhysicalDeviceSubgroupSizeControlProperties>(
      all->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  sizes->minSubgroupSize = 4, sizes->maxSubgroupSize = 128, sizes->maxComputeWorkgroupSubgroups = 32;
  sizes->requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
  auto *floats = find<VkPhysicalDeviceFloatControlsProperties>(
      all->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
  for (const detail::ControlRow &row : detail::kControls) floats->*row.has = lacking != row.key;
}

static VKAPI_ATTR void VKAPI_CALL features(VkPhysicalDevice, VkPhysicalDeviceFeatures2 *all) {
  for (const detail::FeatureRow &row : detail::kFeatures) {
    auto *block = find<detail::FeatureBlock>(all, static_cast<VkStructureType>(row.structure));
    if (block && lacking != row.name) block->flags[row.index] = VK_TRUE;
  }
}

static VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice, const char *, uint32_t *count,
                                                 VkExtensionProperties *found) {
  static const char *const names[] = {"VK_KHR_cooperative_matrix", "VK_KHR_workgroup_memory_explicit_layout"};
  *count = 2;
  for (int i = 0; found && i < 2; ++i) std::strcpy(found[i].extensionName, names[i]);
  return VK_SUCCESS;
}

template <class T>
static T handle() {
  return reinterpret_cast<T>(static_cast<uintptr_t>(++alive));
}
static VKAPI_ATTR VkResult VKAPI_CALL module(VkDevice, const VkShaderModuleCreateInfo *, const VkAllocationCallbacks *,
                                             VkShaderModule *made) {
  *made = handle<VkShaderModule>();
  return VK_SUCCESS;
}
static VKAPI_ATTR VkResult VKAPI_CALL layout(VkDevice, const VkPipelineLayoutCreateInfo *,
                                             const VkAllocationCallbacks *, VkPipelineLayout *made) {
  *made = handle<VkPipelineLayout>();
  return VK_SUCCESS;
}
static VKAPI_ATTR VkResult VKAPI_CALL pipeline(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo *,
                                               const VkAllocationCallbacks *, VkPipeline *made) {
  *made = handle<VkPipeline>();
  return VK_SUCCESS;
}
static VKAPI_ATTR void VKAPI_CALL gone_module(VkDevice, VkShaderModule, const VkAllocationCallbacks *) { --alive; }
static VKAPI_ATTR void VKAPI_CALL gone_layout(VkDevice, VkPipelineLayout, const VkAllocationCallbacks *) { --alive; }
static VKAPI_ATTR void VKAPI_CALL gone_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks *) { --alive; }
static VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {}
static VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t, uint32_t bytes,
                                       const void *) {
  std::printf("%u bytes, ", bytes);
}
static VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer, uint32_t x, uint32_t y, uint32_t z) {
  std::printf("grid %u %u %u\n", x, y, z);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL address(VkInstance, const char *name) {
  const std::map<std::string, PFN_vkVoidFunction> all = {
      {"vkGetPhysicalDeviceProperties2", reinterpret_cast<PFN_vkVoidFunction>(properties)},
      {"vkGetPhysicalDeviceFeatures2", reinterpret_cast<PFN_vkVoidFunction>(features)},
      {"vkEnumerateDeviceExtensionProperties", reinterpret_cast<PFN_vkVoidFunction>(extensions)},
      {"vkCreateShaderModule", reinterpret_cast<PFN_vkVoidFunction>(module)},
      {"vkDestroyShaderModule", reinterpret_cast<PFN_vkVoidFunction>(gone_module)},
      {"vkCreatePipelineLayout", reinterpret_cast<PFN_vkVoidFunction>(layout)},
      {"vkDestroyPipelineLayout", reinterpret_cast<PFN_vkVoidFunction>(gone_layout)},
      {"vkCreateComputePipelines", reinterpret_cast<PFN_vkVoidFunction>(pipeline)},
      {"vkDestroyPipeline", reinterpret_cast<PFN_vkVoidFunction>(gone_pipeline)},
      {"vkCmdBindPipeline", reinterpret_cast<PFN_vkVoidFunction>(bind)},
      {"vkCmdPushConstants", reinterpret_cast<PFN_vkVoidFunction>(push)},
      {"vkCmdDispatch", reinterpret_cast<PFN_vkVoidFunction>(dispatch)},
  };
  auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

static std::string file(const char *path) {
  std::string text;
  std::FILE *from = std::fopen(path, "rb");
  for (int next = from ? std::fgetc(from) : EOF; next != EOF; next = std::fgetc(from)) text += static_cast<char>(next);
  if (from) std::fclose(from);
  return text;
}

static int fail(const char *why) {
  std::fprintf(stderr, "%s\n", why);
  return 1;
}

static int launch(Kernel made, uint32_t y) {
  Kernel kernel(std::move(made));
  Kernel other(std::move(kernel));
  kernel = std::move(other);
  std::vector<Value> values;
  for (const Argument &argument : kernel.abi().arguments)
    values.push_back(argument.type[0] == '*' ? Value(pointer(64)) : Value(64));
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
  Result<Done> done = kernel.record(nullptr, {1, y, 1}, values);
  return done ? 0 : fail(done.error());
#else
  kernel.record(nullptr, {1, y, 1}, values);
  return 0;
#endif
}

static int run(char **argv) {
  const std::string spirv = file(argv[1]), json = file(argv[2]);
  driver_id = static_cast<uint32_t>(std::atoi(argv[3]));
  lacking = argv[4];
  const uint32_t y = static_cast<uint32_t>(std::atoi(argv[5]));
  Options options;
  if (y != 0) options.functions = Functions::load(nullptr, address);
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
  Result<Kernel> made = Kernel::create(nullptr, nullptr, spirv.data(), spirv.size(), json, options);
  return made ? launch(std::move(made).value(), y) : fail(made.error());
#else
  try {
    return launch(Kernel(nullptr, nullptr, spirv.data(), spirv.size(), json, options), y);
  } catch (const Error &error) {
    return fail(error.what());
  }
#endif
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  const int status = run(argv);
  if (alive) return fail("something was not destroyed");
  return status;
}
