// Faults of kernels: a wild access, a division trap or an unknown instruction ends the kernel, not the process.
//
// Kernel code holds no lock and no object. So the handler of SIGSEGV, SIGBUS, SIGFPE and SIGILL may leave it with
// siglongjmp(), back to where the kernel was called. Every other fault of the process goes to the handler that was
// there before.
#pragma once

#include <csetjmp>
#include <cstdint>

namespace triton_spirv::cpu {

class Object;

// What stopped a kernel.
struct Fault {
  int signal = 0;        // 0: nothing
  int code = 0;          // si_code of the signal
  uint64_t address = 0;  // what was accessed, if that is known
  bool has_address = false;
  bool wrote = false;  // whether the access was a store
  bool knows_access = false;
  bool overflow = false;  // the stack had no more room
  uint64_t pc = 0;        // the instruction
  uint64_t caller = 0;    // in the object: `pc`, or where the function that holds it was probably called from; else 0
};

// Installs the handlers, or installs them again on top of others that came later. Cheap if there is nothing to do.
void watch_faults();

// Gives this thread a stack for signal handlers, if it has none that is large enough. It ends with the thread.
void make_signal_stack();

namespace internal {

// A call of a kernel on this thread.
struct Guard {
  sigjmp_buf back;
  const Object* object;
  Fault fault;
};
// Set while this thread is in a kernel. It is read in signal handlers, so it lies where no allocation is needed.
extern thread_local Guard* guard __attribute__((tls_model("initial-exec")));

}  // namespace internal

// Calls `function(argument)`, which calls code of `object`, and returns how it faulted: with signal 0 if it did not.
// The thread has a signal stack. `function` must own nothing that a fault would leave behind.
Fault guarded(const Object& object, void (*function)(void*), void* argument);

}  // namespace triton_spirv::cpu
