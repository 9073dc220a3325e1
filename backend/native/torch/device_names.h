// What torch asks about devices by name, where a name of another kind means this one.
#pragma once

#include <pybind11/pybind11.h>

namespace triton_spirv {

// While `whether` is true, devices of the kind of `other` equal those of the kind of `own` with the same index, and
// torch's C++ code asks this device's guard where one of that kind is named without an index. Both are a torch.device
// with index 3. False, with nothing changed, where those objects are not laid out as expected.
bool take_name(const pybind11::object& other, const pybind11::object& own, bool whether);

}  // namespace triton_spirv
