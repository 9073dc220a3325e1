// Faults of kernels: a wild access, a division trap or an unknown instruction ends the kernel, not the process.
//
// Kernel code holds no lock and no object. So the handler of SIGSEGV, SIGBUS, SIGFPE and SIGILL (signal_faults.cpp), or
// of Windows' exceptions (windows_faults.cpp), may go back to where the kernel was called. Every other fault of the
// process goes to the handler that was there before.
#pragma once

#include <atomic>
#include <cstdint>

namespace triton_spirv::cpu {

class Object;

// What stopped a kernel.
struct Fault {
  int signal = 0;        // 0: nothing. Windows has exceptions, which are told by the signal that stands for them in C.
  uint64_t address = 0;  // what was accessed, if that is known
  bool has_address = false;
  bool forbidden = false;  // there is memory at that address, for other uses
  bool wrote = false;      // whether the access was a store
  bool knows_access = false;
  bool overflow = false;  // the stack had no more room
  // Places in the object's code, 0 at the end: the instruction, if it is there, and where its function and that
  // function's callers were probably called from.
  static constexpr int kPlaces = 6;
  uint64_t places[kPlaces] = {};
  // What the kernel did, where code that it called found that out: `signal` is kRefused then.
  static constexpr int kRefused = -1;
  char text[160] = {};
};

// Installs the handlers, or installs them again on top of others that came later. Cheap if there is nothing to do.
void watch_faults();

// Gives handlers room on this thread that is there when its stack is full, once. It ends with the thread.
void make_room_for_handlers();

// A thread that runs kernels, as others know it. It lives as long as the thread.
struct Runner;
Runner& this_runner();

// Makes a thread leave a kernel whose launch has to stop. A thread that is not in such a kernel goes on.
void interrupt(Runner& runner);

// How a call of a kernel ended.
struct Ending {
  Fault fault;
  bool interrupted = false;
};

// Calls `function(argument)`, which calls code of `object`, and returns how it ended. `stop`: not 0 once the launch has
// to stop. `object` may be null for code of this module. The thread has room for handlers. `function` must own nothing
// that a fault would leave behind.
Ending guarded(const Object* object, const std::atomic<int32_t>& stop, void (*function)(void*), void* argument);

// Ends the kernel that this thread is in, for what it did: `text` says that. `caller`: an instruction of the kernel, 0
// if it is not known.
[[noreturn]] void raise_fault(const char* text, uint64_t caller);

// Code that a kernel calls and that holds a lock or memory. No interrupt leaves it; a fault in it is the process's.
class Unguarded {
 public:
  Unguarded();
  ~Unguarded();
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

 private:
  void* guard_;
};

}  // namespace triton_spirv::cpu
