#include "torch/device_names.h"

#include <cstdint>

#include "torch/device_guard.h"

namespace triton_spirv {
namespace {

// A torch.device: c10::Device behind what all objects have.
struct DeviceObject {
  PyObject head;
  std::int8_t type;
  std::int8_t index;
};

std::int8_t renamed_type = -1;
std::int8_t name_type = -1;
richcmpfunc own_compare = nullptr;
hashfunc own_hash = nullptr;

DeviceObject renamed(PyObject* device) {
  DeviceObject copy = *reinterpret_cast<DeviceObject*>(device);
  if (copy.type == renamed_type) copy.type = name_type;
  return copy;
}

PyObject* compare_devices(PyObject* first, PyObject* second, int operation) {
  if (Py_TYPE(first) != Py_TYPE(second)) return own_compare(first, second, operation);
  DeviceObject one = renamed(first);
  DeviceObject two = renamed(second);
  return own_compare(&one.head, &two.head, operation);
}

Py_hash_t hash_device(PyObject* device) {
  DeviceObject copy = renamed(device);
  return own_hash(&copy.head);
}

}  // namespace

bool take_name(const pybind11::object& other, const pybind11::object& own, bool whether) {
  constexpr std::int8_t kIndex = 3;
  PyTypeObject* const devices = Py_TYPE(other.ptr());
  if (devices != Py_TYPE(own.ptr()) || devices->tp_basicsize != Py_ssize_t{sizeof(DeviceObject)}) return false;
  const auto* const theirs = reinterpret_cast<DeviceObject*>(other.ptr());
  const auto* const ours = reinterpret_cast<DeviceObject*>(own.ptr());
  if (theirs->index != kIndex || ours->index != kIndex) return false;
  share_guard(theirs->type, ours->type, whether);
  renamed_type = theirs->type;
  name_type = ours->type;
  if (devices->tp_richcompare != compare_devices) {
    own_compare = devices->tp_richcompare;
    own_hash = devices->tp_hash;
  }
  devices->tp_richcompare = whether ? compare_devices : own_compare;
  devices->tp_hash = whether ? hash_device : own_hash;
  PyType_Modified(devices);
  return true;
}

}  // namespace triton_spirv
