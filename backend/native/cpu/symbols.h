// What a kernel's machine code may call: the C library's memory and mathematical functions, and compiler support.
#pragma once

#include <cstdint>
#include <string_view>

namespace triton_spirv::cpu {

// Returns the address of a function by its symbol, or 0 for a symbol that kernels may not use. There is no other
// lookup: an object that was compiled elsewhere can reach nothing but these functions.
uint64_t callable(std::string_view symbol);

}  // namespace triton_spirv::cpu
