// Calls of Python's C API whose errors are thrown as py::error_already_set.
#pragma once

#include <pybind11/pybind11.h>

namespace triton_spirv {

// A new reference, or the error that was set in its place.
inline pybind11::object checked(PyObject* object) {
  if (object == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}

inline pybind11::object get(const pybind11::handle& object, PyObject* name) {
  return checked(PyObject_GetAttr(object.ptr(), name));
}

}  // namespace triton_spirv
