// In the place of the other files of this folder, where the CPU device is left out. Windows: its kernels are ELF objects
// that follow the calling convention of Unix, and their faults are signals.
#include "device_kinds.h"

namespace triton_spirv {

bool set_cpu_error(const DeviceError&) { return false; }
void bind_cpu(pybind11::module_&) {}

}  // namespace triton_spirv
