#include "torch/casting.h"

#include <iterator>
#include <utility>

#include "python_api.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

// DLPack's codes (DLDataTypeCode).
constexpr uint8_t kFloat = 2, kBfloat = 4;
// Codes and sizes of CastingContext::types, in the same order.
constexpr uint8_t kCodes[] = {kFloat, kBfloat, kFloat}, kBytes[] = {2, 2, 4};

// Makes this thread skip the autocast's key during its lifetime.
class WithoutAutocast {
 public:
  explicit WithoutAutocast(const CastingContext& shared) : shared_(shared) {
    was_excluded_ = checked(PyObject_CallOneArg(shared.excluded.ptr(), shared.key.ptr())).ptr() == Py_True;
    if (!was_excluded_) exclude(Py_True);
  }
  ~WithoutAutocast() {
    if (was_excluded_) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    exclude(Py_False);
    PyErr_Restore(type, value, trace);
  }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  void exclude(PyObject* whether) {
    Py_XDECREF(PyObject_CallFunctionObjArgs(shared_.exclude.ptr(), shared_.key.ptr(), whether, nullptr));
  }

  const CastingContext& shared_;
  bool was_excluded_;
};

PyObject* to_method() {
  static PyObject* const name = PyUnicode_InternFromString("to");
  return name;
}

// Whether a value neither is a tensor nor contains one.
bool is_plain(PyObject* value) {
  if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
      PyUnicode_CheckExact(value))
    return true;
  const bool is_list = PyList_CheckExact(value);
  if (!is_list && !PyTuple_CheckExact(value)) return false;
  for (Py_ssize_t index = 0; index < Py_SIZE(value); ++index) {
    if (!is_plain(is_list ? PyList_GET_ITEM(value, index) : PyTuple_GET_ITEM(value, index))) return false;
  }
  return true;
}

}  // namespace

Casting::Casting(const CastingContext* shared, py::object op, py::object choose)
    : shared_(shared), op_(std::move(op)), choose_(std::move(choose)) {}

Casting::Type Casting::type_of(const py::object& chosen) const {
  for (std::size_t index = 0; index < std::size(kCodes); ++index) {
    if (PyTuple_GET_ITEM(shared_->types.ptr(), index) == chosen.ptr())
      return {chosen.ptr(), kCodes[index], kBytes[index]};
  }
  return {chosen.ptr(), 0, 0};
}

py::object Casting::cast(PyObject* value, const Type& type) const {
  if (is_plain(value)) return py::reinterpret_borrow<py::object>(value);
  TensorView view;
  if (!contains(shared_->tensor_types, Py_TYPE(value)) || !shared_->reader.read(value, view))
    return checked(PyObject_CallFunctionObjArgs(shared_->cast.ptr(), value, type.object, nullptr));
  const bool is_float = view.code == kBfloat || (view.code == kFloat && view.bytes < sizeof(double));
  if (!is_float || (view.code == type.code && view.bytes == type.bytes))
    return py::reinterpret_borrow<py::object>(value);
  return checked(PyObject_CallMethodOneArg(value, to_method(), type.object));
}

py::object Casting::operator()(const py::args& args, const py::kwargs& kwargs) const {
  const WithoutAutocast without(*shared_);
  const py::object chosen = checked(PyObject_CallFunctionObjArgs(choose_.ptr(), args.ptr(), kwargs.ptr(), nullptr));
  const Type type = type_of(chosen);
  py::tuple given(args.size());
  for (std::size_t index = 0; index < args.size(); ++index)
    given[index] = cast(PyTuple_GET_ITEM(args.ptr(), index), type);
  py::dict named;
  Py_ssize_t position = 0;
  PyObject *name, *value;
  while (PyDict_Next(kwargs.ptr(), &position, &name, &value)) named[name] = cast(value, type);
  return checked(PyObject_Call(op_.ptr(), given.ptr(), named.ptr()));
}

}  // namespace triton_spirv
