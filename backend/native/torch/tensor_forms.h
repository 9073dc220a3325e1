// What kernels depend on of their tensors: sizes and strides, as Python's code for operations asks for them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

#include "memory_pool.h"
#include "torch/dlpack.h"

namespace triton_spirv {

// Made by backend/torch/device/tensor_memory.py. ``outputs`` and ``tensors`` are dicts, tuples or lists of tensors.
struct TensorForms {
  TensorReader reader;
  pybind11::object from_dlpack;  // torch._C._from_dlpack
  pybind11::object allocate;     // (a context, bytes) → an Allocation, if the pool has no idle memory

  // Why no kernel can read the tensors and write the outputs; None if one can. `has_float64`: whether it may be of
  // float64.
  pybind11::object fault(const pybind11::object& outputs, const pybind11::object& tensors, bool has_float64) const;
  // Whether all are of one shape and on one device, without gaps.
  bool are_alike(const pybind11::object& outputs, const pybind11::object& tensors) const;
  // For each tensor without gaps whether it has all elements of `shape`, one of each row or one of each column: 'a',
  // 'r' or 'c'. None if one is another, or they are on several devices. The first `outside` dimensions are those of
  // rows.
  pybind11::object roles(const pybind11::object& outputs, const pybind11::object& tensors,
                         const pybind11::object& shape, std::size_t outside) const;
  // For each group of dimensions of `shape`, what collapsed() gives of these and all tensors, broadcast to it.
  pybind11::list walks(const pybind11::object& outputs, const pybind11::object& tensors, const pybind11::object& shape,
                       const pybind11::object& groups) const;
  // A tensor over new memory, contiguous if `strides` is None. None where torch is to say what is wrong.
  pybind11::object new_tensor(const pybind11::object& sizes, const pybind11::object& strides, uint8_t code,
                              uint8_t bytes, int device, MemoryPool& pool, const pybind11::object& context) const;
};

// Whether two elements of a tensor may share memory, so that it cannot be written in parallel.
bool overlaps_itself(const pybind11::object& shape, const pybind11::object& strides);
// The strides with which a tensor is read as of shape `to`: 0 where it is repeated, and any where there is one element.
// Throws what torch says where it cannot be.
pybind11::tuple expanded(const pybind11::object& shape, const pybind11::object& strides, const pybind11::object& to);
// (sizes, strides of each): a tensor's elements with as few dimensions as can be, the last of which is the one that the
// first of the `strides` steps through fastest. One element has no dimensions.
pybind11::tuple collapsed(const pybind11::object& shape, const pybind11::object& strides);
// Of walks (sizes, strides of each pointer): the integers that their addresses are made of, behind a kernel's `own`
// (sizes but for the first of each walk, then strides); which strides are 0, 1 or others; and whether the walks have
// more elements, or elements farther apart, than `narrow`.
pybind11::tuple address_values(const pybind11::object& own, const pybind11::object& walks, int64_t narrow);
// (whether an integer needs more than 32 bits, whether all that are `heeded` and strides but for 1 are multiples of 16,
// which strides are 1, and the `kinds`). What is no int counts as none.
pybind11::tuple form_of_integers(const pybind11::object& strides, const pybind11::object& heeded,
                                 const pybind11::object& others, const pybind11::object& kinds);

}  // namespace triton_spirv
