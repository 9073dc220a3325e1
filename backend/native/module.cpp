// The Python module triton.backends.spirv._native.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "device.h"
#include "device_kinds.h"
#include "event.h"
#include "gil.h"
#include "launcher.h"
#include "memory_pool.h"
#include "platform/platform.h"
#include "recording.h"
#include "relaunch.h"
#include "specialization.h"

namespace py = pybind11;
using namespace triton_spirv;

namespace {

// Runs `wait` without the GIL, and then releases what finished work used.
template <typename Wait>
void without_gil(Device& device, Wait wait) {
  {
    const WithoutGil unlocked;
    wait();
  }
  device.let_go();
}

// Called with the GIL before an error reports a failed device. Never freed.
PyObject* when_failed = nullptr;

void tell_of_failure() {
  if (when_failed == nullptr) return;
  const py::object result = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(when_failed));
  if (!result) PyErr_WriteUnraisable(when_failed);
}

PyObject* device_error = nullptr;

// Makes Ctrl-C end a wait.
void check_signals() {
  const WithGil locked;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

void triton_spirv::raise_device_error(PyObject* type, const py::object& value, const DeviceError& error) {
  value.attr("no_memory") = error.kind == DeviceError::Kind::kNoMemory;
  if (error.abandons()) tell_of_failure();
  PyErr_SetObject(type, value.ptr());
}

void triton_spirv::set_device_error(const DeviceError& error) {
  if (set_vulkan_error(error) || set_cpu_error(error)) return;
  raise_device_error(device_error, py::reinterpret_borrow<py::object>(device_error)(error.what()), error);
}

PYBIND11_MODULE(_native, m) {
  m.doc() = "The launch path of Triton's SPIR-V backend: packs arguments and submits dispatches.";
  Device::while_waiting = check_signals;

  device_error = PyErr_NewExceptionWithDoc(
      "triton.backends.spirv._native.DeviceError",
      "A device could not do what it was asked for. `no_memory`: memory that is given back may help.",
      PyExc_RuntimeError, nullptr);
  m.add_object("DeviceError", py::reinterpret_borrow<py::object>(device_error));
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const DeviceError& error) {
      set_device_error(error);
    }
  });

  py::class_<Buffer>(m, "Buffer", "A range of a device's memory.")
      .def("free", &Buffer::free, py::call_guard<WithoutGil>(),
           "Give the memory back once all submitted work is done. A second call does nothing.")
      .def_property_readonly("bytes", &Buffer::bytes)
      .def_property_readonly("address", &Buffer::address, "Its device address; 0 once freed.")
      .def_property_readonly(
          "host", [](const Buffer& self) { return reinterpret_cast<uint64_t>(self.host()); },
          "Its mapped host address; 0 where it is not mapped.");

  py::class_<Device, std::shared_ptr<Device>>(m, "Device", "An open device: memory, and work that runs in order.")
      .def(
          "stop",
          [](Device& self) {
            bool stopped = false;
            without_gil(self, [&] { stopped = self.stop(); });
            return stopped;
          },
          "Refuse launches and allocations from now on, and wait for all work. False where a dispatch never ended, or "
          "in "
          "a forked child.")
      .def("calls_returned", &Device::calls_returned, py::call_guard<WithoutGil>(),
           "Wait for calls of other threads, for a limited time: whether all have returned.")
      .def(
          "close",
          [](Device& self) {
            bool closed = false;
            without_gil(self, [&] { closed = self.close(); });
            return closed;
          },
          "Stop, wait for calls of other threads and destroy what this object made; the handles stay the owner's. "
          "False, "
          "with nothing destroyed, where a dispatch never ended, a call does not return, or in a forked child.")
      .def(
          "forget", [](Device& self, KernelHandle kernel) { self.forget(kernel); }, py::arg("kernel"),
          py::call_guard<WithoutGil>(),
          "Forget the launches of a kernel that is destroyed next. None of them may be running.")
      .def("check_usable", &Device::check_usable, "Raise RuntimeError in a forked child, or once closed.")
      .def(
          "allocate_device",
          [](Device& self, uint64_t bytes, bool read) {
            return self.allocate(bytes, read ? MemoryKind::kRead : MemoryKind::kDevice);
          },
          py::arg("bytes"), py::arg("read") = false, "A buffer for kernels. `read`: the host reads it often.")
      .def(
          "allocate_staging", [](Device& self, uint64_t bytes) { return self.allocate(bytes, MemoryKind::kStaging); },
          py::arg("bytes"), "A mapped buffer: what either side writes is visible to the other.")
      .def(
          "import_host",
          [](Device& self, uint64_t pointer, uint64_t bytes) {
            return self.import_host(reinterpret_cast<void*>(pointer), bytes);
          },
          py::arg("pointer"), py::arg("bytes"),
          "Host memory as a buffer; pointer and size are multiples of DeviceInfo.host_import_alignment.")
      .def(
          "synchronize",
          [](Device& self) {
            self.refuse_while_recording();
            without_gil(self, [&] { self.synchronize(); });
          },
          "Wait until all submitted work is done, and what it wrote to mapped memory is visible to the host.")
      .def(
          "synchronize_stream",
          [](Device& self) {
            self.refuse_while_recording();
            without_gil(self, [&] { self.await(self.point(Stream::current(self).get())); });
          },
          "Wait until all work is done that was submitted to this thread's stream.")
      .def(
          "keep",
          [](Device& self, const py::object& used, uint64_t since) {
            const Point now{self.submitted(), self.copied()};
            return (now.work != since || !self.done({0, now.copies})) && self.keep(now, shared(used));
          },
          py::arg("used"), py::arg("since") = 0,
          "Keep an object until all work submitted until now is done, and let go of it at a later launch or wait. "
          "False, with nothing kept, where that is so already, or nothing was submitted since number `since`.")
      .def_property_readonly("submitted", &Device::submitted, "Number of submissions until now.")
      .def_property_readonly("copied", &Device::copied, "Number of submissions to the transfer queue until now.")
      .def(
          "stream_done",
          [](Device& self, Stream* stream) {
            if (stream != nullptr) stream->go_on(self);
            return self.done(self.point(stream));
          },
          py::arg("stream"), "Whether all that was submitted to a stream is done: to the first one for None.")
      .def(
          "order_streams",
          [](Device& self, Stream* later, Stream* earlier) {
            for (Stream* const stream : {later, earlier})
              if (stream != nullptr) stream->go_on(self);
            self.order(later, self.point(earlier));
          },
          py::arg("later"), py::arg("earlier"), "What one stream does later comes after what the other did.")
      .def("done", py::overload_cast<uint64_t>(&Device::done), py::arg("value"),
           "Whether the submission of that number is done.")
      .def(
          "upload",
          [](Device& self, uint64_t address, uint64_t host, uint64_t bytes) {
            self.upload(address, reinterpret_cast<const std::byte*>(host), bytes);
          },
          py::call_guard<WithoutGil>(), py::arg("address"), py::arg("host"), py::arg("bytes"),
          "Copy host memory to the device. The host memory may be reused at once.")
      .def(
          "download",
          [](Device& self, uint64_t host, uint64_t address, uint64_t bytes) {
            without_gil(self, [&] { self.download(reinterpret_cast<std::byte*>(host), address, bytes); });
          },
          py::arg("host"), py::arg("address"), py::arg("bytes"),
          "Copy device memory to the host, after all work submitted before.")
      .def("copy", &Device::copy, py::call_guard<WithoutGil>(), py::arg("to"), py::arg("from_"), py::arg("bytes"),
           "Copy between ranges of device memory that do not overlap.")
      .def("fill", &Device::fill, py::call_guard<WithoutGil>(), py::arg("address"), py::arg("bytes"), py::arg("word"),
           "Repeat a 32-bit word; address and size are multiples of 4.")
      .def("owns", &Device::owns, py::arg("address"), py::arg("bytes"), "Whether the range is in one of its buffers.")
      .def_property_readonly("failed", &Device::failed, "Whether it was lost, or work on it did not end in time.")
      .def("leave", &Device::leave, py::call_guard<WithoutGil>(),
           "Another one takes its place. Tensors in its memory are refused from then on.")
      .def_property_readonly("has_timestamps", &Device::has_timestamps)
      .def_property_readonly("is_bounded", &Device::is_bounded,
                             "Whether work that is submitted together may take a limited time only.")
      .def("expected", &Device::expected, py::arg("kernel"), py::arg("programs"),
           "Seconds that a launch should take, infinity if nothing is known of its kernel.")
      .def(
          "expect",
          [](Device& self, uint64_t kernel, uint64_t programs, uint64_t nanoseconds) {
            self.expect(kernel, programs, static_cast<double>(nanoseconds) / 1e9);
          },
          py::arg("kernel"), py::arg("programs"), py::arg("nanoseconds"),
          "How long a launch of a kernel that did not run yet should take.")
      .def("parts", &Device::parts, py::arg("kernel"), py::arg("programs"),
           "Into how many launches one has to be divided.")
      .def_property_readonly("host_addresses", &Device::host_addresses, "Whether host addresses are device addresses.");

  bind_cpu(m);
  bind_vulkan(m);

  py::class_<Recording>(m, "Recording", "Launches that are recorded once and submitted again together.")
      .def(py::init<std::shared_ptr<Device>>(), py::arg("device"))
      .def("begin", &Recording::begin, "Record this thread's launches on the device from now on, and run none.")
      .def("end", &Recording::end, py::arg("ready"), "Run this thread's launches again. `ready`: it may be replayed.")
      .def("pause", &Recording::pause, "Run this thread's launches, which go_on() ends.")
      .def("go_on", &Recording::go_on, "Record this thread's launches again.")
      .def("replay", &Recording::replay, py::call_guard<WithoutGil>(),
           "Submit all launches. Returns the number of the submission; 0 where there are none.")
      .def("wait", &Recording::wait, py::call_guard<WithoutGil>(), "Wait until all replays are done.")
      .def(
          "keep", [](Recording& self, const py::object& used) { self.keep(shared(used)); }, py::arg("used"),
          "Keep an object for as long as this lives, or its last replay runs.")
      .def_property_readonly(
          "tensors",
          [](const Recording& self) {
            py::list all;
            for (const std::shared_ptr<void>& launch : self.tensors())
              all.attr("extend")(py::handle(static_cast<PyObject*>(launch.get())));
            return all;
          },
          "(object, address then) of each pointer argument of the recorded launches.")
      .def_property_readonly("launches", &Recording::launches, "How many launches were recorded.")
      .def_property_readonly(
          "kernels",
          [](const Recording& self) { return std::vector<KernelHandle>(self.kernels().begin(), self.kernels().end()); },
          "The kernels of the recorded launches, and of one that is being recorded.");

  py::class_<Stream, std::shared_ptr<Stream>>(m, "Stream", "A stream of a device beside its first one.")
      .def(py::init([](const std::shared_ptr<Device>& device) { return std::make_shared<Stream>(device); }),
           py::arg("device"))
      .def_static("current", &Stream::current, py::arg("device"), "This thread's; None for the first one.")
      .def_static("make_current", &Stream::make_current, py::arg("device"), py::arg("stream"));

  py::class_<Event>(m, "Event", "A point on the device's timeline.")
      .def(py::init<std::shared_ptr<Device>, bool>(), py::arg("device"), py::arg("timing"))
      .def("record", &Event::record, py::call_guard<WithoutGil>(), py::arg("stream"),
           "After what a stream did and waited for until now: the device's first one for None.")
      .def(
          "record", [](Event& self) { self.record(self.current_stream().get()); }, py::call_guard<WithoutGil>(),
          "After what this thread's stream did and waited for until now.")
      .def("order", &Event::order, py::arg("stream"), "What the stream does later comes after it.")
      .def("query", &Event::query, "Whether it was reached.")
      .def("synchronize", &Event::synchronize, py::call_guard<WithoutGil>())
      .def("elapsed_ms", &Event::elapsed_ms, py::call_guard<WithoutGil>(), py::arg("end"));

  py::class_<ArgumentPlan, std::shared_ptr<ArgumentPlan>>(m, "ArgumentPlan",
                                                          "The passed arguments of a kernel, in declaration order.")
      .def(py::init<const std::vector<std::tuple<std::vector<std::size_t>, std::string, std::string, uint32_t>>&,
                    uint32_t>(),
           py::arg("entries"), py::arg("bytes"),
           "entries: (path of the argument, its name, its Triton type, its offset) each; bytes: of the block.")
      .def_property_readonly("bytes", &ArgumentPlan::bytes, "Size of the block.")
      .def_property_readonly("offsets",
                             [](const ArgumentPlan& self) {
                               std::vector<uint32_t> offsets;
                               for (const Argument& argument : self.arguments()) offsets.push_back(argument.offset);
                               return offsets;
                             })
      .def_property_readonly("pointer_names", &ArgumentPlan::pointer_names)
      .def(
          "pack",
          [](const ArgumentPlan& self, const py::tuple& arguments) {
            std::vector<std::byte> block(self.bytes());
            std::vector<Place> places(self.pointer_count());
            self.pack(arguments.ptr(), 0, block.data(), -1, places.data());
            return py::bytes(reinterpret_cast<const char*>(block.data()), block.size());
          },
          py::arg("arguments"), "The block for these arguments.")
      .def(
          "pointers",
          [](const ArgumentPlan& self, const py::tuple& arguments, int device) {
            std::vector<std::byte> block(self.bytes());
            std::vector<Place> places(self.pointer_count());
            self.pack(arguments.ptr(), 0, block.data(), device, places.data());
            return self.pointers(arguments.ptr(), 0, block.data(), places.data());
          },
          py::arg("arguments"), py::arg("device") = -1,
          "(object, address, place) of each pointer argument; place: 'address', 'host', 'device' or 'cuda'.");

  py::class_<Launcher, std::shared_ptr<Launcher>>(m, "Launcher",
                                                  "Runs a kernel; called as Triton calls a compiled kernel's run().")
      .def(py::init<std::shared_ptr<Device>, std::shared_ptr<ArgumentPlan>, std::string, const std::string&, bool, int,
                    py::object, py::object>(),
           py::kw_only(), py::arg("device"), py::arg("plan"), py::arg("name"), py::arg("place") = "",
           py::arg("indirect"), py::arg("device_index") = -1, py::arg("resolver") = py::none(),
           py::arg("oversized") = py::none())
      .def("__call__", &Launcher::launch)
      .def_property_readonly("grid_limits", &Launcher::grid_limits, "The most programs on each axis of one dispatch.")
      .def_property_readonly("transfers", &Launcher::transfers,
                             "Which way each pointer argument of the last call went.");

  py::class_<Relaunch>(
      m, "Relaunch",
      "The launches of one kernel function that are remembered; see backend/launching/repeated_launches.py.")
      .def(py::init([](py::object config, py::object driver, py::object knobs, py::object specialize,
                       const std::vector<std::tuple<py::str, bool, bool, bool, bool>>& parameters) {
             std::vector<Parameter> made;
             for (const auto& [name, is_constexpr, is_const, specialized, align] : parameters)
               made.push_back({name, is_constexpr, py::bool_(is_const), py::bool_(specialized), py::bool_(align)});
             return std::make_unique<Relaunch>(std::move(config), std::move(driver), std::move(knobs),
                                               std::move(specialize), std::move(made));
           }),
           py::kw_only(), py::arg("config"), py::arg("driver"), py::arg("knobs"), py::arg("specialize"),
           py::arg("parameters"))
      .def("__call__", &Relaunch::launch, py::arg("function"), py::arg("grid"), py::arg("args"), py::arg("keywords"),
           "Launches and returns the kernel where such a launch is remembered; None, with nothing done, otherwise.")
      .def(
          "add",
          [](Relaunch& self, py::object device, py::object key, Py_ssize_t positions, py::tuple keywords,
             const std::vector<std::tuple<std::string, Py_ssize_t, py::object>>& sources,
             const std::vector<std::pair<bool, py::object>>& parameters,
             std::vector<std::pair<Py_ssize_t, py::object>> options, py::tuple knobs) {
            auto launch = std::make_shared<Relaunch::Launch>(Relaunch::Launch{std::move(device),
                                                                              std::move(key),
                                                                              positions,
                                                                              std::move(keywords),
                                                                              {},
                                                                              {},
                                                                              std::move(options),
                                                                              std::move(knobs)});
            for (const auto& [kind, place, value] : sources)
              launch->sources.push_back({kind == "position"  ? Source::Kind::kPosition
                                         : kind == "keyword" ? Source::Kind::kKeyword
                                                             : Source::Kind::kDefault,
                                         place, value});
            for (const auto& [constant, value] : parameters)
              launch->parameters.push_back(
                  {constant ? Condition::Kind::kConstant : Condition::Kind::kSpecialized, value});
            self.add(std::move(launch));
          },
          py::kw_only(), py::arg("device"), py::arg("key"), py::arg("positions"), py::arg("keywords"),
          py::arg("sources"), py::arg("parameters"), py::arg("options"), py::arg("knobs"),
          "Remember a launch. `sources`: (position, keyword or default; the place; the default) of each parameter; "
          "`parameters`: (whether it is a constant, that or what specialising the argument gives).")
      .def("knows", &Relaunch::knows, py::arg("device"), py::arg("key"), py::arg("positions"), py::arg("keywords"))
      .def("read_knobs", &Relaunch::read_knobs, py::arg("function"))
      .def_property_readonly("gave_up", &Relaunch::gave_up);

  py::class_<Allocation, std::shared_ptr<Allocation>>(
      m, "Allocation", "Device memory; given back by free(), or when nothing refers to it.")
      .def("free", &Allocation::free, "Give the memory back. A second call does nothing.")
      .def_property_readonly("address", &Allocation::address, "0 once it is freed.")
      .def_readonly("bytes", &Allocation::bytes);

  py::class_<MemoryPool, std::shared_ptr<MemoryPool>>(m, "MemoryPool", "Device memory, cut into blocks.")
      .def(py::init<std::shared_ptr<Device>>(), py::arg("device") = nullptr)
      .def_static("size_of", &MemoryPool::size_of, py::arg("bytes"), "The bytes that an allocation of so many takes.")
      .def("take", &MemoryPool::take, py::arg("bytes"), "An Allocation; None if nothing idle has room.")
      .def("buffer_for", &MemoryPool::buffer_for, py::arg("bytes"),
           "The bytes of the buffer to add where take() has None.")
      .def_static("is_few", &MemoryPool::is_few, py::arg("bytes"), "Whether they lie in buffers of their own.")
      .def("add", &MemoryPool::add, py::arg("buffer"), py::arg("address"), py::arg("bytes"), py::arg("few"),
           "Add a buffer as idle memory. `few`: for allocations of few bytes.")
      .def("release", &MemoryPool::release,
           "Forget the buffers that nothing is allocated from, and give them to the caller.")
      .def("buffers", &MemoryPool::buffers, "Each buffer's address, and its blocks: (bytes, whether it is idle).")
      .def("reset_peaks", &MemoryPool::reset_peaks)
      .def("close", &MemoryPool::close, "Nothing is idle from now on.")
      .def_readonly("allocated", &MemoryPool::allocated, "Bytes in use.")
      .def_readonly("peak_allocated", &MemoryPool::peak_allocated)
      .def_readonly("reserved", &MemoryPool::reserved, "Bytes of buffers.")
      .def_readonly("peak_reserved", &MemoryPool::peak_reserved)
      .def_readonly("allocations", &MemoryPool::allocations, "How many were made.")
      .def_property_readonly_static("ALIGNMENT", [](const py::object&) { return MemoryPool::kAlignment; })
      .def_property_readonly_static("LARGEST_BUFFER", [](const py::object&) { return MemoryPool::kLargestBuffer; });

  m.attr("ABI_VERSION") = kAbiVersion;
  m.def(
      "when_failed", [](const py::object& call) { Py_XSETREF(when_failed, py::object(call).release().ptr()); },
      py::arg("call"), "Call it from then on where a call finds that a device failed, before that call raises.");
  m.def(
      "end_without_exit_handlers", &platform::end_without_exit_handlers,
      "The process ends without the exit handlers of C libraries: they would run beside a thread that is in a driver.");
  m.def("tensor_specialization", &tensor_specialization, py::arg("fallback"), py::arg("range"),
        "get_tensor_specialization(tensor, align=False) for memory of at most `range` bytes: the same as `fallback`, "
        "which is asked where a tensor is of an unusual kind.");
}
