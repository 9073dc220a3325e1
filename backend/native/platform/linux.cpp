#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <initializer_list>
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

int around_forks(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  return pthread_atfork(before, in_parent, in_child);
}

// Code that nothing optimised takes up to 10 million bytes (launching/values). Memory is taken as it is used.
constexpr std::size_t kStack = 16 << 20;

int start_thread(pthread_t& thread, const char* name, void* (*function)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGURG}) sigdelset(&all, signal);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  const int failed = pthread_create(&thread, &attributes, function, argument);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed == 0) pthread_setname_np(thread, name);
  return failed;
}

bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }
void set_main_thread(uint64_t) {}

void* map_large(uint64_t bytes, uint64_t page) {
  void* const memory = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(memory);
  const uint64_t skipped = -reinterpret_cast<uintptr_t>(memory) & (page - 1);
  if (skipped != 0) munmap(begin, skipped);
  if (skipped != page) munmap(begin + skipped + bytes, page - skipped);
  madvise(begin + skipped, bytes, MADV_HUGEPAGE);
  return begin + skipped;
}

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
