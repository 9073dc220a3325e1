// What a kernel's machine code may call: the C library's memory and mathematical functions, compiler support, and a
// pause of loops that wait.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "processor.hpp"

namespace triton_spirv::cpu {
namespace detail {

// Compilers call these by name for conversions that a processor lacks. Each is written here, because libgcc has them
// only in some versions. A half or a bfloat16 is passed in the low bits of the register of a float.
inline float in_low_bits(uint16_t bits) {
  const uint32_t word = bits;
  float result;
  std::memcpy(&result, &word, sizeof result);
  return result;
}

// Rounds a double to a format with fewer bits, to the nearest, ties to even. `kExponent`, `kMantissa`: bits of each.
template <int kExponent, int kMantissa>
uint16_t rounded(double value) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr uint16_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>(bits >> 63 << (kExponent + kMantissa));
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 1024) {
    if (mantissa == 0) return sign | kInfinity;
    return sign | kInfinity | uint16_t{1} << (kMantissa - 1) | static_cast<uint16_t>(mantissa >> (52 - kMantissa));
  }
  if (exponent < -kBias - kMantissa - 1) return sign;  // less than half of the smallest number
  mantissa |= uint64_t{1} << 52;
  const bool subnormal = exponent < 1 - kBias;
  const int dropped = 52 - kMantissa + (subnormal ? 1 - kBias - exponent : 0);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  uint64_t kept = mantissa >> dropped;
  const uint64_t rest = mantissa & ((uint64_t{1} << dropped) - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // A carry out of the mantissa is the next exponent; `kept` has the leading bit of a normal number.
  const uint64_t result = kept + (subnormal ? 0 : static_cast<uint64_t>(exponent + kBias - 1) << kMantissa);
  if (exponent > kBias || result >= kInfinity) return sign | kInfinity;
  return sign | static_cast<uint16_t>(result);
}

inline float half_to_float(float half) {
  uint32_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  const uint32_t sign = (bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), sign ? -1.0f : 1.0f);
  uint32_t word = sign | (exponent + 112) << 23 | mantissa << 13;
  if (exponent == 31) word = sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0);
  float result;
  std::memcpy(&result, &word, sizeof result);
  return result;
}

inline float truncdfhf2(double value) { return in_low_bits(rounded<5, 10>(value)); }
inline float truncsfhf2(float value) { return in_low_bits(rounded<5, 10>(value)); }
inline float truncdfbf2(double value) { return in_low_bits(rounded<8, 7>(value)); }
inline float truncsfbf2(float value) { return in_low_bits(rounded<8, 7>(value)); }
inline float extendhfsf2(float half) { return half_to_float(half); }
inline double extendhfdf2(float half) { return half_to_float(half); }

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;
// The compiler's own code for these operations: a call of libgcc's function, which is linked in.
inline Wide divide(Wide a, Wide b) { return a / b; }
inline Wide remainder_of(Wide a, Wide b) { return a % b; }
inline WideUnsigned divide_unsigned(WideUnsigned a, WideUnsigned b) { return a / b; }
inline WideUnsigned remainder_unsigned(WideUnsigned a, WideUnsigned b) { return a % b; }
inline Wide multiply(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<WideUnsigned>(a) * static_cast<WideUnsigned>(b));
}
inline Wide shift_left(Wide a, int by) { return static_cast<Wide>(static_cast<WideUnsigned>(a) << by); }
inline Wide shift_right(Wide a, int by) { return a >> by; }
inline WideUnsigned shift_right_unsigned(WideUnsigned a, int by) { return a >> by; }

// One more turn of a loop that waits for another program. A thread that holds a lock works on for microseconds. If the
// system has taken its processor away, it needs one: this thread sleeps then.
inline void wait(uint32_t turn) {
  constexpr uint32_t kTurnsAwake = 512;
  if (turn > kTurnsAwake) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The address by which kernels call a function.
template <auto kFunction>
struct Called;
template <typename Result, typename... Arguments, Result (*kFunction)(Arguments...)>
struct Called<kFunction> {
#if defined(_WIN32)
  TRITON_SPIRV_SYSTEM_V static Result function(Arguments... arguments) { return kFunction(arguments...); }
#else
  static constexpr auto function = kFunction;
#endif
};
template <auto kFunction>
uint64_t address() {
  return reinterpret_cast<uint64_t>(Called<kFunction>::function);
}

// Functions of glibc that other systems lack. Kernels round to nearest.
#if defined(_WIN32)
inline double roundeven(double value) { return ::nearbyint(value); }
inline float roundevenf(float value) { return ::nearbyintf(value); }
inline double exp10(double value) { return ::pow(10.0, value); }
inline float exp10f(float value) { return static_cast<float>(::pow(10.0, static_cast<double>(value))); }
#endif

using F = float (*)(float);
using D = double (*)(double);
using F2 = float (*)(float, float);
using D2 = double (*)(double, double);

// clang-format off
#define TRITON_SPIRV_ONE(name) \
  {#name, address<static_cast<D>(name)>()}, \
  {#name "f", address<static_cast<F>(name##f)>()}
#define TRITON_SPIRV_TWO(name) \
  {#name, address<static_cast<D2>(name)>()}, \
  {#name "f", address<static_cast<F2>(name##f)>()}
inline const std::unordered_map<std::string_view, uint64_t>& table() {
  static const auto* const functions = new std::unordered_map<std::string_view, uint64_t>{
      {"memcpy", address<static_cast<void* (*)(void*, const void*, std::size_t)>(::memcpy)>()},
      {"memmove", address<static_cast<void* (*)(void*, const void*, std::size_t)>(::memmove)>()},
      {"memset", address<static_cast<void* (*)(void*, int, std::size_t)>(::memset)>()},
      {"memcmp", address<static_cast<int (*)(const void*, const void*, std::size_t)>(::memcmp)>()},
      {"__truncdfhf2", address<truncdfhf2>()}, {"__truncsfhf2", address<truncsfhf2>()},
      {"__truncdfbf2", address<truncdfbf2>()}, {"__truncsfbf2", address<truncsfbf2>()},
      {"__extendhfsf2", address<extendhfsf2>()}, {"__extendhfdf2", address<extendhfdf2>()},
      {"__divti3", address<divide>()}, {"__modti3", address<remainder_of>()},
      {"__udivti3", address<divide_unsigned>()}, {"__umodti3", address<remainder_unsigned>()},
      {"__multi3", address<multiply>()}, {"__ashlti3", address<shift_left>()},
      {"__ashrti3", address<shift_right>()}, {"__lshrti3", address<shift_right_unsigned>()},
      {"triton_spirv_wait", address<wait>()},
      {"fma", address<static_cast<double (*)(double, double, double)>(::fma)>()},
      {"fmaf", address<static_cast<float (*)(float, float, float)>(::fmaf)>()},
      {"ldexp", address<static_cast<double (*)(double, int)>(::ldexp)>()},
      {"ldexpf", address<static_cast<float (*)(float, int)>(::ldexpf)>()},
      TRITON_SPIRV_ONE(sqrt), TRITON_SPIRV_ONE(cbrt), TRITON_SPIRV_ONE(fabs), TRITON_SPIRV_ONE(floor),
      TRITON_SPIRV_ONE(ceil), TRITON_SPIRV_ONE(trunc), TRITON_SPIRV_ONE(rint), TRITON_SPIRV_ONE(nearbyint),
      TRITON_SPIRV_ONE(round), TRITON_SPIRV_ONE(roundeven), TRITON_SPIRV_ONE(sin), TRITON_SPIRV_ONE(cos),
      TRITON_SPIRV_ONE(tan), TRITON_SPIRV_ONE(asin), TRITON_SPIRV_ONE(acos), TRITON_SPIRV_ONE(atan),
      TRITON_SPIRV_ONE(sinh), TRITON_SPIRV_ONE(cosh), TRITON_SPIRV_ONE(tanh), TRITON_SPIRV_ONE(asinh),
      TRITON_SPIRV_ONE(acosh), TRITON_SPIRV_ONE(atanh), TRITON_SPIRV_ONE(exp), TRITON_SPIRV_ONE(exp2),
      TRITON_SPIRV_ONE(exp10), TRITON_SPIRV_ONE(expm1), TRITON_SPIRV_ONE(log), TRITON_SPIRV_ONE(log2),
      TRITON_SPIRV_ONE(log10), TRITON_SPIRV_ONE(log1p), TRITON_SPIRV_ONE(erf), TRITON_SPIRV_ONE(erfc),
      TRITON_SPIRV_ONE(tgamma), TRITON_SPIRV_ONE(lgamma), TRITON_SPIRV_TWO(fmod), TRITON_SPIRV_TWO(remainder),
      TRITON_SPIRV_TWO(pow), TRITON_SPIRV_TWO(hypot), TRITON_SPIRV_TWO(atan2), TRITON_SPIRV_TWO(fmin),
      TRITON_SPIRV_TWO(fmax), TRITON_SPIRV_TWO(fdim), TRITON_SPIRV_TWO(copysign),
  };
  return *functions;
}
#undef TRITON_SPIRV_ONE
#undef TRITON_SPIRV_TWO
// clang-format on

}  // namespace detail

// Returns the address of a function by its symbol, or 0 for a symbol that kernels may not use. There is no other
// lookup: an object that was compiled elsewhere can reach nothing but these functions.
inline uint64_t callable(std::string_view symbol) {
  const auto found = detail::table().find(symbol);
  return found == detail::table().end() ? 0 : found->second;
}

// Conversions of the bits of a float16 or bfloat16, to the nearest, ties to even.
inline float from_half(uint16_t bits) { return detail::half_to_float(detail::in_low_bits(bits)); }
inline uint16_t to_half(double value) { return detail::rounded<5, 10>(value); }
inline uint16_t to_bfloat16(double value) { return detail::rounded<8, 7>(value); }

}  // namespace triton_spirv::cpu
