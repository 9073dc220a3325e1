// Pages of memory, as each system gives them to a process.
#pragma once

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#endif

#include <cstdint>
#include <string>

namespace triton_spirv::cpu::pages {

enum class Use { kRead, kCode };

#if defined(_WIN32)

// How many bytes a page has.
inline uint64_t size() {
  SYSTEM_INFO system;
  GetSystemInfo(&system);
  return system.dwPageSize;
}
// Zeroed memory that may be read and written. Null if there is none.
inline void* map(uint64_t bytes) { return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }
inline void unmap(void* memory, uint64_t) { VirtualFree(memory, 0, MEM_RELEASE); }
// From now on the pages are not written. Returns whether the system allows that.
inline bool protect(void* memory, uint64_t bytes, Use use) {
  DWORD before;
  return VirtualProtect(memory, bytes, use == Use::kCode ? PAGE_EXECUTE_READ : PAGE_READONLY, &before);
}
// Why the last call of these failed.
inline std::string refused(const char* what) {
  constexpr DWORD kDynamicCodeBlocked = 1655;  // ERROR_DYNAMIC_CODE_BLOCKED, which mingw does not name
  const DWORD error = GetLastError();
  return std::string(what) + ": error " + std::to_string(error) + " of Windows" +
         (error == kDynamicCodeBlocked ? "; this system forbids processes to make code" : "");
}

#else

inline uint64_t size() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }
inline void* map(uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}
inline void unmap(void* memory, uint64_t bytes) { munmap(memory, bytes); }
inline bool protect(void* memory, uint64_t bytes, Use use) {
  return mprotect(memory, bytes, use == Use::kCode ? PROT_READ | PROT_EXEC : PROT_READ) == 0;
}
inline std::string refused(const char* what) {
  const int error = errno;
  return std::string(what) + ": " + std::strerror(error) +
         (error == EACCES || error == EPERM ? "; this system forbids processes to make code" : "");
}

#endif

}  // namespace triton_spirv::cpu::pages
