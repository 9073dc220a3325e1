// Upstream's build links this file into libtriton for a plugin. The SPIR-V backend adds nothing there: it is written in
// Python, and its C++ is in the module _native.
namespace nanobind {
class module_;
}

void init_triton_spirv(nanobind::module_&) {}
