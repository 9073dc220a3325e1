#include "cpu/emulated_counts.h"

#include <algorithm>
#include <vector>

#include "cpu/faults.h"

namespace triton_spirv::cpu {
namespace {

constexpr uint64_t kBankWord = 4;  // bytes that a bank serves in a step

std::array<std::atomic<uint64_t>, kCounts> totals{};

}  // namespace

std::atomic<uint32_t> counted_banks{0};

void set_counted_banks(uint32_t banks) { counted_banks.store(banks, std::memory_order_relaxed); }

void count(Counted what, uint64_t more) { totals[what].fetch_add(more, std::memory_order_relaxed); }

Counts take_counts() {
  Counts result{};
  for (std::size_t what = 0; what < kCounts; ++what) result[what] = totals[what].exchange(0, std::memory_order_relaxed);
  return result;
}

void count_device_access(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, bool reads,
                         bool writes) {
  const Unguarded held;
  std::vector<uint64_t> accessed;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (active[lane]) accessed.push_back(places[lane]);
  std::sort(accessed.begin(), accessed.end());
  uint64_t moved = 0, end = 0;
  for (const uint64_t place : accessed) {
    if (place + bytes > end) moved += place + bytes - std::max(place, end);
    end = std::max(end, place + bytes);
  }
  if (reads) count(kBytesRead, moved);
  if (writes) count(kBytesWritten, moved);
}

// As inspection/banks.py: lanes of 8 or 16 bytes are served fewer at a time, and lanes share a word.
void count_shared_access(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes,
                         uint32_t banks) {
  const Unguarded held;
  const uint32_t at_once = std::max<uint32_t>(1, banks * kBankWord / std::max<uint64_t>(bytes, kBankWord));
  std::vector<uint64_t> words;
  std::vector<uint64_t> of_bank(banks);
  uint64_t steps = 0, fewest = 0;
  for (uint32_t start = 0; start < lanes; start += at_once) {
    words.clear();
    for (uint32_t lane = start; lane < std::min(lanes, start + at_once); ++lane) {
      if (!active[lane]) continue;
      for (uint64_t word = places[lane] / kBankWord; word <= (places[lane] + bytes - 1) / kBankWord; ++word)
        words.push_back(word);
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::fill(of_bank.begin(), of_bank.end(), 0);
    for (const uint64_t word : words) ++of_bank[word % banks];
    steps += *std::max_element(of_bank.begin(), of_bank.end());
    fewest += (words.size() + banks - 1) / banks;
  }
  count(kSteps, steps);
  count(kFewestSteps, fewest);
}

}  // namespace triton_spirv::cpu
