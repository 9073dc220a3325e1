// Faults on Windows: a vectored exception handler sees each exception before anyone looks for frames, which the machine
// code of kernels does not describe. It has the thread go on at the place where the kernel was called.
#include <malloc.h>
#include <signal.h>
#include <windows.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include "cpu/fault_places.h"

namespace triton_spirv::cpu {

namespace {

// Room for the handler when the stack is full.
constexpr ULONG kHandlers = 32 << 10;
// How often a thread is looked at that is in code which a kernel calls, before it is left to the next look.
constexpr int kLooks = 20;
// Bytes of stack for land().
constexpr std::size_t kLanding = 512;

// A call of a kernel on a thread.
struct Guard {
  void* back[5];  // of __builtin_setjmp()
  const Object* object;
  const std::atomic<int32_t>* stop;
  Fault fault;
  bool interrupted;
  alignas(16) std::byte landing[kLanding];
};

}  // namespace

struct Runner {
  HANDLE thread = nullptr;
  std::atomic<Guard*> guard{nullptr};  // while it is in a kernel
  bool has_room = false;

  Runner() {
    DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &thread, 0, FALSE,
                    DUPLICATE_SAME_ACCESS);
  }
  ~Runner() { CloseHandle(thread); }
};

namespace {

// Where a thread's Runner is, which ends with the thread. It is not thread_local: the handler may not allocate, as the
// first use does, and mingw-w64's runtime frees what is thread_local before it calls its destructors.
const DWORD slot = FlsAlloc([](void* runner) { delete static_cast<Runner*>(runner); });

// The thread goes on here after a fault or an interrupt, on the stack in its guard.
[[noreturn]] void land(Guard* here) { __builtin_longjmp(here->back, 1); }

void leave(CONTEXT& context, Guard* here) {
  constexpr DWORD64 kBackwards = 1 << 10;  // the direction flag, which functions expect to be clear
  constexpr DWORD64 kShadow = 32, kReturnAddress = 8;
  context.Rip = reinterpret_cast<DWORD64>(&land);
  context.Rcx = reinterpret_cast<DWORD64>(here);
  context.Rsp = reinterpret_cast<DWORD64>(here->landing + kLanding) - kShadow - kReturnAddress;
  context.EFlags &= ~kBackwards;
}

// The signal that stands for an exception in C, 0 for one that kernels do not raise.
int signal_of(DWORD exception) {
  switch (exception) {
    case EXCEPTION_ACCESS_VIOLATION:
    case EXCEPTION_GUARD_PAGE:
    case EXCEPTION_IN_PAGE_ERROR:
    case EXCEPTION_STACK_OVERFLOW:
    case EXCEPTION_DATATYPE_MISALIGNMENT:
      return SIGSEGV;
    case EXCEPTION_INT_DIVIDE_BY_ZERO:
    case EXCEPTION_INT_OVERFLOW:
      return SIGFPE;
    case EXCEPTION_ILLEGAL_INSTRUCTION:
    case EXCEPTION_PRIV_INSTRUCTION:
      return SIGILL;
  }
  return 0;
}

bool is_memory(uint64_t address) {
  MEMORY_BASIC_INFORMATION pages;
  return VirtualQuery(reinterpret_cast<const void*>(address), &pages, sizeof pages) != 0 && pages.State == MEM_COMMIT;
}

void describe_access(const EXCEPTION_RECORD& record, uint64_t sp, Fault& fault) {
  constexpr ULONG_PTR kNone = ~ULONG_PTR{0};  // of an address that no process has
  if (record.NumberParameters < 2) return;
  const ULONG_PTR kind = record.ExceptionInformation[0], address = record.ExceptionInformation[1];
  fault.has_address = address != kNone;
  fault.address = fault.has_address ? address : 0;
  fault.knows_access = fault.has_address;
  fault.wrote = fault.has_address && kind == 1;
  fault.overflow = record.ExceptionCode == EXCEPTION_STACK_OVERFLOW;
  if (!fault.has_address || fault.overflow) return;
  fault.forbidden = is_memory(address);
  fault.overflow = !fault.forbidden && is_near_stack(address, sp);
}

LONG CALLBACK handle(EXCEPTION_POINTERS* raised) {
  const DWORD error = GetLastError();  // which FlsGetValue() sets
  auto* const runner = static_cast<Runner*>(FlsGetValue(slot));
  SetLastError(error);
  Guard* const here = runner != nullptr ? runner->guard.load(std::memory_order_relaxed) : nullptr;
  if (here == nullptr) return EXCEPTION_CONTINUE_SEARCH;
  const EXCEPTION_RECORD& record = *raised->ExceptionRecord;
  CONTEXT& context = *raised->ContextRecord;
  const int signal = signal_of(record.ExceptionCode);
  if (signal == 0) return EXCEPTION_CONTINUE_SEARCH;
  runner->guard.store(nullptr, std::memory_order_relaxed);  // a fault below is not the kernel's
  Fault& fault = here->fault;
  fault.signal = signal;
  if (signal == SIGSEGV) describe_access(record, context.Rsp, fault);
  Places places(here->object, fault);
  places.add(context.Rip);
  if (!fault.overflow) places.add_callers(context.Rsp, reinterpret_cast<uint64_t>(here));
  leave(context, here);
  return EXCEPTION_CONTINUE_EXECUTION;
}

// Of a thread that is suspended. It may hold any lock, so nothing here allocates. Returns whether there is nothing more
// to do.
bool make_leave(Runner& runner) {
  constexpr DWORD kAsked = 0x40000000, kAnswered = 0x80000000, kBusy = 0x18000000;  // CONTEXT_EXCEPTION_REQUEST …
  Guard* const here = runner.guard.load(std::memory_order_relaxed);
  if (here == nullptr || here->stop->load(std::memory_order_relaxed) == 0 || here->object == nullptr) return true;
  CONTEXT context = {};
  context.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER | kAsked;
  if (!GetThreadContext(runner.thread, &context)) return false;
  // In a call of the system, or on the way to an exception's handler, it may hold what others need.
  if ((context.ContextFlags & kAnswered) != 0 && (context.ContextFlags & kBusy) != 0) return false;
  if (!here->object->has_code(context.Rip)) return false;
  here->interrupted = true;
  leave(context, here);
  context.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER;
  if (!SetThreadContext(runner.thread, &context)) {
    here->interrupted = false;
    return false;
  }
  runner.guard.store(nullptr, std::memory_order_relaxed);
  return true;
}

}  // namespace

Runner& this_runner() {
  auto* runner = static_cast<Runner*>(FlsGetValue(slot));
  if (runner == nullptr) FlsSetValue(slot, runner = new Runner);
  return *runner;
}

// First of those that are there now. One that comes later and in front of it, such as faulthandler's, sees a fault
// before it does.
void watch_faults() {
  static const void* const installed = AddVectoredExceptionHandler(1, handle);
  (void)installed;
}

void interrupt(Runner& runner) {
  if (&runner == FlsGetValue(slot)) return;
  for (int look = 0; look < kLooks && runner.guard.load(std::memory_order_relaxed) != nullptr; ++look) {
    if (SuspendThread(runner.thread) == static_cast<DWORD>(-1)) return;
    const bool done = make_leave(runner);
    ResumeThread(runner.thread);
    if (done) return;
    SwitchToThread();
  }
}

void make_room_for_handlers() {
  Runner& runner = this_runner();
  if (std::exchange(runner.has_room, true)) return;
  ULONG bytes = kHandlers;
  SetThreadStackGuarantee(&bytes);  // where it fails, a stack overflow ends the process
  // The page that tells of a full stack is the lowest one that is committed. Where all of a stack is, as under Wine, it
  // would lie below that room.
  constexpr ULONG_PTR kPage = 4096;
  ULONG_PTR low = 0, high = 0;
  GetCurrentThreadStackLimits(&low, &high);
  void* const teller = reinterpret_cast<void*>(low + kHandlers + 4 * kPage);
  MEMORY_BASIC_INFORMATION pages;
  if (VirtualQuery(teller, &pages, sizeof pages) == 0 || pages.State != MEM_COMMIT) return;
  DWORD before;
  if (pages.Protect == PAGE_READWRITE) VirtualProtect(teller, kPage, PAGE_READWRITE | PAGE_GUARD, &before);
}

void raise_fault(const char* text, uint64_t caller) {
  Guard* const here = this_runner().guard.exchange(nullptr);
  here->fault.signal = Fault::kRefused;
  std::strncpy(here->fault.text, text, sizeof here->fault.text - 1);
  Places(here->object, here->fault).add(caller);
  land(here);
}

Unguarded::Unguarded() : guard_(this_runner().guard.exchange(nullptr)) {}

Unguarded::~Unguarded() { this_runner().guard.store(static_cast<Guard*>(guard_)); }

// Nothing here has a destructor, and nothing that is read after the jump changed before it, other than `here`, which
// the handler changes.
__attribute__((noinline)) Ending guarded(const Object* object, const std::atomic<int32_t>& stop,
                                         void (*function)(void*), void* argument) {
  Guard here;
  here.object = object;
  here.stop = &stop;
  here.fault = {};
  here.interrupted = false;
  Runner& runner = this_runner();
  if (__builtin_setjmp(here.back) == 0) {
    runner.guard.store(&here);
    // An interrupt that came before found no guard, but `stop` is set.
    if (stop.load(std::memory_order_relaxed) == 0) function(argument);
    runner.guard.store(nullptr);
  }
  // The page that tells of a full stack is made again.
  if (here.fault.overflow) _resetstkoflw();
  return {here.fault, here.interrupted};
}

}  // namespace triton_spirv::cpu
