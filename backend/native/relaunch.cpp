#include "relaunch.h"

#include <algorithm>
#include <cmath>

#include "launcher.h"
#include "python_api.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

// Made once and never freed.
struct RunNames {
  PyObject* active = PyUnicode_InternFromString("active");
  PyObject* add_stages_inspection_hook = PyUnicode_InternFromString("add_stages_inspection_hook");
  PyObject* compilation = PyUnicode_InternFromString("compilation");
  PyObject* debug = PyUnicode_InternFromString("debug");
  PyObject* device_caches = PyUnicode_InternFromString("device_caches");
  PyObject* fpsan = PyUnicode_InternFromString("fpsan_homomorphic_casts");
  PyObject* function = PyUnicode_InternFromString("function");
  PyObject* get_current_device = PyUnicode_InternFromString("get_current_device");
  PyObject* get_current_stream = PyUnicode_InternFromString("get_current_stream");
  PyObject* instrumentation = PyUnicode_InternFromString("instrumentation_mode");
  PyObject* launch_enter_hook = PyUnicode_InternFromString("launch_enter_hook");
  PyObject* launch_exit_hook = PyUnicode_InternFromString("launch_exit_hook");
  PyObject* packed_metadata = PyUnicode_InternFromString("packed_metadata");
  PyObject* pre_run_hooks = PyUnicode_InternFromString("pre_run_hooks");
  PyObject* run = PyUnicode_InternFromString("run");
  PyObject* runtime = PyUnicode_InternFromString("runtime");
  PyObject* used_global_vals = PyUnicode_InternFromString("used_global_vals");
};

const RunNames& run_names() {
  static const RunNames* value = new RunNames;
  return *value;
}

// The value of a key as a borrowed reference, or null if the key is missing.
PyObject* item(PyObject* dict, PyObject* key) {
  PyObject* const value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return value;
}

bool equal(PyObject* a, PyObject* b) {
  const int result = PyObject_RichCompareBool(a, b, Py_EQ);
  if (result < 0) throw py::error_already_set();
  return result == 1;
}

// Whether two constants are the same to a kernel. 1, 1.0 and True are different, and so are 0.0 and -0.0.
bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || !equal(a, b)) return false;
  return !PyFloat_Check(a) || std::signbit(PyFloat_AS_DOUBLE(a)) == std::signbit(PyFloat_AS_DOUBLE(b));
}

bool same_constants(PyObject* a, PyObject* b) {
  if (!PyTuple_CheckExact(a) || !PyTuple_CheckExact(b) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(a); ++index) {
    if (!same_constant(PyTuple_GET_ITEM(a, index), PyTuple_GET_ITEM(b, index))) return false;
  }
  return true;
}

// The value of the keyword at a place. Keywords stay in order.
PyObject* keyword(const Relaunch::Launch& launch, const py::dict& keywords, Py_ssize_t place) {
  return item(keywords.ptr(), PyTuple_GET_ITEM(launch.keywords.ptr(), place));
}

PyObject* argument(const Relaunch::Launch& launch, const Source& source, const py::tuple& args,
                   const py::dict& keywords) {
  switch (source.kind) {
    case Source::Kind::kPosition:
      return PyTuple_GET_ITEM(args.ptr(), source.place);
    case Source::Kind::kKeyword:
      return keyword(launch, keywords, source.place);
    default:
      return source.value.ptr();
  }
}

bool has_keywords(const py::dict& keywords, const py::tuple& names) {
  if (PyDict_GET_SIZE(keywords.ptr()) != PyTuple_GET_SIZE(names.ptr())) return false;
  Py_ssize_t position = 0, place = 0;
  PyObject *name, *value;
  while (PyDict_Next(keywords.ptr(), &position, &name, &value)) {
    PyObject* const known = PyTuple_GET_ITEM(names.ptr(), place++);
    if (name != known && PyUnicode_Compare(name, known) != 0) return false;
  }
  return true;
}

// Places in the tuple that a JITFunction keeps for each device: the kernels by key, and the backend.
constexpr Py_ssize_t kKernels = 0, kBackend = 3;

// That tuple, or null if the function no longer has one.
py::object device_cache(const py::object& function, const py::object& device) {
  const py::object caches = get(function, run_names().device_caches);
  if (!PyDict_Check(caches.ptr())) return {};
  PyObject* const cache = item(caches.ptr(), device.ptr());
  if (cache == nullptr || !PyTuple_Check(cache) || PyTuple_GET_SIZE(cache) <= kBackend) return {};
  return py::reinterpret_borrow<py::object>(cache);
}

// Whether the globals that the kernel uses still have the values that it was compiled with: {(name, …): (value,
// globals)}.
bool has_same_globals(const py::object& function) {
  const py::object used = get(function, run_names().used_global_vals);
  if (!PyDict_Check(used.ptr())) return false;
  if (PyDict_GET_SIZE(used.ptr()) == 0) return true;
  const py::list entries = py::reinterpret_steal<py::list>(PyDict_Items(used.ptr()));  // comparing may run any code
  for (const py::handle entry : entries) {
    PyObject* const name = PyTuple_GET_ITEM(PyTuple_GET_ITEM(entry.ptr(), 0), 0);
    PyObject* const known = PyTuple_GET_ITEM(entry.ptr(), 1);
    PyObject* const now = item(PyTuple_GET_ITEM(known, 1), name);
    if (now == nullptr) return false;
    if (now != PyTuple_GET_ITEM(known, 0) && !equal(now, PyTuple_GET_ITEM(known, 0))) return false;
  }
  return true;
}

}  // namespace

Relaunch::Relaunch(py::object config, py::object driver, py::object knobs, py::object specialize,
                   std::vector<Parameter> parameters)
    : config_(std::move(config)),
      driver_(std::move(driver)),
      knobs_(std::move(knobs)),
      specialize_(std::move(specialize)),
      parameters_(std::move(parameters)) {}

py::tuple Relaunch::read_knobs(const py::object& function) const {
  const py::object runtime = get(knobs_, run_names().runtime);
  if (get(runtime, run_names().add_stages_inspection_hook).ptr() != Py_None) return py::tuple();
  if (!is_idle_hook(get(runtime, run_names().launch_enter_hook).ptr()) ||
      !is_idle_hook(get(runtime, run_names().launch_exit_hook).ptr()))
    return py::tuple();
  const py::object hooks = get(function, run_names().pre_run_hooks);
  if (!PyList_CheckExact(hooks.ptr()) || PyList_GET_SIZE(hooks.ptr()) != 0) return py::tuple();
  py::object debug = get(function, run_names().debug);
  const int is_set = PyObject_IsTrue(debug.ptr());
  if (is_set < 0) throw py::error_already_set();
  if (is_set == 0) debug = get(runtime, run_names().debug);
  const py::object compilation = get(knobs_, run_names().compilation);
  return py::make_tuple(debug, get(compilation, run_names().instrumentation), get(compilation, run_names().fpsan));
}

bool Relaunch::is_like(const Launch& launch, PyObject* backend, const py::tuple& args, const py::dict& keywords) const {
  if (PyTuple_GET_SIZE(args.ptr()) != launch.positions || !has_keywords(keywords, launch.keywords)) return false;
  for (const auto& [place, value] : launch.options) {
    if (!same_constant(keyword(launch, keywords, place), value.ptr())) return false;
  }
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    PyObject* const given = argument(launch, launch.sources[index], args, keywords);
    const Condition& condition = launch.parameters[index];
    if (condition.kind == Condition::Kind::kConstant) {
      if (!same_constant(given, condition.value.ptr())) return false;
      continue;
    }
    const Parameter& parameter = parameters_[index];
    PyObject* const passed[] = {backend, given, parameter.is_const.ptr(), parameter.specialize.ptr(),
                                parameter.align.ptr()};
    const py::object specialized = checked(PyObject_Vectorcall(specialize_.ptr(), passed, 5, nullptr));
    if (!same_constants(specialized.ptr(), condition.value.ptr())) return false;
  }
  return true;
}

py::object Relaunch::launch(const py::object& function, const py::object& grid, const py::tuple& args,
                            const py::dict& keywords) {
  std::shared_ptr<const Launch> found;
  py::object stream, kernel;
  try {
    if (launches_.empty() || get(config_, run_names().active).ptr() != driver_.ptr()) return py::none();
    const py::tuple knobs = read_knobs(function);
    if (knobs.empty() || !has_same_globals(function)) return py::none();
    const py::object device = checked(PyObject_CallMethodNoArgs(driver_.ptr(), run_names().get_current_device));
    const py::object cache = device_cache(function, device);
    if (!cache) return py::none();
    PyObject* const backend = PyTuple_GET_ITEM(cache.ptr(), kBackend);
    for (std::size_t index = 0; index < launches_.size() && !found; ++index) {
      const std::shared_ptr<const Launch> launch = launches_[index];  // other launches may be added meanwhile
      if (equal(launch->device.ptr(), device.ptr()) && same_constants(launch->knobs.ptr(), knobs.ptr()) &&
          is_like(*launch, backend, args, keywords))
        found = launch;
    }
    if (!found) return py::none();
    kernel = py::reinterpret_borrow<py::object>(item(PyTuple_GET_ITEM(cache.ptr(), kKernels), found->key.ptr()));
    if (!kernel) return py::none();
    const auto place = std::find(launches_.begin(), launches_.end(), found);
    if (place != launches_.end()) std::rotate(launches_.begin(), place, place + 1);
    stream = checked(PyObject_CallMethodOneArg(driver_.ptr(), run_names().get_current_stream, device.ptr()));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return py::none();  // Triton's own code runs into it again and reports it
  }
  py::object sizes = grid;
  if (PyCallable_Check(grid.ptr())) {
    py::dict bound;
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      bound[parameters_[index].name] = py::handle(argument(*found, found->sources[index], args, keywords));
    }
    sizes = py::reinterpret_steal<py::object>(PyObject_CallOneArg(grid.ptr(), bound.ptr()));
    if (!sizes) {
      if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) throw py::error_already_set();
      PyErr_Clear();
      return py::none();  // Triton's own code calls the grid again, and says which names a launch has
    }
  }
  const Py_ssize_t axes = PyObject_Size(sizes.ptr());
  if (axes < 0 && !PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
  if (axes < 1 || axes > 3) {
    PyErr_Clear();
    return py::none();  // Triton's own code says what is wrong with the grid
  }
  py::tuple passed(kKernelArguments + static_cast<Py_ssize_t>(parameters_.size()));
  for (Py_ssize_t axis = 0; axis < 3; ++axis)
    passed[kGrid + axis] = axis == 0 || axis < axes ? checked(PySequence_GetItem(sizes.ptr(), axis)) : py::int_(1);
  const py::object run = get(kernel, run_names().run);  // this may load the kernel
  passed[kStream] = stream;
  passed[kFunction] = get(kernel, run_names().function);
  passed[kKernelMetadata] = get(kernel, run_names().packed_metadata);
  for (const LaunchArgument none : {kLaunchMetadata, kEnterHook, kExitHook}) passed[none] = py::none();
  for (std::size_t index = 0; index < parameters_.size(); ++index)
    passed[kKernelArguments + static_cast<Py_ssize_t>(index)] =
        py::handle(argument(*found, found->sources[index], args, keywords));
  checked(PyObject_Call(run.ptr(), passed.ptr(), nullptr));
  return kernel;
}

void Relaunch::add(std::shared_ptr<const Launch> launch) {
  ++added_;
  if (launches_.size() == kMostKept) launches_.pop_back();
  launches_.insert(launches_.begin(), std::move(launch));
}

bool Relaunch::knows(const py::object& device, const py::object& key, Py_ssize_t positions,
                     const py::tuple& keywords) const {
  return std::any_of(launches_.begin(), launches_.end(), [&](const auto& launch) {
    return launch->positions == positions && equal(launch->device.ptr(), device.ptr()) &&
           equal(launch->key.ptr(), key.ptr()) && equal(launch->keywords.ptr(), keywords.ptr());
  });
}

}  // namespace triton_spirv
