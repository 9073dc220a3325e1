// The kinds of devices, as the Python module knows them.
#pragma once

#include <pybind11/pybind11.h>

#include "device_error.h"

namespace triton_spirv {

// Sets the Python error `value`, of a type that a kind of device has for its errors. If the device is abandoned, its
// owner is told first. Python's lock is held.
void raise_device_error(PyObject* type, const pybind11::object& value, const DeviceError& error);

// Adds the classes of a kind of device to the module: cpu/bindings.cpp, vulkan/bindings.cpp.
void bind_cpu(pybind11::module_& m);
void bind_vulkan(pybind11::module_& m);
// Each sets the Python error of an error of its kind's. Returns false, with nothing set, for another one.
bool set_cpu_error(const DeviceError& error);
bool set_vulkan_error(const DeviceError& error);

}  // namespace triton_spirv
