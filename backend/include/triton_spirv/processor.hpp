// What machine code may use of this processor, and how a kernel's is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

// Marks a function that kernels call, or one of theirs: machine code is called in the way of the System V ABI on each
// system, so that one object runs on all of them.
#if defined(_WIN32) && defined(__x86_64__)
#define TRITON_SPIRV_SYSTEM_V __attribute__((sysv_abi))
#else
#define TRITON_SPIRV_SYSTEM_V
#endif

namespace triton_spirv::cpu {

// The version of what follows: how a kernel's function is called, and what it may expect. It is `launch` in the JSON.
inline constexpr uint32_t kLaunchVersion = 2;

// The function that an object defines for a kernel: it runs programs first … last - 1, in that order. Program (x, y, z)
// has the number (z × grid[1] + y) × grid[0] + x, or (z × grid[0] + x) × grid[1] + y if no program of the kernel can
// wait for another (backend/cpu/program_order.py). grid[3] is 1 if no other thread accesses what the kernel updates by
// atomic instructions until it returns: they are plain loads and stores then. It is 3 if only calls of this launch do,
// and if their threads call Updates before the first and after the last. `block` is the argument block. `scratch` are
// bytes of the thread, at a multiple of kScratchAlignment. It returns early once `stop` is not 0, which it looks at
// before each program and in loops without a constant bound.
using Entry = void(TRITON_SPIRV_SYSTEM_V*)(const std::byte* block, uint64_t first, uint64_t last, const uint32_t* grid,
                                           std::byte* scratch, const int32_t* stop);

// The function of a kernel that may update later what no program sees come late (backend/cpu/delayed_updates.py), by
// the kernel's name and kUpdates: it empties the thread's log if `begins` is 1, otherwise it makes the updates in it.
// Behind grid[3] are the address of the launch's kUpdateLocks locks, each an int32_t in a line of its own that is 0
// before the first call, and the lock that this thread takes first.
using Updates = void(TRITON_SPIRV_SYSTEM_V*)(std::byte* scratch, const uint32_t* grid, const int32_t* stop,
                                             int32_t begins);

inline constexpr std::string_view kUpdates = ".updates";
inline constexpr unsigned kUpdateLocks = 64;
inline constexpr std::size_t kUpdateLockBytes = 64;

inline constexpr std::size_t kScratchAlignment = 64;
inline constexpr std::size_t kBlockAlignment = 16;

#if defined(__x86_64__)
namespace detail {
// Whether it has F16C, MOVBE and LZCNT, which the compiler's own test of old does not know.
inline bool has_half_and_bits() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  const bool half = (c & bit_F16C) && (c & bit_MOVBE);
  return half && __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}
// Whether it has AVX-VNNI, which older compilers' own test does not know.
inline bool has_narrow_products() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
// Whether it has AVX512-BF16, and does twice as much by it as by FMA: AMD's do (Zen 4 and 5), while on a Sapphire
// Rapids it is half.
inline bool adds_pairs_fast() {
  unsigned a, b, c, d;
  return __builtin_cpu_is("amd") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5);
}
// Whether it has AMX for integers of 8 bits, and the system lets this process use it: Linux is asked for that, and
// refuses where a thread has a stack for signals that is too small for the registers.
inline bool may_multiply_tiles() {
#ifdef __linux__
  constexpr unsigned kTilesAndBytes = 3u << 24, kRequest = 0x1023, kTileData = 18;
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kTilesAndBytes) != kTilesAndBytes) return false;
  static const bool permitted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return permitted;
#else
  return false;
#endif
}
}  // namespace detail
#endif

// What instructions this processor and its system have: the highest level of the x86-64 psABI, or "aarch64", and behind
// a + the best that multiply integers of 8 bits or bfloat16 (backend/cpu/host.py), where it has them.
inline const char* processor_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool second = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool third = second && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && detail::has_half_and_bits();
  const bool fourth = third && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (fourth && __builtin_cpu_supports("avx512vnni")) {
    if (detail::may_multiply_tiles()) return "x86-64-v4+amx-int8";
    return detail::adds_pairs_fast() ? "x86-64-v4+avx512bf16" : "x86-64-v4+avx512vnni";
  }
  if (fourth) return "x86-64-v4";
  if (third) return detail::has_narrow_products() ? "x86-64-v3+avxvnni" : "x86-64-v3";
  return second ? "x86-64-v2" : "x86-64";
#elif defined(__linux__)
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? "aarch64+dotprod" : "aarch64";
#else
  return "aarch64";
#endif
}

// Whether a processor `here`, as processor_level() says, has the instructions of code for `level`: LEVEL[+FEATURE] or
// LEVEL[+FEATURE]/TUNED.
inline bool runs(std::string_view level, std::string_view here) {
  constexpr std::string_view kLevels = "x86-64-v";
  level = level.substr(0, level.find('/'));
  const auto feature = [](std::string_view& name) {
    const auto plus = name.find('+');
    const auto found = plus == name.npos ? std::string_view() : name.substr(plus);
    name = name.substr(0, plus);
    return found;
  };
  const auto wanted = feature(level), there = feature(here);
  const bool more = wanted == "+avx512vnni" && (there == "+amx-int8" || there == "+avx512bf16");
  if (!wanted.empty() && wanted != there && !more) return false;
  if (level == here) return true;
  const auto is_level = [&](std::string_view name) {
    return name.size() == kLevels.size() + 1 && name.substr(0, kLevels.size()) == kLevels;
  };
  return is_level(level) && is_level(here) && level.back() <= here.back();
}

// Rounding to nearest, subnormal numbers kept, no exception trapped: what kernels compute with. The thread's own mode
// comes back at the end.
class FloatMode {
 public:
  FloatMode() : before_(get()) { set(kKernels); }
  ~FloatMode() { set(before_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
#if defined(__x86_64__)
  using Mode = unsigned;
  static constexpr Mode kKernels = 0x1f80;
  static Mode get() { return _mm_getcsr(); }
  static void set(Mode mode) { _mm_setcsr(mode); }
#else
  using Mode = uint64_t;
  static constexpr Mode kKernels = 0;
  static Mode get() {
    Mode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set(Mode mode) { asm volatile("msr fpcr, %0" ::"r"(mode)); }
#endif
  Mode before_;
};

}  // namespace triton_spirv::cpu
