// Operations of torch that repeat an earlier call: they allocate, launch and return the same, for other tensors of the
// same kinds.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "launcher.h"
#include "memory_pool.h"
#include "torch/dlpack.h"

namespace triton_spirv {

// The objects of torch and Triton that a process's operations share. Made once and never freed.
struct PreparedContext {
  TensorReader reader;
  pybind11::tuple tensor_types;    // whose objects are plain tensors
  pybind11::tuple constant_types;  // types with one object for each value, which is never freed
  pybind11::object runtime;        // triton.knobs.runtime
  pybind11::object default_dtype;  // torch.get_default_dtype
  pybind11::object from_dlpack;    // torch._C._from_dlpack
  pybind11::object writing;        // tensor_memory.WRITING
  pybind11::list before_reading;   // tensor_memory.BEFORE_READING
  pybind11::object current;        // () → the current device's index
  pybind11::object device_type;    // torch.device

  // Returns (key, addresses) of lists of tensors. Keys are equal if lengths, types, sizes and strides are equal.
  // Returns None unless all are tensors of real numbers on one of our devices. The lists are lists or tuples.
  pybind11::object lists_key(const pybind11::tuple& lists) const;
  // Makes tensors with the types, sizes and strides of these. Returns None unless all have real numbers, are on the
  // device with that index, and fill their memory. `allocate`: (bytes) → an Allocation, if the pool has no idle memory.
  pybind11::object tensors_like(const pybind11::sequence& tensors, int device, MemoryPool& pool,
                                const pybind11::object& allocate) const;
};

// Whether each of `addresses` is a multiple of `alignment`. They are the addresses of several lists of tensors, one
// list after the other.
bool are_aligned(std::string_view addresses, uint64_t alignment);
// Whether one of the first `outputs` lists shares memory with another of them or with a list that is read. The same
// memory at the same place of a list that is read does not count. `extents`: the bytes of each tensor. Both strings
// hold 64-bit integers, `places` for each list.
bool outputs_overlap(std::string_view addresses, std::string_view extents, std::size_t places, std::size_t outputs);

// A call's memory, launches and result. Made by backend/torch/ops/prepared.py.
class PreparedPlan {
 public:
  // `allocate`: (bytes) → an Allocation, if the pool has no idle memory. `index`: the device's index.
  PreparedPlan(std::shared_ptr<Device> device, int index, std::shared_ptr<MemoryPool> pool, pybind11::object allocate,
               std::vector<uint64_t> allocations);

  // Memory of the call, [begin, end). It belongs to a tensor argument or an allocation, given by its number, or it
  // outlives the plan.
  enum class Owner : uint8_t { kArgument, kAllocation, kStaying };
  struct Range {
    uint64_t begin, end;
    Owner owner;
    std::size_t number;
  };

  // Each adds the next step. Returns false and adds nothing if an address is in none of the ranges. `kept` lives as
  // long as the plan.
  bool add_launch(std::shared_ptr<Launcher> launcher, uint64_t function, const std::array<uint32_t, 3>& grid,
                  const pybind11::tuple& arguments, const std::vector<Range>& ranges, pybind11::object kept);
  bool add_copy(uint64_t to, uint64_t from, uint64_t bytes, const std::vector<Range>& ranges);
  bool add_fill(uint64_t address, uint64_t bytes, uint32_t word, const std::vector<Range>& ranges);
  // Adds a call without arguments that runs after the steps.
  void add_effect(pybind11::object effect) { effects_.push_back(std::move(effect)); }
  // Each adds a result: an object, a tensor argument by its number, an earlier result by its number, or a tensor over
  // an allocation.
  void add_constant(pybind11::object value) {
    results_.push_back({Result::Kind::kConstant, 0, 0, 0, {}, {}, std::move(value)});
  }
  void add_argument(std::size_t number) { results_.push_back({Result::Kind::kArgument, number, 0, 0, {}, {}, {}}); }
  void add_again(std::size_t number) { results_.push_back({Result::Kind::kAgain, number, 0, 0, {}, {}, {}}); }
  void add_tensor(std::size_t allocation, uint8_t code, uint8_t bytes, std::vector<int64_t> sizes,
                  std::vector<int64_t> strides);
  // Whether the results form one tuple.
  void set_tuple(bool is_tuple) { is_tuple_ = is_tuple; }
  // Says that torch's own kernel does the operation: by that overload of it, or none where torch's C interface cannot
  // call it, and by `write`: (args, kwargs, results). The kernel writes the results, which are tensors; or it `adopts`
  // what it makes: `write` then takes (args, kwargs) and gives results, and `taken`: (a tensor on the CPU) → its copy.
  void set_torchs(std::optional<std::string> overload, pybind11::object write, pybind11::object taken) {
    overload_ = std::move(overload), write_ = std::move(write), taken_ = std::move(taken);
  }
  const std::optional<std::string>& overload() const { return overload_; }
  const pybind11::object& write() const { return write_; }
  bool adopts() const { return !taken_.is_none(); }
  const pybind11::object& taken() const { return taken_; }

  struct Result {
    enum class Kind { kConstant, kArgument, kAgain, kTensor };
    Kind kind;
    std::size_t number;
    uint8_t code, bytes;
    std::vector<int64_t> sizes, strides;
    pybind11::object value;
  };
  using Memory = std::vector<std::shared_ptr<Allocation>>;

  // A call does these in this order: its memory, its results, which the caller makes, and its steps for tensors at
  // `addresses`. If one of the first two raises, nothing has been done.
  Memory allocate() const;
  const std::vector<Result>& results() const { return results_; }
  void launch(const PreparedContext& shared, const Memory& memory, const std::vector<uint64_t>& addresses) const;
  // The results as Python objects, for these tensors.
  pybind11::object made(const PreparedContext& shared, const Memory& memory,
                        const std::vector<PyObject*>& tensors) const;
  Device& device() const { return *device_; }
  MemoryPool& pool() const { return *pool_; }
  bool is_refused() const;  // a kernel of it, by the device, since it was made
  int index() const { return index_; }

 private:
  struct Patch {
    uint32_t offset;  // in the block
    Owner owner;
    std::size_t number;
    uint64_t distance;  // from the start of the owner's memory
  };
  // A launch. Without a launcher, a copy or a fill of `bytes`, whose block has one or two addresses.
  struct Step {
    std::shared_ptr<Launcher> launcher;
    KernelHandle kernel;
    std::array<uint32_t, 3> grid;
    pybind11::object kept;
    uint64_t bytes;
    uint32_t word;
    std::vector<std::byte> block;
    std::vector<Patch> patches;
  };
  bool add_patch(Step& step, uint32_t offset, const std::vector<Range>& ranges) const;
  void submit(const Step& step, const std::byte* block) const;

  std::shared_ptr<Device> device_;
  int index_;
  std::shared_ptr<MemoryPool> pool_;
  pybind11::object allocate_;
  std::vector<uint64_t> allocations_;
  std::vector<Step> steps_;
  std::vector<Result> results_;
  std::vector<pybind11::object> effects_;
  bool is_tuple_ = false;
  std::optional<std::string> overload_;
  pybind11::object write_;  // null: the steps do
  pybind11::object taken_ = pybind11::none();
};

// The properties of a call that decide its kind, and the values of its numbers.
class CallKey {
 public:
  explicit CallKey(bool by_address) : by_address_(by_address) { kind.reserve(256); }

  std::string kind, numbers;
  std::vector<uint64_t> addresses;  // of its tensors

  template <typename T>
  static void append(std::string& key, const T& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void add_text(std::string_view text);
  // Adds a tensor. `object` tells tensors apart. Returns false if such a call cannot be prepared.
  bool add_tensor(const TensorView& view, const void* object);
  // Adds how the tensors overlap. Call it last.
  void add_distances();

 private:
  struct Span {
    uint64_t begin, end;
    const void* object;
  };
  bool by_address_;
  std::vector<Span> spans_;  // memory of the tensors; empty by address, because the kind then has the addresses
};

// An operation. Calls are of one kind if all of the following are equal: the structure of the arguments; the element
// type, device, sizes, strides and place within 16 bytes of each tensor, and the distances between overlapping tensors;
// flags, text and lists of numbers; torch's default element type. For each kind, calls with a few values of the other
// numbers are kept.
//
// The first call of a kind is not recorded: sizes that never come again cost no recording and leave nothing.
//
// An operation `by_address` keeps tables of its tensors' addresses in device memory, so addresses are part of its
// kinds.
class Prepared {
 public:
  // `run`: the operation. `record`: (args, kwargs, tensors) → (its result, a plan or None).
  // `takes_negated`: whether lazily negated tensors reach it.
  Prepared(const PreparedContext* shared, pybind11::object run, pybind11::object record, bool by_address,
           bool takes_negated);

  pybind11::object operator()(const pybind11::args& args, const pybind11::kwargs& kwargs);

  // The parts of a call, for callers that have its key. They hold Python's lock.
  //
  // Whether calls may be done like earlier ones now.
  bool is_ready() const;
  // How a call is done: like an earlier one, by `run` while it is recorded, by `run` alone, or so as the first of its
  // kind, within which no operation looks for a plan of its own either.
  enum class Way { kPlan, kRecord, kPlain, kFirst };
  Way find(const CallKey& key, std::shared_ptr<const PreparedPlan>& plan);
  // `tensors`: those of the key, in its order.
  pybind11::object record(CallKey& key, const pybind11::args& args, const pybind11::kwargs& kwargs,
                          const pybind11::list& tensors);
  pybind11::object plainly(const pybind11::args& args, const pybind11::kwargs& kwargs, Way way = Way::kPlain) const;
  const PreparedContext& shared() const { return *shared_; }
  bool by_address() const { return by_address_; }
  bool takes_negated() const { return takes_negated_; }

 private:
  struct Kind {
    std::vector<std::pair<std::string, std::shared_ptr<const PreparedPlan>>> plans;  // by the numbers' values
    unsigned failures = 0;  // consecutive recordings without a plan
    bool gave_up = false;
  };
  using Kinds = std::list<std::pair<const std::string, Kind>>;
  struct Call;

  // Whether a kind is asked about for the first time. A collision of digests may make this wrong.
  bool is_new(const std::string& kind);
  // A kind, which then is the one used last; null if it is not kept.
  Kind* used(const std::string& kind);

  const PreparedContext* shared_;
  pybind11::object run_, record_;
  bool by_address_, takes_negated_;
  Kinds kinds_;  // the one used last comes first
  std::unordered_map<std::string_view, Kinds::iterator> by_name_;
  std::unordered_set<std::size_t> seen_;  // digests of kinds
  unsigned failures_ = 0;                 // kinds that gave up before any kind was prepared
};

// The operation as a function of Python, which pybind11's would take a tenth of a microsecond more to call.
pybind11::object python_function(std::shared_ptr<Prepared> operation);

}  // namespace triton_spirv
