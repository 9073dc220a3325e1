#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "platform/platform.h"

namespace triton_spirv::platform {

const char* const kVulkanLoader = "libvulkan.so.1";
const char* const kInstallVulkan = "install it with: apt-get install libvulkan1";
const char* const kTorchCpu = "libtorch_cpu.so";
const char* const kTorchCore = "libc10.so";
const bool kTorchHasOurAbi = true;

void* load_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

void* loaded_library(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_NOLOAD); }

void* function_of(void* library, const char* name) { return dlsym(library, name); }

// Nanoseconds. The default of 50 µs is longer than a nap.
void nap_precisely() { prctl(PR_SET_TIMERSLACK, 1000); }

int after_fork_in_child(void (*function)()) { return pthread_atfork(nullptr, nullptr, function); }

void close_descriptor(int descriptor) { ::close(descriptor); }

void end_without_exit_handlers() {
  // The function that is registered last runs first.
  static const int registered = on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
  if (registered != 0) throw std::bad_alloc();
}

}  // namespace triton_spirv::platform
