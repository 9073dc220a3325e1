// What torch asks the device about devices and streams, answered without Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triton_spirv {

// Replaces those functions of the guard registered for PrivateUse1 that call Python. torch calls them where an
// exception of Python is set, and if Python raises then, the process ends. `functions`: all virtual functions of
// c10::impl::DeviceGuardImplInterface in order, but its destructor. False, with nothing replaced, without one of them.
bool guard_without_python(const std::vector<std::string>& functions);

// Has the guard of one kind of devices answer for another, too, or ends that. Nothing changes where it has none.
void share_guard(std::int8_t other, std::int8_t own, bool whether);

}  // namespace triton_spirv
