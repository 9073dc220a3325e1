// DLPack: capsules over device memory, from which torch makes tensors, and views of torch's tensors.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "memory_pool.h"

namespace triton_spirv {

// Makes a DLManagedTensor over `memory`, as dlpack_capsule() does.
void* dlpack_tensor(std::shared_ptr<Allocation> memory, std::vector<int64_t> shape, std::vector<int64_t> strides,
                    int device, uint8_t code, uint8_t bits);

// Makes the capsule of such a DLManagedTensor, which takes it.
pybind11::object dlpack_capsule(void* managed);

// Frees it, from any thread.
void free_dlpack_tensor(void* tensor);

// Makes the capsule of a tensor over `memory` on extension device `device`, with strides in elements. The tensor's
// storage keeps the memory alive. `code` and `bits` describe the element type as in DLPack.
pybind11::object dlpack_capsule(std::shared_ptr<Allocation> memory, std::vector<int64_t> shape,
                                std::vector<int64_t> strides, int device, uint8_t code, uint8_t bits);

// A tensor of real numbers on an extension device, with strides in elements. The tensor owns `sizes` and `strides`.
struct TensorView {
  uint64_t address;
  int32_t device;
  uint8_t code, bytes;  // the element type, as in DLPack
  int32_t dims;
  const int64_t* sizes;
  const int64_t* strides;
};

// Reads tensors through torch.Tensor.__dlpack_c_exchange_api__ (DLPack 1.3, `DLPackExchangeAPI`). One read takes some
// 30 ns.
class TensorReader {
 public:
  // Raises ValueError if the capsule is not of that kind.
  explicit TensorReader(const pybind11::object& capsule);

  // Returns false for a tensor of another kind. `tensor` must be a torch tensor.
  bool read(PyObject* tensor, TensorView& view) const;

 private:
  int (*read_)(void*, void*);
};

}  // namespace triton_spirv
