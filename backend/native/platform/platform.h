// What each operating system does in its own way: platform/linux.cpp, platform/windows.cpp. CMakeLists.txt names the
// files that a system leaves out.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace triton_spirv::platform {

// The Vulkan loader's library, and what to do where it is not there.
extern const char* const kVulkanLoader;
extern const char* const kInstallVulkan;
// torch's libraries, by which its C and C++ functions are found.
extern const char* const kTorchCpu;
extern const char* const kTorchCore;
// Whether torch was built with this module's C++ ABI.
extern const bool kTorchHasOurAbi;

// A library by its name, loaded for the rest of the process. Null if it is not there.
void* load_library(const char* name);
// A library that the process has loaded already. Null if it has not.
void* loaded_library(const char* name);
// The address of a function of a library. Null if the library has none of that name.
void* function_of(void* library, const char* name);

// Makes the naps of this thread end within microseconds of their time, where the system rounds them up.
void nap_precisely();
// Has functions called around each fork from now on, and in the child. Returns 0 if they could be registered.
int around_forks(void (*before)(), void (*in_parent)(), void (*in_child)());
// Starts a thread for kernels, which gets no signal of the program, other than those of its own faults. Returns 0, or
// what errno would be.
int start_thread(pthread_t& thread, const char* name, void* (*function)(void*), void* argument);
// Whether this is the thread that runs Python's signal handlers.
bool on_main_thread();
// Windows asks Python which thread that is: threading.main_thread().ident.
void set_main_thread(uint64_t ident);
// Zeroed memory of whole pages, at a multiple of `page` if the system can use pages of that size there. Null if there
// is none. It is freed by pages::unmap().
void* map_large(uint64_t bytes, uint64_t page);
// Closes a file descriptor that another API gave to this process.
void close_descriptor(int descriptor);
// From now on exit() runs no exit handler of a library, and a thread that is in a driver finds its data. Throws
// std::bad_alloc.
void end_without_exit_handlers();

}  // namespace triton_spirv::platform
