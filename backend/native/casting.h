// Operations under an autocast: floats among their arguments in another type.
#pragma once

#include <pybind11/pybind11.h>

#include "dlpack.h"

namespace triton_spirv {

// What the operations share: torch's objects. Made once and never freed.
struct CastingContext {
  TensorReader reader;
  pybind11::tuple tensor_types;  // whose objects are plain tensors
  pybind11::tuple types;         // torch.float16, bfloat16 and float32
  pybind11::object key;          // the autocast's dispatch key
  pybind11::object excluded;     // (key) → whether this thread passes it over
  pybind11::object exclude;      // (key, whether it is to)
  pybind11::object cast;         // (value, type) → what it is in that type, for what is not told apart here
};

// An operation. A tensor of floats on our device, but not of float64, is cast where it has another type.
class Casting {
 public:
  // `choose`: (args, kwargs) → the type.
  Casting(const CastingContext* shared, pybind11::object op, pybind11::object choose);

  pybind11::object operator()(const pybind11::args& args, const pybind11::kwargs& kwargs) const;

 private:
  struct Type {
    PyObject* object;
    uint8_t code, bytes;  // as TensorView has them; 0 of another type
  };
  Type type_of(const pybind11::object& chosen) const;
  // A new reference.
  pybind11::object cast(PyObject* value, const Type& type) const;

  const CastingContext* shared_;
  pybind11::object op_, choose_;
};

}  // namespace triton_spirv
