// A kernel's argument block: where each Python argument goes, and how the block is packed.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "abi.h"
#include "shared.h"

namespace triton_spirv {

struct Argument {
  std::vector<std::size_t> path;  // index into the call's arguments, then into nested tuples
  std::string name;               // as the user wrote it, for errors
  std::string type;               // Triton's: *fp32, i64, ...
  std::string element;            // element type of a pointer: fp32, ...; "void" accepts anything
  Packing packing;
  uint32_t offset;  // bytes from the start of the block
  uint32_t bytes;
  // The last accepted dtype object and device object of this runtime. Both references are held.
  mutable PyObject* dtype = nullptr;
  mutable PyObject* device = nullptr;
  mutable int device_index = -1;  // the index for which `device` was accepted
};

// A kernel's passed arguments in declaration order.
class ArgumentPlan {
 public:
  // Each entry: (path, name, Triton type, offset). `bytes`: the size of the block, which backend/abi/block.py lays
  // out. Throws std::invalid_argument if a type cannot be passed or an argument lies outside the block.
  ArgumentPlan(const std::vector<std::tuple<std::vector<std::size_t>, std::string, std::string, uint32_t>>& entries,
               uint32_t bytes);
  ~ArgumentPlan();
  ArgumentPlan(const ArgumentPlan&) = delete;
  ArgumentPlan& operator=(const ArgumentPlan&) = delete;

  // The size of the block in bytes.
  uint32_t bytes() const { return bytes_; }
  const std::vector<Argument>& arguments() const { return arguments_; }

  // Writes the arguments args[first:] to `block`, and the place of each pointer's memory to `places`. Refuses tensors
  // that are not on device number `device`; -1 accepts any device. Returns all places, or-ed. Raises a TypeError,
  // ValueError or OverflowError that names the argument.
  USED_BY_TORCH uint8_t pack(PyObject* args, Py_ssize_t first, std::byte* block, int device, Place* places) const;
  std::size_t pointer_count() const { return pointer_count_; }
  // Replaces the pointers of a packed block, in declaration order.
  void replace_pointers(std::byte* block, const std::vector<uint64_t>& pointers) const;
  // (object, address) of each pointer argument of a packed block.
  pybind11::list tensors(PyObject* args, Py_ssize_t first, const std::byte* block) const;
  // (object, address, place's name) of each pointer argument of a packed block.
  pybind11::list pointers(PyObject* args, Py_ssize_t first, const std::byte* block, const Place* places) const;
  std::vector<std::string> pointer_names() const;

 private:
  PyObject* find(const Argument& argument, PyObject* args, Py_ssize_t first) const;
  uint64_t pointer(const Argument& argument, PyObject* object, int device, Place& place) const;
  void check_element(const Argument& argument, PyObject* object) const;

  std::vector<Argument> arguments_;
  uint32_t bytes_ = 0;
  std::size_t pointer_count_ = 0;
};

// `value` rounded to nearest, ties to even, as an IEEE-like number of 1 + exponent + mantissa = 16 bits.
uint16_t round_to_16_bits(double value, int exponent_bits, int mantissa_bits);

}  // namespace triton_spirv
