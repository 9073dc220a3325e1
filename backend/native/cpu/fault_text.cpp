#include "cpu/fault_text.h"

#include <signal.h>

#include <cstdio>

namespace triton_spirv::cpu {
namespace {

std::string hexadecimal(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// What the system calls faults of memory, of arithmetic and of instructions.
#if defined(_WIN32)
constexpr const char *kMemory = "an access violation", *kStack = "a stack overflow",
                     *kArithmetic = "an integer exception", *kInstruction = "an illegal instruction";
#else
constexpr const char *kMemory = "SIGSEGV", *kStack = "SIGSEGV", *kArithmetic = "SIGFPE", *kInstruction = "SIGILL";
#endif

constexpr const char* kCheckBounds =
    "; run it with TRITON_SPIRV_CHECK_BOUNDS=1, which names the tensor, or look for a missing mask";

std::string access_text(const Fault& fault, const char* signal) {
  const std::string access = !fault.knows_access ? "accessed" : fault.wrote ? "wrote to" : "read from";
  if (!fault.has_address) return access + " an address that no process can have (" + signal + ")" + kCheckBounds;
  return access + " address " + hexadecimal(fault.address) + ", which is no memory of this process (" + signal + ")" +
         kCheckBounds;
}

}  // namespace

std::string fault_text(const Fault& fault) {
  const auto named = [](const char* name) { return std::string(" (") + name + ")"; };
  switch (fault.signal) {
    case Fault::kRefused:
      return fault.text;
    case SIGSEGV:
      if (fault.overflow)
        return "needs more stack than its thread has (" + std::string(kStack) + " at " + hexadecimal(fault.address) +
               "); smaller blocks need less";
      if (fault.forbidden)
        return (fault.wrote ? "wrote to address " : "accessed address ") + hexadecimal(fault.address) +
               ", where this process may not do so" + named(kMemory) + kCheckBounds;
      return access_text(fault, kMemory);
#if defined(SIGBUS)
    case SIGBUS:
      return access_text(fault, "SIGBUS");
#endif
    case SIGFPE:
      return "divided an integer by zero, or the smallest integer by -1" + named(kArithmetic);
    case SIGILL:
      return "reached an instruction that this processor does not have" + named(kInstruction) +
             "; was it compiled for another one?";
  }
  return "ended with signal " + std::to_string(fault.signal);
}

}  // namespace triton_spirv::cpu
