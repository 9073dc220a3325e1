// siglongjmp() may leave the stack of a subgroup (emulation.cpp), which its checks take for a fault.
#undef _FORTIFY_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "cpu/fault_places.h"
#include "cpu/faults.h"
#include "cpu/object.h"

namespace triton_spirv::cpu {

namespace {

// A call of a kernel on a thread.
struct Guard {
  sigjmp_buf back;
  const Object* object;
  const std::atomic<int32_t>* stop;
  Fault fault;
};
// Set while this thread is in a kernel. It is read in signal handlers, so it lies where no allocation is needed.
thread_local Guard* guard __attribute__((tls_model("initial-exec"))) = nullptr;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kInterrupt = SIGURG;
constexpr int kMostSignals = 64;
// Marks the signal as ours.
int interrupt_mark;
// Room for the frame of a signal (11 KiB with AMX), and for handlers of others such as Python's faulthandler.
constexpr std::size_t kSignalStack = 64 << 10;
constexpr std::size_t kEnough = 32 << 10;

struct sigaction previous[kMostSignals];
std::mutex installing;
thread_local bool chaining __attribute__((tls_model("initial-exec"))) = false;

struct Registers {
  uint64_t pc, sp;
};

Registers registers_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return {static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]),
          static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {context.uc_mcontext.pc, context.uc_mcontext.sp};
#else
#error "The CPU device needs x86-64 or aarch64."
#endif
}

void describe_access(const ucontext_t& context, Fault& fault) {
#if defined(__x86_64__)
  constexpr greg_t kPageFault = 14;
  if (context.uc_mcontext.gregs[REG_TRAPNO] != kPageFault) return;
  fault.knows_access = true;
  fault.wrote = context.uc_mcontext.gregs[REG_ERR] & 2;
#else
  (void)context;
  (void)fault;
#endif
}

// Finds the instruction and its callers: addresses above the stack pointer that point into the object's code.
void find_places(const Guard& here, const ucontext_t& context, const Registers& registers, Fault& fault) {
  Places places(here.object, fault);
  places.add(registers.pc);
#if defined(__aarch64__)
  places.add(context.uc_mcontext.regs[30] - 1);
#else
  (void)context;
#endif
  if (!fault.overflow) places.add_callers(registers.sp, reinterpret_cast<uint64_t>(&here));
}

// Whether the kernel raised the signal itself.
bool is_fault(const siginfo_t& info) { return info.si_code > 0; }

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = previous[signal];
  // A handler that was installed later may have kept ours as the one before it: then this is a circle.
  if (!chaining && (before.sa_flags & SA_SIGINFO)) {
    chaining = true;
    before.sa_sigaction(signal, info, context);
    chaining = false;
    return;
  }
  if (!chaining && before.sa_handler == SIG_IGN && !is_fault(*info)) return;
  if (!chaining && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    chaining = true;
    before.sa_handler(signal);
    chaining = false;
    return;
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  // The instruction faults again when this returns; a signal that was sent must be sent again.
  if (!is_fault(*info)) raise(signal);
}

void handle(int signal, siginfo_t* info, void* context) {
  Guard* const here = guard;
  if (here == nullptr || !is_fault(*info)) {
    pass_on(signal, info, context);
    return;
  }
  guard = nullptr;  // a fault below is not the kernel's
  const auto& machine = *static_cast<const ucontext_t*>(context);
  const Registers registers = registers_of(machine);
  Fault& fault = here->fault;
  fault.signal = signal;
  if (signal == SIGSEGV || signal == SIGBUS) {
    fault.has_address = info->si_code != SI_KERNEL;  // it is unknown for addresses that no process has
    fault.address = fault.has_address ? reinterpret_cast<uint64_t>(info->si_addr) : 0;
    fault.forbidden = fault.has_address && signal == SIGSEGV && info->si_code == SEGV_ACCERR;
    describe_access(machine, fault);
    fault.overflow = fault.has_address && signal == SIGSEGV && is_near_stack(fault.address, registers.sp);
  }
  find_places(*here, machine, registers, fault);
  siglongjmp(here->back, 1);
}

void handle_interrupt(int signal, siginfo_t* info, void* context) {
  if (info->si_code != SI_QUEUE || info->si_pid != getpid() || info->si_value.sival_ptr != &interrupt_mark) {
    const struct sigaction& before = previous[signal];
    if (before.sa_flags & SA_SIGINFO) {
      before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(signal);
    }
    return;
  }
  Guard* const here = guard;
  if (here == nullptr || here->stop->load(std::memory_order_relaxed) == 0) return;
  guard = nullptr;
  siglongjmp(here->back, 2);
}

void install(int signal) {
  struct sigaction ours = {};
  ours.sa_sigaction = signal == kInterrupt ? handle_interrupt : handle;
  // SA_NODEFER: siglongjmp() need not restore the mask.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  struct sigaction before = {};
  if (sigaction(signal, nullptr, &before) != 0) return;
  if ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction == ours.sa_sigaction) return;
  previous[signal] = before;
  sigaction(signal, &ours, nullptr);
}

// The signal stack that a thread was given here.
struct SignalStack {
  bool looked_for = false;
  void* memory = nullptr;
  ~SignalStack() {
    if (memory == nullptr) return;
    stack_t now = {};
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory) {
      stack_t none = {};
      none.ss_flags = SS_DISABLE;
      sigaltstack(&none, nullptr);
    }
    munmap(memory, kSignalStack);
  }
};
thread_local SignalStack signal_stack;

}  // namespace

void watch_faults() {
  struct sigaction now = {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle) return;
  const std::lock_guard<std::mutex> lock(installing);
  for (const int signal : kSignals) install(signal);
  install(kInterrupt);
}

struct Runner {
  pthread_t thread;
};

Runner& this_runner() {
  thread_local Runner runner{};
  runner.thread = pthread_self();
  return runner;
}

void interrupt(Runner& runner) {
  {
    const std::lock_guard<std::mutex> lock(installing);
    install(kInterrupt);
  }
  union sigval value = {};
  value.sival_ptr = &interrupt_mark;
  pthread_sigqueue(runner.thread, kInterrupt, value);
}

void make_room_for_handlers() {
  if (signal_stack.looked_for) return;
  signal_stack.looked_for = true;
  stack_t now = {};
  if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE) && now.ss_size >= kEnough) return;
  void* const memory = mmap(nullptr, kSignalStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;  // then a stack overflow ends the process, and other faults are still errors
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStack;
  if (sigaltstack(&stack, nullptr) != 0) {
    munmap(memory, kSignalStack);
    return;
  }
  signal_stack.memory = memory;
}

void raise_fault(const char* text, uint64_t caller) {
  Guard* const here = guard;
  guard = nullptr;
  here->fault.signal = Fault::kRefused;
  std::strncpy(here->fault.text, text, sizeof here->fault.text - 1);
  Places(here->object, here->fault).add(caller);
  siglongjmp(here->back, 1);
}

Unguarded::Unguarded() : guard_(guard) {
  guard = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

Unguarded::~Unguarded() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  guard = static_cast<Guard*>(guard_);
}

// Nothing here has a destructor, and nothing that is read after the jump changed before it, other than `here`, which
// the handler changes.
__attribute__((noinline)) Ending guarded(const Object* object, const std::atomic<int32_t>& stop,
                                         void (*function)(void*), void* argument) {
  Guard here;
  here.object = object;
  here.stop = &stop;
  here.fault = {};
  const int left_by = sigsetjmp(here.back, 0);
  if (left_by == 0) {
    guard = &here;
    // The handler reads it: the call stays behind it. A signal that came before found no guard, but `stop` is set.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (stop.load(std::memory_order_relaxed) == 0) function(argument);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    guard = nullptr;
  }
  return {here.fault, left_by == 2};
}

}  // namespace triton_spirv::cpu
