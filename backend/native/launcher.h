// A kernel's launch as Triton calls it: one call that checks, packs and submits, and waits where host memory is passed.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "device.h"

namespace triton_spirv {

// A Python object, a PyObject*, that may be let go without the GIL.
std::shared_ptr<void> shared(const pybind11::object& object);

// Whether calling a launch hook does nothing: None, or Triton's chain of hooks without any.
bool is_idle_hook(PyObject* hook);

class Launcher {
 public:
  // `place`: where the kernel is from, such as "add.py:7", or empty. `indirect`: the argument block goes into a buffer.
  // `resolver`: asked for addresses where the device cannot reach an argument's memory in place (see
  // runtime/launches/resolution.py). `oversized`: called instead of a launch, with its arguments, where the grid is
  // past the device's limits; it returns the launch's transfers. None: such a grid is refused. `device_index`: which
  // 'spirv' device tensors must be on. Throws std::invalid_argument where a direct block is too long.
  Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name,
           const std::string& place, bool indirect, int device_index, pybind11::object resolver,
           pybind11::object oversized);

  // (grid_x, grid_y, grid_z, stream, function, kernel_metadata, launch_metadata, enter_hook, exit_hook, *arguments):
  // runs the kernel on the addresses that the arguments have, or that the resolver gives. Returns once it is submitted
  // where tensors are passed and all are in device memory, otherwise when it is done.
  void launch(const pybind11::args& args);

  // The most programs on each axis of one dispatch.
  std::array<uint32_t, 3> grid_limits() const;

  // Submits a launch whose argument block is made: its tensors are on the device, its grid is within the limits.
  void launch_again(VkPipeline pipeline, const std::array<uint32_t, 3>& grid, const std::byte* block) const;
  const ArgumentPlan& plan() const { return *plan_; }

  // Which way each pointer argument of the last launch() went. Launch metadata has it under "transfers".
  pybind11::dict transfers() const;

 private:
  // The argument block: most are small.
  class Block;

  struct Grid {
    uint32_t sizes[3];
    bool is_empty = false;
    bool is_oversized = false;  // more programs on an axis than the device has at once
  };

  // ArgumentPlan::pack, whose errors get the kernel's name.
  uint8_t pack(const pybind11::args& args, std::byte* block, Place* places) const;
  // Throws py::value_error where a tensor is in memory of a device that was left.
  void refuse_gone(const pybind11::args& args, const std::byte* block, const std::vector<Place>& places) const;
  Grid read_grid(const pybind11::args& args) const;
  // Runs a dispatch whose arguments are where the device reaches them in place.
  void run(const pybind11::args& args, const Dispatch& dispatch, uint8_t places);
  // Has the pointers of the packed `block` resolved, and runs the dispatch of it. `transfers` gets the way of each.
  void run_resolved(const pybind11::args& args, const Dispatch& dispatch, std::byte* block,
                    const pybind11::list& pointers, const pybind11::dict& transfers);
  VkPipeline pipeline(const pybind11::args& args) const;
  // Tells the recording that this thread makes, if any, of the launch whose arguments were packed.
  void note(const pybind11::args& args, const std::byte* block) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<ArgumentPlan> plan_;
  std::string name_;
  const std::string* label_;
  bool indirect_;
  int device_index_;
  pybind11::object resolver_;
  pybind11::object oversized_;
  std::vector<Place> places_;   // of the last launch that was not resolved, in declaration order
  pybind11::object transfers_;  // of the last launch, where that was resolved
};

}  // namespace triton_spirv
