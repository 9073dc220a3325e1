#include <windows.h>

#include <atomic>

#include "platform/platform.h"

namespace triton_spirv::platform {

const char* const kVulkanLoader = "vulkan-1.dll";
const char* const kInstallVulkan = "it comes with the GPU's driver: install or update that";
const char* const kTorchCpu = "torch_cpu.dll";
const char* const kTorchCore = "c10.dll";
// torch is built by MSVC there, whose names and whose std::function differ from those of this module's compiler.
const bool kTorchHasOurAbi = false;

// Only the system's folder is searched: a DLL of that name in the current folder is not the driver's.
void* load_library(const char* name) {
  return reinterpret_cast<void*>(LoadLibraryExA(name, nullptr, LOAD_LIBRARY_SEARCH_SYSTEM32));
}

void* loaded_library(const char* name) { return reinterpret_cast<void*>(GetModuleHandleA(name)); }

void* function_of(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

// Windows has no such choice for a thread.
void nap_precisely() {}

// Windows has no fork().
int around_forks(void (*)(), void (*)(), void (*)()) { return 0; }

// All of it is committed at once.
constexpr std::size_t kStack = 2 << 20;

int start_thread(pthread_t& thread, const char* name, void* (*function)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  const int failed = pthread_create(&thread, &attributes, function, argument);
  pthread_attr_destroy(&attributes);
  if (failed == 0) pthread_setname_np(thread, name);
  return failed;
}

namespace {
std::atomic<uint64_t> main_thread{0};
}
bool on_main_thread() { return GetCurrentThreadId() == main_thread.load(std::memory_order_relaxed); }
void set_main_thread(uint64_t ident) { main_thread.store(ident, std::memory_order_relaxed); }

// Larger pages need a right that programs seldom have.
void* map_large(uint64_t bytes, uint64_t) {
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

// No API gives one: memory and semaphores are shared by handles there, which this module does not import.
void close_descriptor(int) {}

// ExitProcess() ends all other threads before any handler of a library runs, so that no thread finds data destroyed.
void end_without_exit_handlers() {}

}  // namespace triton_spirv::platform
