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
  switch (fault.signal) {
    case Fault::kRefused:
      return fault.text;
    case SIGSEGV:
      if (fault.overflow)
        return "needs more stack than its thread has (SIGSEGV at " + hexadecimal(fault.address) +
               "); smaller blocks need less";
      if (fault.code == SEGV_ACCERR && fault.has_address)
        return (fault.wrote ? "wrote to address " : "accessed address ") + hexadecimal(fault.address) +
               ", where this process may not do so (SIGSEGV)" + kCheckBounds;
      return access_text(fault, "SIGSEGV");
    case SIGBUS:
      return access_text(fault, "SIGBUS");
    case SIGFPE:
      return "divided an integer by zero, or the smallest integer by -1 (SIGFPE)";
    case SIGILL:
      return "reached an instruction that this processor does not have (SIGILL); was it compiled for another one?";
  }
  return "ended with signal " + std::to_string(fault.signal);
}

}  // namespace triton_spirv::cpu
