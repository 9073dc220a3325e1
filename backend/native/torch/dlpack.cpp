// DLPack capsules over device memory, from which torch makes tensors.
#include "torch/dlpack.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace triton_spirv {
namespace {

// The structures of DLPack 0.x (dmlc/dlpack). They are DLPack's ABI.
struct DlDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DlDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

struct DlExchangeApi {
  uint32_t major, minor;
  DlExchangeApi* earlier;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  int (*tensor_from_object)(void* object, void* tensor);  // a result other than 0 means that a Python error is set
};

constexpr uint32_t kExchangeMajor = 1;
constexpr const char* kExchangeName = "dlpack_exchange_api";
// DLDataTypeCode: signed and unsigned integers, IEEE floats, bfloat16, bool.
constexpr uint8_t kRealCodes[] = {0, 1, 2, 4, 6};

constexpr int32_t kDlExtDev = 12;  // torch's PrivateUse1
constexpr const char* kCapsuleName = "dltensor";

struct Owned {
  DlManagedTensor managed{};
  std::vector<int64_t> shape, strides;
  std::shared_ptr<Allocation> memory;
};

void release(DlManagedTensor* managed) {
  // A tensor may outlive the interpreter. Its memory is then freed at the end of the process.
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  delete static_cast<Owned*>(managed->context);
  PyGILState_Release(state);
}

void destroy_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kCapsuleName)) return;  // a tensor has taken it
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  managed->deleter(managed);
}

}  // namespace

void* dlpack_tensor(std::shared_ptr<Allocation> memory, std::vector<int64_t> shape, std::vector<int64_t> strides,
                    int device, uint8_t code, uint8_t bits) {
  if (shape.size() != strides.size()) throw std::invalid_argument("a tensor has as many strides as sizes");
  auto owned = std::make_unique<Owned>();
  owned->shape = std::move(shape);
  owned->strides = std::move(strides);
  owned->memory = std::move(memory);
  DlTensor& tensor = owned->managed.tensor;
  // A tensor without memory has address 0, like every empty tensor.
  tensor.data = reinterpret_cast<void*>(owned->memory->bytes == 0 ? 0 : owned->memory->address());
  tensor.device = {kDlExtDev, device};
  tensor.ndim = static_cast<int32_t>(owned->shape.size());
  tensor.dtype = {code, bits, 1};
  tensor.shape = owned->shape.data();
  tensor.strides = owned->strides.data();
  owned->managed.context = owned.get();
  owned->managed.deleter = release;
  return &owned.release()->managed;
}

void free_dlpack_tensor(void* tensor) { release(static_cast<DlManagedTensor*>(tensor)); }

py::object dlpack_capsule(std::shared_ptr<Allocation> memory, std::vector<int64_t> shape, std::vector<int64_t> strides,
                          int device, uint8_t code, uint8_t bits) {
  return dlpack_capsule(dlpack_tensor(std::move(memory), std::move(shape), std::move(strides), device, code, bits));
}

py::object dlpack_capsule(void* managed) {
  PyObject* const capsule = PyCapsule_New(managed, kCapsuleName, destroy_capsule);
  if (capsule == nullptr) {
    free_dlpack_tensor(managed);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

TensorReader::TensorReader(const py::object& capsule) {
  const auto* const api =
      static_cast<const DlExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), kExchangeName));  // sets ValueError
  if (api == nullptr) throw py::error_already_set();
  if (api->major != kExchangeMajor)
    throw py::value_error("DLPack's exchange API has version " + std::to_string(api->major));
  read_ = api->tensor_from_object;
}

bool TensorReader::read(PyObject* tensor, TensorView& view) const {
  DlTensor found{};
  if (read_(tensor, &found) != 0) {
    PyErr_Clear();  // it has no memory, or DLPack does not know its element type
    return false;
  }
  const bool is_real =
      std::find(std::begin(kRealCodes), std::end(kRealCodes), found.dtype.code) != std::end(kRealCodes);
  if (found.device.device_type != kDlExtDev || !is_real || found.dtype.lanes != 1) return false;
  view = {reinterpret_cast<uint64_t>(found.data) + found.byte_offset,
          found.device.device_id,
          found.dtype.code,
          static_cast<uint8_t>(found.dtype.bits / 8),
          found.ndim,
          found.shape,
          found.strides};
  return true;
}

}  // namespace triton_spirv
