// A command buffer of recorded launches.
#pragma once

#include <memory>
#include <vector>

#include "recording.h"
#include "vulkan/vulkan_device.h"

namespace triton_spirv {

class RecordedCommands : public Recorded {
 public:
  explicit RecordedCommands(std::shared_ptr<VulkanDevice> device);
  ~RecordedCommands() override;

  void begin() override;
  void add(const Dispatch& dispatch) override;
  void end() override;
  uint64_t submit() override;

 private:
  void begin_commands();
  void end_commands();

  std::shared_ptr<VulkanDevice> device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  // Each is a submission. There is more than one where submissions are bounded in time.
  std::vector<VkCommandBuffer> commands_;
  double open_ns_ = 0;                                 // what the last one should take then
  std::vector<std::unique_ptr<VulkanBuffer>> blocks_;  // argument blocks of indirect dispatches
};

}  // namespace triton_spirv
