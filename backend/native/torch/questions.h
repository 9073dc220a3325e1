// Questions about tensors that Python code asks while a call is recorded.
#pragma once

#include <pybind11/pybind11.h>

namespace triton_spirv {

// Has `asked` called with each object of which one of these methods of `type`, C functions without arguments, is called
// while this thread has a Questioned, unless the code that calls it is in `answered`. torch's tables of methods lead
// here from then on, until the process ends. Only the first call does anything.
void watch_questions(const pybind11::type& type, const pybind11::list& names, const pybind11::set& answered,
                     const pybind11::object& asked);

// While it lives, this thread's questions are told.
class Questioned {
 public:
  Questioned();
  ~Questioned();
  Questioned(const Questioned&) = delete;
  Questioned& operator=(const Questioned&) = delete;
};

}  // namespace triton_spirv
