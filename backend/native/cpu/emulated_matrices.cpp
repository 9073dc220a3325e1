#include "cpu/emulated_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cpu/faults.h"
#include "triton_spirv/symbols.hpp"

namespace triton_spirv::cpu {
namespace {

// As COMPONENTS in backend/cpu/emulation.py.
enum Type : int32_t { kF16, kBF16, kF32, kF64, kS8, kU8, kS16, kU16, kS32, kU32 };

std::size_t size_of(int32_t type) {
  constexpr std::size_t kSizes[] = {2, 2, 4, 8, 1, 1, 2, 2, 4, 4};
  return kSizes[type];
}

bool is_integer(int32_t type) { return type >= kS8; }

template <typename T>
T read_as(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

double read_float(const std::byte* place, int32_t type) {
  switch (type) {
    case kF16:
      return from_half(read_as<uint16_t>(place));
    case kBF16: {
      const uint32_t bits = uint32_t{read_as<uint16_t>(place)} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case kF32:
      return read_as<float>(place);
    default:
      return read_as<double>(place);
  }
}

int64_t read_integer(const std::byte* place, int32_t type) {
  switch (type) {
    case kS8:
      return read_as<int8_t>(place);
    case kU8:
      return read_as<uint8_t>(place);
    case kS16:
      return read_as<int16_t>(place);
    case kU16:
      return read_as<uint16_t>(place);
    case kS32:
      return read_as<int32_t>(place);
    default:
      return read_as<uint32_t>(place);
  }
}

void write_float(std::byte* place, int32_t type, double value) {
  const uint16_t half = type == kF16 ? to_half(value) : type == kBF16 ? to_bfloat16(value) : 0;
  const float single = static_cast<float>(value);
  switch (type) {
    case kF16:
    case kBF16:
      std::memcpy(place, &half, sizeof half);
      break;
    case kF32:
      std::memcpy(place, &single, sizeof single);
      break;
    default:
      std::memcpy(place, &value, sizeof value);
  }
}

void write_integer(std::byte* place, int32_t type, int64_t value, bool saturates) {
  if (saturates && type == kS32)
    value = std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  if (saturates && type == kU32) value = std::clamp<int64_t>(value, 0, std::numeric_limits<uint32_t>::max());
  std::memcpy(place, &value, size_of(type));
}

// The elements of a matrix in the order of their numbers.
template <typename T, typename Read>
std::vector<T> elements(const std::byte* memory, int32_t type, int32_t copies, const int32_t* numbers,
                        std::size_t count, Read read) {
  std::vector<T> found(count);
  for (int32_t at = 0; at < copies; ++at) found[numbers[at]] = static_cast<T>(read(memory + at * size_of(type), type));
  return found;
}

}  // namespace

void multiply_matrices(std::byte* memory, const int32_t* table) {
  const Unguarded held;
  const int32_t m = table[0], n = table[1], k = table[2], lanes = table[3];
  const bool saturates = table[4] != 0;
  const int32_t *const types = table + 5, *const counts = table + 9, *numbers = table + 13;
  const std::byte* parts[4];
  const int32_t* places[4];
  std::byte* at = memory;
  for (int part = 0; part < 4; ++part) {
    parts[part] = at;
    at += counts[part] * lanes * size_of(types[part]);
    places[part] = part < 3 ? numbers : places[2];
    if (part < 3) numbers += counts[part] * lanes;
  }
  auto* const result = const_cast<std::byte*>(parts[3]);
  const auto all = [&](int part) { return counts[part] * lanes; };
  const int32_t to = types[3];
  const auto each = [&](auto product, auto write) {
    for (int32_t place = 0; place < all(3); ++place) {
      const int32_t number = places[3][place];
      write(result + place * size_of(to), product(number / n, number % n, number));
    }
  };
  if (is_integer(to)) {
    const auto a = elements<int64_t>(parts[0], types[0], all(0), places[0], m * k, read_integer);
    const auto b = elements<int64_t>(parts[1], types[1], all(1), places[1], k * n, read_integer);
    const auto c = elements<int64_t>(parts[2], types[2], all(2), places[2], m * n, read_integer);
    each(
        [&](int32_t row, int32_t column, int32_t number) {
          int64_t sum = c[number];
          for (int32_t step = 0; step < k; ++step) sum += a[row * k + step] * b[step * n + column];
          return sum;
        },
        [&](std::byte* place, int64_t value) { write_integer(place, to, value, saturates); });
    return;
  }
  const auto multiply = [&](auto zero) {
    using T = decltype(zero);
    const auto a = elements<T>(parts[0], types[0], all(0), places[0], m * k, read_float);
    const auto b = elements<T>(parts[1], types[1], all(1), places[1], k * n, read_float);
    const auto c = elements<T>(parts[2], types[2], all(2), places[2], m * n, read_float);
    each(
        [&](int32_t row, int32_t column, int32_t number) {
          T sum = c[number];
          for (int32_t step = 0; step < k; ++step) sum = std::fma(a[row * k + step], b[step * n + column], sum);
          return sum;
        },
        [&](std::byte* place, T value) { write_float(place, to, value); });
  };
  if (to == kF64) {
    multiply(0.0);
  } else {
    multiply(0.0f);
  }
}

}  // namespace triton_spirv::cpu
