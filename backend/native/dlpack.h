// DLPack capsules over device memory, which torch makes tensors of.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

namespace triton_spirv {

// A capsule of a tensor on extension device `device`, with strides in elements. `owner` is kept alive as long as the
// tensor's storage. `code` and `bits` are DLPack's of the element type.
pybind11::object dlpack_capsule(const pybind11::object& owner, uint64_t address, const std::vector<int64_t>& shape,
                                const std::vector<int64_t>& strides, int device, uint8_t code, uint8_t bits);

}  // namespace triton_spirv
