#include "cpu/forks.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "cpu/cpu_device.h"
#include "platform/platform.h"

namespace triton_spirv {
namespace {

std::mutex& mutex() {
  static auto* const made = new std::mutex;  // devices may outlive static objects
  return *made;
}

std::vector<CpuDevice*>& devices() {
  static auto* const made = new std::vector<CpuDevice*>;
  return *made;
}

}  // namespace

void CpuForks::add(CpuDevice& device) {
  static const int registered = platform::around_forks(before, in_parent, in_child);
  (void)registered;
  const std::lock_guard<std::mutex> lock(mutex());
  devices().push_back(&device);
}

void CpuForks::remove(CpuDevice& device) {
  const std::lock_guard<std::mutex> lock(mutex());
  devices().erase(std::remove(devices().begin(), devices().end(), &device), devices().end());
}

void CpuForks::before() {
  mutex().lock();
  for (CpuDevice* const device : devices()) device->lock_for_fork();
}

void CpuForks::in_parent() {
  for (CpuDevice* const device : devices()) device->unlock_after_fork();
  mutex().unlock();
}

void CpuForks::in_child() {
  for (CpuDevice* const device : devices()) {
    device->begin_in_child();
    device->unlock_after_fork();
  }
  mutex().unlock();
}

}  // namespace triton_spirv
