#include "stream.h"

#include <algorithm>
#include <vector>

#include "device.h"

namespace triton_spirv {
namespace {

using Streams = std::vector<std::shared_ptr<Stream>>;

// Of this thread, at most one for each device.
Streams& current_streams() {
#ifdef _WIN32
  // The list outlives its thread: mingw-w64's runtime frees what is thread_local before it calls its destructors.
  thread_local Streams& streams = *new Streams;
#else
  thread_local Streams streams;
#endif
  return streams;
}

auto of_device(const Streams& streams, const Device& device) {
  return std::find_if(streams.begin(), streams.end(), [&](const auto& stream) { return stream->is_of(device); });
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
  const Streams& streams = current_streams();
  const auto found = of_device(streams, device);
  return found == streams.end() ? nullptr : *found;
}

void Stream::make_current(const Device& device, std::shared_ptr<Stream> stream) {
  Streams& streams = current_streams();
  if (const auto found = of_device(streams, device); found != streams.end()) streams.erase(found);
  if (!stream) return;
  stream->go_on(device);
  streams.push_back(std::move(stream));
}

}  // namespace triton_spirv
