#include "torch/torch_tensors.h"

namespace triton_spirv {

bool is_defined(Handle tensor) {
  bool defined = false;
  check(torch().aoti_torch_is_defined(tensor, &defined));
  return defined;
}

int32_t number(int (*function)(Handle, int32_t*), Handle tensor) {
  int32_t value = 0;
  check(function(tensor, &value));
  return value;
}

int64_t dimensions(Handle tensor) {
  int64_t value = 0;
  check(torch().aoti_torch_get_dim(tensor, &value));
  return value;
}

int32_t our_device_type() {
  static const int32_t type = torch().aoti_torch_device_type_privateuse1();
  return type;
}

int32_t cpu_device_type() {
  static const int32_t type = torch().aoti_torch_device_type_cpu();
  return type;
}

bool read(Handle tensor, int32_t device_type, TensorView& view) {
  static const int32_t strided = torch().aoti_torch_layout_strided();
  if (number(torch().aoti_torch_get_device_type, tensor) != device_type ||
      number(torch().aoti_torch_get_layout, tensor) != strided)
    return false;
  const int32_t type = number(torch().aoti_torch_get_dtype, tensor);
  for (const ElementType& one : kElementTypes) {
    if (one.torch != type) continue;
    if (one.code == kComplexCode && torch().is_conj(tensor)) return false;
    view.code = one.code;
    view.bytes = one.bytes;
    view.device = number(torch().aoti_torch_get_device_index, tensor);
    view.dims = static_cast<int32_t>(dimensions(tensor));
    int64_t *sizes = nullptr, *strides = nullptr;
    void* address = nullptr;
    check(torch().aoti_torch_get_sizes(tensor, &sizes));
    check(torch().aoti_torch_get_strides(tensor, &strides));
    check(torch().aoti_torch_get_data_ptr(tensor, &address));
    view.sizes = sizes;
    view.strides = strides;
    view.address = reinterpret_cast<uint64_t>(address);
    return true;
  }
  return false;
}

}  // namespace triton_spirv
