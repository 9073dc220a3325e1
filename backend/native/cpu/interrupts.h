// Ctrl-C during a launch that runs on the main thread, where nobody can look at signals.
#pragma once

#include "cpu/kernel.h"

namespace triton_spirv::cpu {

// From now on SIGINT also tells the launch to stop. The handler that was there before is called first. It does nothing
// if it was called before, or if another launch is watched.
void take_interrupts(Launch& launch);
// Ends that, if it began.
void leave_to_program();

}  // namespace triton_spirv::cpu
