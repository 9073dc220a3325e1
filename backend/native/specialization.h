// What a tensor argument is specialised for, without a Python frame a tensor and launch.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

namespace triton_spirv {

// A callable (tensor, align=False) → "", "D", "S" or "DS". D: `align`, and data_ptr() is a multiple of 16. S: the
// memory that the tensor is a view of has at most `range` bytes. It is the same as `fallback`, a Python callable that
// takes and gives the same, and is asked about tensors that are not plain torch tensors or objects with ptr_range().
pybind11::object tensor_specialization(pybind11::object fallback, int64_t range);

}  // namespace triton_spirv
