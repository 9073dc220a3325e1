// Copies between host and device memory, and timestamps.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "vulkan/vulkan_device.h"

namespace triton_spirv {
namespace {

constexpr VkDeviceSize kChunkBytes = VkDeviceSize{8} << 20;
// vkCmdUpdateBuffer's limit; its data and offset are whole words.
constexpr VkDeviceSize kMostInline = 65536;
constexpr uint32_t kQueriesAPool = 256;
// What is worth a thread, which takes some 20 µs to start, and how many threads copy at most.
constexpr VkDeviceSize kShareBytes = VkDeviceSize{1} << 20;
constexpr VkDeviceSize kMostSharing = 4;

// Copies between host memory and a chunk. One thread is slower than the bus: 8 of 50 GB/s beside an H200.
void copy_on_host(void* target, const void* source, VkDeviceSize bytes) {
  std::byte* const to = static_cast<std::byte*>(target);
  const std::byte* const from = static_cast<const std::byte*>(source);
  const VkDeviceSize cores = std::max(1u, std::thread::hardware_concurrency());
  const VkDeviceSize shares = std::max<VkDeviceSize>(1, std::min({kMostSharing, cores, bytes / kShareBytes}));
  const VkDeviceSize share = bytes / shares;
  std::vector<std::thread> others;
  others.reserve(kMostSharing);
  VkDeviceSize left = bytes;
  try {
    for (; left - share >= share; left -= share)
      others.emplace_back(std::memcpy, to + left - share, from + left - share, share);
  } catch (const std::system_error&) {
    // There are too many threads already: this one copies what is left.
  }
  std::memcpy(to, from, left);
  for (std::thread& other : others) other.join();
}

}  // namespace

// Holds the chunks for one transfer at a time. While a transfer waits, a signal handler may begin another one in the
// same thread. The second transfer gets chunks of its own.
class VulkanDevice::Transfer {
 public:
  explicit Transfer(VulkanDevice& device) : device_(device), use_(device) {
    device_.check_usable();  // before the mutex, which a thread of the parent may hold in a forked child
    if (device_.transferring_ == std::this_thread::get_id()) {
      own_ = std::make_unique<Chunks>();
      return;
    }
    // This uses the wall clock because ThreadSanitizer of GCC 12 does not see try_lock_for().
    constexpr auto sleep = std::chrono::nanoseconds(kSleepNs);
    while (!device_.transfer_mutex_.try_lock_until(std::chrono::system_clock::now() + sleep)) {
      if (while_waiting != nullptr) while_waiting();
    }
    device_.transferring_ = std::this_thread::get_id();
  }
  ~Transfer() {
    if (own_) return;
    device_.transferring_ = std::thread::id();
    device_.transfer_mutex_.unlock();
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Returns the chunk for this turn. The host may write to it.
  Chunk& chunk(std::size_t turn) {
    Chunk& chunk = (own_ ? *own_ : device_.chunks_)[turn % std::tuple_size_v<Chunks>];
    if (!chunk.buffer) chunk.buffer = device_.allocate_buffer(kChunkBytes, MemoryKind::kStaging);
    device_.wait(chunk.value);
    return chunk;
  }

 private:
  VulkanDevice& device_;
  const Use use_;
  std::unique_ptr<Chunks> own_;
};

void VulkanDevice::upload(VkDeviceAddress address, const std::byte* host, VkDeviceSize bytes) {
  if (bytes == 0) return;
  check_usable();
  const Location to = find(address, bytes);
  if (bytes <= kMostInline && bytes % 4 == 0 && to.offset % 4 == 0) {
    if (waiting_ != 0 && leave(nullptr, [this, address, data = std::vector<std::byte>(host, host + bytes)] {
          upload(address, data.data(), data.size());
        }))
      return;
    // The data goes into the command buffer. A chunk would have to wait for all work up to its last transfer.
    submit([&](Slot& slot) {
      order(slot);
      vk_.vkCmdUpdateBuffer(slot.commands, to.buffer, to.offset, bytes, host);
    });
    return;
  }
  Transfer transfer(*this);
  std::size_t turn = 0;
  for (VkDeviceSize at = 0; at < bytes; at += kChunkBytes, ++turn) {
    Chunk& from = transfer.chunk(turn);
    const VkBufferCopy region{0, to.offset + at, std::min(kChunkBytes, bytes - at)};
    copy_on_host(from.buffer->host(), host + at, region.size);
    from.value = submit([&](Slot& slot) {
      order(slot);
      vk_.vkCmdCopyBuffer(slot.commands, from.buffer->buffer(), to.buffer, 1, &region);
    });
  }
}

void VulkanDevice::download(std::byte* host, VkDeviceAddress address, VkDeviceSize bytes) {
  if (bytes == 0) return;
  check_usable();
  const Location from = find(address, bytes);
  if (from.read != nullptr) {  // 1 to 9 µs beside an H200, where a copy and the wait for it take 20
    refuse_while_recording();
    const Use use(*this);
    await({submitted(), point(Stream::current(*this).get()).copies});
    std::memcpy(host, from.read, bytes);
    return;
  }
  Transfer transfer(*this);
  const std::size_t turns = (bytes + kChunkBytes - 1) / kChunkBytes;
  // The device fills one chunk while the host empties the other.
  for (std::size_t turn = 0; turn <= turns; ++turn) {
    if (turn < turns) {
      Chunk& to = transfer.chunk(turn);
      const VkDeviceSize at = turn * kChunkBytes;
      const VkBufferCopy region{from.offset + at, 0, std::min(kChunkBytes, bytes - at)};
      to.value = submit([&](Slot& slot) {
        order(slot);
        vk_.vkCmdCopyBuffer(slot.commands, from.buffer, to.buffer->buffer(), 1, &region);
      });
    }
    if (turn > 0) {
      const VkDeviceSize at = (turn - 1) * kChunkBytes;
      copy_on_host(host + at, transfer.chunk(turn - 1).buffer->host(), std::min(kChunkBytes, bytes - at));
    }
  }
}

// What the stream did before is submitted first, and so is each thing that another queue waits for: a device may have
// one queue for both.
template <typename Record>
Point VulkanDevice::submit_aside(Stream& stream, Address address, uint64_t bytes, Record&& record) {
  const Work use(*this);
  refuse_while_recording();
  const uint64_t after = stream.point().work;
  catch_up(after);
  flush(after);
  look_copies(copied());
  const std::lock_guard<std::mutex> queue(queue_mutex_);
  check_usable();
  const uint64_t value = copied() + 1;
  const auto is_done = [&](const Aside& one) { return one.value <= copies_end_; };
  if (copies_pool_ == VK_NULL_HANDLE) {
    const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                       VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queues_.copies_family};
    checked(vk_.vkCreateCommandPool(device_, &pool, nullptr, &copies_pool_), "vkCreateCommandPool");
  }
  auto next = std::find_if(aside_.begin(), aside_.end(), is_done);
  if (next == aside_.end()) next = aside_.insert(next, {add_commands(copies_pool_), 0});
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                       VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  checked(vk_.vkBeginCommandBuffer(next->commands, &begin), "vkBeginCommandBuffer");
  constexpr VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags writes = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier(next->commands, stage, writes, stage, writes | VK_ACCESS_TRANSFER_READ_BIT);
  record(next->commands);
  barrier(next->commands, stage, writes, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  checked(vk_.vkEndCommandBuffer(next->commands), "vkEndCommandBuffer");
  {
    const std::lock_guard<std::mutex> guard(copies_mutex_);
    pending_.push_back({value, after, address, bytes});
  }
  const SemaphoreWait work{after != 0 ? timeline_ : VK_NULL_HANDLE, after};
  submit_to(queues_.copies, next->commands, {work}, {copies_, value});
  next->value = value;
  copied_.store(value, std::memory_order_release);
  stream.wait_for({0, value});
  return {after, value};
}

uint64_t VulkanDevice::copy_in(Address address, uint64_t bytes) {
  uint64_t last = 0;
  const std::lock_guard<std::mutex> guard(copies_mutex_);
  for (const Copy& copy : pending_) {
    if (address < copy.address + copy.bytes && copy.address < address + bytes) last = std::max(last, copy.value);
  }
  return last;
}

void VulkanDevice::copy(VkDeviceAddress to, VkDeviceAddress from, VkDeviceSize bytes) {
  if (bytes == 0 || to == from) return;
  check_usable();
  const Location target = find(to, bytes), source = find(from, bytes);
  if (target.buffer == source.buffer &&
      std::max(target.offset, source.offset) - std::min(target.offset, source.offset) < bytes)
    throw std::invalid_argument("a copy's source and target overlap in device memory");
  const VkBufferCopy region{source.offset, target.offset, bytes};
  const std::shared_ptr<Stream> stream = Stream::current(*this);
  if (stream && overlaps_copies() && target.on_host != source.on_host) {
    submit_aside(*stream, target.on_host ? from : to, bytes, [&](VkCommandBuffer commands) {
      vk_.vkCmdCopyBuffer(commands, source.buffer, target.buffer, 1, &region);
    });
    return;
  }
  if (waiting_ != 0 && leave(nullptr, [=] { copy(to, from, bytes); })) return;
  submit([&](Slot& slot) {
    order(slot);
    vk_.vkCmdCopyBuffer(slot.commands, source.buffer, target.buffer, 1, &region);
  });
}

void VulkanDevice::fill(VkDeviceAddress address, VkDeviceSize bytes, uint32_t word) {
  if (bytes == 0) return;
  check_usable();
  const Location to = find(address, bytes);
  if (bytes % 4 != 0 || to.offset % 4 != 0)
    throw std::invalid_argument("fill() takes an address and a size that are multiples of 4");
  if (waiting_ != 0 && leave(nullptr, [=] { fill(address, bytes, word); })) return;
  submit([&](Slot& slot) {
    order(slot);
    vk_.vkCmdFillBuffer(slot.commands, to.buffer, to.offset, bytes, word);
  });
}

VulkanDevice::Query VulkanDevice::query_of(const Timestamp& timestamp) {
  const std::lock_guard<std::mutex> guard(queries_mutex_);
  return {query_pools_.at(timestamp.slot / kQueriesAPool), static_cast<uint32_t>(timestamp.slot % kQueriesAPool)};
}

Timestamp VulkanDevice::acquire_timestamp() {
  const Work use(*this);
  const std::lock_guard<std::mutex> guard(queries_mutex_);
  const auto is_written = [this](const Timestamp& one) {
    if (reached_ < one.written.work) look();
    return reached_ >= one.written.work && look_copies(one.written.copies);
  };
  if (free_queries_.empty() || !is_written(free_queries_.front())) {
    const VkQueryPoolCreateInfo info{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, kQueriesAPool, 0};
    VkQueryPool pool;
    checked(vk_.vkCreateQueryPool(device_, &info, nullptr, &pool), "vkCreateQueryPool");
    const uint64_t first = query_pools_.size() * kQueriesAPool;
    query_pools_.push_back(pool);
    for (uint32_t index = 0; index < kQueriesAPool; ++index) free_queries_.push_front({first + index, 0});
  }
  const Timestamp timestamp = free_queries_.front();
  free_queries_.pop_front();
  // The host resets the query, because a command for it would run between the work and its timestamp.
  vk_.vkResetQueryPool(device_, query_pools_[timestamp.slot / kQueriesAPool], timestamp.slot % kQueriesAPool, 1);
  return timestamp;
}

void VulkanDevice::release_timestamp(const Timestamp& timestamp) {
  if (forked()) return;  // a thread of the parent may hold the mutex
  const std::lock_guard<std::mutex> guard(queries_mutex_);
  free_queries_.push_back(timestamp);
}

void VulkanDevice::write_timestamp(Timestamp& timestamp, Stream* stream) {
  const Query query = query_of(timestamp);
  if (stream != nullptr && overlaps_copies()) {
    timestamp.written = submit_aside(*stream, 0, 0, [&](VkCommandBuffer commands) {
      vk_.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, query.pool, query.index);
    });
    return;
  }
  // The timestamp is submitted later, with the work that it times, because the device spends some 10 µs between two
  // submissions.
  const uint64_t value = submit(
      [&](Slot& slot) {
        order(slot);
        vk_.vkCmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, query.pool, query.index);
        ordered_ = true;
        timing_ = !timing_;
      },
      Batch::kLater);
  timestamp.written = {value, 0};
}

double VulkanDevice::elapsed(const Timestamp& from, const Timestamp& to) {
  const Work use(*this);
  uint64_t ticks[2];
  const Query queries[2] = {query_of(from), query_of(to)};
  for (int end = 0; end < 2; ++end)
    checked(vk_.vkGetQueryPoolResults(device_, queries[end].pool, queries[end].index, 1, sizeof(ticks[end]),
                                      &ticks[end], sizeof(ticks[end]), VK_QUERY_RESULT_64_BIT),
            "vkGetQueryPoolResults");
  const uint64_t mask = timestamp_bits_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << timestamp_bits_) - 1;
  // The difference is signed, so that events in the wrong order give a negative time.
  const int spare = timestamp_bits_ >= 64 ? 0 : 64 - static_cast<int>(timestamp_bits_);
  const auto difference = static_cast<int64_t>(((ticks[1] - ticks[0]) & mask) << spare) >> spare;
  return static_cast<double>(difference) * static_cast<double>(timestamp_period_);
}

}  // namespace triton_spirv
