// The CPU device in the Python module.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "cpu/cpu_device.h"
#include "cpu/emulated_counts.h"
#include "cpu/emulation.h"
#include "cpu/object.h"
#include "device_kinds.h"
#include "gil.h"
#include "platform/platform.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

PyObject* object_error = nullptr;
PyObject* kernel_fault = nullptr;
// Called with a fault's kernel, places and message; returns the message for the user. Never freed.
PyObject* describe_fault = nullptr;

py::list places_of(const cpu::Fault& fault) {
  py::list places;
  for (const uint64_t place : fault.places)
    if (place != 0) places.append(place);
  return places;
}

}  // namespace

bool set_cpu_error(const DeviceError& error) {
  const auto* const raised = dynamic_cast<const KernelFault*>(&error);
  if (raised == nullptr) return false;
  py::object message = py::str(error.what());
  if (describe_fault != nullptr)
    message = py::reinterpret_borrow<py::object>(describe_fault)(raised->kernel, places_of(raised->fault), message);
  py::object value = py::reinterpret_borrow<py::object>(kernel_fault)(message);
  value.attr("kernel") = raised->kernel;
  value.attr("signal") = raised->fault.signal;
  value.attr("address") =
      raised->fault.has_address ? py::object(py::int_(raised->fault.address)) : py::object(py::none());
  value.attr("overflow") = raised->fault.overflow;
  value.attr("places") = places_of(raised->fault);
  raise_device_error(kernel_fault, value, error);
  return true;
}

void bind_cpu(py::module_& m) {
  using namespace cpu;

  object_error =
      PyErr_NewExceptionWithDoc("triton.backends.spirv._native.ObjectError",
                                "An object's file cannot be loaded: what is wrong with it.", PyExc_ValueError, nullptr);
  m.add_object("ObjectError", py::reinterpret_borrow<py::object>(object_error));
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const ObjectError& error) {
      PyErr_SetString(object_error, error.what());
    }
  });
  kernel_fault = PyErr_NewExceptionWithDoc("triton.backends.spirv._native.KernelFault",
                                           "A kernel on the CPU raised a signal, and its launch ended. `kernel` is its "
                                           "handle, `signal` the signal's number, "
                                           "`address` what was accessed, or None, `overflow` whether the stack was "
                                           "full, and `places` the instruction in its "
                                           "object, if it is there, and where its function was probably called from.",
                                           py::object(m.attr("DeviceError")).ptr(), nullptr);
  m.add_object("KernelFault", py::reinterpret_borrow<py::object>(kernel_fault));

  m.def(
      "describe_faults",
      [](const py::object& call) {
        Py_XDECREF(describe_fault);
        describe_fault = call.inc_ref().ptr();
      },
      py::arg("call"),
      "Call this with a fault's kernel (its handle), places (addresses in its object) and message, for the message "
      "that "
      "the error gets.");
  m.def("processor_level", processor_level,
        "The highest of the psABI's levels of x86-64 that this processor and its system have, or 'aarch64'.");

  py::class_<Object, std::shared_ptr<Object>>(m, "CpuObject", "Machine code, loaded from a relocatable ELF object.")
      .def(py::init([](const py::bytes& file) { return load_object(std::string_view(file)); }), py::arg("file"))
      .def_property_readonly("functions", &Object::functions, "The names of the functions that it defines.")
      .def("function", function_of, py::arg("name"), "The address of one of them.")
      .def_property_readonly("address", &Object::address)
      .def_property_readonly("bytes", &Object::bytes, "How much memory it takes.")
      .def(
          "place",
          [](const Object& self, uint64_t address) -> py::object {
            const auto place = self.place(address);
            if (!place) return py::none();
            return py::make_tuple(place->section, place->name, place->offset);
          },
          py::arg("address"),
          "The section of an address in the code: its number, its name, and the offset in it; None for another "
          "address.");
  m.def(
      "link_object",
      [](const py::bytes& file, const std::string& machine, uint64_t base) {
        const Image image(std::string_view(file), machine == "aarch64" ? Machine::kAArch64 : Machine::kX86_64, 4096,
                          resolve);
        if (!image.fault().empty()) throw ObjectError(image.fault());
        std::string memory(image.bytes(), '\0');
        const std::string fault = image.link(reinterpret_cast<std::byte*>(memory.data()), base);
        if (!fault.empty()) throw ObjectError(fault);
        py::dict functions;
        for (const auto& [name, offset] : image.functions()) functions[py::str(name)] = offset;
        return py::make_tuple(py::bytes(memory), functions);
      },
      py::arg("file"), py::arg("machine"), py::arg("base"),
      "An object as it would lie at an address of a machine, x86-64 or aarch64: its bytes, and the offsets of its "
      "functions.");

  platform::set_main_thread(py::module_::import("threading").attr("main_thread")().attr("ident").cast<uint64_t>());

  m.def("set_subgroup_order", set_subgroup_order, py::arg("seed"),
        "From now on the subgroups of emulated devices run in another order; 0: ascending.");
  m.def("set_counted_banks", set_counted_banks, py::arg("banks"),
        "What kernels of emulated devices do is counted from now on, with so many banks of shared memory; 0: no more.");
  py::class_<Sharing>(m, "CpuSharing", "How many threads are fastest, as a kernel's launches tell.")
      .def(py::init<unsigned>(), py::arg("threads"))
      .def_property_readonly("threads", &Sharing::threads)
      .def("add", &Sharing::add, py::arg("ns"));
  py::class_<Watch>(m, "CpuWatch", "How a kernel is watched for races between its programs (kernel.h).")
      .def(py::init([](bool twice, bool equal, uint32_t shift, uint32_t reports, uint32_t part, uint32_t bytes,
                       uint32_t first_program, std::vector<uint32_t> pointers) {
             return Watch{true, twice, equal, shift, reports, part, bytes, first_program, std::move(pointers)};
           }),
           py::kw_only(), py::arg("twice"), py::arg("equal"), py::arg("shift"), py::arg("reports"), py::arg("part"),
           py::arg("bytes"), py::arg("first_program"), py::arg("pointers"));
  py::class_<Kernel>(m, "CpuKernel", "A kernel of a loaded object. `scratch`: bytes that a thread needs for a program.")
      .def(py::init([](std::shared_ptr<Object> object, const std::string& function, uint64_t scratch,
                       const Watch* watch, bool contends) {
             return std::make_unique<Kernel>(std::move(object), function, scratch, watch == nullptr ? Watch{} : *watch,
                                             contends);
           }),
           py::arg("object"), py::arg("function"), py::arg("scratch"), py::arg("watch") = nullptr,
           py::arg("contends") = false)
      .def_property_readonly("contends", &Kernel::contends, "Whether its programs may wait for each other.")
      .def_property_readonly(
          "handle", [](const Kernel& self) { return reinterpret_cast<uint64_t>(&self); }, "What launches name it by.")
      .def_property_readonly("program_ns", &Kernel::program_ns,
                             "How long a program took in earlier launches, in nanoseconds; 0 before the first.")
      .def_property_readonly("counts", &Kernel::counts,
                             "What its launches did, as far as it was counted: instructions, barriers, bytes read and "
                             "written, steps of the banks of shared memory, and the fewest possible.");

  py::class_<CpuDevice, Device, std::shared_ptr<CpuDevice>>(
      m, "CpuDevice", "The processor as a device. `threads`: how many share a launch.")
      .def(py::init<unsigned, uint64_t, bool, bool>(), py::kw_only(), py::arg("threads"), py::arg("timeout_ns"),
           py::arg("host_addresses") = true, py::arg("emulates") = false)
      .def_property_readonly("threads", &CpuDevice::threads)
      .def("wait", &CpuDevice::wait, py::arg("value"), py::call_guard<WithoutGil>(),
           "Wait until the timeline has reached a value. Raises the error of a launch that nobody waited for.")
      .def(
          "launch",
          [](CpuDevice& self, const Kernel& kernel, const py::bytes& block, std::array<uint32_t, 3> grid,
             const std::string& name, bool waits) {
            const std::string_view bytes(block);
            const Dispatch dispatch{reinterpret_cast<KernelHandle>(&kernel),
                                    {grid[0], grid[1], grid[2]},
                                    reinterpret_cast<const std::byte*>(bytes.data()),
                                    static_cast<uint32_t>(bytes.size()),
                                    false,
                                    kernel_label(name)};
            const WithoutGil unlocked;
            if (!waits) return static_cast<Device&>(self).launch(dispatch);
            self.run(dispatch, {});
            return self.submitted();
          },
          py::arg("kernel"), py::arg("block"), py::arg("grid"), py::kw_only(), py::arg("name"), py::arg("waits") = true,
          "Launch a kernel with an argument block, and wait for it if `waits`. Returns the timeline's value when it is "
          "done.");
}

}  // namespace triton_spirv
