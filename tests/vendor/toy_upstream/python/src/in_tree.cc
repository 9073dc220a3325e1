#include "nanobind/nanobind.h"

void init_triton_nvidia(nanobind::module_ &m) { m.attributes.push_back("nvidia"); }
void init_triton_amd(nanobind::module_ &m) { m.attributes.push_back("amd"); }
void init_triton_proton(nanobind::module_ &m) { m.attributes.push_back("proton"); }
