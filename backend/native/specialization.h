// The specialisation of tensor arguments, without a Python frame for each tensor and launch.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

namespace triton_spirv {

// Returns a callable (tensor, align=False) → "", "D", "S" or "DS". D: `align` is set and data_ptr() is a multiple
// of 16. S: the memory behind the tensor has at most `range` bytes. `fallback`, a Python callable, returns the same. It
// is used for objects that are neither plain torch tensors nor have ptr_range().
pybind11::object tensor_specialization(pybind11::object fallback, int64_t range);

}  // namespace triton_spirv
