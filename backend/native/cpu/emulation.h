// What kernels of emulated devices call: a workgroup is several subgroups, which run on one thread, each on a stack of
// its own and up to the next barrier (backend/cpu/emulation.py emits the calls).
#pragma once

#include <cstdint>
#include <string_view>

namespace triton_spirv::cpu {

// From now on subgroups run in another order between two barriers, which the number decides; 0: ascending.
void set_subgroup_order(uint64_t seed);

// Memory that kernels of emulated devices may access, beside the shared memory of their workgroup.
void add_device_memory(uint64_t address, uint64_t bytes);
void remove_device_memory(uint64_t address);

// The address of a function that code may call by this name; 0 if there is none.
uint64_t emulation_function(std::string_view name);

}  // namespace triton_spirv::cpu
