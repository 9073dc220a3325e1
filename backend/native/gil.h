// Python's lock, for threads that Python may not outlive.
//
// Until 3.13 the interpreter ends a thread that asks for its lock once it is being finalised, by unwinding its stack.
// That ends the process where it meets a destructor, such as those of pybind11's own guards, or comes during an
// exception. Here such a thread stands still until the process ends, as it does in 3.14.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

namespace triton_spirv {

template <typename Take>
auto take_gil(Take take) {
  try {
    return take();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Lets other threads run Python while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Lets this thread run Python while it lives.
class WithGil {
 public:
  WithGil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace triton_spirv
