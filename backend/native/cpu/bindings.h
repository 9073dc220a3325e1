// The CPU device in the Python module.
#pragma once

#include <pybind11/pybind11.h>

namespace triton_spirv {

void bind_cpu(pybind11::module_& m);

}  // namespace triton_spirv
