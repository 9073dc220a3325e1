// What a kernel's machine code may call: the C library's memory and mathematical functions, compiler support, and what
// emulated devices need (emulation.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace triton_spirv::cpu {

// Returns the address of a function by its symbol, or 0 for a symbol that kernels may not use. There is no other
// lookup: an object that was compiled elsewhere can reach nothing but these functions.
uint64_t callable(std::string_view symbol);

// Conversions of the bits of a float16 or bfloat16, to the nearest, ties to even.
float from_half(uint16_t bits);
uint16_t to_half(double value);
uint16_t to_bfloat16(double value);

}  // namespace triton_spirv::cpu
