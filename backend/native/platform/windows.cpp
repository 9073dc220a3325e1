#include <windows.h>

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
int after_fork_in_child(void (*)()) { return 0; }

// No API gives one: memory and semaphores are shared by handles there, which this module does not import.
void close_descriptor(int) {}

// ExitProcess() ends all other threads before any handler of a library runs, so that no thread finds data destroyed.
void end_without_exit_handlers() {}

}  // namespace triton_spirv::platform
