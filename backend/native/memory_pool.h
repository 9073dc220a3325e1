// Device memory for tensors. Tensors share buffers, and freed memory is reused. Call it with Python's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "device.h"

namespace triton_spirv {

class Allocation;

// Buffers, cut into blocks. An allocation takes the smallest idle block that is large enough, at the lowest address
// among equals, and leaves the rest idle. Idle neighbours are joined at once, so what is idle depends on what is in use
// alone, and a program that repeats its steps gets the same addresses in whatever order it freed them. The pool calls
// no Python while it changes, so no other code can run in between.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  // `device`: whose memory it is, if streams of it may overlap.
  explicit MemoryPool(std::shared_ptr<Device> device = nullptr) : device_(std::move(device)) {}

  // Every address is a multiple of this, and so is the size of every allocation.
  static constexpr uint64_t kAlignment = 512;
  // Buffers have at least the former, and no more than the latter for what needs less: as the pool grows, a quarter of
  // it. Drivers allow only a few thousand memory allocations.
  static constexpr uint64_t kSmallestBuffer = uint64_t{4} << 20, kLargestBuffer = uint64_t{64} << 20;
  // Allocations of so many bytes, which are often read by the host, have buffers of their own.
  static constexpr uint64_t kFew = kAlignment, kBufferOfFew = uint64_t{1} << 20;

  // The size in bytes of an allocation for `bytes` bytes.
  static uint64_t size_of(uint64_t bytes);
  // The bytes of the buffer that is to be added if nothing idle has room for `bytes` bytes.
  uint64_t buffer_for(uint64_t bytes) const;
  static bool is_few(uint64_t bytes) { return bytes <= kFew; }

  // Returns at least `bytes` bytes, or null if nothing idle has room. Work that was submitted before they were freed
  // may still use them; what this thread's stream does later runs after it.
  USED_BY_TORCH std::shared_ptr<Allocation> take(uint64_t bytes);
  // Memory of `device` that lies where something else put it (Device::adopt()). It is in use until it is freed, and
  // never idle.
  USED_BY_TORCH std::shared_ptr<Allocation> adopt(Device& device, uint64_t address, uint64_t bytes,
                                                  std::shared_ptr<void> owner);
  // Adds a buffer as idle memory. `few`: for allocations of few bytes.
  void add(pybind11::object buffer, uint64_t address, uint64_t bytes, bool few);
  // Forgets and returns the buffers without allocations. The caller frees them.
  pybind11::list release();
  // Each buffer's address and its blocks in order: (bytes, whether it is idle).
  std::vector<std::pair<uint64_t, std::vector<std::pair<uint64_t, bool>>>> buffers() const;
  void reset_peaks();
  // Keeps no idle memory from now on, because the device is being closed.
  void close() { closed_ = true; }

  // Bytes in use, bytes of buffers, the peaks of both, and the number of allocations made.
  uint64_t allocated = 0, peak_allocated = 0, reserved = 0, peak_reserved = 0, allocations = 0;

 private:
  friend class Allocation;
  struct Buffer;
  // A part of a buffer, between its neighbours there.
  struct Block {
    uint64_t address, size;
    Block *before, *after;
    bool is_idle, few;
    uint64_t freed = 0;               // the work that was submitted when it was last freed
    std::shared_ptr<void> adopted{};  // what lets go of memory that was adopted, and its place among the buffers
    std::list<Buffer>::iterator buffer{};
  };
  struct Idle {
    uint64_t size, address;
    Block* block;
    // Of equal sizes the lowest address comes first.
    bool operator<(const Idle& other) const { return std::tie(size, address) < std::tie(other.size, other.address); }
  };
  using IdleSet = std::set<Idle>;
  struct Buffer {
    pybind11::object object;
    uint64_t bytes;
    Block* first;
  };
  Block* new_block(const Block& value);
  void drop_block(Block* block) { unused_blocks_.push_back(block); }
  void set_idle(Block* block);
  void remove_idle(Block* block);
  // Joins a block with the one after it.
  void join(Block* block);
  void give_back(Block* block);

  std::shared_ptr<Device> device_;
  IdleSet idle_[2];                               // the latter in buffers for few bytes
  std::vector<IdleSet::node_type> unused_nodes_;  // kept, because allocating one takes as long as the rest of a call
  std::list<Block> blocks_;
  std::vector<Block*> unused_blocks_;
  std::list<Buffer> buffers_;
  bool closed_ = false;
};

// Device memory that free() or the destructor returns to the pool.
class Allocation {
 public:
  Allocation(std::shared_ptr<MemoryPool> pool, MemoryPool::Block* block, uint64_t bytes)
      : pool_(std::move(pool)), block_(block), address_(block->address), bytes(bytes) {}
  ~Allocation() { free(); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  // A second call does nothing.
  void free();
  // 0 after free().
  uint64_t address() const { return address_; }

 private:
  std::shared_ptr<MemoryPool> pool_;
  MemoryPool::Block* block_;
  uint64_t address_;

 public:
  const uint64_t bytes;
};

}  // namespace triton_spirv
