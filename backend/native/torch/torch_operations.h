// Operations on tensors of the device, as kernels of torch that enter Python only for calls unlike earlier ones.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torch/few_elements.h"
#include "torch/prepared.h"

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
  bool is_list = false, is_optional = false;
};

// An operation, and how a call of it enters Python.
struct TorchOperation {
  std::string name;  // with its overload, as torch writes them after "aten::"
  std::vector<PassedType> arguments, results;
  // ([value, …]) → (args, kwargs, whether it is what the key says). Numbers and None stand for themselves, a number for
  // a constant, and (type, index) for a device.
  pybind11::object unpack;
  pybind11::object tensors_of;  // ([a capsule of a handle, …]) → tensors, which take the handles
  pybind11::object handle_of;   // (tensor) → a capsule of a new handle
};

// What floats are cast to under an autocast: its type, float32, or the wider of both among the arguments.
enum class CastTo { kLower, kSingle, kWidest };

// Whether this torch passes calls to native kernels: 2.10 and newer do.
bool has_torch_operations();
// Enters a kernel for torch's key PrivateUse1, for as long as the process runs. `takes_negated`: whether lazily negated
// tensors reach it; for other operations torch resolves them first. `few`: does calls of aten::_copy_from before others
// are looked for; null for other operations. False, with nothing entered, where no kernel is left.
bool enter_prepared(TorchOperation operation, std::shared_ptr<Prepared> prepared, std::shared_ptr<FewElements> few);
// A DLPack capsule of a tensor of the device in the memory of one on the CPU, which a capsule with its handle is given
// for, and to which nothing else refers. None where it is not that alone.
pybind11::object adopted_tensor(const pybind11::object& host, Device& device, MemoryPool& pool, int index);
// Enters a kernel for the key of our device's autocast, which is number `key`. It casts floats and calls the operation
// without the autocast. `casting` does the same in Python: it does what goes wrong again, for the error. So the
// operation must write nothing.
bool enter_casting(TorchOperation operation, CastTo to, uint16_t key, pybind11::object casting);
// The value of a function of torch's C interface that gives a number, such as "aoti_torch_dtype_uint8".
std::optional<int32_t> torch_constant(const std::string& name);

}  // namespace triton_spirv
