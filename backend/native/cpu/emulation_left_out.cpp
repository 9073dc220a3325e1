// In the place of emulation.cpp on Windows: the stacks of subgroups are switched by functions of Unix.
#include "cpu/emulated_counts.h"
#include "cpu/emulation.h"

namespace triton_spirv::cpu {

void set_subgroup_order(uint64_t) {}
void add_device_memory(uint64_t, uint64_t) {}
void remove_device_memory(uint64_t) {}
uint64_t emulation_function(std::string_view) { return 0; }
void set_counted_banks(uint32_t) {}
Counts take_counts() { return {}; }

}  // namespace triton_spirv::cpu
