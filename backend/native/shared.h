// What torch's module (torch/) uses of this one is visible outside of it.
#pragma once

#define USED_BY_TORCH __attribute__((visibility("default")))
