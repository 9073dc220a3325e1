// Launches of kernels whose pipelines the driver still makes, and all work behind them: it is left for later.
//
// Such work has its values of the timeline from the beginning, so that events, memory and waits know of it as of any
// other. The thread that brings a pipeline submits what waited for it. What the host reads, graphs, timestamps, and
// copies of the transfer queue wait for that.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "dispatch.h"
#include "vulkan/vulkan_api.h"

namespace triton_spirv {

class VulkanDevice;

// A kernel's pipeline, whose address is the kernel's handle.
class VulkanPipeline {
 public:
  explicit VulkanPipeline(std::shared_ptr<VulkanDevice> device);
  ~VulkanPipeline();
  VulkanPipeline(const VulkanPipeline&) = delete;
  VulkanPipeline& operator=(const VulkanPipeline&) = delete;

  KernelHandle handle() const { return reinterpret_cast<KernelHandle>(this); }
  static const VulkanPipeline& of(KernelHandle kernel) { return *reinterpret_cast<const VulkanPipeline*>(kernel); }
  // Null while it is not made.
  VkPipeline made() const { return made_; }
  // One of the two ends the wait of launches. The caller destroys the pipeline, when none of its launches may be
  // running.
  void make(VkPipeline pipeline);
  void refuse(const std::string& why);
  // Why it will never be made; "" if it may. With the device's mutex.
  const std::string& refusal() const { return refusal_; }

 private:
  std::shared_ptr<VulkanDevice> device_;
  std::atomic<VkPipeline> made_{VK_NULL_HANDLE};
  std::string refusal_;
};

inline VkPipeline pipeline_of(KernelHandle kernel) { return VulkanPipeline::of(kernel).made(); }

// Work that is left for later, by `thread`. It waits for the pipeline of `kernel`, if that is not 0. `name`: of its
// kernel, in errors, or null.
struct Later {
  KernelHandle kernel;
  std::function<void()> work;  // null: none, because it was dropped
  const std::string* name;
  std::thread::id thread;
};

// Work that was left for later and will never run. It is an error of the next call of each of the `threads` that left
// it, and of other threads' calls before the last of these is told.
struct Dropped {
  std::string what;
  std::set<std::thread::id> threads, told;
};

}  // namespace triton_spirv
