// Python's locks, held by C++ code.
#pragma once

#include "python_api.h"

namespace triton_spirv {

// Holds a threading.RLock of Python during its lifetime.
class Holding {
 public:
  explicit Holding(const pybind11::object& lock) : lock_(lock.ptr()) {
    static PyObject* const acquire = PyUnicode_InternFromString("acquire");
    checked(PyObject_CallMethodNoArgs(lock_, acquire));
  }
  ~Holding() {
    static PyObject* const release = PyUnicode_InternFromString("release");
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(PyObject_CallMethodNoArgs(lock_, release));
    PyErr_Restore(type, value, trace);
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  PyObject* lock_;
};

}  // namespace triton_spirv
