// Copies of a few elements between the host and a device, and numbers that are read. These take so little time that
// Python's part would be most of it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>

#include "device.h"
#include "torch/dlpack.h"
#include "torch/torch_interface.h"

namespace triton_spirv {

// Made by backend/torch/device/tensor_memory.py.
struct FewElements {
  TensorReader reader;
  pybind11::object native_of;       // (a device's index) → its Device, which is opened if it is not open
  pybind11::object before_reading;  // a list of functions of the index, which are called before memory is read
  pybind11::object writing;         // the lock that is held while memory is written
  uint64_t most;                    // bytes of a copy
  pybind11::object read_otherwise;  // (tensor) → its number

  // A call of aten::_copy_from on torch's stack. False, with nothing done, unless it is between contiguous tensors of
  // one type and size in the memory of the host and of a device.
  bool copy(Passed* stack) const;
  // aten::_local_scalar_dense.
  pybind11::object item(const pybind11::object& tensor) const;

 private:
  std::shared_ptr<Device> device(int32_t index) const;
  void download(void* host, const TensorView& view, uint64_t bytes) const;
};

}  // namespace triton_spirv
