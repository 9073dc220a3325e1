#include "torch/prepared.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "gil.h"
#include "python_api.h"
#include "recording.h"
#include "torch/dlpack.h"
#include "torch/holding.h"
#include "torch/python_errors.h"
#include "torch/questions.h"
#include "torch/torch_interface.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

// The largest number of kinds that an operation keeps, of which the one unused for longest is dropped, and of digests
// of kinds that were seen; both by address, where a kind has the address of each tensor and a table in device memory,
// and is recorded only if it comes again soon; and of plans for each kind.
constexpr std::size_t kMostKinds = 1024, kMostSeen = 4096, kMostByAddress = 16, kMostPlans = 8;
// A kind is given up after this many failed recordings, an operation after this many failed kinds.
constexpr unsigned kMostFailures = 3, kMostHopeless = 16;
// The largest number of tensors that are compared with one another.
constexpr std::size_t kMostTensors = 16;
constexpr uint64_t kAlignment = 16;

thread_local unsigned whole_depth = 0;

// A call that is recorded, or is the first of its kind: the operations within it are part of it.
struct WholeCall {
  WholeCall() { ++whole_depth; }
  ~WholeCall() { --whole_depth; }
};

// Made once and never freed.
struct Names {
  PyObject* index = PyUnicode_InternFromString("index");
  PyObject* is_neg = PyUnicode_InternFromString("is_neg");
  PyObject* launch_enter_hook = PyUnicode_InternFromString("launch_enter_hook");
  PyObject* launch_exit_hook = PyUnicode_InternFromString("launch_exit_hook");
  PyObject* type = PyUnicode_InternFromString("type");
};

const Names& names() {
  static const Names* value = new Names;
  return *value;
}

py::object ask(PyObject* object, PyObject* method) { return checked(PyObject_CallMethodNoArgs(object, method)); }

uint64_t number_of(const py::object& object) {
  const uint64_t value = PyLong_AsUnsignedLongLong(object.ptr());
  if (value == static_cast<uint64_t>(-1) && PyErr_Occurred()) throw py::error_already_set();
  return value;
}

template <typename T>
void append(std::string& key, const T& value) {
  CallKey::append(key, value);
}

// The number of one of our devices among those seen so far, or -1 for another kind of device. Devices are compared by
// value, because torch makes a new device object for each access.
int device_number(PyObject* device) {
  static auto* const seen = new std::vector<PyObject*>;
  for (std::size_t index = 0; index < seen->size(); ++index) {
    const int same = PyObject_RichCompareBool(device, (*seen)[index], Py_EQ);
    if (same < 0) throw py::error_already_set();
    if (same == 1) return static_cast<int>(index);
  }
  const py::object type = get(device, names().type);
  if (!PyUnicode_Check(type.ptr()) || PyUnicode_CompareWithASCIIString(type.ptr(), "spirv") != 0) return -1;
  Py_INCREF(device);
  seen->push_back(device);
  return static_cast<int>(seen->size()) - 1;
}

// Appends element type, device, sizes and strides.
void append_form(std::string& key, const TensorView& view) {
  append(key, view.code);
  append(key, view.bytes);
  append(key, view.device);
  append(key, view.dims);
  const std::size_t bytes = static_cast<std::size_t>(view.dims) * sizeof(int64_t);
  key.append(reinterpret_cast<const char*>(view.sizes), bytes);
  key.append(reinterpret_cast<const char*>(view.strides), bytes);
}

// The number of elements, if they fill their memory: no two share a place and no place in between is empty.
std::optional<uint64_t> elements_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](std::size_t one, std::size_t other) { return strides[one] < strides[other]; });
  int64_t elements = 1;
  for (const std::size_t d : order) {
    if (sizes[d] == 0 || strides[d] != elements) return std::nullopt;
    elements *= sizes[d];
  }
  return elements;
}

// Takes memory from the pool. If none is idle, calls `allocate`: (bytes) → an Allocation.
std::shared_ptr<Allocation> allocated(MemoryPool& pool, const py::object& allocate, uint64_t bytes) {
  std::shared_ptr<Allocation> idle = pool.take(bytes);
  if (idle) return idle;
  return checked(PyObject_CallOneArg(allocate.ptr(), py::int_(bytes).ptr())).cast<std::shared_ptr<Allocation>>();
}

}  // namespace

py::object PreparedContext::lists_key(const py::tuple& lists) const {
  std::string forms, addresses;
  TensorView view{};
  int32_t device = -1;
  const PyObject* read = nullptr;  // one tensor may stand at all places of a list
  for (const py::handle list : lists) {
    PyObject* const items = list.ptr();
    if (!PyList_CheckExact(items) && !PyTuple_CheckExact(items)) return py::none();
    const Py_ssize_t count = Py_SIZE(items);
    append(forms, count);
    for (Py_ssize_t index = 0; index < count; ++index) {
      PyObject* const item = PyList_CheckExact(items) ? PyList_GET_ITEM(items, index) : PyTuple_GET_ITEM(items, index);
      if (item == read) {
        append_form(forms, view);
        append(addresses, view.address);
        continue;
      }
      if (!contains(tensor_types, Py_TYPE(item))) {
        const int is_tensor = PyObject_IsInstance(item, PyTuple_GET_ITEM(tensor_types.ptr(), 0));
        if (is_tensor < 0) throw py::error_already_set();
        if (is_tensor == 0) return py::none();
      }
      if (!reader.read(item, view) || (device >= 0 && view.device != device)) return py::none();
      device = view.device;
      read = item;
      append_form(forms, view);
      append(addresses, view.address);
    }
  }
  return py::make_tuple(py::bytes(forms), py::bytes(addresses));
}

py::object PreparedContext::tensors_like(const py::sequence& tensors, int device, MemoryPool& pool,
                                         const py::object& allocate) const {
  py::list made;
  TensorView view{};
  for (const py::handle tensor : tensors) {
    if (!contains(tensor_types, Py_TYPE(tensor.ptr())) || !reader.read(tensor.ptr(), view) || view.device != device)
      return py::none();
    const std::vector<int64_t> sizes(view.sizes, view.sizes + view.dims);
    const std::vector<int64_t> strides(view.strides, view.strides + view.dims);
    const std::optional<uint64_t> elements = elements_of(sizes, strides);
    if (!elements) return py::none();
    const py::object capsule = dlpack_capsule(allocated(pool, allocate, *elements * view.bytes), sizes, strides, device,
                                              view.code, static_cast<uint8_t>(8 * view.bytes));
    made.append(checked(PyObject_CallOneArg(from_dlpack.ptr(), capsule.ptr())));
  }
  return std::move(made);
}

namespace {

std::vector<uint64_t> integers_of(std::string_view bytes) {
  std::vector<uint64_t> values(bytes.size() / sizeof(uint64_t));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(uint64_t));
  return values;
}

// The memory of the tensor at a place in a list.
struct Extent {
  uint64_t begin, end;
  std::size_t place;
};

}  // namespace

bool are_aligned(std::string_view addresses, uint64_t alignment) {
  const std::vector<uint64_t> values = integers_of(addresses);
  return std::all_of(values.begin(), values.end(), [=](uint64_t address) { return address % alignment == 0; });
}

bool outputs_overlap(std::string_view addresses, std::string_view extents, std::size_t places, std::size_t outputs) {
  const std::vector<uint64_t> begins = integers_of(addresses), bytes = integers_of(extents);
  if (begins.size() != bytes.size() || places == 0) throw std::invalid_argument("an extent for each address");
  const auto extent = [&](std::size_t at) { return Extent{begins[at], begins[at] + bytes[at], at % places}; };
  std::vector<Extent> written;
  for (std::size_t at = 0; at < std::min(outputs * places, begins.size()); ++at)
    if (bytes[at] != 0) written.push_back(extent(at));
  std::sort(written.begin(), written.end(),
            [](const Extent& one, const Extent& other) { return one.begin < other.begin; });
  for (std::size_t at = 1; at < written.size(); ++at)
    if (written[at - 1].end > written[at].begin) return true;
  for (std::size_t at = outputs * places; at < begins.size(); ++at) {
    if (bytes[at] == 0) continue;
    const Extent read = extent(at);
    // Written ranges do not overlap, so their ends are in order too.
    auto other = std::lower_bound(written.begin(), written.end(), read.begin,
                                  [](const Extent& one, uint64_t begin) { return one.end <= begin; });
    for (; other != written.end() && other->begin < read.end; ++other) {
      if (read.begin != other->begin || read.end != other->end || read.place != other->place) return true;
    }
  }
  return false;
}

// ---- A plan ---------------------------------------------------------------------------------------------------------

PreparedPlan::PreparedPlan(std::shared_ptr<Device> device, int index, std::shared_ptr<MemoryPool> pool,
                           py::object allocate, std::vector<uint64_t> allocations)
    : device_(std::move(device)),
      index_(index),
      pool_(std::move(pool)),
      allocate_(std::move(allocate)),
      allocations_(std::move(allocations)) {}

bool PreparedPlan::add_patch(Step& step, uint32_t offset, const std::vector<Range>& ranges) const {
  uint64_t address;
  std::memcpy(&address, step.block.data() + offset, sizeof(address));
  if (address == 0) return true;  // of a tensor without elements, which others of the kind have as few of
  const auto range = std::find_if(ranges.begin(), ranges.end(), [address](const Range& candidate) {
    return candidate.begin <= address && address < candidate.end;
  });
  if (range == ranges.end()) return false;
  if (range->owner != Owner::kStaying)
    step.patches.push_back({offset, range->owner, range->number, address - range->begin});
  return true;
}

bool PreparedPlan::add_launch(std::shared_ptr<Launcher> launcher, uint64_t function,
                              const std::array<uint32_t, 3>& grid, const py::tuple& arguments,
                              const std::vector<Range>& ranges, py::object kept) {
  Step step{std::move(launcher), function, grid, std::move(kept), 0, 0, {}, {}};
  const ArgumentPlan& plan = step.launcher->plan();
  step.block.resize(plan.bytes());
  std::vector<Place> places(plan.pointer_count());
  plan.pack(arguments.ptr(), 0, step.block.data(), index_, places.data());
  std::size_t next = 0;
  for (const Argument& argument : plan.arguments()) {
    if (argument.packing != Packing::kPointer) continue;
    const Place place = places[next++];
    if (place == kAddress) continue;
    if (place != kDevice || !add_patch(step, argument.offset, ranges)) return false;
  }
  steps_.push_back(std::move(step));
  return true;
}

bool PreparedPlan::add_copy(uint64_t to, uint64_t from, uint64_t bytes, const std::vector<Range>& ranges) {
  Step step{nullptr, 0, {}, {}, bytes, 0, std::vector<std::byte>(2 * sizeof(uint64_t)), {}};
  std::memcpy(step.block.data(), &to, sizeof(to));
  std::memcpy(step.block.data() + sizeof(to), &from, sizeof(from));
  if (!add_patch(step, 0, ranges) || !add_patch(step, sizeof(to), ranges)) return false;
  steps_.push_back(std::move(step));
  return true;
}

bool PreparedPlan::add_fill(uint64_t address, uint64_t bytes, uint32_t word, const std::vector<Range>& ranges) {
  Step step{nullptr, 0, {}, {}, bytes, word, std::vector<std::byte>(sizeof(uint64_t)), {}};
  std::memcpy(step.block.data(), &address, sizeof(address));
  if (!add_patch(step, 0, ranges)) return false;
  steps_.push_back(std::move(step));
  return true;
}

bool PreparedPlan::is_refused() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [this](const Step& step) { return step.launcher && device_->refuses(step.kernel); });
}

void PreparedPlan::submit(const Step& step, const std::byte* block) const {
  if (step.launcher) {
    step.launcher->launch_again(step.kernel, step.grid, block);
    return;
  }
  uint64_t addresses[2] = {};
  std::memcpy(addresses, block, step.block.size());
  const WithoutGil unlocked;
  if (step.block.size() == sizeof(addresses))
    device_->copy(addresses[0], addresses[1], step.bytes);
  else
    device_->fill(addresses[0], step.bytes, step.word);
}

void PreparedPlan::add_tensor(std::size_t allocation, uint8_t code, uint8_t bytes, std::vector<int64_t> sizes,
                              std::vector<int64_t> strides) {
  results_.push_back({Result::Kind::kTensor, allocation, code, bytes, std::move(sizes), std::move(strides), {}});
}

PreparedPlan::Memory PreparedPlan::allocate() const {
  device_->let_go();
  Memory memory;
  memory.reserve(allocations_.size());
  for (const uint64_t bytes : allocations_) memory.push_back(allocated(*pool_, allocate_, bytes));
  return memory;
}

py::object PreparedPlan::made(const PreparedContext& shared, const Memory& memory,
                              const std::vector<PyObject*>& tensors) const {
  std::vector<py::object> made;
  made.reserve(results_.size());
  for (const Result& result : results_) {
    if (result.kind == Result::Kind::kConstant) {
      made.push_back(result.value);
    } else if (result.kind == Result::Kind::kArgument) {
      made.push_back(py::reinterpret_borrow<py::object>(tensors[result.number]));
    } else if (result.kind == Result::Kind::kAgain) {
      made.push_back(made[result.number]);
    } else {
      const py::object capsule = dlpack_capsule(memory[result.number], result.sizes, result.strides, index_,
                                                result.code, static_cast<uint8_t>(8 * result.bytes));
      made.push_back(checked(PyObject_CallOneArg(shared.from_dlpack.ptr(), capsule.ptr())));
    }
  }
  if (!is_tuple_) return made.empty() ? py::object(py::none()) : made.front();
  py::tuple all(static_cast<Py_ssize_t>(made.size()));
  for (std::size_t index = 0; index < made.size(); ++index) all[index] = std::move(made[index]);
  return std::move(all);
}

void PreparedPlan::launch(const PreparedContext& shared, const Memory& memory,
                          const std::vector<uint64_t>& addresses) const {
  if (!steps_.empty()) {
    const Holding writing(shared.writing);
    for (const Step& step : steps_) {
      std::array<std::byte, 512> few;
      std::vector<std::byte> many;
      std::byte* block = few.data();
      if (step.block.size() > few.size()) {
        many.resize(step.block.size());
        block = many.data();
      }
      std::copy(step.block.begin(), step.block.end(), block);
      for (const Patch& patch : step.patches) {
        const uint64_t start =
            patch.owner == Owner::kAllocation ? memory[patch.number]->address() : addresses[patch.number];
        const uint64_t address = start + patch.distance;
        std::memcpy(block + patch.offset, &address, sizeof(address));
      }
      submit(step, block);
    }
  }
  for (const py::object& effect : effects_) checked(PyObject_CallNoArgs(effect.ptr()));
}

// ---- The kind of a call ---------------------------------------------------------------------------------------------

void CallKey::add_text(std::string_view text) {
  kind += 's';
  append(kind, text.size());
  kind.append(text);
}

bool CallKey::add_tensor(const TensorView& view, const void* object) {
  if (!by_address_ && addresses.size() == kMostTensors) return false;
  kind += 'T';
  append_form(kind, view);
  uint64_t reach = 1;
  bool is_empty = false;
  for (int32_t d = 0; d < view.dims; ++d) {
    if (view.strides[d] < 0) return false;
    is_empty |= view.sizes[d] == 0;
    reach += static_cast<uint64_t>(view.sizes[d] - 1) * static_cast<uint64_t>(view.strides[d]);
  }
  if (is_empty) reach = 0;
  if (view.address == 0) {
    if (!is_empty) return false;
    kind += '0';
  }
  append(kind, by_address_ ? view.address : view.address % kAlignment);
  addresses.push_back(view.address);
  if (!by_address_) spans_.push_back({view.address, view.address + reach * view.bytes, object});
  return true;
}

void CallKey::add_distances() {
  for (std::size_t one = 0; one < spans_.size(); ++one) {
    for (std::size_t other = one + 1; other < spans_.size(); ++other) {
      if (spans_[one].begin >= spans_[other].end || spans_[other].begin >= spans_[one].end) continue;
      kind += spans_[one].object == spans_[other].object ? 'I' : 'O';
      append(kind, static_cast<uint8_t>(one));
      append(kind, static_cast<uint8_t>(other));
      append(kind, spans_[other].begin - spans_[one].begin);
    }
  }
}

// ---- A call ---------------------------------------------------------------------------------------------------------

// A call by Python, and its key.
struct Prepared::Call {
  const PreparedContext* shared;
  CallKey key;
  std::vector<PyObject*> tensors;
  bool takes_negated;
  bool is_ours = false;  // the call names our device

  // Each returns false if such a call cannot be prepared.
  bool add(PyObject* value, bool in_list = false);
  bool add_tensor(PyObject* tensor, bool in_list);
  bool add_all(const py::args& args, const py::kwargs& kwargs);
};

bool Prepared::Call::add(PyObject* value, bool in_list) {
  PyTypeObject* const type = Py_TYPE(value);
  if (contains(shared->tensor_types, type)) return add_tensor(value, in_list);
  std::string& kind = key.kind;
  if (value == Py_None) {
    kind += 'n';
  } else if (value == Py_True || value == Py_False) {
    kind += value == Py_True ? 't' : 'f';
  } else if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    kind += 'i';
    append(in_list ? kind : key.numbers, number);
  } else if (PyFloat_CheckExact(value)) {
    kind += 'd';
    append(key.numbers, PyFloat_AS_DOUBLE(value));
  } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    const Py_ssize_t count = Py_SIZE(value);
    kind += PyTuple_CheckExact(value) ? '(' : '[';
    append(kind, count);
    for (Py_ssize_t index = 0; index < count; ++index) {
      PyObject* const item = PyTuple_CheckExact(value) ? PyTuple_GET_ITEM(value, index) : PyList_GET_ITEM(value, index);
      if (!add(item, true)) return false;
    }
  } else if (PyUnicode_CheckExact(value)) {
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &length);
    if (text == nullptr) throw py::error_already_set();
    key.add_text({text, static_cast<std::size_t>(length)});
  } else if (type == reinterpret_cast<PyTypeObject*>(shared->device_type.ptr())) {
    const int device = device_number(value);
    if (device < 0) return false;
    kind += 'D';
    append(kind, static_cast<uint8_t>(device));
    if (get(value, names().index).is_none())
      append(kind, number_of(checked(PyObject_CallNoArgs(shared->current.ptr()))));
    is_ours = true;
  } else if (contains(shared->constant_types, type)) {
    kind += 'o';
    append(kind, value);
  } else {
    return false;
  }
  return true;
}

bool Prepared::Call::add_tensor(PyObject* tensor, bool in_list) {
  TensorView view;
  if (!shared->reader.read(tensor, view)) return false;
  // torch resolves lazily negated tensors before it calls other operations, or one on lists (its key Negative).
  if (takes_negated && !in_list && ask(tensor, names().is_neg).ptr() != Py_False) return false;
  tensors.push_back(tensor);
  return key.add_tensor(view, tensor);
}

bool Prepared::Call::add_all(const py::args& args, const py::kwargs& kwargs) {
  if (torch_interface() != nullptr)
    append(key.kind, torch().default_type());
  else
    append(key.kind, checked(PyObject_CallNoArgs(shared->default_dtype.ptr())).ptr());
  for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(args.ptr()); ++index) {
    if (!add(PyTuple_GET_ITEM(args.ptr(), index))) return false;
  }
  Py_ssize_t position = 0;
  PyObject *name, *value;
  while (PyDict_Next(kwargs.ptr(), &position, &name, &value)) {
    key.kind += '=';
    if (!add(name) || !add(value)) return false;
  }
  key.add_distances();
  return is_ours || !tensors.empty();
}

// ---- An operation ---------------------------------------------------------------------------------------------------

Prepared::Prepared(const PreparedContext* shared, py::object run, py::object record, bool by_address,
                   bool takes_negated)
    : shared_(shared),
      run_(std::move(run)),
      record_(std::move(record)),
      by_address_(by_address),
      takes_negated_(takes_negated) {}

bool Prepared::is_new(const std::string& kind) {
  if (seen_.size() >= (by_address_ ? kMostByAddress : kMostSeen)) seen_.clear();
  return seen_.insert(std::hash<std::string>{}(kind)).second;
}

Prepared::Kind* Prepared::used(const std::string& kind) {
  const auto found = by_name_.find(kind);
  if (found == by_name_.end()) return nullptr;
  kinds_.splice(kinds_.begin(), kinds_, found->second);
  return &found->second->second;
}

bool Prepared::is_ready() const {
  return whole_depth == 0 && failures_ < kMostHopeless && !Device::any_left() &&
         is_idle_hook(get(shared_->runtime.ptr(), names().launch_enter_hook).ptr()) &&
         is_idle_hook(get(shared_->runtime.ptr(), names().launch_exit_hook).ptr());
}

Prepared::Way Prepared::find(const CallKey& key, std::shared_ptr<const PreparedPlan>& plan) {
  Kind* const kind = used(key.kind);
  if (kind == nullptr) return is_new(key.kind) ? Way::kFirst : Way::kRecord;
  if (kind->gave_up) return Way::kPlain;
  for (const auto& [numbers, kept] : kind->plans) {
    if (numbers != key.numbers) continue;
    // A device that failed is opened again.
    if (kept->device().failed() || Recording::current(kept->device()) != nullptr) return Way::kPlain;
    if (kept->is_refused()) return kind->plans.clear(), Way::kRecord;
    plan = kept;  // other plans may be added while it runs
    return Way::kPlan;
  }
  return Way::kRecord;
}

py::object Prepared::plainly(const py::args& args, const py::kwargs& kwargs, Way way) const {
  std::optional<WholeCall> whole;
  if (way == Way::kFirst) whole.emplace();
  return checked(PyObject_Call(run_.ptr(), args.ptr(), kwargs.ptr()));
}

py::object Prepared::operator()(const py::args& args, const py::kwargs& kwargs) {
  if (!is_ready()) return plainly(args, kwargs);
  Call call{shared_, CallKey(by_address_), {}, takes_negated_};
  if (!call.add_all(args, kwargs)) return plainly(args, kwargs);
  std::shared_ptr<const PreparedPlan> plan;
  const Way way = find(call.key, plan);
  if (way == Way::kPlain || way == Way::kFirst) return plainly(args, kwargs, way);
  if (way == Way::kRecord) {
    py::list tensors;
    for (PyObject* const tensor : call.tensors) tensors.append(py::handle(tensor));
    return record(call.key, args, kwargs, tensors);
  }
  if (plan->adopts())
    return checked(PyObject_CallFunctionObjArgs(plan->write().ptr(), args.ptr(), kwargs.ptr(), nullptr));
  const PreparedPlan::Memory memory = plan->allocate();
  py::object made = plan->made(*shared_, memory, call.tensors);
  if (plan->write())
    checked(PyObject_CallFunctionObjArgs(plan->write().ptr(), args.ptr(), kwargs.ptr(), made.ptr(), nullptr));
  else
    plan->launch(*shared_, memory, call.key.addresses);
  return made;
}

py::object Prepared::record(CallKey& key, const py::args& args, const py::kwargs& kwargs, const py::list& tensors) {
  py::tuple made;
  {
    const WholeCall whole;
    const Questioned questioned;
    made = record_(args, kwargs, tensors).cast<py::tuple>();
  }
  if (used(key.kind) == nullptr) {
    if (kinds_.size() >= (by_address_ ? kMostByAddress : kMostKinds)) {
      by_name_.erase(kinds_.back().first);
      kinds_.pop_back();
    }
    kinds_.emplace_front(key.kind, Kind());
    by_name_.emplace(kinds_.front().first, kinds_.begin());
  }
  Kind& kind = kinds_.front().second;
  if (kind.gave_up) return made[0];
  if (made[1].is_none()) {
    kind.gave_up = ++kind.failures >= kMostFailures;
    if (kind.gave_up) ++failures_;
  } else if (kind.plans.size() < kMostPlans) {
    kind.failures = 0;
    kind.plans.emplace_back(std::move(key.numbers), made[1].cast<std::shared_ptr<PreparedPlan>>());
  } else {
    kind.gave_up = true;  // its numbers change from call to call
    kind.plans.clear();
  }
  return made[0];
}

namespace {

using HeldPrepared = std::shared_ptr<Prepared>;

PyObject* call_prepared(PyObject* self, PyObject* args, PyObject* kwargs) {
  static auto* const none = new py::kwargs;
  py::object made;
  try {
    with_errors([&] {
      made = (**static_cast<HeldPrepared*>(PyCapsule_GetPointer(self, nullptr)))(
          py::reinterpret_borrow<py::args>(args),
          kwargs == nullptr ? *none : py::reinterpret_borrow<py::kwargs>(kwargs));
    });
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  }
  return made.release().ptr();
}

}  // namespace

py::object python_function(std::shared_ptr<Prepared> operation) {
  static PyMethodDef method = {"prepared", reinterpret_cast<PyCFunction>(call_prepared), METH_VARARGS | METH_KEYWORDS,
                               nullptr};
  const py::capsule self(new HeldPrepared(std::move(operation)),
                         [](void* owned) { delete static_cast<HeldPrepared*>(owned); });
  return checked(PyCFunction_NewEx(&method, self.ptr(), nullptr));
}

}  // namespace triton_spirv
