// Device memory for tensors. Small tensors share buffers, and freed memory is reused. Call it with Python's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shared.h"

namespace triton_spirv {

class Allocation;

// Idle memory by size. The lowest address is taken first, so a program that repeats its steps gets the same addresses
// in whatever order it freed them. The pool calls no Python while it changes, so no other code can run in between.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  // Every address is a multiple of this.
  static constexpr uint64_t kAlignment = 512;
  // Allocations up to this many bytes are cut from slabs, because drivers allow only a few thousand memory allocations.
  static constexpr uint64_t kLargestShared = uint64_t{1} << 20;
  static constexpr uint64_t kSlabBytes = uint64_t{4} << 20;

  // The size in bytes of an allocation for `bytes` bytes. It is a multiple of an eighth of the power of two, so that
  // sizes repeat.
  static uint64_t size_of(uint64_t bytes);

  // Returns at least `bytes` bytes, or null if none are idle. Work that was submitted before they were freed may still
  // use them; later work runs after it.
  USED_BY_TORCH std::shared_ptr<Allocation> take(uint64_t bytes);
  // Adds a buffer as idle memory for allocations that take `size` bytes.
  void add(pybind11::object buffer, uint64_t address, uint64_t bytes, uint64_t size);
  // Forgets and returns the buffers without allocations. The caller frees them.
  pybind11::list release();
  void reset_peaks();
  // Keeps no idle memory from now on, because the device is being closed.
  void close() { closed_ = true; }

  // Bytes in use, bytes of buffers, the peaks of both, and the number of allocations made.
  uint64_t allocated = 0, peak_allocated = 0, reserved = 0, peak_reserved = 0, allocations = 0;

 private:
  friend class Allocation;
  struct Slab {
    pybind11::object buffer;
    uint64_t bytes;
    std::size_t cells, idle;
  };
  struct Cell {
    uint64_t address, slab;
  };
  // Whether `other` must be taken before `cell`.
  static bool is_later(const Cell& cell, const Cell& other) { return cell.address > other.address; }
  void give_back(uint64_t size, Cell cell);

  std::unordered_map<uint64_t, std::vector<Cell>> idle_;  // by size; each is a heap with the lowest address in front
  std::unordered_map<uint64_t, Slab> slabs_;              // by number
  uint64_t next_slab_ = 0;
  bool closed_ = false;
};

// Device memory that free() or the destructor returns to the pool.
class Allocation {
 public:
  Allocation(std::shared_ptr<MemoryPool> pool, MemoryPool::Cell cell, uint64_t size, uint64_t bytes)
      : pool_(std::move(pool)), cell_(cell), size_(size), bytes(bytes) {}
  ~Allocation() { free(); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  // A second call does nothing.
  void free();
  // 0 after free().
  uint64_t address() const { return cell_.address; }

 private:
  std::shared_ptr<MemoryPool> pool_;
  MemoryPool::Cell cell_;
  uint64_t size_;

 public:
  const uint64_t bytes;
};

}  // namespace triton_spirv
