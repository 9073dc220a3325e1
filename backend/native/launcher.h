// A kernel's launch as Triton calls it: one call that checks, packs and submits, and waits where host memory is passed.
#pragma once

#include <pybind11/pybind11.h>

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
  // `indirect`: the argument block goes into a buffer. `copying`: called in place of a launch, with the same arguments,
  // where the device cannot reach an argument's memory in place. It tells its own `transfers`.
  // `device_index`: which 'spirv' device tensors must be on. Throws std::invalid_argument where a direct block is too
  // long.
  Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name, bool indirect,
           int device_index, pybind11::object copying);

  // (grid_x, grid_y, grid_z, stream, function, kernel_metadata, launch_metadata, enter_hook, exit_hook, *arguments):
  // runs the kernel on the addresses that the arguments have. Returns once it is submitted where tensors are passed
  // and all are in device memory, otherwise when it is done.
  void launch(const pybind11::args& args);

  // The same with other device addresses for the pointer arguments, in declaration order, and copies around it, and
  // returns when it is done. Calls no hooks. The buffers of `copies` are kept alive by the caller.
  void launch_staged(const pybind11::args& args, const std::vector<uint64_t>& pointers,
                     const std::vector<StagedCopy>& copies);

  // The same without copies, after the semaphore `incoming` of another API has the value. Returns the timeline's value
  // for when it is done; 0 for an empty grid.
  uint64_t launch_addressed(const pybind11::args& args, const std::vector<uint64_t>& pointers, std::size_t incoming,
                            uint64_t value);

  // Which way each pointer argument of the last launch() went. Launch metadata has it under "transfers".
  pybind11::dict transfers() const;

 private:
  // The argument block: most are small.
  class Block;

  bool read_grid(const pybind11::args& args, uint32_t grid[3]) const;
  Dispatch prepare(const pybind11::args& args, const uint32_t grid[3], const std::vector<uint64_t>& pointers,
                   std::byte* block) const;
  VkPipeline pipeline(const pybind11::args& args) const;
  // Tells the recording that this thread makes, if any, of the launch whose arguments were packed.
  void note(const pybind11::args& args, const std::byte* block) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<ArgumentPlan> plan_;
  std::string name_;
  bool indirect_;
  int device_index_;
  pybind11::object copying_;
  std::vector<Place> places_;  // of the last launch, in declaration order
  bool copied_ = false;        // the last launch went to copying_
};

}  // namespace triton_spirv
