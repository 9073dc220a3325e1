// A kernel's launch as Triton calls it: one call that checks, packs and submits. It waits if host memory is passed.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "device.h"

namespace triton_spirv {

// A reference to a Python object (a PyObject*) that may be released without the GIL.
std::shared_ptr<void> shared(const pybind11::object& object);

// Whether calling a launch hook does nothing: it is None, or Triton's chain of hooks and empty.
USED_BY_TORCH bool is_idle_hook(PyObject* hook);

class Launcher {
 public:
  // `place`: the kernel's source, such as "add.py:7", or empty. `indirect`: the argument block goes into a buffer.
  // `resolver`: gives addresses if the device cannot reach an argument's memory in place (see
  // runtime/launches/resolution.py). `oversized`: called with the launch's arguments if the grid exceeds the device's
  // limits; it launches, and returns the launch's transfers. If it is None, such a grid is refused. `device_index`: the
  // 'spirv' device that tensors must be on. Throws std::invalid_argument if a direct block is too long.
  Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name,
           const std::string& place, bool indirect, int device_index, pybind11::object resolver,
           pybind11::object oversized);

  // (grid_x, grid_y, grid_z, stream, function, kernel_metadata, launch_metadata, enter_hook, exit_hook, *arguments):
  // runs the kernel with the arguments' addresses, or with the resolver's. Returns after submission if tensors are
  // passed and all are in device memory. Otherwise returns when the kernel is done.
  void launch(const pybind11::args& args);

  // The largest number of programs on each axis of one dispatch.
  std::array<uint32_t, 3> grid_limits() const;

  // Submits a launch with a finished argument block. Its tensors are on the device, and its grid is within the limits.
  USED_BY_TORCH void launch_again(KernelHandle kernel, const std::array<uint32_t, 3>& grid,
                                  const std::byte* block) const;
  const ArgumentPlan& plan() const { return *plan_; }

  // How each pointer argument of the last launch() reached the device: "transfers" in the launch metadata.
  pybind11::dict transfers() const;

 private:
  // Storage for the argument block. Most blocks are small.
  class Block;

  struct Grid {
    uint32_t sizes[3];
    bool is_empty = false;
    bool is_oversized = false;  // an axis has more programs than one dispatch may have
  };

  // Calls ArgumentPlan::pack, and adds the kernel's name to its errors.
  uint8_t pack(const pybind11::args& args, std::byte* block, Place* places) const;
  // Throws py::value_error if a tensor is in memory of an abandoned device.
  void refuse_gone(const pybind11::args& args, const std::byte* block, const std::vector<Place>& places) const;
  Grid read_grid(const pybind11::args& args) const;
  // Whether a launch has to be divided because submissions are bounded in time.
  bool takes_too_long(const pybind11::args& args, const Grid& grid) const;
  // Runs a dispatch whose arguments the device reaches in place.
  void run(const pybind11::args& args, const Dispatch& dispatch, uint8_t places);
  // Has the pointers of the packed `block` resolved, and runs the dispatch. Writes how each pointer reached the device
  // to `transfers`.
  void run_resolved(const pybind11::args& args, const Dispatch& dispatch, std::byte* block,
                    const pybind11::list& pointers, const pybind11::dict& transfers);
  KernelHandle kernel(const pybind11::args& args) const;
  // Adds the launch with these packed arguments to this thread's recording, if it makes one.
  void note(const pybind11::args& args, const std::byte* block) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<ArgumentPlan> plan_;
  std::string name_;
  const std::string* label_;
  bool indirect_;
  int device_index_;
  pybind11::object resolver_;
  pybind11::object oversized_;
  std::vector<Place> places_;   // of the last launch without the resolver, in declaration order
  pybind11::object transfers_;  // of the last launch, if the resolver was used
};

}  // namespace triton_spirv
