// A kernel's launch as Triton calls it: one call that checks, packs, submits and waits.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "device.h"

namespace triton_spirv {

// Where Triton's launch arguments are, before the kernel's own.
enum LaunchArgument : Py_ssize_t {
  kGrid = 0,
  kStream = 3,
  kFunction,
  kKernelMetadata,
  kLaunchMetadata,
  kEnterHook,
  kExitHook,
  kKernelArguments
};

class Launcher {
 public:
  // `indirect`: the argument block goes into a buffer. Throws std::invalid_argument where a direct block is too long.
  Launcher(std::shared_ptr<Device> device, std::shared_ptr<ArgumentPlan> plan, std::string name, bool indirect);

  // (grid_x, grid_y, grid_z, stream, function, kernel_metadata, launch_metadata, enter_hook, exit_hook, *arguments):
  // runs the kernel on the addresses that the arguments have, and returns when it is done.
  void launch(const pybind11::args& args) const;

  // The same with other device addresses for the pointer arguments, in declaration order, and copies around it.
  // Calls no hooks. The buffers of `copies` are kept alive by the caller.
  void launch_staged(const pybind11::args& args, const std::vector<uint64_t>& pointers,
                     const std::vector<StagedCopy>& copies) const;

  // Which way each pointer argument goes when launch() is called. Launch metadata has it under "transfers".
  pybind11::dict transfers() const;

 private:
  bool read_grid(const pybind11::args& args, uint32_t grid[3]) const;
  void run(const pybind11::args& args, const uint32_t grid[3], const std::vector<uint64_t>* pointers,
           const std::vector<StagedCopy>& copies) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<ArgumentPlan> plan_;
  std::string name_;
  bool indirect_;
};

}  // namespace triton_spirv
