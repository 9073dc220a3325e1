// DLPack: capsules over device memory, which torch makes tensors of, and what torch's tensors are.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "memory_pool.h"

namespace triton_spirv {

// A capsule of a tensor over `memory` on extension device `device`, with strides in elements. The memory is kept as
// long as the tensor's storage. `code` and `bits` are DLPack's of the element type.
pybind11::object dlpack_capsule(std::shared_ptr<Allocation> memory, std::vector<int64_t> shape,
                                std::vector<int64_t> strides, int device, uint8_t code, uint8_t bits);

// A tensor of real numbers on an extension device, with strides in elements. `sizes` and `strides` are the tensor's
// own.
struct TensorView {
  uint64_t address;
  int32_t device;
  uint8_t code, bytes;  // of the element type, as DLPack counts them
  int32_t dims;
  const int64_t* sizes;
  const int64_t* strides;
};

// Reads tensors by torch.Tensor.__dlpack_c_exchange_api__ (DLPack 1.3, `DLPackExchangeAPI`), in some 30 ns each.
class TensorReader {
 public:
  // Raises ValueError where the capsule is another one.
  explicit TensorReader(const pybind11::object& capsule);

  // False for a tensor of another kind. `tensor` must be one of torch's.
  bool read(PyObject* tensor, TensorView& view) const;

 private:
  int (*read_)(void*, void*);
};

}  // namespace triton_spirv
