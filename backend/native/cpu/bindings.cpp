#include <pybind11/stl.h>

#include <algorithm>

#include "../device_kinds.h"
#include "../gil.h"
#include "kernel.h"
#include "object.h"
#include "pool.h"
#include "symbols.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

PyObject* object_error = nullptr;

}  // namespace

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

  py::class_<Object, std::shared_ptr<Object>>(m, "CpuObject", "Machine code, loaded from a relocatable ELF object.")
      .def(py::init([](const py::bytes& file) { return std::make_shared<Object>(std::string_view(file)); }),
           py::arg("file"))
      .def_property_readonly("functions", &Object::functions, "The names of the functions that it defines.")
      .def("function", &Object::function, py::arg("name"), "The address of one of them.")
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
                          callable);
        std::string memory(image.bytes(), '\0');
        image.link(reinterpret_cast<std::byte*>(memory.data()), base);
        py::dict functions;
        for (const auto& [name, offset] : image.functions()) functions[py::str(name)] = offset;
        return py::make_tuple(py::bytes(memory), functions);
      },
      py::arg("file"), py::arg("machine"), py::arg("base"),
      "An object as it would lie at an address of a machine, x86-64 or aarch64: its bytes, and the offsets of its "
      "functions.");

  py::class_<Kernel>(m, "CpuKernel", "A kernel of a loaded object. `scratch`: bytes that a thread needs for a program.")
      .def(py::init([](std::shared_ptr<Object> object, const std::string& function, uint64_t scratch) {
             return std::make_unique<Kernel>(std::move(object), function, scratch);
           }),
           py::arg("object"), py::arg("function"), py::arg("scratch"))
      .def_property_readonly("handle", [](const Kernel& self) { return reinterpret_cast<uint64_t>(&self); })
      .def_property_readonly("program_ns", &Kernel::program_ns,
                             "How long a program took in earlier launches, in nanoseconds; 0 before the first.");

  py::class_<Pool>(m, "CpuPool", "Threads that share the programs of a launch.")
      .def(py::init<unsigned>(), py::arg("threads"))
      .def(
          "run",
          [](Pool& self, const Kernel& kernel, const std::string& block, std::array<uint32_t, 3> grid) {
            alignas(kBlockAlignment) std::byte copy[4096];
            if (block.size() > sizeof copy) throw py::value_error("the argument block is too long");
            std::copy_n(reinterpret_cast<const std::byte*>(block.data()), block.size(), copy);
            Launch launch{&kernel, copy, {grid[0], grid[1], grid[2]}};
            {
              const WithoutGil unlocked;
              self.run(launch);
            }
            return py::make_tuple(launch.fault.signal, launch.fault.address, launch.fault.pc, launch.fault.caller,
                                  launch.fault.wrote, launch.fault.overflow);
          },
          py::arg("kernel"), py::arg("block"), py::arg("grid"));
}

}  // namespace triton_spirv
