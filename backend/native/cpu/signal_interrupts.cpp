#include <signal.h>

#include <atomic>

#include "cpu/interrupts.h"

namespace triton_spirv::cpu {
namespace {

std::atomic<Launch*> watched{nullptr};
struct sigaction before;

void pass_on_interrupt(int signal, siginfo_t* info, void* context) {
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
  // The worker, which looks ten times a second, makes the threads leave the kernel.
  if (Launch* const launch = watched.load()) launch->end(Stop::kInterrupt);
}

}  // namespace

void take_interrupts(Launch& launch) {
  Launch* none = nullptr;
  struct sigaction now = {};
  // Where no handler is, Ctrl-C ends the process.
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  if (!watched.compare_exchange_strong(none, &launch)) return;
  before = now;
  struct sigaction ours = now;
  ours.sa_sigaction = pass_on_interrupt;
  ours.sa_flags |= SA_SIGINFO;
  sigaction(SIGINT, &ours, nullptr);
}

void leave_to_program() {
  if (watched.exchange(nullptr) != nullptr) sigaction(SIGINT, &before, nullptr);
}

}  // namespace triton_spirv::cpu
