// What torch's module (torch/) uses of this one is visible outside of it.
#pragma once

#define TRITON_SPIRV_SHARED __attribute__((visibility("default")))
