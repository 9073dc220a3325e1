#include "vulkan/later.h"

#include <utility>

#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

// No more than this is left for later.
constexpr std::size_t kMostLater = 4096;

}  // namespace

VulkanPipeline::VulkanPipeline(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {
  ++device_->waiting_;
}

VulkanPipeline::~VulkanPipeline() {
  if (made() == VK_NULL_HANDLE) --device_->waiting_;
  if (!device_->forked()) device_->forget(handle());
}

void VulkanPipeline::make(VkPipeline pipeline) {
  {
    const std::lock_guard<std::mutex> ring(device_->ring_mutex_);
    if (made_.exchange(pipeline) == VK_NULL_HANDLE) --device_->waiting_;
  }
  device_->do_later();
}

void VulkanPipeline::refuse(const std::string& why) {
  {
    const std::lock_guard<std::mutex> ring(device_->ring_mutex_);
    refusal_ = why;
  }
  device_->do_later();
}

bool VulkanDevice::is_made(const Dispatch* launch) {
  if (launch == nullptr) return true;
  const VulkanPipeline& pipeline = VulkanPipeline::of(launch->kernel);
  if (!pipeline.refusal().empty()) throw DeviceError(pipeline.refusal());
  return pipeline.made() != VK_NULL_HANDLE;
}

uint64_t VulkanDevice::leave(const Dispatch* launch, std::function<void()> work) {
  check_usable();  // before the mutex, which a thread of the parent may hold in a forked child
  refuse_while_recording();
  const std::shared_ptr<Stream> stream = Stream::current(*this);
  const std::thread::id thread = std::this_thread::get_id();
  uint64_t value;
  {
    const std::lock_guard<std::mutex> ring(ring_mutex_);
    if (doing_ == thread) return 0;
    tell_this_thread();
    check_usable();
    if (is_made(launch) && later_.empty()) return 0;
    if (awaiting_ != 0 || later_.size() >= kMostLater || copies_before(stream.get()) != 0) return 0;
    value = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(value, std::memory_order_release);
    later_.push_back(
        {launch != nullptr ? launch->kernel : 0, std::move(work), launch != nullptr ? launch->name : nullptr, thread});
    ++waiting_;
  }
  if (stream) stream->wait_for({value, 0});
  return value;
}

// One thread at a time does what was left for later: another one that brings a pipeline meanwhile leaves it to that
// one, which looks at each pipeline with the mutex.
void VulkanDevice::do_later() {
  const Use use(*this);
  std::unique_lock<std::mutex> ring(ring_mutex_);
  if (doing_ != std::thread::id()) return;
  doing_ = std::this_thread::get_id();
  while (!later_.empty() && !failed()) {
    const Later& next = later_.front();
    if (next.kernel != 0 && pipeline_of(next.kernel) == VK_NULL_HANDLE) {
      const std::string& refusal = VulkanPipeline::of(next.kernel).refusal();
      if (refusal.empty()) break;
      drop_later(refusal);
    }
    const uint64_t before = recorded();
    const std::function<void()> work = std::move(later_.front().work);
    std::string error;
    ring.unlock();
    try {
      if (work)
        work();
      else
        submit([](Slot&) {});  // for its value
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    ring.lock();
    if (recorded() == before && work) drop_later(error);
    if (recorded() == before && !work) lost_ = true;  // as in submit_to()
    later_done_.notify_all();
  }
  doing_ = std::thread::id();
  later_done_.notify_all();
}

void VulkanDevice::drop_later(const std::string& why) {
  const std::string* const name = later_.front().name;
  Dropped dropped{
      (name != nullptr ? *name : "a copy or fill") + " did not run, and neither did what followed it: " + why, {}, {}};
  for (Later& one : later_) {
    dropped.threads.insert(one.thread);
    one = {0, nullptr, nullptr, one.thread};
  }
  dropped_.push_back(std::move(dropped));
  ++waiting_;
}

bool VulkanDevice::is_refused(KernelHandle kernel) {
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  return !VulkanPipeline::of(kernel).refusal().empty();
}

void VulkanDevice::tell() {
  check_running();  // before the mutex, as in leave()
  const std::lock_guard<std::mutex> ring(ring_mutex_);
  tell_this_thread();
}

void VulkanDevice::tell_this_thread() {
  for (auto one = dropped_.begin(); one != dropped_.end(); ++one) {
    if (!one->told.insert(std::this_thread::get_id()).second) continue;
    one->threads.erase(std::this_thread::get_id());
    const DeviceError error(one->what);
    if (one->threads.empty()) dropped_.erase(one), --waiting_;
    throw error;
  }
}

void VulkanDevice::await_pipeline(const Dispatch& launch) {
  if (waiting_ == 0) return;
  std::unique_lock<std::mutex> ring(ring_mutex_);
  await_later(ring, [&] { return is_made(&launch); });
}

void VulkanDevice::catch_up(uint64_t value) {
  if (waiting_ == 0) return;
  check_running();  // before the mutex, as in leave()
  std::unique_lock<std::mutex> ring(ring_mutex_);
  await_later(ring, [&] { return recorded() >= value; });
}

}  // namespace triton_spirv
