#include <windows.h>

#include <atomic>
#include <mutex>

#include "cpu/interrupts.h"

namespace triton_spirv::cpu {
namespace {

std::mutex mutex;
Launch* watched = nullptr;
bool installed = false;

// Windows calls it in a thread of its own, and then the handlers that were there before: Python's has the exception
// raised.
BOOL WINAPI handle(DWORD event) {
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) return FALSE;
  const std::lock_guard<std::mutex> lock(mutex);
  // The worker, which looks ten times a second, makes the threads leave the kernel.
  if (watched != nullptr) watched->end(Stop::kInterrupt);
  return FALSE;
}

}  // namespace

void take_interrupts(Launch& launch) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (watched != nullptr) return;
  if (!installed) installed = SetConsoleCtrlHandler(handle, TRUE);
  watched = &launch;
}

void leave_to_program() {
  const std::lock_guard<std::mutex> lock(mutex);
  watched = nullptr;
}

}  // namespace triton_spirv::cpu
