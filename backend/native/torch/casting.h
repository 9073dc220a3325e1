// Operations under an autocast: their floating-point arguments are cast to another type.
#pragma once

#include <pybind11/pybind11.h>

#include "torch/dlpack.h"

namespace triton_spirv {

// The torch objects that all operations share. Made once and never freed.
struct CastingContext {
  TensorReader reader;
  pybind11::tuple tensor_types;  // whose objects are plain tensors
  pybind11::tuple types;         // torch.float16, bfloat16 and float32
  pybind11::object key;          // the autocast's dispatch key
  pybind11::object excluded;     // (key) → whether this thread skips the key
  pybind11::object exclude;      // (key, whether to skip it)
  pybind11::object cast;         // (value, type) → the value in that type; for values that C++ does not handle
};

// An operation. It casts floating-point tensors on our device that have another type, except float64 tensors.
class Casting {
 public:
  // `choose`: (args, kwargs) → the type.
  Casting(const CastingContext* shared, pybind11::object op, pybind11::object choose);

  pybind11::object operator()(const pybind11::args& args, const pybind11::kwargs& kwargs) const;

 private:
  struct Type {
    PyObject* object;
    uint8_t code, bytes;  // as in TensorView; 0 for another type
  };
  Type type_of(const pybind11::object& chosen) const;
  // A new reference.
  pybind11::object cast(PyObject* value, const Type& type) const;

  const CastingContext* shared_;
  pybind11::object op_, choose_;
};

}  // namespace triton_spirv
