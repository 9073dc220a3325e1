#include "arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <tuple>

namespace py = pybind11;

namespace triton_spirv {
namespace {

// Names of element types in torch, NumPy and ml_dtypes, and in Triton's signatures.
constexpr std::pair<std::string_view, std::string_view> kElementNames[] = {
    {"bool", "u1"},
    {"int1", "u1"},
    {"uint1", "u1"},
    {"i1", "u1"},
    {"half", "fp16"},
    {"float16", "fp16"},
    {"bfloat16", "bf16"},
    {"float", "fp32"},
    {"float32", "fp32"},
    {"double", "fp64"},
    {"float64", "fp64"},
    {"int8", "i8"},
    {"int16", "i16"},
    {"int", "i32"},
    {"int32", "i32"},
    {"int64", "i64"},
    {"uint8", "u8"},
    {"uint16", "u16"},
    {"uint32", "u32"},
    {"uint64", "u64"},
    {"float8_e4m3fn", "fp8e4nv"},
    {"float8e4nv", "fp8e4nv"},
    {"float8_e5m2", "fp8e5"},
    {"float8e5", "fp8e5"},
    {"float8e4b15", "fp8e4b15"},
    {"float8_e4m3fnuz", "fp8e4b8"},
    {"float8e4b8", "fp8e4b8"},
    {"float8_e5m2fnuz", "fp8e5b16"},
    {"float8e5b16", "fp8e5b16"},
    // Inductor passes scales and pairs of four bits to kernels that take them as bytes.
    {"float8_e8m0fnu", "u8"},
    {"float4_e2m1fn_x2", "u8"},
};

std::string_view canonical_element(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  for (const auto& [from, to] : kElementNames) {
    if (from == name) return to;
  }
  return name;
}

// Attribute and method names, made once and never freed.
struct Names {
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* device = PyUnicode_InternFromString("device");
  PyObject* type = PyUnicode_InternFromString("type");
  PyObject* numel = PyUnicode_InternFromString("numel");
  PyObject* index = PyUnicode_InternFromString("index");
};

const Names& names() {
  static const Names* value = new Names;
  return *value;
}

std::string text(PyObject* object) {
  const py::object string = py::reinterpret_steal<py::object>(PyObject_Str(object));
  if (!string) {
    PyErr_Clear();
    return "?";
  }
  return string.cast<std::string>();
}

std::string quoted(const Argument& argument) { return "argument '" + argument.name + "' (" + argument.type + ")"; }

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

// Replaces the pending Python error by one that names the argument.
[[noreturn]] void raise_for(const Argument& argument, PyObject* object, const char* wanted) {
  const bool overflow = PyErr_ExceptionMatches(PyExc_OverflowError);
  PyErr_Clear();
  if (overflow) {
    PyErr_SetString(PyExc_OverflowError, (quoted(argument) + ": " + text(object) + " does not fit the type").c_str());
    throw py::error_already_set();
  }
  throw py::type_error(quoted(argument) + ": " + wanted + " is needed, not " + type_name(object));
}

// Returns attribute `name` of `object`, or null without an error if it is missing.
py::object attribute(PyObject* object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object, name);
  if (value == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::error_already_set();
    PyErr_Clear();
  }
  return py::reinterpret_steal<py::object>(value);
}

// Whether the argument's last tensor was on the same device. torch makes a new device object for each access.
bool accepted_before(const Argument& argument, PyObject* device, int wanted) {
  if (argument.device == nullptr || argument.device_index != wanted) return false;
  if (device == argument.device) return true;
  if (Py_TYPE(device) != Py_TYPE(argument.device)) return false;
  const py::object known = py::reinterpret_borrow<py::object>(argument.device);  // the comparison may run Python code
  const int same = PyObject_RichCompareBool(device, known.ptr(), Py_EQ);
  if (same < 0) throw py::error_already_set();
  return same != 0;
}

// Returns the place of the tensor's memory. Raises ValueError for a device that these kernels cannot reach.
Place place_of(const Argument& argument, PyObject* object, int wanted) {
  const py::object is_cpu = attribute(object, names().is_cpu);
  if (is_cpu.ptr() == Py_True) return kHost;
  const py::object device = attribute(object, names().device);
  if (!is_cpu && !device) return kHost;
  if (device && accepted_before(argument, device.ptr(), wanted)) return kDevice;
  const py::object type = device ? attribute(device.ptr(), names().type) : py::object();
  if (type && PyUnicode_Check(type.ptr())) {
    if (PyUnicode_CompareWithASCIIString(type.ptr(), "cpu") == 0) return kHost;
    if (PyUnicode_CompareWithASCIIString(type.ptr(), "cuda") == 0) return kCuda;
    if (PyUnicode_CompareWithASCIIString(type.ptr(), "read-only") == 0) return kReadOnly;
    if (PyUnicode_CompareWithASCIIString(type.ptr(), "spirv") == 0) {
      const py::object index = attribute(device.ptr(), names().index);
      const long number = index && PyLong_Check(index.ptr()) ? PyLong_AsLong(index.ptr()) : wanted;
      if (wanted < 0 || number == wanted) {
        const py::object before = py::reinterpret_steal<py::object>(argument.device);
        argument.device = py::object(device).release().ptr();
        argument.device_index = wanted;
        return kDevice;
      }
      throw py::value_error(quoted(argument) + ": the tensor is on device '" + text(device.ptr()) +
                            "', the kernel was launched on 'spirv:" + std::to_string(wanted) +
                            "': move the tensor there with .to(), or launch with that device as the current one");
    }
  }
  if (type && PyUnicode_Check(type.ptr()) && PyUnicode_CompareWithASCIIString(type.ptr(), "meta") == 0)
    throw py::value_error(
        quoted(argument) +
        ": the tensor is on device 'meta', where tensors have no memory: make it on 'spirv' or 'cpu'");
  throw py::value_error(quoted(argument) + ": the tensor is on device '" +
                        (device ? text(device.ptr()) : std::string("?")) +
                        "'; the SPIR-V backend takes tensors on 'spirv' and 'cpu': pass tensor.cpu()");
}

// Whether a tensor has elements but no memory: a fake tensor, or a tensor whose storage was resized to nothing.
void check_memory(const Argument& argument, PyObject* object) {
  const py::object numel = attribute(object, names().numel);
  if (!numel || !PyCallable_Check(numel.ptr())) return;
  const py::object count = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(numel.ptr()));
  if (!count) throw py::error_already_set();
  if (!PyLong_Check(count.ptr()) || PyObject_IsTrue(count.ptr()) != 1) return;
  throw py::value_error(quoted(argument) + ": the " + type_name(object) +
                        " has elements and no memory: its data_ptr() is 0");
}

void check_range(const Argument& argument, PyObject* object, bool fits) {
  if (fits) return;
  PyErr_SetString(PyExc_OverflowError, (quoted(argument) + ": " + text(object) + " does not fit the type").c_str());
  throw py::error_already_set();
}

template <typename T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

void write_integer(std::byte* at, uint64_t value, uint32_t bytes) { std::memcpy(at, &value, bytes); }  // little-endian

void write_scalar(const Argument& argument, PyObject* object, std::byte* at) {
  switch (argument.packing) {
    case Packing::kSigned:
    case Packing::kUnsigned:
    case Packing::kBool: {
      const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(object));
      if (!number) raise_for(argument, object, "an integer");
      uint64_t value;
      if (argument.packing == Packing::kSigned) {
        const long long wide = PyLong_AsLongLong(number.ptr());
        if (wide == -1 && PyErr_Occurred()) raise_for(argument, object, "an integer");
        const int spare = 64 - 8 * static_cast<int>(argument.bytes);
        value = static_cast<uint64_t>(wide);
        check_range(argument, object, static_cast<int64_t>(value << spare) >> spare == wide);
      } else {
        value = PyLong_AsUnsignedLongLong(number.ptr());
        if (value == static_cast<uint64_t>(-1) && PyErr_Occurred()) raise_for(argument, object, "an integer");
        check_range(argument, object, value <= ~uint64_t{0} >> (64 - 8 * argument.bytes));
        if (argument.packing == Packing::kBool) value &= 1;  // as upstream: the lowest bit of the byte counts
      }
      write_integer(at, value, argument.bytes);
      return;
    }
    default: {
      const double value = PyFloat_AsDouble(object);
      if (value == -1.0 && PyErr_Occurred()) raise_for(argument, object, "a number");
      if (argument.packing == Packing::kDouble) write(at, value);
      if (argument.packing == Packing::kFloat) write(at, static_cast<float>(value));
      if (argument.packing == Packing::kHalf) write(at, round_to_16_bits(value, 5, 10));
      if (argument.packing == Packing::kBFloat) write(at, round_to_16_bits(value, 8, 7));
    }
  }
}

}  // namespace

uint16_t round_to_16_bits(double value, int exponent_bits, int mantissa_bits) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  if (std::isnan(value)) return sign | infinity | static_cast<uint16_t>(1 << (mantissa_bits - 1));
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent;
  std::frexp(value, &exponent);                 // |value| in [2^(exponent-1), 2^exponent)
  exponent = std::max(exponent - 1, 1 - bias);  // the smallest normal exponent if value is subnormal
  // The scaling is exact in double, so nearbyint() rounds once (to nearest even, the default mode).
  const double units = std::nearbyint(std::ldexp(std::fabs(value), mantissa_bits - exponent));
  if (exponent > bias) return sign | infinity;
  // A carry out of the mantissa correctly raises the exponent, up to infinity.
  const auto bits = static_cast<uint32_t>(units) + (static_cast<uint32_t>(exponent + bias - 1) << mantissa_bits);
  return sign | static_cast<uint16_t>(std::min<uint32_t>(bits, infinity));
}

ArgumentPlan::ArgumentPlan(
    const std::vector<std::tuple<std::vector<std::size_t>, std::string, std::string, uint32_t>>& entries,
    uint32_t bytes)
    : bytes_(bytes) {
  for (const auto& [path, name, type, offset] : entries) {
    Argument argument{path, name, type, "", Packing::kPointer, 0, kPointerBytes};
    if (path.empty()) throw std::invalid_argument("argument '" + name + "' has no position");
    if (type.rfind('*', 0) == 0) {
      ++pointer_count_;
      argument.element = canonical_element(type.rfind("*k", 0) == 0 ? std::string_view(type).substr(2)
                                                                    : std::string_view(type).substr(1));
    } else {
      const auto* found = std::find_if(std::begin(kScalarTypes), std::end(kScalarTypes),
                                       [&](const ScalarType& scalar) { return scalar.name == type; });
      if (found == std::end(kScalarTypes))
        throw std::invalid_argument("argument '" + name + "': a value of type " + type +
                                    " cannot be passed to a SPIR-V kernel");
      argument.packing = found->packing;
      argument.bytes = found->bytes;
    }
    if (offset > bytes || argument.bytes > bytes - offset)
      throw std::invalid_argument("argument '" + name + "' lies outside of the argument block");
    argument.offset = offset;
    arguments_.push_back(std::move(argument));
  }
}

ArgumentPlan::~ArgumentPlan() {
  for (Argument& argument : arguments_) {
    Py_XDECREF(argument.dtype);
    Py_XDECREF(argument.device);
  }
}

PyObject* ArgumentPlan::find(const Argument& argument, PyObject* args, Py_ssize_t first) const {
  PyObject* at = args;
  std::size_t skip = static_cast<std::size_t>(first);
  for (const std::size_t index : argument.path) {
    if (!PyTuple_Check(at) || index + skip >= static_cast<std::size_t>(PyTuple_GET_SIZE(at)))
      throw py::type_error(quoted(argument) + " was not passed");
    at = PyTuple_GET_ITEM(at, index + skip);
    skip = 0;
  }
  return at;
}

void ArgumentPlan::check_element(const Argument& argument, PyObject* object) const {
  py::object dtype = attribute(object, names().dtype);
  if (!dtype || dtype.ptr() == argument.dtype || argument.element == "void") return;
  const std::string name = text(dtype.ptr());
  if (canonical_element(name) != argument.element)
    throw py::type_error(quoted(argument) + ": the kernel was compiled for elements of type " + argument.element +
                         ", not " + name);
  Py_XDECREF(argument.dtype);
  argument.dtype = dtype.release().ptr();
}

uint64_t ArgumentPlan::pointer(const Argument& argument, PyObject* object, int device, Place& place) const {
  if (PyLong_Check(object)) {
    place = kAddress;
    const uint64_t address = PyLong_AsUnsignedLongLong(object);
    if (address == static_cast<uint64_t>(-1) && PyErr_Occurred()) raise_for(argument, object, "an address");
    return address;
  }
  if (object == Py_None) throw py::type_error(quoted(argument) + ": a tensor is needed, not None");
  const py::object address = py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object, names().data_ptr));
  if (!address) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::error_already_set();
    raise_for(argument, object, "a tensor (an object with data_ptr())");
  }
  const uint64_t value = PyLong_AsUnsignedLongLong(address.ptr());
  if (value == static_cast<uint64_t>(-1) && PyErr_Occurred())
    raise_for(argument, object, "a tensor whose data_ptr() is an address");
  place = place_of(argument, object, device);
  check_element(argument, object);
  if (value == 0) check_memory(argument, object);
  return value;
}

uint8_t ArgumentPlan::pack(PyObject* args, Py_ssize_t first, std::byte* block, int device, Place* places) const {
  uint8_t all = 0;
  for (const Argument& argument : arguments_) {
    PyObject* object = find(argument, args, first);
    if (argument.packing != Packing::kPointer) {
      write_scalar(argument, object, block + argument.offset);
      continue;
    }
    write(block + argument.offset, pointer(argument, object, device, *places));
    all |= *places++;
  }
  return all;
}

void ArgumentPlan::replace_pointers(std::byte* block, const std::vector<uint64_t>& pointers) const {
  std::size_t next = 0;
  for (const Argument& argument : arguments_) {
    if (argument.packing != Packing::kPointer) continue;
    if (next == pointers.size()) throw std::invalid_argument("too few addresses for the pointer arguments");
    write(block + argument.offset, pointers[next++]);
  }
  if (next != pointers.size()) throw std::invalid_argument("too many addresses for the pointer arguments");
}

py::list ArgumentPlan::tensors(PyObject* args, Py_ssize_t first, const std::byte* block) const {
  py::list found;
  for (const Argument& argument : arguments_) {
    if (argument.packing != Packing::kPointer) continue;
    uint64_t address;
    std::memcpy(&address, block + argument.offset, sizeof(address));
    found.append(py::make_tuple(py::reinterpret_borrow<py::object>(find(argument, args, first)), address));
  }
  return found;
}

py::list ArgumentPlan::pointers(PyObject* args, Py_ssize_t first, const std::byte* block, const Place* places) const {
  py::list found;
  for (const py::handle pair : tensors(args, first, block))
    found.append(py::make_tuple(pair[py::int_(0)], pair[py::int_(1)], place_name(*places++)));
  return found;
}

std::vector<std::string> ArgumentPlan::pointer_names() const {
  std::vector<std::string> found;
  for (const Argument& argument : arguments_) {
    if (argument.packing == Packing::kPointer) found.push_back(argument.name);
  }
  return found;
}

}  // namespace triton_spirv
