// Memory of the CPU device, and what copies and fills it.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "cpu/cpu_device.h"
#include "cpu/emulation.h"
#include "platform/platform.h"
#include "triton_spirv/pages.hpp"

namespace triton_spirv {
namespace {

// A cache line, and what kernels may take for granted of a tensor's first byte.
constexpr uint64_t kAlignment = 256;
// A page of the processor's larger size. Buffers from this size on lie at its multiples, so that the system can use it.
constexpr uint64_t kLargePage = 2 << 20;
// Copies and fills are divided into programs of so many bytes.
constexpr uint64_t kPiece = 256 << 10;
// A fill writes so many bytes word by word, and copies them to where the rest of a program's are: the C library's
// copies are of the processor's widest vectors, which this file's code is not compiled for.
constexpr uint64_t kFilled = 4 << 10;
// A copy within the device that is longer than this is queued, if nobody waits for it.
constexpr uint64_t kTinyCopy = 256 << 10;
// An upload that is shorter than this is copied a second time, so that its caller need not wait for earlier work.
constexpr uint64_t kShortUpload = 64 << 10;

uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

struct Copy {
  std::byte* to;
  const std::byte* from;
  uint64_t bytes;
};

TRITON_SPIRV_SYSTEM_V void run_copy(const std::byte* block, uint64_t first, uint64_t last, const uint32_t*, std::byte*,
                                    const int32_t*) {
  const Copy& copy = *reinterpret_cast<const Copy*>(block);
  const uint64_t begin = first * kPiece, end = std::min(last * kPiece, copy.bytes);
  std::memcpy(copy.to + begin, copy.from + begin, end - begin);
}

struct Fill {
  std::byte* to;
  uint64_t bytes;
  uint32_t word;
};

// A function of its own: mingw's GCC 12 ends with an internal error where one of System V's convention calls several
// others.
[[gnu::noinline]] void fill_bytes(std::byte* to, uint64_t bytes, uint32_t word) {
  const uint64_t some = std::min(bytes, kFilled);
  if (word == (word & 0xFF) * 0x01010101u) {
    std::memset(to, static_cast<int>(word & 0xFF), bytes);
    return;
  }
  std::fill_n(reinterpret_cast<uint32_t*>(to), some / 4, word);
  for (uint64_t done = some; done < bytes; done += some) std::memcpy(to + done, to, std::min(some, bytes - done));
}

TRITON_SPIRV_SYSTEM_V void run_fill(const std::byte* block, uint64_t first, uint64_t last, const uint32_t*, std::byte*,
                                    const int32_t*) {
  const Fill& fill = *reinterpret_cast<const Fill*>(block);
  fill_bytes(fill.to + first * kPiece, std::min(last * kPiece, fill.bytes) - first * kPiece, fill.word);
}

const cpu::Kernel copying(run_copy);
const cpu::Kernel filling(run_fill);
const std::string copy_name = "a copy";
const std::string fill_name = "a fill";

template <typename Block>
cpu::Launch launch_of(const cpu::Kernel& kernel, const Block& block) {
  return {&kernel, reinterpret_cast<const std::byte*>(&block),
          static_cast<uint32_t>(rounded_up(block.bytes, kPiece) / kPiece)};
}

}  // namespace

namespace {

std::shared_ptr<void> owned(void* memory, uint64_t allocated) {
  return {memory, [allocated](void* ended) {
            if (allocated >= kLargePage) {
              cpu::pages::unmap(ended, allocated);
            } else {
              ::operator delete(ended, std::align_val_t(kAlignment));
            }
          }};
}

}  // namespace

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(std::shared_ptr<CpuDevice> device, uint64_t bytes, void* memory, uint64_t allocated)
      : Buffer(bytes, reinterpret_cast<Address>(memory), memory), device_(std::move(device)), allocated_(allocated) {}
  ~CpuBuffer() override {
    if (address_ != 0) device_->give_back(address_, owned(host_, allocated_));
  }

  void free() override {
    if (address_ == 0) return;
    if (!device_->failed() && !device_->stopped_) device_->synchronize();
    device_->give_back(std::exchange(address_, 0), owned(std::exchange(host_, nullptr), allocated_));
  }

 private:
  std::shared_ptr<CpuDevice> device_;
  uint64_t allocated_;
};

std::unique_ptr<Buffer> CpuDevice::allocate(uint64_t bytes, MemoryKind) {
  const Work use(*this);
  constexpr uint64_t kMost = uint64_t{1} << 47;
  const bool large = bytes >= kLargePage;
  const uint64_t allocated =
      bytes > kMost ? bytes : rounded_up(std::max<uint64_t>(bytes, 1), large ? cpu::pages::size() : kAlignment);
  void* memory = nullptr;
  if (bytes <= kMost)
    memory = large ? platform::map_large(allocated, kLargePage)
                   : ::operator new(allocated, std::align_val_t(kAlignment), std::nothrow);
  if (memory == nullptr)
    throw DeviceError("the system has no memory for " + std::to_string(bytes) + " bytes", DeviceError::Kind::kNoMemory);
  add_memory(reinterpret_cast<uint64_t>(memory), bytes);
  return std::make_unique<CpuBuffer>(std::static_pointer_cast<CpuDevice>(shared_from_this()), bytes, memory, allocated);
}

std::shared_ptr<void> CpuDevice::adopt(Address address, uint64_t bytes, std::shared_ptr<void> owner) {
  const Work use(*this);
  add_memory(address, bytes);
  auto device = std::static_pointer_cast<CpuDevice>(shared_from_this());
  return {reinterpret_cast<void*>(address), [device = std::move(device), owner = std::move(owner)](void* memory) {
            device->give_back(reinterpret_cast<uint64_t>(memory), owner);
          }};
}

void CpuDevice::add_memory(uint64_t address, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(buffers_mutex_);
  buffers_[address] = bytes;
  if (emulates_) cpu::add_device_memory(address, bytes);
}

void CpuDevice::give_back(uint64_t address, std::shared_ptr<void> owned) {
  {
    const std::lock_guard<std::mutex> lock(buffers_mutex_);
    buffers_.erase(address);
  }
  if (failed()) {  // a kernel that never ended may use it
    new std::shared_ptr<void>(std::move(owned));
    return;
  }
  if (emulates_)
    owned = {reinterpret_cast<void*>(address),
             [owned = std::move(owned)](void* ended) { cpu::remove_device_memory(reinterpret_cast<uint64_t>(ended)); }};
  keep(submitted(), std::move(owned));
}

bool CpuDevice::owns(Address address, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(buffers_mutex_);
  const auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return false;
  const auto& [base, length] = *std::prev(after);
  return address - base <= length && bytes <= length - (address - base);
}

bool CpuDevice::overlaps(Address address, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(buffers_mutex_);
  const auto after = buffers_.upper_bound(address);
  if (after != buffers_.end() && after->first - address < bytes) return true;
  return after != buffers_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

void CpuDevice::check_range(Address address, uint64_t bytes) {
  if (!owns(address, bytes))
    throw std::invalid_argument("the " + std::to_string(bytes) + " bytes at address " + std::to_string(address) +
                                " are not memory of this device, or were freed");
}

void CpuDevice::execute_copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  alignas(cpu::kBlockAlignment) const Copy copy{to, from, bytes};
  cpu::Launch launch = launch_of(copying, copy);
  if (bytes != 0) execute(launch, &copy_name);
}

void CpuDevice::execute_fill(std::byte* to, uint64_t bytes, uint32_t word) {
  alignas(cpu::kBlockAlignment) const Fill fill{to, bytes, word};
  cpu::Launch launch = launch_of(filling, fill);
  if (bytes != 0) execute(launch, &fill_name);
}

void CpuDevice::upload(Address address, const std::byte* host, uint64_t bytes) {
  const Work use(*this);
  refuse_while_recording();
  throw_earlier_error();
  check_range(address, bytes);
  auto* const to = reinterpret_cast<std::byte*>(address);
  if (bytes <= kShortUpload) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!idle()) {
      enqueue(
          lock,
          [this, to, data = std::vector<std::byte>(host, host + bytes)] { execute_copy(to, data.data(), data.size()); },
          nullptr);
      return;
    }
  }
  run_in_turn([=] { execute_copy(to, host, bytes); });
}

void CpuDevice::download(std::byte* host, Address address, uint64_t bytes) {
  const Work use(*this);
  refuse_while_recording();
  check_range(address, bytes);
  run_in_turn([=] { execute_copy(host, reinterpret_cast<const std::byte*>(address), bytes); });
  throw_earlier_error();
}

void CpuDevice::at_once_or_later(uint64_t bytes, const Task& task) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (bytes > kTinyCopy || !idle()) {
    enqueue(lock, task, nullptr);
    return;
  }
  lock.unlock();
  run_in_turn(task);
}

void CpuDevice::copy(Address to, Address from, uint64_t bytes) {
  const Work use(*this);
  refuse_while_recording();
  throw_earlier_error();
  check_range(to, bytes);
  check_range(from, bytes);
  if (std::max(to, from) - std::min(to, from) < bytes)
    throw std::invalid_argument("a copy's source and target overlap in device memory");
  at_once_or_later(
      bytes, [=] { execute_copy(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), bytes); });
}

void CpuDevice::fill(Address address, uint64_t bytes, uint32_t word) {
  const Work use(*this);
  refuse_while_recording();
  throw_earlier_error();
  check_range(address, bytes);
  if (address % 4 != 0 || bytes % 4 != 0)
    throw std::invalid_argument("a fill's address and size must be multiples of 4");
  at_once_or_later(bytes, [=] { execute_fill(reinterpret_cast<std::byte*>(address), bytes, word); });
}

}  // namespace triton_spirv
