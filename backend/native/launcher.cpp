#include "launcher.h"

#include <pybind11/stl.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "gil.h"
#include "recording.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

constexpr uint32_t kInlineBlockBytes = 256;
// The largest number of programs on an axis of a split grid, because program ids are 32-bit signed integers.
constexpr long long kMostPrograms = std::numeric_limits<int32_t>::max();

void call_hook(PyObject* hook, PyObject* launch_metadata) {
  if (is_idle_hook(hook)) return;
  const py::object result = py::reinterpret_steal<py::object>(PyObject_CallOneArg(hook, launch_metadata));
  if (!result) throw py::error_already_set();
}

// Reads copies from Python, each (host address, bytes, staging buffer, device buffer, offset, write back).
std::vector<StagedCopy> staged_copies(const py::object& given) {
  std::vector<StagedCopy> copies;
  for (const auto& [host, bytes, staging, device, offset, write_back] :
       given.cast<std::vector<std::tuple<uint64_t, uint64_t, Buffer*, Buffer*, uint64_t, bool>>>()) {
    if (bytes > staging->bytes() || offset > device->bytes() || bytes > device->bytes() - offset)
      throw py::value_error("a staged range is larger than its buffer");
    copies.push_back({reinterpret_cast<std::byte*>(host), bytes, staging, device, offset, write_back});
  }
  return copies;
}

}  // namespace

bool is_idle_hook(PyObject* hook) {
  if (hook == Py_None) return true;
  static PyTypeObject* chain = nullptr;  // Triton's own type; other types may define "calls" differently
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
            Py_XDECREF(static_cast<PyObject*>(kept));
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

Launcher::Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name,
                   const std::string& place, bool indirect, int device_index, py::object resolver, py::object oversized)
    : device_(std::move(device)),
      plan_(std::move(plan)),
      name_(std::move(name)),
      label_(kernel_label((place.empty() ? "" : place + ": ") + "kernel '" + name_ + "'")),
      indirect_(indirect),
      device_index_(device_index),
      resolver_(std::move(resolver)),
      oversized_(std::move(oversized)),
      places_(plan_->pointer_count(), kHost) {
  const uint32_t limit = device_->limits().block_bytes;
  if (!indirect_ && plan_->bytes() > limit)
    throw std::invalid_argument("kernel '" + name_ + "' has " + std::to_string(plan_->bytes()) +
                                " bytes of arguments, more than the device's " + std::to_string(limit) +
                                " bytes of push constants; compile it with indirect arguments");
}

Launcher::Grid Launcher::read_grid(const py::args& args) const {
  if (args.size() < kKernelArguments)
    throw py::type_error("a launch needs a grid, stream, function, metadata and hooks before the arguments");
  Grid grid;
  for (int axis = 0; axis < 3; ++axis) {
    PyObject* item = PyTuple_GET_ITEM(args.ptr(), kGrid + axis);
    const auto size_of_axis = [&] { return "kernel '" + name_ + "': the grid size of axis " + std::to_string(axis); };
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(item));
    if (!number) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
      PyErr_Clear();
      throw py::type_error(size_of_axis() + " must be an integer, not " + py::repr(item).cast<std::string>());
    }
    int overflow = 0;
    const long long size = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    const uint32_t limit = device_->limits().grid[axis];
    if (overflow < 0 || (overflow == 0 && size < 0)) throw py::value_error(size_of_axis() + " is negative");
    if (overflow > 0 || size > kMostPrograms || (size > limit && oversized_.is_none()))
      throw py::value_error(
          size_of_axis() + ", " + py::str(number).cast<std::string>() + ", is past the device's limit of " +
          std::to_string(oversized_.is_none() ? limit : kMostPrograms) + "; use another axis, or larger blocks");
    grid.sizes[axis] = static_cast<uint32_t>(size);
    grid.is_empty |= size == 0;
    grid.is_oversized |= size > limit;
  }
  return grid;
}

std::array<uint32_t, 3> Launcher::grid_limits() const { return device_->limits().grid; }

KernelHandle Launcher::kernel(const py::args& args) const {
  PyObject* function = PyTuple_GET_ITEM(args.ptr(), kFunction);
  const unsigned long long handle = PyLong_AsUnsignedLongLong(function);
  if (handle == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw py::error_already_set();
  if (handle == 0) throw py::value_error("kernel '" + name_ + "' is not loaded");
  return handle;
}

py::dict Launcher::transfers() const {
  if (transfers_) return transfers_;
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
  recording->note(kernel(args), shared(plan_->tensors(args.ptr(), kKernelArguments, block)));
}

uint8_t Launcher::pack(const py::args& args, std::byte* block, Place* places) const {
  const auto named = [this](const std::exception& error) { return "kernel '" + name_ + "': " + error.what(); };
  try {
    return plan_->pack(args.ptr(), kKernelArguments, block, device_index_, places);
  } catch (const py::value_error& error) {
    throw py::value_error(named(error));
  } catch (const py::type_error& error) {
    throw py::type_error(named(error));
  }
}

void Launcher::refuse_gone(const py::args& args, const std::byte* block, const std::vector<Place>& places) const {
  device_->check_usable();
  const py::list pointers = plan_->pointers(args.ptr(), kKernelArguments, block, places.data());
  const std::vector<std::string> names = plan_->pointer_names();
  for (std::size_t index = 0; index < places.size(); ++index) {
    const auto address = py::tuple(pointers[index])[1].cast<uint64_t>();
    if (places[index] == kDevice && address != 0 && Device::is_gone(address, 1))
      throw py::value_error("kernel '" + name_ + "': argument '" + names[index] +
                            "' is in memory of the device as it was before it failed: make the tensor again");
  }
}

bool Launcher::takes_too_long(const py::args& args, const Grid& grid) const {
  if (!device_->is_bounded() || oversized_.is_none()) return false;
  const uint64_t programs = uint64_t{grid.sizes[0]} * grid.sizes[1] * grid.sizes[2];
  const KernelHandle handle = kernel(args);
  if (std::isinf(device_->expected(handle, programs))) {
    const double seconds = PyFloat_AsDouble(py::object(oversized_.attr("expected")(*args)).ptr());
    if (seconds < 0 && PyErr_Occurred()) throw py::error_already_set();
    device_->expect(handle, programs, seconds);
  }
  return device_->parts(handle, programs) > 1;
}

void Launcher::launch(const py::args& args) {
  device_->let_go();
  const Grid grid = read_grid(args);
  const bool runs = !grid.is_empty;
  if (runs && (grid.is_oversized || takes_too_long(args, grid))) {
    transfers_ = oversized_(*args);
    return;
  }
  Block block(plan_->bytes());
  std::vector<Place> places(plan_->pointer_count(), kHost);
  uint8_t all = 0;
  if (runs) all = pack(args, block.data(), places.data());
  const bool resolved = (all & (kCuda | kReadOnly)) || ((all & kHost) && !device_->host_addresses());
  if (runs && (all & kDevice) && Device::any_left()) refuse_gone(args, block.data(), places);
  PyObject* const metadata = PyTuple_GET_ITEM(args.ptr(), kLaunchMetadata);
  PyObject* const enter = PyTuple_GET_ITEM(args.ptr(), kEnterHook);
  PyObject* const leave = PyTuple_GET_ITEM(args.ptr(), kExitHook);
  py::list pointers;
  py::dict ways;
  if (resolved) {
    pointers = plan_->pointers(args.ptr(), kKernelArguments, block.data(), places.data());
    if (Recording::current(*device_) != nullptr) resolver_.attr("refuse_capture")(pointers);
  } else if (runs) {
    places_ = std::move(places);
    transfers_ = py::object();
  }
  if (metadata != Py_None && !(is_idle_hook(enter) && is_idle_hook(leave)) && PyObject_HasAttrString(metadata, "data"))
    py::handle(metadata).attr("data")["transfers"] = resolved ? ways : transfers();
  call_hook(enter, metadata);
  if (runs) {
    const Dispatch dispatch{
        kernel(args), {grid.sizes[0], grid.sizes[1], grid.sizes[2]}, block.data(), plan_->bytes(), indirect_, label_};
    note(args, block.data());
    if (resolved)
      run_resolved(args, dispatch, block.data(), pointers, ways);
    else
      run(args, dispatch, all);
  }
  call_hook(leave, metadata);
}

void Launcher::launch_again(KernelHandle kernel, const std::array<uint32_t, 3>& grid, const std::byte* block) const {
  const Dispatch dispatch{kernel, {grid[0], grid[1], grid[2]}, block, plan_->bytes(), indirect_, nullptr};
  if (device_->launched_at_once(dispatch)) return;  // to give up Python's lock takes as long
  const WithoutGil unlocked;
  device_->launch(dispatch);
}

void Launcher::run(const py::args& args, const Dispatch& dispatch, uint8_t places) {
  const WithoutGil unlocked;
  if ((places & kDevice) && !(places & kHost))
    device_->launch(dispatch);
  else
    device_->run(dispatch, {}, [&args] {
      const WithGil locked;
      return shared(args);
    });
}

void Launcher::run_resolved(const py::args& args, const Dispatch& dispatch, std::byte* block, const py::list& pointers,
                            const py::dict& transfers) {
  const py::object resolution = resolver_.attr("resolve")(args, pointers, transfers);
  uint64_t submission = 0;
  try {
    plan_->replace_pointers(block, resolution.attr("addresses").cast<std::vector<uint64_t>>());
    const std::vector<StagedCopy> copies = staged_copies(resolution.attr("copies"));
    const py::object incoming = resolution.attr("incoming");
    if (incoming.is_none()) {
      const WithoutGil unlocked;
      device_->run(dispatch, copies);
    } else {
      const auto [semaphore, value] = incoming.cast<std::pair<std::size_t, uint64_t>>();
      const ExternalWait wait{semaphore, value};
      const WithoutGil unlocked;
      submission = device_->launch(dispatch, &wait);
    }
  } catch (...) {
    resolution.attr("fail")();
    throw;
  }
  resolution.attr("end")(submission);
  transfers_ = transfers;
}

}  // namespace triton_spirv
