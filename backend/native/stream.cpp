#include "stream.h"

#include <algorithm>
#include <vector>

#include "device.h"

namespace triton_spirv {
namespace {

// Of a thread, at most one for each device.
thread_local std::vector<std::shared_ptr<Stream>> current_streams;

auto of_device(const Device& device) {
  return std::find_if(current_streams.begin(), current_streams.end(),
                      [&](const std::shared_ptr<Stream>& stream) { return stream->is_of(device); });
}

}  // namespace

void Stream::go_on(const Device& device) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::shared_ptr<const Device> own = device_.lock();
  if (own.get() == &device || (own && !own->failed())) return;
  device_ = device.weak_from_this();
  work_ = 0;
  copies_ = 0;
}

std::shared_ptr<Stream> Stream::current(const Device& device) {
  const auto found = of_device(device);
  return found == current_streams.end() ? nullptr : *found;
}

void Stream::make_current(const Device& device, std::shared_ptr<Stream> stream) {
  if (const auto found = of_device(device); found != current_streams.end()) current_streams.erase(found);
  if (!stream) return;
  stream->go_on(device);
  current_streams.push_back(std::move(stream));
}

}  // namespace triton_spirv
