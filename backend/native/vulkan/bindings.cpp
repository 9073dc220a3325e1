// Vulkan devices in the Python module.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "device_kinds.h"
#include "gil.h"
#include "vulkan/validation.h"
#include "vulkan/vulkan_device.h"

namespace py = pybind11;

namespace triton_spirv {
namespace {

template <typename Handle>
Handle handle(uint64_t value) {
  return reinterpret_cast<Handle>(value);
}

PyObject* vulkan_error = nullptr;

}  // namespace

bool set_vulkan_error(const DeviceError& error) {
  const auto* const vulkan = dynamic_cast<const VulkanError*>(&error);
  if (vulkan == nullptr) return false;
  py::object value = py::reinterpret_borrow<py::object>(vulkan_error)(error.what());
  value.attr("result") = static_cast<int>(vulkan->result);
  raise_device_error(vulkan_error, value, error);
  return true;
}

void bind_vulkan(py::module_& m) {
  vulkan_error = PyErr_NewExceptionWithDoc("triton.backends.spirv._native.VulkanError",
                                           "A Vulkan call failed. `result` is its VkResult.",
                                           py::object(m.attr("DeviceError")).ptr(), nullptr);
  m.add_object("VulkanError", py::reinterpret_borrow<py::object>(vulkan_error));

  py::class_<VulkanDevice, Device, std::shared_ptr<VulkanDevice>>(
      m, "VulkanDevice", "An open Vulkan device, given by the handles of its owner.")
      .def(py::init([](uint64_t instance, uint64_t physical, uint64_t device, uint64_t queue, uint32_t family,
                       uint64_t copies, uint32_t copies_family, uint64_t layout, bool host_addresses,
                       bool shares_semaphores, uint64_t timeout_ns, uint64_t job_ns, bool drains,
                       bool holds_allocations, bool asks_budget) {
             return std::make_shared<VulkanDevice>(
                 handle<VkInstance>(instance), handle<VkPhysicalDevice>(physical), handle<VkDevice>(device),
                 Queues{handle<VkQueue>(queue), family, handle<VkQueue>(copies), copies_family},
                 handle<VkPipelineLayout>(layout), host_addresses, shares_semaphores, timeout_ns,
                 Care{static_cast<double>(job_ns), drains, holds_allocations, asks_budget});
           }),
           py::kw_only(), py::arg("instance"), py::arg("physical_device"), py::arg("device"), py::arg("queue"),
           py::arg("queue_family"), py::arg("transfer_queue"), py::arg("transfer_family"), py::arg("pipeline_layout"),
           py::arg("host_addresses"), py::arg("shares_semaphores"), py::arg("timeout_ns"), py::arg("job_ns") = 0,
           py::arg("drains") = false, py::arg("holds_allocations") = false, py::arg("asks_budget") = false)
      .def("set_host_addresses", &VulkanDevice::set_host_addresses, py::arg("holds"),
           "Whether host addresses are device addresses.")
      .def(
          "limit_waits", &VulkanDevice::limit_waits, py::arg("timeout_ns"),
          "After how many nanoseconds in which no submission ended a wait fails. Time in which the first of them waits "
          "for another API does not count.")
      .def("launch_nothing", &VulkanDevice::launch_nothing, py::call_guard<WithoutGil>(), py::arg("kernel"),
           "Submit a launch of no programs, alone, so that a driver that compiles late compiles the pipeline once all "
           "work before is done. Returns its number.")
      .def("import_fd", &VulkanDevice::import_fd, py::arg("fd"), py::arg("bytes"),
           "Memory that another API exported as an opaque file descriptor, which is taken over.")
      .def(
          "join", &VulkanDevice::join, py::arg("parts"), py::call_guard<WithoutGil>(),
          "The memory of imported buffers as one buffer, one behind the other; free it before them. RuntimeError where "
          "the device cannot.")
      .def("export_timeline", &VulkanDevice::export_timeline,
           "The semaphore whose value counts finished submissions, as an opaque file descriptor.")
      .def(
          "make_incoming",
          [](VulkanDevice& self) {
            const Incoming made = self.make_incoming();
            return py::make_tuple(made.number, made.fd);
          },
          "A semaphore that launches can wait for: its number, and an opaque file descriptor.");

  py::class_<VulkanPipeline>(m, "VulkanPipeline", "A kernel's pipeline, which may be launched before it is made.")
      .def(py::init<std::shared_ptr<VulkanDevice>>(), py::arg("device"))
      .def_property_readonly("handle", &VulkanPipeline::handle, "What launches take.")
      .def(
          "make", [](VulkanPipeline& self, uint64_t made) { self.make(handle<VkPipeline>(made)); },
          py::call_guard<WithoutGil>(), py::arg("pipeline"), "It is made: launches of it that wait are submitted.")
      .def("refuse", &VulkanPipeline::refuse, py::call_guard<WithoutGil>(), py::arg("why"),
           "It cannot be made: launches of it that wait, and what is behind them, are errors.");

  py::class_<Messenger>(m, "Messenger", "Collects the errors that the validation layer reports.")
      .def(py::init([](uint64_t instance) {
             VulkanDevice::validated = true;
             return std::make_unique<Messenger>(handle<VkInstance>(instance));
           }),
           py::arg("instance"))
      .def("take", &Messenger::take, "The messages since the last call.")
      .def("close", &Messenger::close);
}

}  // namespace triton_spirv
