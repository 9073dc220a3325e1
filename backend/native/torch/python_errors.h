// What C++ code throws, as errors of Python.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "device_error.h"
#include "python_api.h"

namespace triton_spirv {

// Runs `function`, whose exceptions are thrown as Python's errors.
template <typename Function>
void with_errors(const Function& function) {
  try {
    function();
    return;
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (const DeviceError& error) {
    set_device_error(error);
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  throw pybind11::error_already_set();
}

}  // namespace triton_spirv
