// What kernels of emulated devices do, counted where that is asked for: figures of a GPU, and no time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace triton_spirv::cpu {

// What is counted, in the order of Counts. Instructions of SPIR-V are counted once for each subgroup, barriers once for
// each workgroup, bytes of device memory once for each access of a subgroup. Steps are those of the banks of shared
// memory, and the fewest that the same words would take.
enum Counted : std::size_t { kInstructions, kBarriers, kBytesRead, kBytesWritten, kSteps, kFewestSteps, kCounts };
using Counts = std::array<uint64_t, kCounts>;

// Shared memory has so many banks of 4 bytes from now on; 0: nothing is counted.
void set_counted_banks(uint32_t banks);
extern std::atomic<uint32_t> counted_banks;

void count(Counted what, uint64_t more);
// One access of `bytes` at the places of the active lanes.
void count_device_access(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, bool reads,
                         bool writes);
void count_shared_access(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, uint32_t banks);

// What was counted since the last call.
Counts take_counts();

}  // namespace triton_spirv::cpu
