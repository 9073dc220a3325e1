#include "launcher.h"

#include <cstring>

#include "gil.h"
#include "recording.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

constexpr uint32_t kInlineBlockBytes = 256;

void call_hook(PyObject* hook, PyObject* launch_metadata) {
  if (is_idle_hook(hook)) return;
  const py::object result = py::reinterpret_steal<py::object>(PyObject_CallOneArg(hook, launch_metadata));
  if (!result) throw py::error_already_set();
}

}  // namespace

bool is_idle_hook(PyObject* hook) {
  if (hook == Py_None) return true;
  static PyTypeObject* chain = nullptr;  // Triton's own; another type may have calls for other ends
  PyTypeObject* const type = Py_TYPE(hook);
  if (type != chain) {
    if (std::strcmp(type->tp_name, "HookChain") != 0) return false;
    const py::object module =
        py::reinterpret_steal<py::object>(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
    if (!module || !PyUnicode_Check(module.ptr()) ||
        PyUnicode_CompareWithASCIIString(module.ptr(), "triton.knobs") != 0) {
      PyErr_Clear();
      return false;
    }
    chain = type;
    Py_INCREF(type);
  }
  static PyObject* const name = PyUnicode_InternFromString("calls");
  const py::object calls = py::reinterpret_steal<py::object>(PyObject_GetAttr(hook, name));
  if (!calls) throw py::error_already_set();
  return PyList_CheckExact(calls.ptr()) && PyList_GET_SIZE(calls.ptr()) == 0;
}

std::shared_ptr<void> shared(const py::object& object) {
  Py_XINCREF(object.ptr());
  return {object.ptr(), [](void* kept) {
            const WithGil locked;
            outlive([kept] { Py_XDECREF(static_cast<PyObject*>(kept)); });  // may run anything
          }};
}

class Launcher::Block {
 public:
  explicit Block(uint32_t bytes) {
    if (bytes > kInlineBlockBytes) long_.resize(bytes);
  }
  std::byte* data() { return long_.empty() ? inline_ : long_.data(); }

 private:
  std::byte inline_[kInlineBlockBytes] = {};
  std::vector<std::byte> long_;
};

Launcher::Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name, bool indirect,
                   int device_index, py::object copying)
    : device_(std::move(device)),
      plan_(std::move(plan)),
      name_(std::move(name)),
      indirect_(indirect),
      device_index_(device_index),
      copying_(std::move(copying)),
      places_(plan_->pointer_count(), kHost) {
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

VkPipeline Launcher::pipeline(const py::args& args) const {
  PyObject* function = PyTuple_GET_ITEM(args.ptr(), kFunction);
  const unsigned long long handle = PyLong_AsUnsignedLongLong(function);
  if (handle == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw py::error_already_set();
  if (handle == 0) throw py::value_error("kernel '" + name_ + "' is not loaded");
  return reinterpret_cast<VkPipeline>(handle);
}

py::dict Launcher::transfers() const {
  if (copied_) return copying_.attr("transfers");
  py::dict ways;
  std::size_t next = 0;
  for (const std::string& name : plan_->pointer_names()) {
    const Place place = places_[next++];
    ways[py::str(name)] = place == kHost ? "zero-copy" : place_name(place);
  }
  return ways;
}

void Launcher::note(const py::args& args, const std::byte* block) const {
  Recording* const recording = Recording::current(*device_);
  if (recording == nullptr) return;
  recording->keep(shared(args));
  recording->note(pipeline(args), shared(plan_->tensors(args.ptr(), kKernelArguments, block)));
}

void Launcher::launch(const py::args& args) {
  device_->let_go();
  uint32_t grid[3];
  const bool runs = read_grid(args, grid);
  Block block(plan_->bytes());
  uint8_t places = 0;
  if (runs) places = plan_->pack(args.ptr(), kKernelArguments, block.data(), device_index_, places_.data(), nullptr);
  copied_ = (places & (kCuda | kReadOnly)) || ((places & kHost) && !device_->host_addresses());
  if (copied_) {
    copying_(*args);
    return;
  }
  PyObject* const metadata = PyTuple_GET_ITEM(args.ptr(), kLaunchMetadata);
  PyObject* const enter = PyTuple_GET_ITEM(args.ptr(), kEnterHook);
  PyObject* const leave = PyTuple_GET_ITEM(args.ptr(), kExitHook);
  if (metadata != Py_None && !(is_idle_hook(enter) && is_idle_hook(leave)) && PyObject_HasAttrString(metadata, "data"))
    py::handle(metadata).attr("data")["transfers"] = transfers();
  call_hook(enter, metadata);
  if (runs) {
    const Dispatch dispatch{pipeline(args), {grid[0], grid[1], grid[2]}, block.data(), plan_->bytes(), indirect_};
    note(args, block.data());
    const WithoutGil unlocked;
    if ((places & kDevice) && !(places & kHost))
      device_->launch(dispatch);
    else
      device_->run(dispatch, {}, [&args] {
        const WithGil locked;
        return shared(args);
      });
  }
  call_hook(leave, metadata);
}

void Launcher::launch_staged(const py::args& args, const std::vector<uint64_t>& pointers,
                             const std::vector<StagedCopy>& copies) {
  uint32_t grid[3];
  if (!read_grid(args, grid)) return;
  Block block(plan_->bytes());
  const Dispatch dispatch = prepare(args, grid, pointers, block.data());
  const WithoutGil unlocked;
  device_->run(dispatch, copies);
}

uint64_t Launcher::launch_addressed(const py::args& args, const std::vector<uint64_t>& pointers, std::size_t incoming,
                                    uint64_t value) {
  uint32_t grid[3];
  if (!read_grid(args, grid)) return 0;
  Block block(plan_->bytes());
  const Dispatch dispatch = prepare(args, grid, pointers, block.data());
  const ExternalWait wait = device_->incoming(incoming, value);
  const WithoutGil unlocked;
  return device_->launch(dispatch, &wait);
}

Dispatch Launcher::prepare(const py::args& args, const uint32_t grid[3], const std::vector<uint64_t>& pointers,
                           std::byte* block) const {
  plan_->pack(args.ptr(), kKernelArguments, block, device_index_, nullptr, nullptr);
  note(args, block);
  plan_->replace_pointers(block, pointers);
  return {pipeline(args), {grid[0], grid[1], grid[2]}, block, plan_->bytes(), indirect_};
}

}  // namespace triton_spirv
