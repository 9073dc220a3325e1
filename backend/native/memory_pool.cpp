#include "memory_pool.h"

#include <algorithm>
#include <utility>

namespace py = pybind11;

namespace triton_spirv {

uint64_t MemoryPool::size_of(uint64_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  int bits = 0;
  for (uint64_t rest = bytes; rest != 0; rest >>= 1) ++bits;
  const uint64_t step = std::max(bits > 4 ? uint64_t{1} << (bits - 4) : 1, kAlignment);
  return (bytes + step - 1) / step * step;
}

std::shared_ptr<Allocation> MemoryPool::take(uint64_t bytes) {
  if (closed_) return nullptr;
  const uint64_t size = size_of(bytes);
  const auto found = idle_.find(size);
  if (found == idle_.end() || found->second.empty()) return nullptr;
  std::pop_heap(found->second.begin(), found->second.end(), is_later);
  const Cell cell = found->second.back();
  found->second.pop_back();
  --slabs_.at(cell.slab).idle;
  ++allocations;
  allocated += size;
  peak_allocated = std::max(peak_allocated, allocated);
  return std::make_shared<Allocation>(shared_from_this(), cell, size, bytes);
}

void MemoryPool::add(py::object buffer, uint64_t address, uint64_t bytes, uint64_t size) {
  const std::size_t count = size > kLargestShared ? 1 : bytes / size;
  const uint64_t slab = next_slab_++;
  slabs_.emplace(slab, Slab{std::move(buffer), bytes, count, count});
  std::vector<Cell>& idle = idle_[size];
  for (std::size_t index = 0; index < count; ++index) idle.push_back({address + index * size, slab});
  std::make_heap(idle.begin(), idle.end(), is_later);
  reserved += bytes;
  peak_reserved = std::max(peak_reserved, reserved);
}

void MemoryPool::give_back(uint64_t size, Cell cell) {
  ++slabs_.at(cell.slab).idle;
  std::vector<Cell>& idle = idle_[size];
  idle.push_back(cell);
  std::push_heap(idle.begin(), idle.end(), is_later);
  allocated -= size;
}

py::list MemoryPool::release() {
  const auto is_whole = [this](uint64_t number) {
    const Slab& slab = slabs_.at(number);
    return slab.idle == slab.cells;
  };
  for (auto& [size, cells] : idle_) {
    cells.erase(std::remove_if(cells.begin(), cells.end(), [&](const Cell& cell) { return is_whole(cell.slab); }),
                cells.end());
    std::make_heap(cells.begin(), cells.end(), is_later);
  }
  std::vector<py::object> released;
  for (auto entry = slabs_.begin(); entry != slabs_.end();) {
    const Slab& slab = entry->second;
    if (slab.idle != slab.cells) {
      ++entry;
      continue;
    }
    reserved -= slab.bytes;
    released.push_back(slab.buffer);
    entry = slabs_.erase(entry);
  }
  py::list all;
  for (py::object& buffer : released) all.append(std::move(buffer));
  return all;
}

void MemoryPool::reset_peaks() {
  peak_allocated = allocated;
  peak_reserved = reserved;
}

void Allocation::free() {
  const std::shared_ptr<MemoryPool> pool = std::move(pool_);
  if (!pool) return;
  pool->give_back(size_, cell_);
  cell_.address = 0;
}

}  // namespace triton_spirv
