// What upstream's build links into libtriton for a plugin. The SPIR-V backend adds nothing there: it is Python, and
// its C++ is the module _native.
namespace nanobind {
class module_;
}

void init_triton_spirv(nanobind::module_&) {}
