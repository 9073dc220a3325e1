// A Vulkan driver that crashes or hangs when the loader asks it for anything. FAULT: how.
#include <csignal>
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned*) {
  FAULT;
  return 0;
}

extern "C" __attribute__((visibility("default"))) void* vk_icdGetInstanceProcAddr(void*, const char*) {
  FAULT;
  return nullptr;
}
