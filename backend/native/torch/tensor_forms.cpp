#include "torch/tensor_forms.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "python_api.h"
#include "torch/torch_interface.h"
#include "torch/torch_tensors.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

constexpr int64_t kMost = INT64_MAX, kMultiple = 16;

bool is_sequence(PyObject* object) { return PyTuple_Check(object) || PyList_Check(object); }

// The items of a tuple or a list, or the values of a dict.
template <typename Function>
void each(PyObject* container, const Function& function) {
  if (PyDict_Check(container)) {
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(container, &position, &name, &value)) function(value);
    return;
  }
  if (!is_sequence(container)) throw py::type_error("a tuple, a list or a dict is wanted");
  for (Py_ssize_t index = 0; index < Py_SIZE(container); ++index)
    function(PyTuple_Check(container) ? PyTuple_GET_ITEM(container, index) : PyList_GET_ITEM(container, index));
}

int64_t integer(PyObject* object) {
  const int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  return value;
}

Numbers integers(PyObject* sequence) {
  Numbers values;
  values.reserve(8);
  each(sequence, [&](PyObject* item) { values.push_back(integer(item)); });
  return values;
}

py::tuple tuple_of(const Numbers& values) {
  py::tuple made(static_cast<Py_ssize_t>(values.size()));
  for (std::size_t at = 0; at < values.size(); ++at)
    PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(at), checked(PyLong_FromLongLong(values[at])).release().ptr());
  return made;
}

// The largest number instead of one that is larger. Neither is negative.
int64_t times(int64_t one, int64_t other) {
  int64_t both = 0;
  return __builtin_mul_overflow(one, other, &both) ? kMost : both;
}

int64_t plus(int64_t one, int64_t other) {
  int64_t both = 0;
  return __builtin_add_overflow(one, other, &both) ? kMost : both;
}

Numbers expanded_strides(const Numbers& shape, const Numbers& strides, const Numbers& to) {
  if (shape == to) return strides;
  const bool fits = shape.size() <= to.size();
  const std::size_t missing = fits ? to.size() - shape.size() : 0;
  Numbers found(missing, 0);
  for (std::size_t d = 0; fits && d < shape.size() && (shape[d] == to[missing + d] || shape[d] == 1); ++d)
    found.push_back(shape[d] == 1 ? 0 : strides[d]);
  if (!fits || found.size() < to.size())
    throw std::runtime_error("a tensor of shape " + text(shape) + " cannot be broadcast to " + text(to));
  return found;
}

struct Collapsed {
  Numbers sizes;
  std::vector<Numbers> steps;
  py::tuple object() const {
    py::list all;
    for (const Numbers& one : steps) all.append(tuple_of(one));
    return py::make_tuple(tuple_of(sizes), all);
  }
};

// Of the dimensions `dims` of tensors with these strides.
Collapsed collapse(const Numbers& shape, const std::vector<Numbers>& strides, std::vector<std::size_t> dims) {
  Collapsed made{{}, std::vector<Numbers>(strides.size())};
  dims.erase(std::remove_if(dims.begin(), dims.end(), [&](std::size_t d) { return shape[d] == 1; }), dims.end());
  std::stable_sort(dims.begin(), dims.end(), [&](std::size_t one, std::size_t other) {
    for (const Numbers& steps : strides)
      if (steps[one] != steps[other]) return steps[one] > steps[other];
    return false;
  });
  for (const std::size_t d : dims) {
    bool is_next = !made.sizes.empty();
    for (std::size_t at = 0; is_next && at < strides.size(); ++at)
      is_next = made.steps[at].back() == times(strides[at][d], shape[d]);
    if (is_next) {
      made.sizes.back() *= shape[d];
    } else {
      made.sizes.push_back(shape[d]);
    }
    for (std::size_t at = 0; at < strides.size(); ++at) {
      if (is_next)
        made.steps[at].back() = strides[at][d];
      else
        made.steps[at].push_back(strides[at][d]);
    }
  }
  return made;
}

std::vector<std::size_t> all_dims(std::size_t count) {
  std::vector<std::size_t> dims(count);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

bool is_empty(const TensorView& view) {
  return std::find(view.sizes, view.sizes + view.dims, 0) != view.sizes + view.dims;
}

bool is_contiguous(const TensorView& view) {
  int64_t elements = 1;
  for (int32_t d = view.dims; d-- > 0;) {
    if (view.sizes[d] != 1 && view.strides[d] != elements) return is_empty(view);
    elements *= view.sizes[d];
  }
  return true;
}

// Whether two elements may share memory, so that they cannot be written in parallel.
bool overlaps_itself(const TensorView& view) {
  if (is_contiguous(view)) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (int32_t d = 0; d < view.dims; ++d)
    if (view.sizes[d] != 1) dims.emplace_back(view.strides[d], view.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t filled = 1;
  for (const auto& [step, size] : dims) {
    if (step < filled) return true;
    filled = plus(filled, times(step, size - 1));
  }
  return false;
}

bool is_negated(PyObject* tensor) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  return checked(PyObject_CallMethodNoArgs(tensor, is_neg)).ptr() != Py_False;
}

// Whether its values are those in memory.
bool has_values(PyObject* tensor, const TensorView& view) {
  return (view.address != 0 || is_empty(view)) && !is_negated(tensor);
}

bool has_shape(const TensorView& view, const int64_t* sizes, std::size_t dims) {
  return static_cast<std::size_t>(view.dims) == dims && std::memcmp(view.sizes, sizes, dims * sizeof(int64_t)) == 0;
}

}  // namespace

py::object TensorForms::fault(const py::object& outputs, const py::object& tensors, bool has_float64) const {
  const char* found = nullptr;
  int32_t device = -1;
  const auto look = [&](PyObject* tensor, bool is_written) {
    TensorView view{};
    if (found != nullptr) return;
    if (!reader.read(tensor, view))
      found = "a tensor of another device, or of elements that kernels do not know";
    else if (device >= 0 && view.device != device)
      found = "tensors of several devices";
    else if (view.code == kFloatCode && view.bytes == 8 && !has_float64)
      found = "float64 is not computed with on the device";
    else if (!has_values(tensor, view))
      found = "a tensor whose values are not those in memory";
    else if (is_written && overlaps_itself(view))
      found = "an output with elements that share memory";
    device = view.device;
  };
  each(outputs.ptr(), [&](PyObject* tensor) { look(tensor, true); });
  each(tensors.ptr(), [&](PyObject* tensor) { look(tensor, false); });
  return found == nullptr ? py::object(py::none()) : py::str(found);
}

bool TensorForms::are_alike(const py::object& outputs, const py::object& tensors) const {
  TensorView first{}, view{};
  bool is_first = true, alike = true;
  const auto look = [&](PyObject* tensor) {
    alike = alike && reader.read(tensor, view) && has_values(tensor, view) && is_contiguous(view) &&
            (is_first || (view.device == first.device && has_shape(view, first.sizes, first.dims)));
    if (is_first) first = view;
    is_first = false;
  };
  each(outputs.ptr(), look);
  each(tensors.ptr(), look);
  return alike;
}

py::object TensorForms::roles(const py::object& outputs, const py::object& tensors, const py::object& shape,
                              std::size_t outside) const {
  const Numbers all = integers(shape.ptr());
  Numbers rows = all;
  std::fill(rows.begin() + static_cast<std::ptrdiff_t>(outside), rows.end(), 1);
  std::string found;
  int32_t device = -1;
  bool known = true;
  const auto look = [&](PyObject* tensor) {
    TensorView view;
    known = known && reader.read(tensor, view) && has_values(tensor, view) && is_contiguous(view) &&
            (device < 0 || view.device == device);
    if (!known) return;
    device = view.device;
    if (has_shape(view, all.data(), all.size()))
      found += 'a';
    else if (has_shape(view, rows.data(), rows.size()))
      found += 'r';
    else if (has_shape(view, all.data() + outside, all.size() - outside))
      found += 'c';
    else
      known = false;
  };
  each(outputs.ptr(), look);
  each(tensors.ptr(), look);
  return known ? py::object(py::bytes(found)) : py::none();
}

py::list TensorForms::walks(const py::object& outputs, const py::object& tensors, const py::object& shape,
                            const py::object& groups) const {
  const Numbers to = integers(shape.ptr());
  std::vector<Numbers> strides;
  const auto look = [&](PyObject* tensor) {
    TensorView view;
    if (!reader.read(tensor, view)) throw py::type_error("a tensor of the device is wanted");
    strides.push_back(
        expanded_strides({view.sizes, view.sizes + view.dims}, {view.strides, view.strides + view.dims}, to));
  };
  each(outputs.ptr(), look);
  each(tensors.ptr(), look);
  py::list made;
  each(groups.ptr(), [&](PyObject* group) {
    std::vector<std::size_t> dims;
    each(group, [&](PyObject* dim) { dims.push_back(static_cast<std::size_t>(integer(dim))); });
    if (std::any_of(dims.begin(), dims.end(), [&](std::size_t d) { return d >= to.size(); }))
      throw py::index_error("a dimension of the shape is wanted");
    made.append(collapse(to, strides, std::move(dims)).object());
  });
  return made;
}

py::object TensorForms::new_tensor(const py::object& sizes, const py::object& strides, uint8_t code, uint8_t bytes,
                                   int device, MemoryPool& pool, const py::object& context) const {
  const auto are_counts = [](PyObject* sequence) {
    bool are = is_sequence(sequence);
    if (are) each(sequence, [&](PyObject* item) { are = are && PyLong_CheckExact(item); });
    return are;
  };
  if (!are_counts(sizes.ptr()) || (!strides.is_none() && !are_counts(strides.ptr()))) return py::none();
  const Numbers shape = integers(sizes.ptr());
  Numbers steps(shape.size(), 1);
  if (!strides.is_none()) steps = integers(strides.ptr());
  if (steps.size() != shape.size()) return py::none();
  int64_t elements = 1, last = 0, dense = 1;  // the elements but for sizes of 0, the last one's place
  bool empty = false;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (strides.is_none()) steps[d] = dense;
    if (shape[d] < 0 || steps[d] < 0) return py::none();
    dense = times(dense, std::max<int64_t>(shape[d], 1));
    elements = times(elements, std::max<int64_t>(shape[d], 1));
    empty |= shape[d] == 0;
    if (shape[d] > 0) last = plus(last, times(shape[d] - 1, steps[d]));
  }
  const int64_t needed = empty ? 0 : times(plus(last, 1), bytes);
  if (elements == kMost || dense == kMost || needed == kMost) return py::none();
  std::shared_ptr<Allocation> memory = pool.take(static_cast<uint64_t>(needed));
  if (!memory) memory = allocate(context, needed).cast<std::shared_ptr<Allocation>>();
  const py::object capsule =
      dlpack_capsule(std::move(memory), shape, std::move(steps), device, code, static_cast<uint8_t>(8 * bytes));
  return checked(PyObject_CallOneArg(from_dlpack.ptr(), capsule.ptr()));
}

bool overlaps_itself(const py::object& shape, const py::object& strides) {
  const Numbers sizes = integers(shape.ptr()), steps = integers(strides.ptr());
  if (sizes.size() != steps.size()) throw std::invalid_argument("a stride for each size is wanted");
  return overlaps_itself(TensorView{1, 0, 0, 1, static_cast<int32_t>(sizes.size()), sizes.data(), steps.data()});
}

py::tuple expanded(const py::object& shape, const py::object& strides, const py::object& to) {
  return tuple_of(expanded_strides(integers(shape.ptr()), integers(strides.ptr()), integers(to.ptr())));
}

py::tuple collapsed(const py::object& shape, const py::object& strides) {
  const Numbers sizes = integers(shape.ptr());
  std::vector<Numbers> steps;
  each(strides.ptr(), [&](PyObject* one) {
    steps.push_back(integers(one));
    if (steps.back().size() != sizes.size()) throw std::invalid_argument("a stride for each size is wanted");
  });
  return collapse(sizes, steps, all_dims(sizes.size())).object();
}

py::tuple address_values(const py::object& own, const py::object& walks, int64_t narrow) {
  Numbers values = integers(own.ptr()), strides;
  std::vector<int64_t> reaches;  // of each pointer
  int64_t places = 1, total = 1, most = 0;
  each(walks.ptr(), [&](PyObject* walk) {
    if (!PyTuple_Check(walk) || PyTuple_GET_SIZE(walk) != 2) throw py::type_error("(sizes, strides) is wanted");
    const Numbers sizes = integers(PyTuple_GET_ITEM(walk, 0));
    int64_t count = 1;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      count = times(count, sizes[d]);
      if (d > 0) values.push_back(sizes[d]);
    }
    places = times(places, std::max<int64_t>(count, 1));
    total = times(total, count);
    most = std::max(most, count);
    std::size_t pointer = 0;
    each(PyTuple_GET_ITEM(walk, 1), [&](PyObject* steps) {
      if (reaches.size() == pointer) reaches.push_back(0);
      std::size_t d = 0;
      each(steps, [&](PyObject* step) {
        strides.push_back(integer(step));
        if (d < sizes.size()) reaches[pointer] = plus(reaches[pointer], times(sizes[d++] - 1, strides.back()));
      });
      ++pointer;
    });
  });
  const int64_t longest = strides.empty() ? 1 : *std::max_element(strides.begin(), strides.end());
  const int64_t reach = reaches.empty() ? 0 : *std::max_element(reaches.begin(), reaches.end());
  // No element is farther from the first than the number of them times the longest stride.
  const bool is_far = times(places, longest) > narrow && plus(reach, 1) > narrow;
  std::string form;
  for (const int64_t stride : strides) form += static_cast<char>('0' + std::min<int64_t>(stride, 2));
  values.insert(values.end(), strides.begin(), strides.end());
  return py::make_tuple(tuple_of(values), py::bytes(form), is_far || std::max(total, most) > narrow);
}

py::tuple form_of_integers(const py::object& strides, const py::object& heeded, const py::object& others,
                           const py::object& kinds) {
  constexpr int64_t narrow = INT32_MAX;
  bool is_wide = false, is_even = true;
  std::vector<PyObject*> ones;
  const auto look = [&](PyObject* item, bool of_width, bool of_multiples) {
    if (!PyLong_CheckExact(item)) return false;
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (of_width) is_wide |= overflow != 0 || value > narrow || value < -narrow;
    if (of_multiples && !(of_width && value == 1)) is_even &= overflow == 0 && value % kMultiple == 0;
    return overflow == 0 && value == 1;
  };
  each(strides.ptr(), [&](PyObject* item) { ones.push_back(look(item, true, true) ? Py_True : Py_False); });
  each(heeded.ptr(), [&](PyObject* item) { look(item, false, true); });
  each(others.ptr(), [&](PyObject* item) { look(item, true, false); });
  py::list made;
  made.append(py::bool_(is_wide));
  made.append(py::bool_(is_even));
  for (PyObject* const one : ones) made.append(py::handle(one));
  each(kinds.ptr(), [&](PyObject* kind) { made.append(py::handle(kind)); });
  return py::tuple(made);
}

}  // namespace triton_spirv
