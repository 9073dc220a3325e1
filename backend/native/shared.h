// What torch's module (torch/) uses of this one is visible outside of it.
#pragma once

#if defined(_WIN32)
#define USED_BY_TORCH  // the linker exports everything (CMakeLists.txt)
#else
#define USED_BY_TORCH __attribute__((visibility("default")))
#endif
