// A fault of a kernel in words.
#pragma once

#include <string>

#include "cpu/faults.h"

namespace triton_spirv::cpu {

// Says what the kernel did and what to do, to follow the kernel's name.
std::string fault_text(const Fault& fault);

}  // namespace triton_spirv::cpu
