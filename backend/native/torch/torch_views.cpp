// Views change what a tensor says of its memory, not the memory. torch's own kernels for them are entered for its own
// devices only, and a kernel of Python takes three times as long.
#include "torch/torch_views.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "torch/torch_interface.h"

namespace triton_spirv {
namespace {

// What a kernel is given is its own.
struct Tensor {
  explicit Tensor(Passed value) : held(handle(value)) {
    std::int64_t dimensions = 0;
    std::int64_t *size = nullptr, *step = nullptr;
    check(torch().aoti_torch_get_dim(held, &dimensions));
    check(torch().aoti_torch_get_sizes(held, &size));
    check(torch().aoti_torch_get_strides(held, &step));
    check(torch().aoti_torch_get_storage_offset(held, &offset));
    sizes.assign(size, size + dimensions);
    strides.assign(step, step + dimensions);
  }
  ~Tensor() {
    if (held != nullptr) torch().aoti_torch_delete_tensor_object(held);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  Handle held;
  Numbers sizes, strides;
  std::int64_t offset = 0;
};

Numbers numbers(Passed list) {
  const std::vector<Passed> values = taken(list);
  return {values.begin(), values.end()};
}

Passed list_of(const Numbers& values) {
  return triton_spirv::list_of(std::vector<Passed>(values.begin(), values.end()));
}

// Whether `total` + `one` × `other` fits, which `total` is then.
bool add_product(std::int64_t& total, std::int64_t one, std::int64_t other) {
  std::int64_t both = 0;
  return !__builtin_mul_overflow(one, other, &both) && !__builtin_add_overflow(total, both, &total);
}

std::int64_t product(const Numbers& values) {
  std::int64_t all = 1;
  for (const std::int64_t value : values) all *= value;
  return all;
}

// A view of a normal tensor is a normal tensor in inference mode, too: one that torch makes itself, and that then says
// something else of the memory.
Handle view_in_inference_mode(Tensor& self, const Numbers& sizes, const Numbers& strides, std::int64_t offset) {
  std::array<Passed, 4> stack{passed(self.held)};
  self.held = nullptr;
  check(torch().torch_call_dispatcher("aten::alias", "", stack.data(), kVersion));
  stack[1] = list_of(sizes);
  stack[2] = list_of(strides);
  stack[3] = reinterpret_cast<Passed>(new Passed(static_cast<Passed>(offset)));  // an int? is given on the heap
  check(torch().torch_call_dispatcher("aten::as_strided_", "", stack.data(), kVersion));
  return handle(stack[0]);
}

Handle view_of(Tensor& self, const Numbers& sizes, const Numbers& strides, std::int64_t offset) {
  if (torch().inference_mode()) return view_in_inference_mode(self, sizes, strides, offset);
  Handle made = nullptr;
  check(torch().aoti_torch__reinterpret_tensor(self.held, static_cast<std::int64_t>(sizes.size()), sizes.data(),
                                               strides.data(), offset - self.offset, &made));
  return made;
}

// Sizes with -1 replaced by what is left of `elements`. Throws what torch says.
Numbers completed(Numbers sizes, std::int64_t elements) {
  std::int64_t* open = nullptr;
  std::int64_t known = 1;
  bool fits = true;
  for (std::int64_t& size : sizes) {
    if (size == -1) {
      if (open != nullptr) throw std::runtime_error("only one dimension can be inferred");
      open = &size;
    } else if (size < 0) {
      throw std::runtime_error("invalid shape dimension " + std::to_string(size) + " at index " +
                               std::to_string(&size - sizes.data()) + " of shape " + text(sizes));
    } else {
      fits &= !__builtin_mul_overflow(known, size, &known);
    }
  }
  if (open != nullptr && known == 0 && elements == 0)
    throw std::runtime_error("cannot reshape tensor of 0 elements into shape " + text(sizes) +
                             " because the unspecified dimension size -1 can be any value and is ambiguous");
  fits = fits && (open == nullptr ? known == elements : known != 0 && elements % known == 0);
  if (!fits)
    throw std::runtime_error("shape '" + text(sizes) + "' is invalid for input of size " + std::to_string(elements));
  if (open != nullptr) *open = elements / known;
  return sizes;
}

// Strides by which a tensor's elements have the new sizes in the same order; false where none do. Dimensions form runs
// that are evenly spaced as a whole: a new dimension lies within one run.
bool restrided(const Tensor& self, const Numbers& sizes, std::int64_t elements, Numbers& strides) {
  strides.assign(sizes.size(), 1);
  if (elements == 0 && sizes == self.sizes) {
    strides = self.strides;
    return true;
  }
  std::size_t next = sizes.size();
  const auto take = [&](std::int64_t step, std::int64_t length) {
    // New dimensions from the last on, until they have `length` elements, `step` apart.
    std::int64_t taken = 1;
    while (next > 0 && (taken < length || sizes[next - 1] == 1)) {
      --next;
      strides[next] = taken * step;
      taken *= sizes[next];
    }
    return taken == length;
  };
  if (elements == 0) {  // contiguous; a dimension without elements counts as one of 1
    std::int64_t step = 1;
    for (std::size_t at = sizes.size(); at-- > 0; step *= sizes[at] > 1 ? sizes[at] : 1) strides[at] = step;
    return true;
  }
  if (self.sizes.empty()) return true;
  std::int64_t step = self.strides.back(), length = 1;
  for (std::size_t at = self.sizes.size(); at-- > 0;) {
    length *= self.sizes[at];
    const bool run_ends = at == 0 || (self.sizes[at - 1] != 1 && self.strides[at - 1] != length * step);
    if (!run_ends) continue;
    if (!take(step, length)) return false;
    if (at > 0) step = self.strides[at - 1], length = 1;
  }
  return next == 0;
}

void view(Passed* stack, std::uint64_t, std::uint64_t) {
  Tensor self(stack[0]);
  const std::int64_t elements = product(self.sizes);
  const Numbers sizes = completed(numbers(stack[1]), elements);
  Numbers strides;
  if (!restrided(self, sizes, elements, strides))
    throw std::runtime_error(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.");
  stack[0] = passed(view_of(self, sizes, strides, self.offset));
}

void reshape_alias(Passed* stack, std::uint64_t, std::uint64_t) {
  Tensor self(stack[0]);
  const Numbers sizes = numbers(stack[1]), strides = numbers(stack[2]);
  stack[0] = passed(view_of(self, sizes, strides, self.offset));
}

void as_strided(Passed* stack, std::uint64_t, std::uint64_t) {
  Tensor self(stack[0]);
  const Numbers sizes = numbers(stack[1]), strides = numbers(stack[2]);
  std::int64_t offset = self.offset;
  if (auto* given = reinterpret_cast<Passed*>(stack[3])) {
    offset = static_cast<std::int64_t>(*given);
    delete given;
  }
  if (sizes.size() != strides.size()) throw std::runtime_error("mismatch in length of strides and shape");
  const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  std::int64_t end = 1;  // elements up to the last, from the first on
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    if (strides[at] < 0)
      throw std::runtime_error("as_strided: Negative strides are not supported at the moment, got strides: " +
                               text(strides));
    if (sizes[at] < 0 || (!empty && !add_product(end, sizes[at] - 1, strides[at])))
      throw std::runtime_error("Storage size calculation overflowed with sizes=" + text(sizes) +
                               " and strides=" + text(strides));
  }
  if (offset < 0) throw std::runtime_error("Tensor: invalid storage offset " + std::to_string(offset));
  std::int64_t bytes = 0;
  std::int32_t type = 0;
  check(torch().aoti_torch_get_storage_size(self.held, &bytes));
  check(torch().aoti_torch_get_dtype(self.held, &type));
  const auto width = static_cast<std::int64_t>(torch().aoti_torch_dtype_element_size(type));
  std::int64_t needed = 0;
  if (!empty && (!add_product(end, offset, 1) || !add_product(needed, end, width) || needed > bytes))
    throw std::runtime_error("setStorage: sizes " + text(sizes) + ", strides " + text(strides) + ", storage offset " +
                             std::to_string(offset) + ", and itemsize " + std::to_string(width) +
                             " requiring a storage size of " + std::to_string(needed) +
                             " are out of bounds for storage of size " + std::to_string(bytes));
  stack[0] = passed(view_of(self, sizes, strides, offset));
}

}  // namespace

bool enter_torch_views() {
  constexpr const char* key = "PrivateUse1";
  return torch_interface() != nullptr && enter_kernel(key, "view", view) && enter_kernel(key, "_unsafe_view", view) &&
         enter_kernel(key, "_reshape_alias", reshape_alias) && enter_kernel(key, "as_strided", as_strided);
}

}  // namespace triton_spirv
