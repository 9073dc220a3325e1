// Operations on tensors of the device, as kernels of torch that enter Python only for calls unlike earlier ones.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prepared.h"

namespace triton_spirv {

// What torch's C interface passes, and how.
struct PassedType {
  enum class Base : char {
    kTensor = 'T',
    kInteger = 'i',
    kFloat = 'f',
    kFlag = 'b',
    kText = 's',
    kConstant = 'c',  // an element type, a layout or a memory format: a number of 32 bits
    kDevice = 'd',
  };
  Base base;
  bool is_list = false, is_optional = false, has_optional_items = false;
};

// An operation's name and overload, as torch writes them after "aten::", and its arguments and results.
struct TorchOperation {
  std::string name;
  std::vector<PassedType> arguments, results;
  // Whether lazily negated tensors reach it: for other operations torch resolves them first.
  bool takes_negated;
  // ([value, …]) → (args, kwargs, whether it is what the key says). Numbers and None stand for themselves, a number for
  // a constant, and (type, index) for a device.
  pybind11::object unpack;
  pybind11::object tensors_of;  // ([a capsule of a handle, …]) → tensors, which take the handles
  pybind11::object handle_of;   // (tensor) → a capsule of a new handle
  std::shared_ptr<Prepared> prepared;
};

// Whether this torch passes calls to native kernels: 2.10 and newer do.
bool has_torch_operations();
// Enters it for torch's key PrivateUse1, for as long as the process runs. False, with nothing entered, where no kernel
// is left.
bool enter_torch_operation(TorchOperation operation);
// The value of a function of torch's C interface that gives a number, such as "aoti_torch_dtype_uint8".
std::optional<int32_t> torch_constant(const std::string& name);

}  // namespace triton_spirv
