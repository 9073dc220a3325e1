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

std::shared_ptr<Stream> Stream::current(const Device& device) {
  const auto found = of_device(device);
  return found == current_streams.end() ? nullptr : *found;
}

void Stream::make_current(const Device& device, std::shared_ptr<Stream> stream) {
  if (const auto found = of_device(device); found != current_streams.end()) current_streams.erase(found);
  if (stream) current_streams.push_back(std::move(stream));
}

}  // namespace triton_spirv
