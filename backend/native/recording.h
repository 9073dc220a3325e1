// Launches that are recorded once and handed over again as one submission.
#pragma once

#include <memory>
#include <vector>

#include "device.h"

namespace triton_spirv {

class Recording {
 public:
  explicit Recording(std::shared_ptr<Device> device);
  // Waits until it runs no more.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // From begin() to end() the calling thread's launches on the device are recorded and not run; copies, fills and
  // events of that thread are refused. Throws std::runtime_error where the thread records already, or this was recorded.
  void begin();
  // `ready`: it may be replayed.
  void end(bool ready);
  // The recording that the calling thread makes on `device`, or nullptr.
  static Recording* current(const Device& device);
  // Keeps what the recorded launches use for as long as this lives.
  void keep(std::shared_ptr<void> used) { kept_.push_back(std::move(used)); }
  const std::vector<std::shared_ptr<void>>& kept() const { return kept_; }

  // Submits all launches, in their order and behind all earlier work. Returns the timeline's value for when they are
  // done; where one works in host memory, they are done.
  uint64_t replay();
  std::size_t launches() const { return launches_; }
  const std::set<VkPipeline>& pipelines() const { return pipelines_; }

 private:
  friend class Device;

  static thread_local Recording* recording_;

  std::shared_ptr<Device> device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<std::unique_ptr<Buffer>> blocks_;  // argument blocks of indirect dispatches
  std::vector<std::shared_ptr<void>> kept_;
  std::size_t launches_ = 0;
  std::set<VkPipeline> pipelines_;
  bool host_ = false;   // a launch works in host memory
  bool ready_ = false;  // recorded to its end
  uint64_t last_ = 0;   // of the last replay
};

}  // namespace triton_spirv
