// Written by python -m backend.abi.header from backend/abi/: change it there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triton_spirv {

// What the Python code must agree with.
inline constexpr uint32_t kAbiVersion = 25;

// How an argument is written.
enum class Packing {
  kPointer,
  kSigned,
  kUnsigned,
  kBool,
  kHalf,
  kBFloat,
  kFloat,
  kDouble,
};

// A type that is passed by value.
struct ScalarType {
  std::string_view name;
  Packing packing;
  uint32_t bytes;
};

// clang-format off
inline constexpr ScalarType kScalarTypes[] = {
    {"i1", Packing::kBool, 1},
    {"i8", Packing::kSigned, 1},
    {"i16", Packing::kSigned, 2},
    {"i32", Packing::kSigned, 4},
    {"i64", Packing::kSigned, 8},
    {"u1", Packing::kBool, 1},
    {"u8", Packing::kUnsigned, 1},
    {"u16", Packing::kUnsigned, 2},
    {"u32", Packing::kUnsigned, 4},
    {"u64", Packing::kUnsigned, 8},
    {"fp16", Packing::kHalf, 2},
    {"bf16", Packing::kBFloat, 2},
    {"fp32", Packing::kFloat, 4},
    {"fp64", Packing::kDouble, 8},
};
// clang-format on
inline constexpr uint32_t kPointerBytes = 8;

// The block's size is a multiple of it.
inline constexpr uint32_t kWordBytes = 4;

// Where Triton's launch arguments are.
enum LaunchArgument : std::ptrdiff_t {
  kGrid = 0,
  kStream = 3,
  kFunction = 4,
  kKernelMetadata = 5,
  kLaunchMetadata = 6,
  kEnterHook = 7,
  kExitHook = 8,
  kKernelArguments = 9,
};

// Where the memory of a pointer argument lies: a bit each, so that a number holds all of a launch.
enum Place : uint8_t {
  kAddress = 1,
  kHost = 2,
  kDevice = 4,
  kCuda = 8,
  kReadOnly = 16,
};

// What launch metadata calls a place.
constexpr const char* place_name(Place place) {
  switch (place) {
    case kAddress:
      return "address";
    case kHost:
      return "host";
    case kDevice:
      return "device";
    case kCuda:
      return "cuda";
    case kReadOnly:
      return "host";
  }
  return "?";
}

}  // namespace triton_spirv
