#include "torch/few_elements.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "gil.h"
#include "python_api.h"
#include "torch/holding.h"
#include "torch/torch_tensors.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

// Bytes of a tensor without gaps whose elements are in the order of its sizes; 0 of others.
uint64_t contiguous_bytes(const TensorView& view) {
  int64_t elements = 1;
  for (int32_t d = view.dims; d-- > 0;) {
    if (view.sizes[d] != 1 && view.strides[d] != elements) return 0;
    elements *= view.sizes[d];
  }
  return static_cast<uint64_t>(elements) * view.bytes;
}

bool have_one_form(const TensorView& one, const TensorView& other) {
  return one.code == other.code && one.bytes == other.bytes && one.dims == other.dims &&
         std::memcmp(one.sizes, other.sizes, static_cast<std::size_t>(one.dims) * sizeof(int64_t)) == 0;
}

template <typename Number>
Number number_at(const std::byte* data) {
  Number value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

// The object of an element; null for a type that Python has no such numbers of.
PyObject* object_of(const std::byte* data, uint8_t code, uint8_t bytes) {
  switch (code << 8 | bytes) {
    case kIntCode << 8 | 1:
      return PyLong_FromLong(number_at<int8_t>(data));
    case kIntCode << 8 | 2:
      return PyLong_FromLong(number_at<int16_t>(data));
    case kIntCode << 8 | 4:
      return PyLong_FromLong(number_at<int32_t>(data));
    case kIntCode << 8 | 8:
      return PyLong_FromLongLong(number_at<int64_t>(data));
    case kUnsignedCode << 8 | 1:
      return PyLong_FromLong(number_at<uint8_t>(data));
    case kFloatCode << 8 | 4:
      return PyFloat_FromDouble(static_cast<double>(number_at<float>(data)));
    case kFloatCode << 8 | 8:
      return PyFloat_FromDouble(number_at<double>(data));
    case kBoolCode << 8 | 1:
      return py::bool_(number_at<uint8_t>(data) != 0).release().ptr();
    case kBfloatCode << 8 | 2: {
      const std::array<uint16_t, 2> halves{0, number_at<uint16_t>(data)};  // those of a float, of which it is the upper
      return PyFloat_FromDouble(static_cast<double>(number_at<float>(reinterpret_cast<const std::byte*>(&halves))));
    }
    default:
      return nullptr;
  }
}

bool has_object(uint8_t code, uint8_t bytes) {
  const std::array<std::byte, sizeof(double)> zero{};
  return py::reinterpret_steal<py::object>(object_of(zero.data(), code, bytes)).ptr() != nullptr;
}

}  // namespace

std::shared_ptr<Device> FewElements::device(int32_t index) const {
  return checked(PyObject_CallOneArg(native_of.ptr(), py::int_(index).ptr())).cast<std::shared_ptr<Device>>();
}

void FewElements::download(void* host, const TensorView& view, uint64_t bytes) const {
  const py::int_ index(view.device);
  for (const py::handle check : before_reading) checked(PyObject_CallOneArg(check.ptr(), index.ptr()));
  const std::shared_ptr<Device> from = device(view.device);
  {
    const WithoutGil unlocked;
    from->download(static_cast<std::byte*>(host), view.address, bytes);
  }
  from->let_go();
}

bool FewElements::copy(Passed* stack) const {
  const Handle from = handle(stack[0]), to = handle(stack[1]);
  const bool uploads = number(torch().aoti_torch_get_device_type, to) == our_device_type();
  const int32_t cpu = cpu_device_type();
  TensorView source, target;
  if (!read(from, uploads ? cpu : our_device_type(), source) || !read(to, uploads ? our_device_type() : cpu, target))
    return false;
  const uint64_t bytes = have_one_form(source, target) ? contiguous_bytes(source) : 0;
  if (bytes == 0 || bytes > most || contiguous_bytes(target) != bytes) return false;
  if (source.address == 0 || target.address == 0 || torch().is_neg(from) || torch().is_neg(to)) return false;
  const OwnedTensor read(from);
  OwnedTensor written(to);
  auto* const host = reinterpret_cast<std::byte*>(uploads ? source.address : target.address);
  if (uploads) {
    const std::shared_ptr<Device> on = device(target.device);
    const Holding lock(writing);
    const WithoutGil unlocked;
    on->upload(target.address, host, bytes);
  } else {
    download(host, source, bytes);
  }
  stack[0] = passed(written.release());
  return true;
}

py::object FewElements::item(const py::object& tensor) const {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  TensorView view;
  if (!reader.read(tensor.ptr(), view) || !has_object(view.code, view.bytes) ||
      checked(PyObject_CallMethodNoArgs(tensor.ptr(), is_neg)).ptr() != Py_False)
    return checked(PyObject_CallOneArg(read_otherwise.ptr(), tensor.ptr()));
  std::array<std::byte, sizeof(double)> data;
  download(data.data(), view, view.bytes);
  return checked(object_of(data.data(), view.code, view.bytes));
}

}  // namespace triton_spirv
