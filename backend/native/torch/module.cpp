// The Python module triton.backends.spirv._native_torch: torch's operations on the device. It uses _native.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "abi.h"
#include "torch/casting.h"
#include "torch/device_guard.h"
#include "torch/device_names.h"
#include "torch/dlpack.h"
#include "torch/few_elements.h"
#include "torch/prepared.h"
#include "torch/questions.h"
#include "torch/tensor_forms.h"
#include "torch/torch_operations.h"
#include "torch/torch_views.h"

namespace py = pybind11;
using namespace triton_spirv;

PYBIND11_MODULE(_native_torch, m) {
  m.doc() = "torch's operations on devices of Triton's SPIR-V backend: prepared calls, views, casts and DLPack.";

  py::class_<PreparedContext>(m, "PreparedContext", "What prepared operations share; see torch/ops/prepared.py.")
      .def(py::init([](const py::object& exchange, py::tuple tensor_types, py::tuple constant_types, py::object runtime,
                       py::object default_dtype, py::object from_dlpack, py::object writing, py::list before_reading,
                       py::object current, py::object device_type) {
             return std::make_unique<PreparedContext>(PreparedContext{
                 TensorReader(exchange), std::move(tensor_types), std::move(constant_types), std::move(runtime),
                 std::move(default_dtype), std::move(from_dlpack), std::move(writing), std::move(before_reading),
                 std::move(current), std::move(device_type)});
           }),
           py::kw_only(), py::arg("exchange"), py::arg("tensor_types"), py::arg("constant_types"), py::arg("runtime"),
           py::arg("default_dtype"), py::arg("from_dlpack"), py::arg("writing"), py::arg("before_reading"),
           py::arg("current"), py::arg("device_type"))
      .def("lists_key", &PreparedContext::lists_key, py::arg("lists"),
           "(bytes that stand for the lengths, types, sizes and strides, the addresses) of lists of tensors; None "
           "unless all are of real numbers and on one device.")
      .def("tensors_like", &PreparedContext::tensors_like, py::arg("tensors"), py::arg("device"), py::arg("pool"),
           py::arg("allocate"), "New tensors of the types, sizes and strides of these; None where torch is to choose.")
      .def(
          "prepared",
          [](const PreparedContext& self, py::object run, py::object record, bool by_address, bool takes_negated) {
            auto operation =
                std::make_shared<Prepared>(&self, std::move(run), std::move(record), by_address, takes_negated);
            return python_function(std::move(operation));
          },
          py::keep_alive<0, 1>(), py::kw_only(), py::arg("run"), py::arg("record"), py::arg("by_address"),
          py::arg("takes_negated"),
          "An operation that does calls like earlier ones again. `run`: the operation; `record`: (args, kwargs, their "
          "tensors) → (its result, a PreparedPlan or None); `by_address`: it has tables of its tensors' addresses.")
      .def(
          "enter",
          [](const PreparedContext& self, py::object run, py::object record, bool by_address, bool takes_negated,
             TorchOperation operation, std::shared_ptr<FewElements> few) {
            auto prepared =
                std::make_shared<Prepared>(&self, std::move(run), std::move(record), by_address, takes_negated);
            return enter_prepared(std::move(operation), std::move(prepared), std::move(few));
          },
          py::kw_only(), py::arg("run"), py::arg("record"), py::arg("by_address"), py::arg("takes_negated"),
          py::arg("operation"), py::arg("few"),
          "Enter such an operation as a native kernel of torch, which calls `run` and `record` for calls unlike "
          "earlier ones. `few`: does copies of a few elements. False where no kernel is left, and nothing was "
          "entered.");

  py::class_<FewElements, std::shared_ptr<FewElements>>(
      m, "FewElements", "Copies of a few elements, and numbers that are read; see torch/device/tensor_memory.py.")
      .def(py::init([](const py::object& exchange, py::object native_of, py::object before_reading, py::object writing,
                       uint64_t most, py::object read_otherwise) {
             return std::make_shared<FewElements>(FewElements{TensorReader(exchange), std::move(native_of),
                                                              std::move(before_reading), std::move(writing), most,
                                                              std::move(read_otherwise)});
           }),
           py::kw_only(), py::arg("exchange"), py::arg("native_of"), py::arg("before_reading"), py::arg("writing"),
           py::arg("most"), py::arg("read_otherwise"))
      .def("item", &FewElements::item, py::arg("tensor"), "aten::_local_scalar_dense.");

  py::class_<TensorForms>(m, "TensorForms",
                          "What kernels depend on of tensors, which are given as dicts, tuples or lists.")
      .def(py::init([](const py::object& exchange, py::object from_dlpack, py::object allocate) {
             return std::make_unique<TensorForms>(
                 TensorForms{TensorReader(exchange), std::move(from_dlpack), std::move(allocate)});
           }),
           py::kw_only(), py::arg("exchange"), py::arg("from_dlpack"), py::arg("allocate"))
      .def("fault", &TensorForms::fault, py::arg("outputs"), py::arg("tensors"), py::arg("has_float64"),
           "Why no kernel can read the tensors and write the outputs; None if one can.")
      .def("are_alike", &TensorForms::are_alike, py::arg("outputs"), py::arg("tensors"),
           "Whether all are of one shape and on one device, without gaps.")
      .def("roles", &TensorForms::roles, py::arg("outputs"), py::arg("tensors"), py::arg("shape"), py::arg("outside"),
           "Whether each, without gaps, has all elements of `shape`, one of each row or one of each column (b'arc'), "
           "where the first `outside` dimensions are those of rows. None if one has others, or devices differ.")
      .def("walks", &TensorForms::walks, py::arg("outputs"), py::arg("tensors"), py::arg("shape"), py::arg("groups"),
           "For each group of dimensions of `shape`, what collapsed() gives of these and all tensors, broadcast to it.")
      .def("new_tensor", &TensorForms::new_tensor, py::arg("sizes"), py::arg("strides"), py::arg("code"),
           py::arg("bytes"), py::arg("device"), py::arg("pool"), py::arg("context"),
           "A tensor over new memory, contiguous without strides. None of sizes that cannot be.");
  m.def("overlaps_itself", py::overload_cast<const py::object&, const py::object&>(&overlaps_itself), py::arg("shape"),
        py::arg("strides"), "Whether two elements may share memory, so that it cannot be written in parallel.");
  m.def("expanded", &expanded, py::arg("shape"), py::arg("strides"), py::arg("to"),
        "Strides with which a tensor is read as of shape `to`: 0 where it is repeated, and any where there is one "
        "element. Raises RuntimeError, as torch does, where it cannot be.");
  m.def("collapsed", &collapsed, py::arg("shape"), py::arg("strides"),
        "(sizes, strides of each): the elements with as few dimensions as can be, the last of which is the one that "
        "the first of the `strides` steps through fastest. One element has no dimensions.");
  m.def("address_values", &address_values, py::arg("own"), py::arg("walks"), py::arg("narrow"),
        "(the integers that addresses are made of, bytes that say which strides are 0, 1 or others, whether more than "
        "`narrow` elements are walked or lie between two).");
  m.def("form_of_integers", &form_of_integers, py::arg("strides"), py::arg("heeded"), py::arg("others"),
        py::arg("kinds"),
        "(whether one is wider than 32 bits, whether strides but for 1 and what is heeded are multiples of 16, which "
        "strides are 1, and the kinds).");

  py::class_<CastingContext>(m, "CastingContext",
                             "What operations under an autocast share; see torch/device/autocast.py.")
      .def(py::init([](const py::object& exchange, py::tuple tensor_types, py::tuple types, py::object key,
                       py::object excluded, py::object exclude, py::object cast) {
             return std::make_unique<CastingContext>(
                 CastingContext{TensorReader(exchange), std::move(tensor_types), std::move(types), std::move(key),
                                std::move(excluded), std::move(exclude), std::move(cast)});
           }),
           py::kw_only(), py::arg("exchange"), py::arg("tensor_types"), py::arg("types"), py::arg("key"),
           py::arg("excluded"), py::arg("exclude"), py::arg("cast"),
           "`types`: torch.float16, bfloat16, float32; `excluded`: (key) → whether this thread passes it over; "
           "`exclude`: (key, whether it is to); `cast`: (value, type) → the value in the type.")
      .def(
          "casting",
          [](const CastingContext& self, py::object op, py::object choose) {
            const Casting operation(&self, std::move(op), std::move(choose));
            return py::cpp_function(
                [operation](const py::args& args, const py::kwargs& kwargs) { return operation(args, kwargs); });
          },
          py::keep_alive<0, 1>(), py::arg("op"), py::arg("choose"),
          "The operation `op`, with floats in the type that `choose`: (args, kwargs) → type says.");

  py::enum_<PreparedPlan::Owner>(m, "Owner", "Whose the memory of a PreparedRange is.")
      .value("ARGUMENT", PreparedPlan::Owner::kArgument)
      .value("ALLOCATION", PreparedPlan::Owner::kAllocation)
      .value("STAYING", PreparedPlan::Owner::kStaying);

  py::class_<PreparedPlan::Range>(m, "PreparedRange", "Memory, [begin, end), of an argument or allocation by number.")
      .def(py::init([](uint64_t begin, uint64_t end, PreparedPlan::Owner owner, std::size_t number) {
             return PreparedPlan::Range{begin, end, owner, number};
           }),
           py::arg("begin"), py::arg("end"), py::arg("owner"), py::arg("number") = 0);

  py::class_<PreparedPlan, std::shared_ptr<PreparedPlan>>(m, "PreparedPlan",
                                                          "What a call allocated, launched and returned.")
      .def(py::init<std::shared_ptr<Device>, int, std::shared_ptr<MemoryPool>, py::object, std::vector<uint64_t>>(),
           py::kw_only(), py::arg("device"), py::arg("index"), py::arg("pool"), py::arg("allocate"),
           py::arg("allocations"))
      .def("add_launch", &PreparedPlan::add_launch, py::kw_only(), py::arg("launcher"), py::arg("function"),
           py::arg("grid"), py::arg("arguments"), py::arg("ranges"), py::arg("kept"),
           "False, with nothing added, where a pointer is in none of the ranges.")
      .def("add_copy", &PreparedPlan::add_copy, py::arg("to"), py::arg("from_"), py::arg("bytes"), py::arg("ranges"))
      .def("add_fill", &PreparedPlan::add_fill, py::arg("address"), py::arg("bytes"), py::arg("word"),
           py::arg("ranges"))
      .def("add_effect", &PreparedPlan::add_effect, py::arg("effect"), "A call without arguments behind the launches.")
      .def("add_constant", &PreparedPlan::add_constant, py::arg("value"))
      .def("add_argument", &PreparedPlan::add_argument, py::arg("number"))
      .def("add_again", &PreparedPlan::add_again, py::arg("number"))
      .def("add_tensor", &PreparedPlan::add_tensor, py::kw_only(), py::arg("allocation"), py::arg("code"),
           py::arg("bytes"), py::arg("sizes"), py::arg("strides"))
      .def("set_tuple", &PreparedPlan::set_tuple, py::arg("is_tuple"))
      .def(
          "set_torchs", &PreparedPlan::set_torchs, py::arg("overload"), py::arg("write"), py::arg("taken"),
          "Torch's own kernel does it: by an overload, or None, and by `write`: (args, kwargs, results). With `taken`: "
          "(a tensor on the CPU) → its copy, it makes the results, and `write`: (args, kwargs) → them.");

  m.attr("ABI_VERSION") = kAbiVersion;
  m.def("are_aligned", &are_aligned, py::arg("addresses"), py::arg("alignment"),
        "Whether each of these 64-bit integers is a multiple of `alignment`.");
  m.def("outputs_overlap", &outputs_overlap, py::arg("addresses"), py::arg("extents"), py::arg("places"),
        py::arg("outputs"),
        "Whether one of the first `outputs` lists of `places` tensors shares memory with another, or with what is read "
        "but for the same memory at the same place. `addresses`, `extents` (bytes): 64-bit integers, list after list.");
  py::class_<PassedType>(m, "PassedType", "What torch's C interface passes for an argument or a result.")
      .def(py::init([](char base, bool is_list, bool is_optional) {
             return PassedType{static_cast<PassedType::Base>(base), is_list, is_optional};
           }),
           py::arg("base"), py::kw_only(), py::arg("is_list"), py::arg("is_optional"));
  py::class_<TorchOperation>(m, "TorchOperation", "An operation of torch; see torch/device/native_kernels.py.")
      .def(py::init([](std::string name, std::vector<PassedType> arguments, std::vector<PassedType> results,
                       py::object unpack, py::object tensors_of, py::object handle_of) {
             return TorchOperation{std::move(name),   std::move(arguments),  std::move(results),
                                   std::move(unpack), std::move(tensors_of), std::move(handle_of)};
           }),
           py::kw_only(), py::arg("name"), py::arg("arguments"), py::arg("results"), py::arg("unpack"),
           py::arg("tensors_of"), py::arg("handle_of"));
  py::enum_<CastTo>(m, "CastTo", "What floats are cast to under an autocast.")
      .value("LOWER", CastTo::kLower)
      .value("SINGLE", CastTo::kSingle)
      .value("WIDEST", CastTo::kWidest);
  m.def("enter_casting", &enter_casting, py::arg("operation"), py::arg("to"), py::arg("key"), py::arg("casting"),
        "Enter an operation under an autocast as a native kernel of torch. `casting` does in Python what goes wrong.");
  m.def("has_torch_operations", &has_torch_operations, "Whether this torch passes calls to native kernels.");
  m.def("torch_constant", &torch_constant, py::arg("name"),
        "What a function of torch's C interface such as \"aoti_torch_dtype_uint8\" gives; None without the function.");
  m.def("watch_questions", &watch_questions, py::arg("type"), py::arg("names"), py::arg("answered"), py::arg("asked"),
        "Have `asked` called with each object of which one of these methods of `type` is called while this thread "
        "records a call, unless the code that calls it is in the set `answered`.");
  m.def("enter_torch_views", &enter_torch_views,
        "Enter torch's views of tensors on the device as native kernels. False where this torch has no C interface for "
        "it, and nothing was entered.");
  m.def("guard_without_python", &guard_without_python, py::arg("functions"),
        "Have torch's guard of the device answer without Python. `functions`: its virtual functions in their order. "
        "False where nothing was replaced.");
  m.def("take_name", &take_name, py::arg("other"), py::arg("own"), py::arg("whether"),
        "While `whether` is true, devices of the kind of `other` equal those of the kind of `own` with the same index, "
        "and torch asks one guard for both. Both: a torch.device with index 3. False where nothing was changed.");
  m.def(
      "adopted_tensor", &adopted_tensor, py::arg("host"), py::arg("device"), py::arg("pool"), py::arg("index"),
      "A DLPack capsule of a tensor of the device in the memory of one on the CPU, a capsule of whose handle is given. "
      "None where something else may refer to that.");
  m.def(
      "dlpack_capsule",
      py::overload_cast<std::shared_ptr<Allocation>, std::vector<int64_t>, std::vector<int64_t>, int, uint8_t, uint8_t>(
          &dlpack_capsule),
      py::arg("memory"), py::arg("shape"), py::arg("strides"), py::arg("device"), py::arg("code"), py::arg("bits"),
      "A DLPack capsule over an Allocation, which it keeps.");
}
