#include "memory_pool.h"

#include <algorithm>
#include <utility>

namespace py = pybind11;

namespace triton_spirv {

uint64_t MemoryPool::size_of(uint64_t bytes) {
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

uint64_t MemoryPool::buffer_for(uint64_t bytes) const {
  if (is_few(bytes)) return kBufferOfFew;
  const uint64_t quarter = reserved / 4 / kSmallestBuffer * kSmallestBuffer;
  return std::max(size_of(bytes), std::clamp(quarter, kSmallestBuffer, kLargestBuffer));
}

MemoryPool::Block* MemoryPool::new_block(const Block& value) {
  if (unused_blocks_.empty()) return &blocks_.emplace_back(value);
  Block* const block = unused_blocks_.back();
  unused_blocks_.pop_back();
  *block = value;
  return block;
}

void MemoryPool::set_idle(Block* block) {
  block->is_idle = true;
  const Idle value{block->size, block->address, block};
  if (unused_nodes_.empty()) {
    idle_[block->few].insert(value);
    return;
  }
  IdleSet::node_type node = std::move(unused_nodes_.back());
  unused_nodes_.pop_back();
  node.value() = value;
  idle_[block->few].insert(std::move(node));
}

void MemoryPool::remove_idle(Block* block) {
  block->is_idle = false;
  unused_nodes_.push_back(idle_[block->few].extract({block->size, block->address, block}));
}

void MemoryPool::join(Block* block) {
  Block* const after = block->after;
  block->size += after->size;
  block->freed = std::max(block->freed, after->freed);
  block->after = after->after;
  if (after->after != nullptr) after->after->before = block;
  drop_block(after);
}

std::shared_ptr<Allocation> MemoryPool::take(uint64_t bytes) {
  if (closed_) return nullptr;
  const uint64_t size = size_of(bytes);
  const IdleSet& idle = idle_[is_few(bytes)];
  const auto found = idle.lower_bound({size, 0, nullptr});
  if (found == idle.end()) return nullptr;
  Block* const block = found->block;
  remove_idle(block);
  if (block->size > size) {
    Block* const rest =
        new_block({block->address + size, block->size - size, block, block->after, true, block->few, block->freed});
    if (rest->after != nullptr) rest->after->before = rest;
    block->after = rest;
    block->size = size;
    set_idle(rest);
  }
  if (device_) device_->take_over(block->address, size, block->freed);
  ++allocations;
  allocated += size;
  peak_allocated = std::max(peak_allocated, allocated);
  return std::make_shared<Allocation>(shared_from_this(), block, bytes);
}

std::shared_ptr<Allocation> MemoryPool::adopt(Device& device, uint64_t address, uint64_t bytes,
                                              std::shared_ptr<void> owner) {
  const uint64_t size = size_of(bytes);
  std::shared_ptr<void> adopted = device.adopt(address, bytes, std::move(owner));
  Block* const block = new_block({address, size, nullptr, nullptr, false, false});
  block->adopted = std::move(adopted);
  block->buffer = buffers_.insert(buffers_.end(), {py::object(), size, block});
  ++allocations;
  reserved += size;
  peak_reserved = std::max(peak_reserved, reserved);
  allocated += size;
  peak_allocated = std::max(peak_allocated, allocated);
  return std::make_shared<Allocation>(shared_from_this(), block, bytes);
}

void MemoryPool::add(py::object buffer, uint64_t address, uint64_t bytes, bool few) {
  Block* const block = new_block({address, bytes, nullptr, nullptr, true, few});
  buffers_.push_back({std::move(buffer), bytes, block});
  set_idle(block);
  reserved += bytes;
  peak_reserved = std::max(peak_reserved, reserved);
}

void MemoryPool::give_back(Block* block) {
  allocated -= block->size;
  if (const std::shared_ptr<void> adopted = std::move(block->adopted)) {
    reserved -= block->size;
    buffers_.erase(block->buffer);
    drop_block(block);
    return;
  }
  if (device_) block->freed = device_->submitted();
  if (block->after != nullptr && block->after->is_idle) {
    remove_idle(block->after);
    join(block);
  }
  if (block->before != nullptr && block->before->is_idle) {
    block = block->before;
    remove_idle(block);
    join(block);
  }
  set_idle(block);
}

py::list MemoryPool::release() {
  std::vector<py::object> released;
  for (auto buffer = buffers_.begin(); buffer != buffers_.end();) {
    Block* const block = buffer->first;
    if (!block->is_idle || block->after != nullptr) {
      ++buffer;
      continue;
    }
    remove_idle(block);
    drop_block(block);
    reserved -= buffer->bytes;
    released.push_back(std::move(buffer->object));
    buffer = buffers_.erase(buffer);
  }
  py::list all;
  for (py::object& buffer : released) all.append(std::move(buffer));
  return all;
}

std::vector<std::pair<uint64_t, std::vector<std::pair<uint64_t, bool>>>> MemoryPool::buffers() const {
  std::vector<std::pair<uint64_t, std::vector<std::pair<uint64_t, bool>>>> all;
  for (const Buffer& buffer : buffers_) {
    auto& [address, blocks] = all.emplace_back(buffer.first->address, std::vector<std::pair<uint64_t, bool>>());
    for (const Block* block = buffer.first; block != nullptr; block = block->after)
      blocks.emplace_back(block->size, block->is_idle);
  }
  return all;
}

void MemoryPool::reset_peaks() {
  peak_allocated = allocated;
  peak_reserved = reserved;
}

void Allocation::free() {
  const std::shared_ptr<MemoryPool> pool = std::move(pool_);
  if (!pool) return;
  pool->give_back(block_);
  address_ = 0;
}

}  // namespace triton_spirv
