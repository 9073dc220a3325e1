#include "nanobind/nanobind.h"

void init_triton_native_toy(nanobind::module_ &m) { m.attributes.push_back("native_toy"); }
