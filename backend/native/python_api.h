// Calls of Python's C API whose errors are thrown as py::error_already_set.
#pragma once

#include <pybind11/pybind11.h>

namespace triton_spirv {

// Takes a new reference, or throws the Python error if it is null.
inline pybind11::object checked(PyObject* object) {
  if (object == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}

inline pybind11::object get(const pybind11::handle& object, PyObject* name) {
  return checked(PyObject_GetAttr(object.ptr(), name));
}

// Whether `types` contains the type.
inline bool contains(const pybind11::tuple& types, PyTypeObject* type) {
  for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(types.ptr()); ++index) {
    if (PyTuple_GET_ITEM(types.ptr(), index) == reinterpret_cast<PyObject*>(type)) return true;
  }
  return false;
}

}  // namespace triton_spirv
