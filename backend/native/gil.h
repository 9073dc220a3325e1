// Python's lock, for threads that Python may not outlive.
//
// Until 3.13 the interpreter ends a thread that asks for its lock once it is being finalised, by unwinding its stack.
// That ends the process where it meets a destructor, such as that of a guard of pybind11, or comes during an
// exception. Here such a thread stands still until the process ends, as it does in 3.14.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

namespace triton_spirv {

// Calls what may end the thread: what takes the lock, or runs Python.
template <typename Call>
auto outlive(Call call) {
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Lets other threads run Python while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    outlive([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Lets this thread run Python while it lives.
class WithGil {
 public:
  WithGil() : state_(outlive([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace triton_spirv
