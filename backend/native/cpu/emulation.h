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

// Memory that they may access during one launch: nothing where `bytes` is 0.
class LentMemory {
 public:
  LentMemory(const void* memory, uint64_t bytes) : address_(bytes == 0 ? 0 : reinterpret_cast<uint64_t>(memory)) {
    if (address_ != 0) add_device_memory(address_, bytes);
  }
  ~LentMemory() {
    if (address_ != 0) remove_device_memory(address_);
  }
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

 private:
  uint64_t address_;
};

// The address of a function that code may call by this name; 0 if there is none.
uint64_t emulation_function(std::string_view name);

}  // namespace triton_spirv::cpu
