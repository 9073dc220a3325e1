// The CPU devices of this process around a fork.
#pragma once

namespace triton_spirv {

class CpuDevice;

class CpuForks {
 public:
  // A device takes part from add() to remove(): nothing changes in it during a fork, and its threads begin anew in the
  // child.
  static void add(CpuDevice& device);
  static void remove(CpuDevice& device);

 private:
  static void before();
  static void in_parent();
  static void in_child();
};

}  // namespace triton_spirv
