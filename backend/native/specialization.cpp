#include "specialization.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

struct Rule {
  PyObject* fallback;
  int64_t range;
};

// Made once and never freed.
struct TensorNames {
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* untyped_storage = PyUnicode_InternFromString("untyped_storage");
  PyObject* nbytes = PyUnicode_InternFromString("nbytes");
  PyObject* ptr_range = PyUnicode_InternFromString("ptr_range");
  PyObject* align = PyUnicode_InternFromString("align");
  PyObject* keys[4] = {PyUnicode_InternFromString(""), PyUnicode_InternFromString("D"), PyUnicode_InternFromString("S"),
                       PyUnicode_InternFromString("DS")};
};

const TensorNames& tensor_names() {
  static const TensorNames* value = new TensorNames;
  return *value;
}

constexpr int kAligned = 1, kSmall = 2;
constexpr uint64_t kAlignment = 16;

// Whether an object answered with a number.
enum class Answer { kNumber, kOther, kError };

// Calls `method` of `object` without arguments, and accepts an int in the range of int64_t. An object without the
// method answers otherwise.
Answer ask(PyObject* object, PyObject* method, int64_t& number) {
  const py::object bound = py::reinterpret_steal<py::object>(PyObject_GetAttr(object, method));
  if (!bound) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return Answer::kError;
    PyErr_Clear();
    return Answer::kOther;
  }
  const py::object result = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(bound.ptr()));
  if (!result) return Answer::kError;
  if (!PyLong_CheckExact(result.ptr())) return Answer::kOther;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(result.ptr(), &overflow);
  return overflow == 0 ? Answer::kNumber : Answer::kOther;
}

// Whether objects of the type have no attributes of their own.
bool has_no_other_attributes(const PyTypeObject* type) {
  // The getter of `object` is PyObject_GenericGetAttr, but that name is another function here (python_calls.cpp).
  return type->tp_getattro == PyBaseObject_Type.tp_getattro && type->tp_dictoffset == 0;
}

Answer memory_bytes(PyObject* tensor, int64_t& bytes) {
  PyTypeObject* const type = Py_TYPE(tensor);
  if (_PyType_Lookup(type, tensor_names().untyped_storage) != nullptr) {
    const py::object storage =
        py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(tensor, tensor_names().untyped_storage));
    return storage ? ask(storage.ptr(), tensor_names().nbytes, bytes) : Answer::kError;
  }
  if (has_no_other_attributes(type) && _PyType_Lookup(type, tensor_names().ptr_range) != nullptr)
    return ask(tensor, tensor_names().ptr_range, bytes);
  return Answer::kOther;
}

void free_rule(PyObject* capsule) {
  auto* rule = static_cast<Rule*>(PyCapsule_GetPointer(capsule, nullptr));
  Py_XDECREF(rule->fallback);
  delete rule;
}

PyObject* specialize(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const Rule& rule = *static_cast<Rule*>(PyCapsule_GetPointer(self, nullptr));
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  const bool known =
      named == 0 || (named == 1 && PyUnicode_Compare(PyTuple_GET_ITEM(keywords, 0), tensor_names().align) == 0);
  if (count < 1 || count + named > 2 || !known)
    return PyObject_Vectorcall(rule.fallback, args, static_cast<std::size_t>(count), keywords);  // reports the error
  PyObject* const tensor = args[0];
  const int align = count + named == 2 ? PyObject_IsTrue(args[1]) : 0;
  if (align < 0) return nullptr;
  int64_t bytes = 0, address = 1;
  Answer answer = memory_bytes(tensor, bytes);
  if (answer == Answer::kNumber && align != 0) answer = ask(tensor, tensor_names().data_ptr, address);
  if (answer == Answer::kError) return nullptr;
  if (answer == Answer::kOther)
    return PyObject_Vectorcall(rule.fallback, args, static_cast<std::size_t>(count), keywords);
  const bool aligned = align != 0 && static_cast<uint64_t>(address) % kAlignment == 0;
  PyObject* const key = tensor_names().keys[(aligned ? kAligned : 0) | (bytes <= rule.range ? kSmall : 0)];
  Py_INCREF(key);
  return key;
}

PyMethodDef specialize_method = {
    "get_tensor_specialization", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(specialize)),
    METH_FASTCALL | METH_KEYWORDS,
    "get_tensor_specialization(tensor, align=False)\n--\n\n"
    "``D``: the address is a multiple of 16. ``S``: the tensor's allocation is smaller than 2 GiB."};

}  // namespace

py::object tensor_specialization(py::object fallback, int64_t range) {
  auto* rule = new Rule{fallback.release().ptr(), range};
  const py::object capsule = py::reinterpret_steal<py::object>(PyCapsule_New(rule, nullptr, free_rule));
  if (!capsule) throw py::error_already_set();
  const py::object function = py::reinterpret_steal<py::object>(PyCFunction_New(&specialize_method, capsule.ptr()));
  if (!function) throw py::error_already_set();
  return function;
}

}  // namespace triton_spirv
