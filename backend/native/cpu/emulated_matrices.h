// Products of cooperative matrices (SPV_KHR_cooperative_matrix) whose components lie where a profile says.
#pragma once

#include <cstddef>
#include <cstdint>

namespace triton_spirv::cpu {

// D = A × B + C. `memory` holds the four one after the other, as [component][lane]. `table`: rows of A, columns of B,
// columns of A, lanes, whether the result saturates, then of A, B, C and D the type (an index of the names in
// backend/cpu/emulation.py) and the number of components, then for each component and lane of A, B and C the number of
// its element: row × columns + column. Each element of the result is the sum over ascending k, starting with C's.
void multiply_matrices(std::byte* memory, const int32_t* table);

}  // namespace triton_spirv::cpu
