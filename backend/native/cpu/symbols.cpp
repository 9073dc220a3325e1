#include "cpu/symbols.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "cpu/emulation.h"

namespace {

// Compilers call these by name for conversions that a processor lacks. Each is written here, because libgcc has them
// only in some versions. A half or a bfloat16 is passed in the low bits of the register of a float.
float in_low_bits(uint16_t bits) {
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
  const uint16_t sign = static_cast<uint16_t>(bits >> 63) << (kExponent + kMantissa);
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

float half_to_float(float half) {
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

float truncdfhf2(double value) { return in_low_bits(rounded<5, 10>(value)); }
float truncsfhf2(float value) { return in_low_bits(rounded<5, 10>(value)); }
float truncdfbf2(double value) { return in_low_bits(rounded<8, 7>(value)); }
float truncsfbf2(float value) { return in_low_bits(rounded<8, 7>(value)); }
float extendhfsf2(float half) { return half_to_float(half); }
double extendhfdf2(float half) { return half_to_float(half); }

using Wide = __int128;
using WideUnsigned = unsigned __int128;
// The compiler's own code for these operations: a call of libgcc's function, which is linked in.
Wide divide(Wide a, Wide b) { return a / b; }
Wide remainder_of(Wide a, Wide b) { return a % b; }
WideUnsigned divide_unsigned(WideUnsigned a, WideUnsigned b) { return a / b; }
WideUnsigned remainder_unsigned(WideUnsigned a, WideUnsigned b) { return a % b; }
Wide multiply(Wide a, Wide b) { return static_cast<Wide>(static_cast<WideUnsigned>(a) * static_cast<WideUnsigned>(b)); }
Wide shift_left(Wide a, int by) { return static_cast<Wide>(static_cast<WideUnsigned>(a) << by); }
Wide shift_right(Wide a, int by) { return a >> by; }
WideUnsigned shift_right_unsigned(WideUnsigned a, int by) { return a >> by; }

template <typename Function>
uint64_t address(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

using F = float (*)(float);
using D = double (*)(double);
using F2 = float (*)(float, float);
using D2 = double (*)(double, double);

// clang-format off
#define ONE(name) {#name, address(static_cast<D>(::name))}, {#name "f", address(static_cast<F>(::name##f))}
#define TWO(name) {#name, address(static_cast<D2>(::name))}, {#name "f", address(static_cast<F2>(::name##f))}
const std::unordered_map<std::string_view, uint64_t>& table() {
  static const auto* const functions = new std::unordered_map<std::string_view, uint64_t>{
      {"memcpy", address(static_cast<void* (*)(void*, const void*, std::size_t)>(::memcpy))},
      {"memmove", address(static_cast<void* (*)(void*, const void*, std::size_t)>(::memmove))},
      {"memset", address(static_cast<void* (*)(void*, int, std::size_t)>(::memset))},
      {"memcmp", address(static_cast<int (*)(const void*, const void*, std::size_t)>(::memcmp))},
      {"__truncdfhf2", address(truncdfhf2)}, {"__truncsfhf2", address(truncsfhf2)},
      {"__truncdfbf2", address(truncdfbf2)}, {"__truncsfbf2", address(truncsfbf2)},
      {"__extendhfsf2", address(extendhfsf2)}, {"__extendhfdf2", address(extendhfdf2)},
      {"__divti3", address(divide)}, {"__modti3", address(remainder_of)},
      {"__udivti3", address(divide_unsigned)}, {"__umodti3", address(remainder_unsigned)},
      {"__multi3", address(multiply)}, {"__ashlti3", address(shift_left)},
      {"__ashrti3", address(shift_right)}, {"__lshrti3", address(shift_right_unsigned)},
      {"fma", address(static_cast<double (*)(double, double, double)>(::fma))},
      {"fmaf", address(static_cast<float (*)(float, float, float)>(::fmaf))},
      {"ldexp", address(static_cast<double (*)(double, int)>(::ldexp))},
      {"ldexpf", address(static_cast<float (*)(float, int)>(::ldexpf))},
      ONE(sqrt), ONE(cbrt), ONE(fabs), ONE(floor), ONE(ceil), ONE(trunc), ONE(rint), ONE(nearbyint), ONE(round),
      ONE(roundeven), ONE(sin), ONE(cos), ONE(tan), ONE(asin), ONE(acos), ONE(atan), ONE(sinh), ONE(cosh), ONE(tanh),
      ONE(asinh), ONE(acosh), ONE(atanh), ONE(exp), ONE(exp2), ONE(exp10), ONE(expm1), ONE(log), ONE(log2), ONE(log10),
      ONE(log1p), ONE(erf), ONE(erfc), ONE(tgamma), ONE(lgamma),
      TWO(fmod), TWO(remainder), TWO(pow), TWO(hypot), TWO(atan2), TWO(fmin), TWO(fmax), TWO(fdim), TWO(copysign),
  };
  return *functions;
}
#undef ONE
#undef TWO
// clang-format on

}  // namespace

namespace triton_spirv::cpu {

uint64_t callable(std::string_view symbol) {
  const auto found = table().find(symbol);
  return found == table().end() ? emulation_function(symbol) : found->second;
}

float from_half(uint16_t bits) { return half_to_float(in_low_bits(bits)); }
uint16_t to_half(double value) { return rounded<5, 10>(value); }
uint16_t to_bfloat16(double value) { return rounded<8, 7>(value); }

}  // namespace triton_spirv::cpu
