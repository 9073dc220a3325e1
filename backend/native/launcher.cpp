#include "launcher.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

constexpr uint32_t kInlineBlockBytes = 256;

void call_hook(PyObject* hook, PyObject* launch_metadata) {
  if (hook == Py_None) return;
  const py::object result = py::reinterpret_steal<py::object>(PyObject_CallOneArg(hook, launch_metadata));
  if (!result) throw py::error_already_set();
}

}  // namespace

Launcher::Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name, bool indirect)
    : device_(std::move(device)), plan_(std::move(plan)), name_(std::move(name)), indirect_(indirect) {
  const uint32_t limit = device_->limits().maxPushConstantsSize;
  if (!indirect_ && plan_->bytes() > limit)
    throw std::invalid_argument("kernel '" + name_ + "' has " + std::to_string(plan_->bytes()) +
                                " bytes of arguments, more than the device's " + std::to_string(limit) +
                                " bytes of push constants; compile it with indirect arguments");
}

bool Launcher::read_grid(const py::args& args, uint32_t grid[3]) const {
  if (args.size() < kKernelArguments)
    throw py::type_error("a launch needs a grid, stream, function, metadata and hooks before the arguments");
  bool empty = false;
  for (int axis = 0; axis < 3; ++axis) {
    PyObject* item = PyTuple_GET_ITEM(args.ptr(), kGrid + axis);
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(item));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    const long long size = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    const uint32_t limit = device_->limits().maxComputeWorkGroupCount[axis];
    if (overflow < 0 || (overflow == 0 && size < 0))
      throw py::value_error("kernel '" + name_ + "': the grid size of axis " + std::to_string(axis) + " is negative");
    if (overflow > 0 || size > static_cast<long long>(limit))
      throw py::value_error("kernel '" + name_ + "': the grid size of axis " + std::to_string(axis) + ", " +
                            py::str(number).cast<std::string>() + ", is past the device's limit of " +
                            std::to_string(limit) + "; use another axis, or larger blocks");
    grid[axis] = static_cast<uint32_t>(size);
    empty |= size == 0;
  }
  return !empty;
}

void Launcher::run(const py::args& args, const uint32_t grid[3], const std::vector<uint64_t>* pointers,
                   const std::vector<StagedCopy>& copies) const {
  std::byte inline_block[kInlineBlockBytes] = {};
  std::vector<std::byte> long_block;
  std::byte* block = inline_block;
  if (plan_->bytes() > kInlineBlockBytes) {
    long_block.resize(plan_->bytes());
    block = long_block.data();
  }
  plan_->pack(args.ptr(), kKernelArguments, block, nullptr);
  if (pointers != nullptr) plan_->replace_pointers(block, *pointers);
  PyObject* function = PyTuple_GET_ITEM(args.ptr(), kFunction);
  const unsigned long long handle = PyLong_AsUnsignedLongLong(function);
  if (handle == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw py::error_already_set();
  if (handle == 0) throw py::value_error("kernel '" + name_ + "' is not loaded");
  const Dispatch dispatch{
      reinterpret_cast<VkPipeline>(handle), {grid[0], grid[1], grid[2]}, block, plan_->bytes(), indirect_};
  const py::gil_scoped_release unlocked;
  device_->run(dispatch, copies);
}

py::dict Launcher::transfers() const {
  py::dict ways;
  for (const std::string& name : plan_->pointer_names()) ways[py::str(name)] = "zero-copy";
  return ways;
}

void Launcher::launch(const py::args& args) const {
  uint32_t grid[3];
  const bool runs = read_grid(args, grid);
  PyObject* const metadata = PyTuple_GET_ITEM(args.ptr(), kLaunchMetadata);
  if (metadata != Py_None && PyObject_HasAttrString(metadata, "data"))
    py::handle(metadata).attr("data")["transfers"] = transfers();
  call_hook(PyTuple_GET_ITEM(args.ptr(), kEnterHook), metadata);
  if (runs) run(args, grid, nullptr, {});
  call_hook(PyTuple_GET_ITEM(args.ptr(), kExitHook), metadata);
}

void Launcher::launch_staged(const py::args& args, const std::vector<uint64_t>& pointers,
                             const std::vector<StagedCopy>& copies) const {
  uint32_t grid[3];
  if (read_grid(args, grid)) run(args, grid, &pointers, copies);
}

}  // namespace triton_spirv
