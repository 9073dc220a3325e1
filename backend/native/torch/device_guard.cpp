#include "torch/device_guard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "platform/platform.h"
#include "torch/torch_interface.h"

namespace triton_spirv {
namespace {

using Slot = void*;

// c10::Device and c10::Stream, as torch passes and returns them.
struct TorchDevice {
  std::int8_t type;
  std::int8_t index;
};
struct TorchStream {
  TorchDevice device;
  std::int64_t id;
};

std::int8_t own_type() { return static_cast<std::int8_t>(torch().aoti_torch_device_type_privateuse1()); }

// As torch's guard in Python has it: one device and its default stream.
std::int8_t type(const void*) { return own_type(); }
TorchDevice current_device(const void*) { return {own_type(), 0}; }
TorchDevice exchange_device(const void*, TorchDevice) { return {own_type(), 0}; }
TorchStream stream(const void*, TorchDevice) { return {{own_type(), 0}, 0}; }
TorchStream new_stream(const void*, TorchDevice, int) { return {{own_type(), 0}, 0}; }
TorchStream exchange_stream(const void*, TorchStream) { return {{own_type(), 0}, 0}; }

const std::array<std::pair<const char*, Slot>, 6> kReplaced = {{
    {"type", reinterpret_cast<Slot>(type)},
    {"getDevice", reinterpret_cast<Slot>(current_device)},
    {"exchangeDevice", reinterpret_cast<Slot>(exchange_device)},
    {"getStream", reinterpret_cast<Slot>(stream)},
    {"getNewStream", reinterpret_cast<Slot>(new_stream)},
    {"exchangeStream", reinterpret_cast<Slot>(exchange_stream)},
}};

using Guards = std::atomic<Slot**>*;

// torch's table of guards by kinds of devices; null where there is none.
Guards guards() {
  return static_cast<Guards>(platform::function_of(platform::loaded_library(platform::kTorchCore),
                                                   "_ZN3c104impl26device_guard_impl_registryE"));
}

// The Itanium ABI's table of virtual functions: two words lie before the functions, and a destructor takes two.
constexpr std::ptrdiff_t kBefore = 2;
constexpr std::ptrdiff_t kDestructors = 2;

}  // namespace

bool guard_without_python(const std::vector<std::string>& functions) {
  if (torch_interface() == nullptr) return false;
  const Guards registry = guards();
  Slot** const guard = registry == nullptr ? nullptr : registry[own_type()].load();
  if (guard == nullptr) return false;
  const auto count = static_cast<std::ptrdiff_t>(functions.size());
  static auto& table = *new std::vector<Slot>;  // torch reads it until the process has ended
  table.assign(*guard - kBefore, *guard + count + kDestructors);
  for (const auto& [name, function] : kReplaced) {
    const auto found = std::find(functions.begin(), functions.end(), name);
    if (found == functions.end()) return false;
    table[static_cast<std::size_t>(kBefore + (found - functions.begin()))] = function;
  }
  *guard = table.data() + kBefore;
  return true;
}

void share_guard(std::int8_t other, std::int8_t own, bool whether) {
  static Slot** before = nullptr;
  const Guards registry = guards();
  if (registry == nullptr || registry[own].load() == nullptr) return;
  if (whether) {
    Slot** const theirs = registry[other].exchange(registry[own].load());
    if (theirs != registry[own].load()) before = theirs;
  } else {
    registry[other].store(before);
  }
}

}  // namespace triton_spirv
