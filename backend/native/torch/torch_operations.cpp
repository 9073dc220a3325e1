#include "torch/torch_operations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "gil.h"
#include "platform/platform.h"
#include "python_api.h"
#include "torch/python_errors.h"
#include "torch/torch_interface.h"
#include "torch/torch_tensors.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

using Base = PassedType::Base;

// A tensor over memory of a call.
Handle new_tensor(const PreparedPlan::Result& result, const std::shared_ptr<Allocation>& memory, int index) {
  void* const managed =
      dlpack_tensor(memory, result.sizes, result.strides, index, result.code, static_cast<uint8_t>(8 * result.bytes));
  return new NewTensor(torch().from_dlpack(managed, [managed](void*) { free_dlpack_tensor(managed); }));
}

// A call's arguments, which are its own.
class Arguments {
 public:
  Arguments(const std::vector<PassedType>& types, const Passed* stack) : types_(types) {
    values_.reserve(types.size());
    for (std::size_t at = 0; at < types.size(); ++at) values_.push_back(Value::of(types[at], stack[at]));
  }
  ~Arguments() {
    for (Value& value : values_) value.free();
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Adds them to a key. Returns false if such a call cannot be prepared by torch's C interface alone.
  bool add_to(CallKey& key, const PreparedContext& shared, bool takes_negated) {
    key.kind += 'N';  // an operation may have keys by Python, too
    CallKey::append(key.kind, torch().default_type());
    for (const Value& value : values_) {
      if (!add(key, shared, takes_negated, value, false)) return false;
    }
    key.add_distances();
    return (is_ours_ || !tensors_.empty()) && numbers_rank_ <= tensors_rank_;
  }

  // Those that the key names, in its order.
  const std::vector<Handle>& tensors() const { return tensors_; }
  py::list tensors(const TorchOperation& operation) const {
    py::list all;
    for (const Handle tensor : tensors_) all.append(object(operation, tensor));
    return all;
  }
  py::list objects(const TorchOperation& operation) const {
    py::list all;
    for (const Value& value : values_) all.append(object(operation, value));
    return all;
  }

  template <typename Function>
  void each_tensor(Function&& function) const {
    for (const Value& value : values_) value.each_tensor(function);
  }

  // Adds values for torch's dispatcher, which takes them, with what `change` makes of each tensor. If that is null,
  // returns false and adds nothing.
  template <typename Change>
  bool pass_on(const Change& change, std::vector<Passed>& given) const {
    for (const Value& value : values_) {
      const std::optional<Passed> one = value.pass_on(change);
      if (!one) {
        for (std::size_t at = 0; at < given.size(); ++at) Value::of(types_[at], given[at]).free();
        given.clear();
        return false;
      }
      given.push_back(*one);
    }
    return true;
  }

  static py::object object(const TorchOperation& operation, Handle tensor) {
    if (!is_defined(tensor)) return py::none();
    Handle given = again(tensor);
    PyObject* const capsule = PyCapsule_New(given, nullptr, nullptr);
    if (capsule == nullptr) {
      torch().aoti_torch_delete_tensor_object(given);
      throw py::error_already_set();
    }
    py::list held;
    held.append(py::reinterpret_steal<py::object>(capsule));
    const py::object tensors = checked(PyObject_CallOneArg(operation.tensors_of.ptr(), held.ptr()));
    return checked(PySequence_GetItem(tensors.ptr(), 0));
  }

 private:
  struct Value {
    Base base;
    bool is_optional = false, is_none = false, is_list = false;
    Passed value = 0;
    std::vector<Value> items{};

    static Value of(const PassedType& type, Passed given) {
      Value made{type.base, type.is_optional};
      if (type.is_optional) {
        auto* const held = reinterpret_cast<Passed*>(given);
        if (held == nullptr) {
          made.is_none = true;
          return made;
        }
        given = *held;
        delete held;
      }
      if (!type.is_list) {
        made.value = given;
        return made;
      }
      made.is_list = true;
      for (const Passed one : taken(given)) made.items.push_back(of({type.base}, one));
      return made;
    }

    void free() {
      for (Value& item : items) item.free();
      if (is_none || is_list) return;
      if (base == Base::kTensor) torch().aoti_torch_delete_tensor_object(handle(value));
      if (base == Base::kText) torch().torch_delete_string(handle(value));
    }

    template <typename Function>
    void each_tensor(Function& function) const {
      for (const Value& item : items) item.each_tensor(function);
      if (!is_none && !is_list && base == Base::kTensor && is_defined(handle(value))) function(handle(value));
    }

    template <typename Change>
    std::optional<Passed> pass_on(const Change& change) const {
      if (is_none) return 0;
      Passed given = value;
      if (is_list) {
        std::vector<Passed> all;
        for (const Value& item : items) {
          const std::optional<Passed> one = item.pass_on(change);
          if (!one) {
            for (const Passed made : all)
              if (base == Base::kTensor) torch().aoti_torch_delete_tensor_object(handle(made));
            return std::nullopt;
          }
          all.push_back(*one);
        }
        given = list_of(all);
      } else if (base == Base::kTensor) {
        const Handle made = is_defined(handle(value)) ? change(handle(value)) : again(handle(value));
        if (made == nullptr) return std::nullopt;
        given = passed(made);
      } else if (base == Base::kText) {
        return std::nullopt;
      }
      return is_optional ? reinterpret_cast<Passed>(new Passed(given)) : given;
    }

    std::string_view text() const {
      const char* start = nullptr;
      std::size_t length = 0;
      check(torch().torch_string_c_str(handle(value), &start));
      check(torch().torch_string_length(handle(value), &length));
      return {start, length};
    }
    double real() const {
      double number = 0;
      std::memcpy(&number, &value, sizeof(number));
      return number;
    }
    bool flag() const { return (value & 0xff) != 0; }
    int32_t constant() const { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
    int32_t device_type() const { return static_cast<int8_t>(value >> 32); }
    int32_t device_index() const { return constant(); }
  };

  bool add(CallKey& key, const PreparedContext& shared, bool takes_negated, const Value& value, bool in_list) {
    if (value.is_none) {
      key.kind += 'n';
      return true;
    }
    if (value.is_list) {
      key.kind += '[';
      CallKey::append(key.kind, value.items.size());
      for (const Value& item : value.items) {
        if (!add(key, shared, takes_negated, item, true)) return false;
      }
      return true;
    }
    switch (value.base) {
      case Base::kTensor:
        return add_tensor(key, takes_negated && !in_list, handle(value.value), in_list);
      case Base::kInteger:
        key.kind += 'i';
        CallKey::append(in_list ? key.kind : key.numbers, value.value);
        return true;
      case Base::kFloat:
        key.kind += 'd';
        CallKey::append(key.numbers, value.value);
        return true;
      case Base::kFlag:
        key.kind += value.flag() ? 't' : 'f';
        return true;
      case Base::kText:
        key.add_text(value.text());
        return true;
      case Base::kConstant:
        key.kind += 'o';
        CallKey::append(key.kind, value.constant());
        return true;
      case Base::kDevice:
        return add_device(key, shared, value);
    }
    return false;
  }

  bool add_tensor(CallKey& key, bool may_be_negated, Handle tensor, bool in_list) {
    if (!is_defined(tensor)) {
      key.kind += 'n';
      return true;
    }
    TensorView view;
    if (!read(tensor, our_device_type(), view)) return !in_list && add_number(key, tensor);
    if (may_be_negated && torch().is_neg(tensor)) return false;
    tensors_.push_back(tensor);
    if (view.dims > 0)
      tensors_rank_ = std::max(tensors_rank_, view.code == kIntCode || view.code == kUnsignedCode ? 2
                                              : view.code == kBoolCode                            ? 1
                                                                                                  : 3);
    // A handle is an at::Tensor, which holds one address: that of what torch's tensors for the same object share.
    return key.add_tensor(view, *static_cast<void* const*>(tensor));
  }

  // torch passes a number where a tensor may stand as a tensor on the CPU, which is of the largest type of its kind. A
  // tensor that a program made looks the same, and means the same if another one decides the result's type.
  bool add_number(CallKey& key, Handle tensor) {
    if (number(torch().aoti_torch_get_device_type, tensor) != cpu_device_type() || dimensions(tensor) != 0)
      return false;
    const int32_t type = number(torch().aoti_torch_get_dtype, tensor);
    if (type != kInt64 && type != kFloat64) return false;
    void* address = nullptr;
    check(torch().aoti_torch_get_data_ptr(tensor, &address));
    if (address == nullptr) return false;
    numbers_rank_ = std::max(numbers_rank_, type == kFloat64 ? 3 : 2);
    key.kind += type == kFloat64 ? 'D' : 'I';
    key.numbers.append(static_cast<const char*>(address), sizeof(uint64_t));
    return true;
  }

  bool add_device(CallKey& key, const PreparedContext& shared, const Value& value) {
    if (value.device_type() != our_device_type()) return false;
    int32_t index = value.device_index();
    if (index < 0) index = checked(PyObject_CallNoArgs(shared.current.ptr())).cast<int32_t>();
    key.kind += 'd';
    CallKey::append(key.kind, index);
    is_ours_ = true;
    return true;
  }

  static py::object object(const TorchOperation& operation, const Value& value) {
    if (value.is_none) return py::none();
    if (value.is_list) {
      py::list all;
      for (const Value& item : value.items) all.append(object(operation, item));
      return std::move(all);
    }
    switch (value.base) {
      case Base::kTensor:
        return object(operation, handle(value.value));
      case Base::kInteger:
        return py::int_(static_cast<int64_t>(value.value));
      case Base::kFloat:
        return py::float_(value.real());
      case Base::kFlag:
        return py::bool_(value.flag());
      case Base::kText:
        return py::str(value.text().data(), value.text().size());
      case Base::kConstant:
        return py::int_(value.constant());
      case Base::kDevice:
        return py::make_tuple(value.device_type(), value.device_index());
    }
    return py::none();
  }

  const std::vector<PassedType>& types_;
  std::vector<Value> values_;
  std::vector<Handle> tensors_;
  int tensors_rank_ = 0, numbers_rank_ = 0;  // of the kinds of numbers: floats and complex ones, integers, bool
  bool is_ours_ = false;                     // the call names our device
};

Passed passed_object(const TorchOperation& operation, const PassedType& type, py::handle value) {
  if (type.is_list) {
    std::vector<Passed> items;
    for (const py::handle item : value) items.push_back(passed_object(operation, {type.base}, item));
    return list_of(items);
  }
  switch (type.base) {
    case Base::kInteger:
      return static_cast<Passed>(value.cast<int64_t>());
    case Base::kFlag:
      return value.cast<bool>() ? 1 : 0;
    case Base::kFloat: {
      const double number = PyFloat_AsDouble(value.ptr());
      if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
      Passed bits = 0;
      std::memcpy(&bits, &number, sizeof(bits));
      return bits;
    }
    default:
      break;
  }
  Handle made = nullptr;
  if (value.is_none()) {
    check(torch().aoti_torch_new_uninitialized_tensor(&made));
    return passed(made);
  }
  const py::object capsule = checked(PyObject_CallOneArg(operation.handle_of.ptr(), value.ptr()));
  made = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (made == nullptr) throw py::error_already_set();
  return passed(made);
}

void give_objects(const TorchOperation& operation, const py::object& result, Passed* stack) {
  const std::size_t count = operation.results.size();
  if (count == 1) stack[0] = passed_object(operation, operation.results[0], result);
  if (count < 2) return;
  const py::tuple all(result);
  if (all.size() != count) throw std::runtime_error("aten::" + operation.name + " gave another number of results");
  for (std::size_t at = 0; at < count; ++at) stack[at] = passed_object(operation, operation.results[at], all[at]);
}

// What a kernel gives. Until then it is the kernel's own.
class Results {
 public:
  // Those of a call that is done like an earlier one.
  Results(const TorchOperation& operation, const PreparedPlan& plan, const PreparedPlan::Memory& memory,
          const std::vector<Handle>& tensors)
      : types_(operation.results) {
    using Kind = PreparedPlan::Result::Kind;
    for (const PreparedPlan::Result& result : plan.results()) {
      if (result.kind == Kind::kTensor)
        made_.push_back(passed(new_tensor(result, memory[result.number], plan.index())));
      else if (result.kind == Kind::kArgument)
        made_.push_back(passed(again(tensors[result.number])));
      else if (result.kind == Kind::kAgain)
        made_.push_back(passed(again(handle(made_[result.number]))));
      else if (made_.size() < types_.size())  // an operation without results gives None to Python
        made_.push_back(passed_object(operation, types_[made_.size()], result.value));
    }
  }
  ~Results() {
    for (std::size_t at = 0; at < made_.size(); ++at) {
      if (types_[is_list() ? 0 : at].base == Base::kTensor) torch().aoti_torch_delete_tensor_object(handle(made_[at]));
    }
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  const std::vector<Passed>& made() const { return made_; }
  void give(Passed* stack) {
    if (is_list())
      stack[0] = list_of(made_);
    else
      std::copy(made_.begin(), made_.end(), stack);
    made_.clear();
  }

 private:
  bool is_list() const { return types_.size() == 1 && types_[0].is_list; }

  const std::vector<PassedType>& types_;
  std::vector<Passed> made_;
};

// A tensor on the CPU over the memory of a tensor of the device, or itself.
Handle in_host_memory(Handle tensor) {
  TensorView view{};
  if (!read(tensor, our_device_type(), view)) return again(tensor);
  Handle made = nullptr;
  check(torch().aoti_torch_create_tensor_from_blob(reinterpret_cast<void*>(view.address), view.dims, view.sizes,
                                                   view.strides, 0, number(torch().aoti_torch_get_dtype, tensor),
                                                   cpu_device_type(), 0, &made));
  return made;
}

// What kernels may take for granted of an address that is told apart by nothing else (prepared.cpp).
constexpr uint64_t kAdoptedAlignment = 16;

// A tensor of the device as DLPack's, whose memory is that of one on the CPU to which nothing else refers; null where
// it is not that alone, or is the device's memory.
void* adopted(Handle host, Device& device, MemoryPool& pool, int index) {
  TensorView view{};
  if (!read(host, cpu_device_type(), view) || torch().is_neg(host)) return nullptr;
  int64_t reach = 1, offset = 0, bytes = 0;
  for (int32_t d = 0; d < view.dims; ++d) {
    if (view.sizes[d] == 0) return nullptr;
    reach += (view.sizes[d] - 1) * view.strides[d];
  }
  check(torch().aoti_torch_get_storage_offset(host, &offset));
  check(torch().aoti_torch_get_storage_size(host, &bytes));
  if (offset != 0 || bytes != reach * view.bytes || view.address % kAdoptedAlignment != 0 ||
      device.overlaps(view.address, static_cast<uint64_t>(bytes)))
    return nullptr;
  std::shared_ptr<void> owner(again(host), [](void* tensor) { torch().aoti_torch_delete_tensor_object(tensor); });
  return dlpack_tensor(pool.adopt(device, view.address, static_cast<uint64_t>(bytes), std::move(owner)),
                       {view.sizes, view.sizes + view.dims}, {view.strides, view.strides + view.dims}, index, view.code,
                       static_cast<uint8_t>(8 * view.bytes));
}

// Calls torch's kernel for the CPU, on the memory of the arguments, after all that was submitted, which may write to
// what it reads. `given`: what it takes, then what it gives. False, with nothing given, if torch gives an error.
bool call_on_host(const TorchOperation& operation, const PreparedPlan& plan, std::vector<Passed>& given) {
  const std::string name = "aten::" + operation.name.substr(0, operation.name.find('.'));
  given.resize(std::max(given.size(), operation.results.size()));
  const WithoutGil unlocked;
  plan.device().synchronize();
  return torch().torch_call_dispatcher(name.c_str(), plan.overload()->c_str(), given.data(), kVersion) == 0;
}

// The arguments as torch's kernel for the CPU takes them. Raises what kernels have noted. False where it cannot be
// called so.
bool pass_to_host(const PreparedPlan& plan, const PreparedContext& shared, const Arguments& arguments,
                  std::vector<Passed>& given) {
  if (!plan.overload()) return false;
  const py::int_ index(plan.index());
  for (const py::handle check : shared.before_reading) checked(PyObject_CallOneArg(check.ptr(), index.ptr()));
  return arguments.pass_on(in_host_memory, given);
}

// Lets torch's kernel for the CPU write the results of a call. False if `write` of the plan is to do it.
bool call_torchs(const TorchOperation& operation, const PreparedPlan& plan, const PreparedContext& shared,
                 const Arguments& arguments, const Results& results) {
  std::vector<Passed> given;
  if (!pass_to_host(plan, shared, arguments, given)) return false;
  for (const Passed made : results.made()) given.push_back(passed(in_host_memory(handle(made))));
  if (!call_on_host(operation, plan, given)) return false;
  for (std::size_t at = 0; at < results.made().size(); ++at) torch().aoti_torch_delete_tensor_object(handle(given[at]));
  return true;
}

// Lets torch's kernel for the CPU make the results of a call, whose memory is the device's then. False if `write` of
// the plan is to do it.
bool adopt_torchs(const TorchOperation& operation, const PreparedPlan& plan, const PreparedContext& shared,
                  const Arguments& arguments, Passed* stack) {
  std::vector<Passed> given;
  if (!pass_to_host(plan, shared, arguments, given) || !call_on_host(operation, plan, given)) return false;
  const std::size_t count = operation.results.size();
  std::vector<OwnedTensor> hosts;
  for (std::size_t at = 0; at < count; ++at) hosts.emplace_back(handle(given[at]));
  for (std::size_t at = 0; at < count; ++at) {
    void* const managed = adopted(hosts[at].get(), plan.device(), plan.pool(), plan.index());
    if (managed != nullptr) {
      stack[at] =
          passed(new NewTensor(torch().from_dlpack(managed, [managed](void*) { free_dlpack_tensor(managed); })));
      continue;
    }
    const py::object object = Arguments::object(operation, hosts[at].get());
    stack[at] =
        passed_object(operation, operation.results[at], checked(PyObject_CallOneArg(plan.taken().ptr(), object.ptr())));
  }
  return true;
}

void call(const TorchOperation& operation, Prepared& prepared, Passed* stack) {
  Arguments arguments(operation.arguments, stack);
  CallKey key(prepared.by_address());
  std::shared_ptr<const PreparedPlan> plan;
  const bool is_ready = prepared.is_ready();
  const bool has_key = is_ready && arguments.add_to(key, prepared.shared(), prepared.takes_negated());
  const Prepared::Way way = has_key ? prepared.find(key, plan) : Prepared::Way::kPlain;
  std::optional<Results> results;
  if (way == Prepared::Way::kPlan && plan->adopts()) {
    if (adopt_torchs(operation, *plan, prepared.shared(), arguments, stack)) return;
  } else if (way == Prepared::Way::kPlan) {
    const PreparedPlan::Memory memory = plan->allocate();
    results.emplace(operation, *plan, memory, arguments.tensors());
    if (!plan->write()) plan->launch(prepared.shared(), memory, key.addresses);
    if (!plan->write() || call_torchs(operation, *plan, prepared.shared(), arguments, *results))
      return results->give(stack);
  }
  const py::tuple unpacked = checked(PyObject_CallOneArg(operation.unpack.ptr(), arguments.objects(operation).ptr()));
  const py::args args(unpacked[0]);
  const py::kwargs kwargs(unpacked[1]);
  if (results) {
    py::list made;
    for (const Passed one : results->made()) made.append(Arguments::object(operation, handle(one)));
    checked(PyObject_CallFunctionObjArgs(plan->write().ptr(), args.ptr(), kwargs.ptr(), made.ptr(), nullptr));
    return results->give(stack);
  }
  py::object result;
  if (way == Prepared::Way::kPlan)
    result = checked(PyObject_CallFunctionObjArgs(plan->write().ptr(), args.ptr(), kwargs.ptr(), nullptr));
  else if (way == Prepared::Way::kRecord && unpacked[2].ptr() == Py_True)
    result = prepared.record(key, args, kwargs, arguments.tensors(operation));
  else if (has_key || !is_ready)
    result = prepared.plainly(args, kwargs, way);
  else
    result = prepared(args, kwargs);
  give_objects(operation, result, stack);
}

// ---- Under an autocast ----------------------------------------------------------------------------------------------

// Makes this thread skip a dispatch key during its lifetime.
class WithoutKey {
 public:
  explicit WithoutKey(uint16_t key) : key_(key), was_excluded_(torch().is_key_excluded(key)) {
    torch().set_key_excluded(key_, true);
  }
  ~WithoutKey() { torch().set_key_excluded(key_, was_excluded_); }
  WithoutKey(const WithoutKey&) = delete;
  WithoutKey& operator=(const WithoutKey&) = delete;

 private:
  uint16_t key_;
  bool was_excluded_;
};

// The type that floats are cast to, or -1 where Python is to say.
int32_t cast_type(const Arguments& arguments, CastTo to) {
  static const auto ours = static_cast<int8_t>(our_device_type());
  bool is_known = true, has_single = false;
  arguments.each_tensor([&](Handle tensor) {
    if (number(torch().aoti_torch_get_device_type, tensor) != ours) return;
    const int32_t type = number(torch().aoti_torch_get_dtype, tensor);
    has_single |= type == kFloat32;
    is_known &= std::any_of(std::begin(kElementTypes), std::end(kElementTypes),
                            [=](const ElementType& one) { return one.torch == type; });
  });
  if (!is_known) return -1;
  return to == CastTo::kSingle || (to == CastTo::kWidest && has_single) ? kFloat32 : torch().autocast_type(ours);
}

// The tensor in that type, if it is of floats on our device and not of float64; else itself. A new reference, or null
// if torch gives an error.
Handle cast(Handle tensor, int32_t type) {
  const int32_t own = number(torch().aoti_torch_get_dtype, tensor);
  if ((own != kFloat16 && own != kFloat32 && own != kBfloat16) || own == type ||
      number(torch().aoti_torch_get_device_type, tensor) != our_device_type())
    return again(tensor);
  // (self, dtype, non_blocking, copy, memory_format)
  std::array<Passed, 5> stack{passed(again(tensor)), static_cast<uint32_t>(type)};
  const int error = torch().torch_call_dispatcher("aten::to", "dtype", stack.data(), kVersion);
  return error == 0 ? handle(stack[0]) : nullptr;
}

// False if torch gives an error.
bool call_cast(const TorchOperation& operation, const Arguments& arguments, CastTo to, uint16_t key, Passed* stack) {
  const WithoutKey without(key);
  const int32_t type = cast_type(arguments, to);
  std::vector<Passed> given;
  if (type < 0 || !arguments.pass_on([=](Handle tensor) { return cast(tensor, type); }, given)) return false;
  const std::size_t dot = operation.name.find('.');
  const std::string name = "aten::" + operation.name.substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : operation.name.substr(dot + 1);
  given.resize(std::max(given.size(), operation.results.size()));
  if (torch().torch_call_dispatcher(name.c_str(), overload.c_str(), given.data(), kVersion) != 0) return false;
  std::copy_n(given.begin(), operation.results.size(), stack);
  return true;
}

}  // namespace

py::object adopted_tensor(const py::object& host, Device& device, MemoryPool& pool, int index) {
  const OwnedTensor owned(PyCapsule_GetPointer(host.ptr(), PyCapsule_GetName(host.ptr())));
  if (owned == nullptr) throw py::error_already_set();
  void* const managed = adopted(owned.get(), device, pool, index);
  return managed == nullptr ? py::none() : dlpack_capsule(managed);
}

bool has_torch_operations() { return torch_interface() != nullptr; }

bool enter_prepared(TorchOperation operation, std::shared_ptr<Prepared> prepared, std::shared_ptr<FewElements> few) {
  const std::string name = operation.name;
  return enter_kernel(
      "PrivateUse1", name.c_str(),
      [operation = std::move(operation), prepared = std::move(prepared), few = std::move(few)](Passed* stack) {
        const WithGil locked;
        with_errors([&] {
          if (few == nullptr || !few->copy(stack)) call(operation, *prepared, stack);
        });
      });
}

bool enter_casting(TorchOperation operation, CastTo to, uint16_t key, py::object casting) {
  const std::string name = operation.name;
  return enter_kernel("AutocastPrivateUse1", name.c_str(),
                      [operation = std::move(operation), to, key, casting = std::move(casting)](Passed* stack) {
                        Arguments arguments(operation.arguments, stack);
                        if (call_cast(operation, arguments, to, key, stack)) return;
                        const WithGil locked;
                        PyErr_Clear();  // what went wrong may have been said in Python
                        const py::tuple unpacked =
                            checked(PyObject_CallOneArg(operation.unpack.ptr(), arguments.objects(operation).ptr()));
                        const py::object args = unpacked[0], kwargs = unpacked[1];
                        give_objects(operation, checked(PyObject_Call(casting.ptr(), args.ptr(), kwargs.ptr())), stack);
                      });
}

std::optional<int32_t> torch_constant(const std::string& name) {
  void* const library = platform::loaded_library(platform::kTorchCpu);
  void* const function = library == nullptr ? nullptr : platform::function_of(library, name.c_str());
  if (function == nullptr) return std::nullopt;
  return reinterpret_cast<int32_t (*)()>(function)();
}

}  // namespace triton_spirv
