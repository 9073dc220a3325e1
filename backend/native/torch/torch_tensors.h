// torch's tensors as its stable C interface passes them.
#pragma once

#include <cstdint>
#include <memory>

#include "torch/dlpack.h"
#include "torch/torch_interface.h"

namespace triton_spirv {

// torch's element types (c10::ScalarType, as in its files), with DLPack's codes and bytes.
struct ElementType {
  int32_t torch;
  uint8_t code, bytes;
};
inline constexpr ElementType kElementTypes[] = {{0, 1, 1},  {1, 0, 1},  {2, 0, 2},  {3, 0, 4},  {4, 0, 8},
                                                {5, 2, 2},  {6, 2, 4},  {7, 2, 8},  {9, 5, 8},  {10, 5, 16},
                                                {11, 6, 1}, {15, 4, 2}, {27, 1, 2}, {28, 1, 4}, {29, 1, 8}};
inline constexpr int32_t kInt64 = 4, kFloat16 = 5, kFloat32 = 6, kFloat64 = 7, kBfloat16 = 15;
inline constexpr uint8_t kIntCode = 0, kUnsignedCode = 1, kFloatCode = 2, kBfloatCode = 4, kComplexCode = 5,
                         kBoolCode = 6;

// A reference that is given back.
struct GiveBack {
  void operator()(Handle tensor) const { torch().aoti_torch_delete_tensor_object(tensor); }
};
using OwnedTensor = std::unique_ptr<void, GiveBack>;

bool is_defined(Handle tensor);
// What a function of the interface says of the tensor.
int32_t number(int (*function)(Handle, int32_t*), Handle tensor);
int64_t dimensions(Handle tensor);
// Numbers of torch's kinds of devices: ours, and the processor's.
int32_t our_device_type();
int32_t cpu_device_type();
// Returns false unless it is a strided tensor of numbers on that kind of device, and not lazily conjugated.
bool read(Handle tensor, int32_t device_type, TensorView& view);

}  // namespace triton_spirv
