// Launch kernels that `triton-spirv compile` wrote, from any Vulkan 1.3 program, or on the processor from any program.
//
// C++17, this header alone; it needs Vulkan's headers, and no Triton. docs/internals/abi.md of Triton for every Vulkan
// device describes the files.
//
//     triton_spirv::Kernel add(physical_device, device, "add.spv");
//     add.record(commands, {groups, 1, 1}, {pointer(x), pointer(y), pointer(out), n, 0.5});
//
// The device must have been made with what its Abi::required_features name: class Features does that.
//
// Kernels that were compiled for a processor (`--target cpu-x86-64-v3`) run on Linux, with no Vulkan. For them the
// folder triton_spirv must lie beside this header:
//
//     triton_spirv::CpuKernel add("add.o");
//     add.run({groups, 1, 1}, {pointer(x), pointer(y), pointer(out), n, 0.5});
//
// What goes wrong throws triton_spirv::Error, whose text says what is wrong and what to do. These change that, and what
// is needed; all files of a program must agree on the first:
//
//   TRITON_SPIRV_NO_EXCEPTIONS  nothing throws: functions return a Result, and Kernel::create() takes the place of the
//                               constructors
//   TRITON_SPIRV_NO_FILES       nothing reads files: modules and bundles come from memory
//   TRITON_SPIRV_NO_VULKAN      nothing of Vulkan is needed, its headers neither: kernels run on the processor
//   TRITON_SPIRV_NO_CPU         nothing runs on the processor
//   VK_NO_PROTOTYPES            Vulkan's own macro: no function is linked, Functions::load() asks a loader such as volk
#pragma once

#ifndef TRITON_SPIRV_NO_VULKAN
#include <vulkan/vulkan.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#ifndef TRITON_SPIRV_NO_FILES
#include <fstream>
#include <iterator>
#endif
#ifndef TRITON_SPIRV_NO_EXCEPTIONS
#include <stdexcept>
#endif
#if !defined(TRITON_SPIRV_NO_CPU) && (defined(__linux__) || defined(__MINGW64__)) && !defined(__ANDROID__) && \
    (defined(__x86_64__) || defined(__aarch64__)) && __has_include("triton_spirv/cpu_kernel.hpp")
#define TRITON_SPIRV_HAS_CPU
#endif

namespace triton_spirv {
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
inline namespace results {  // another name for the linker than that of functions that throw
#endif

constexpr uint32_t kAbiVersion = 2;
constexpr uint32_t kBundleVersion = 1;

// -- what goes wrong
// ---------------------------------------------------------------------------------------------

#ifdef TRITON_SPIRV_NO_EXCEPTIONS
class Error {
 public:
  explicit Error(std::string text) : text_(std::move(text)) {}
  const char *what() const noexcept { return text_.c_str(); }

 private:
  std::string text_;
};
#else
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
#endif

// A value, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Of a failure.
  const char *error() const { return ok() ? "" : std::get_if<1>(&state_)->what(); }
  // Of a success; the program ends where it is none.
  T &value() & { return *checked(); }
  const T &value() const & { return *const_cast<Result *>(this)->checked(); }
  T value() && { return std::move(*checked()); }
  T &operator*() & { return *checked(); }
  T operator*() && { return std::move(*checked()); }
  T *operator->() { return checked(); }

 private:
  T *checked() {
    if (T *found = std::get_if<0>(&state_)) return found;
    std::fprintf(stderr, "triton_spirv: a failure was taken for a value: %s\n", error());
    std::abort();
  }
  std::variant<T, Error> state_;
};

// Of a function that has nothing to return.
struct Done {};

namespace detail {

// What a public function returns: the value, or, without exceptions, a Result.
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
template <class T>
using Returned = Result<T>;
template <class T>
Result<T> give(Result<T> result) {
  return result;
}
#else
template <class T>
struct ReturnedOf {
  using type = T;
};
template <>
struct ReturnedOf<Done> {
  using type = void;
};
template <class T>
using Returned = typename ReturnedOf<T>::type;
template <class T>
Returned<T> give(Result<T> result) {
  if (!result) throw Error(result.error());
  if constexpr (!std::is_same_v<T, Done>) return std::move(result).value();
}
#endif

// -- JSON (RFC 8259), strict: what is not exactly a document is refused
// ------------------------------------------

struct Json {
  using List = std::vector<Json>;
  using Map = std::map<std::string, Json>;
  struct Number {
    double value = 0;
    std::string text;  // as it was written
  };
  std::variant<std::nullptr_t, bool, Number, std::string, List, Map> value = nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
};

inline std::string damaged(const std::string &what) { return "the kernel's JSON is damaged: " + what; }

// A character in UTF-8.
inline void append(std::string &text, uint32_t code) {
  auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6)), tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0);
  }
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  Result<Json> document() {
    Json found = read(0);
    space();
    if (at_ != text_.size()) fail("something after its end");
    if (!fault_.empty()) return Error(fault_);
    return found;
  }

 private:
  // The first fault counts. Reading goes on at the end of the text, where nothing is found any more.
  void fail(const char *what) {
    if (fault_.empty()) fault_ = damaged(std::string(what) + " at byte " + std::to_string(at_));
    at_ = text_.size();
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && text_[at_] && std::strchr(" \t\r\n", text_[at_])) ++at_;
  }
  bool accept(char wanted) {
    space();
    if (at_ >= text_.size() || peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail("an unexpected character");
  }
  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  Json read(int depth) {
    Json found;
    if (depth > 64) {
      fail("too many levels");
      return found;
    }
    space();
    if (accept('{')) {
      Json::Map entries;
      if (!accept('}')) {
        do {
          space();
          std::string key = string();
          expect(':');
          if (!entries.emplace(key, read(depth + 1)).second) fail("a duplicate entry");
        } while (accept(','));
        expect('}');
      }
      found.value = std::move(entries);
    } else if (accept('[')) {
      Json::List items;
      if (!accept(']')) {
        do items.push_back(read(depth + 1));
        while (accept(','));
        expect(']');
      }
      found.value = std::move(items);
    } else if (peek() == '"') {
      found.value = string();
    } else if (word("true")) {
      found.value = true;
    } else if (word("false")) {
      found.value = false;
    } else if (!word("null")) {
      found.value = number();
    }
    return found;
  }
  // Whole numbers below 2^53 are exact, and no other number is used.
  Json::Number number() {
    const size_t start = at_;
    const bool negative = word("-");
    double found = 0;
    int digits_after = 0;
    auto digits = [&] {
      const size_t first = at_;
      for (; peek() >= '0' && peek() <= '9'; ++at_) found = found * 10 + (peek() - '0');
      return static_cast<int>(at_ - first);
    };
    if (peek() == '0')
      ++at_;
    else if (!digits())
      fail("no value");
    if (word(".") && !(digits_after = digits())) fail("a number without digits after its point");
    int exponent = 0;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      const bool down = peek() == '-';
      if (peek() == '+' || peek() == '-') ++at_;
      const size_t first = at_;
      for (; peek() >= '0' && peek() <= '9'; ++at_) exponent = std::min(exponent * 10 + (peek() - '0'), 9999);
      if (at_ == first) fail("a number without digits in its exponent");
      if (down) exponent = -exponent;
    }
    found *= std::pow(10.0, exponent - digits_after);
    return {negative ? -found : found, std::string(text_.substr(start, at_ - start))};
  }
  uint32_t hex() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char *all = "0123456789abcdefABCDEF";
      const char *found = peek() ? std::strchr(all, peek()) : nullptr;
      if (!found) {
        fail("an invalid escape");
        return 0;
      }
      const uint32_t place = static_cast<uint32_t>(found - all);
      code = code * 16 + (place < 16 ? place : place - 6);
    }
    return code;
  }
  std::string string() {
    std::string found;
    if (peek() != '"') {
      fail("no text");
      return found;
    }
    ++at_;
    while (peek() != '"') {
      if (at_ >= text_.size() || static_cast<unsigned char>(peek()) < 0x20) {
        fail("a text without an end");
        return found;
      }
      char next = text_[at_++];
      if (next != '\\') {
        found += next;
        continue;
      }
      const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t";
      char kind = peek();
      const char *plain = kind ? std::strchr(from, kind) : nullptr;
      if (plain) {
        ++at_;
        found += to[plain - from];
      } else if (word("u")) {
        append(found, surrogate(hex()));
      } else {
        fail("an invalid escape");
      }
    }
    ++at_;
    return found;
  }
  uint32_t surrogate(uint32_t code) {
    if (code < 0xD800 || code > 0xDFFF) return code;
    uint32_t low = code <= 0xDBFF && word("\\u") ? hex() : 0;
    if (low < 0xDC00 || low > 0xDFFF) {
      fail("half a character");
      return 0;
    }
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }

  std::string_view text_;
  std::string fault_;
  size_t at_ = 0;
};

// Takes entries out of a document. The first that is missing or of another type is kept as the fault.
class Fields {
 public:
  const std::string &fault() const { return fault_; }
  void fail(const std::string &what) {
    if (fault_.empty()) fault_ = what;
  }
  const Json &entry(const Json &json, const char *key) {
    static const Json nothing;
    const Json::Map *entries = std::get_if<Json::Map>(&json.value);
    if (entries) {
      auto found = entries->find(key);
      if (found != entries->end()) return found->second;
    }
    fail(damaged(std::string("it has no entry ") + key));
    return nothing;
  }
  template <class T>
  const T &as(const Json &json, const char *what) {
    static const T nothing{};
    if (const T *found = std::get_if<T>(&json.value)) return *found;
    fail(damaged(std::string(what) + " has the wrong type"));
    return nothing;
  }
  template <class T>
  const T &get(const Json &json, const char *key) {
    return as<T>(entry(json, key), key);
  }
  uint32_t to_number(const Json &json, const char *what) {
    const double found = as<Json::Number>(json, what).value;
    if (found >= 0 && found <= 4294967295.0 && found == std::floor(found)) return static_cast<uint32_t>(found);
    fail(damaged(std::string(what) + " is not a whole number of 32 bits"));
    return 0;
  }
  uint32_t number(const Json &json, const char *key) { return to_number(entry(json, key), key); }

 private:
  std::string fault_;
};

// -- SHA-256 (FIPS 180-4): whether a module and its JSON belong together
// -----------------------------------------

inline std::string sha256(const std::string &data) {
  // The constants are the fractions of square and cube roots of primes
  // (sections 5.3.3 and 4.2.2).
  std::array<uint32_t, 64> k{};
  std::array<uint32_t, 8> h{};
  auto fraction = [](long double root) { return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L); };
  for (uint32_t prime = 2, found = 0; found < 64; ++prime) {
    bool is_prime = true;
    for (uint32_t d = 2; d * d <= prime; ++d) is_prime = is_prime && prime % d;
    if (!is_prime) continue;
    if (found < 8) h[found] = fraction(std::sqrt(static_cast<long double>(prime)));
    k[found++] = fraction(std::cbrt(static_cast<long double>(prime)));
  }
  std::string padded = data + '\x80';
  padded.append((120 - padded.size() % 64) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>((static_cast<uint64_t>(data.size()) * 8) >> shift);
  auto turn = [](uint32_t x, int by) { return (x >> by) | (x << (32 - by)); };
  for (size_t block = 0; block < padded.size(); block += 64) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i)
      w[i / 4 % 16] = (w[i / 4 % 16] << 8) | static_cast<unsigned char>(padded[block + i]);
    for (size_t i = 16; i < 64; ++i) {
      uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    std::array<uint32_t, 8> s = h;
    for (size_t i = 0; i < 64; ++i) {
      uint32_t big1 = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25);
      uint32_t t1 = s[7] + big1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
      uint32_t big0 = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
      uint32_t t2 = big0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i) h[i] += s[i];
  }
  std::string text;
  for (uint32_t word : h)
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15];
  return text;
}

// -- the checksum of a kernel's JSON: the hash of all other entries in the one form that docs/internals/abi.md names
// ------------------------------------------------------------------------------------------------------------------

// Text in quotes, what is not ASCII escaped. Bytes that are not UTF-8 stay, and no file has the checksum of those.
inline void write(std::string &out, const std::string &text) {
  auto unit = [&](uint32_t code) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[(code >> shift) & 15];
  };
  out += '"';
  for (size_t at = 0, length = 1; at < text.size(); at += length) {
    const uint32_t lead = static_cast<unsigned char>(text[at]);
    length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i)
      code = (code << 6) | (at + i < text.size() ? static_cast<unsigned char>(text[at + i]) & 0x3Fu : 0);
    std::string again;
    append(again, code);
    const char *from = "\"\\\b\f\n\r\t", *to = "\"\\bfnrt";
    const char *named = code && code < 0x80 ? std::strchr(from, static_cast<int>(code)) : nullptr;
    if (text.compare(at, length, again)) {
      out += text[at];
      length = 1;
    } else if (named) {
      out += '\\';
      out += to[named - from];
    } else if (code >= 0x20 && code < 0x7F) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      unit(code);
    } else {
      unit(0xD800 + ((code - 0x10000) >> 10));
      unit(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  out += '"';
}

// Entries are sorted, and there are no spaces. Numbers are as they were written. The entry `without` is left out.
inline void write(std::string &out, const Json &json, const char *without = "") {
  const char *between = "";
  if (const bool *flag = std::get_if<bool>(&json.value)) {
    out += *flag ? "true" : "false";
  } else if (const Json::Number *number = std::get_if<Json::Number>(&json.value)) {
    out += number->text;
  } else if (const std::string *text = std::get_if<std::string>(&json.value)) {
    write(out, *text);
  } else if (const Json::List *list = std::get_if<Json::List>(&json.value)) {
    out += '[';
    for (const Json &item : *list) out += between, write(out, item), between = ",";
    out += ']';
  } else if (const Json::Map *entries = std::get_if<Json::Map>(&json.value)) {
    out += '{';
    for (const auto &[key, item] : *entries) {
      if (key == without) continue;
      out += between, write(out, key), out += ':', write(out, item);
      between = ",";
    }
    out += '}';
  } else {
    out += "null";
  }
}

inline std::string checksum(const Json &kernel) {
  std::string text;
  write(text, kernel, "checksum");
  return sha256(text);
}

#ifndef TRITON_SPIRV_NO_VULKAN
// -- what this header knows of Vulkan
// -----------------------------------------------------------------------------

struct DriverRow {
  uint32_t id;
  const char *name;  // as targets name it
  bool own_modules;  // whether it needs workarounds that modules for `generic` do not have
};
// A Vulkan feature: the `index`th flag of the feature structure with that number.
struct FeatureRow {
  const char *key;  // as kernels name it; "" of what every kernel needs
  const char *name;
  const char *extension;  // that defines the structure, "" of Vulkan 1.3
  uint32_t structure, index;
};
struct ControlRow {
  const char *key;
  VkBool32 VkPhysicalDeviceFloatControlsProperties::*has;
};

// clang-format off
// Written by python -m backend.ahead_of_time.cpp_tables: change the Python tables.
inline constexpr DriverRow kDrivers[] = {
    {1, "amd_proprietary", false},
    {2, "amd_open_source", false},
    {3, "mesa_radv", false},
    {4, "nvidia_proprietary", false},
    {5, "intel_proprietary_windows", false},
    {6, "intel_open_source_mesa", false},
    {7, "imagination_proprietary", false},
    {8, "qualcomm_proprietary", false},
    {9, "arm_proprietary", false},
    {10, "google_swiftshader", false},
    {11, "ggp_proprietary", false},
    {12, "broadcom_proprietary", false},
    {13, "mesa_llvmpipe", true},
    {14, "moltenvk", false},
    {15, "coreavi_proprietary", false},
    {16, "juice_proprietary", false},
    {17, "verisilicon_proprietary", false},
    {18, "mesa_turnip", false},
    {19, "mesa_v3dv", false},
    {20, "mesa_panvk", false},
    {21, "samsung_proprietary", false},
    {22, "mesa_venus", false},
    {23, "mesa_dozen", false},
    {24, "mesa_nvk", false},
    {25, "imagination_open_source_mesa", false},
    {26, "mesa_honeykrisp", false},
    {27, "vulkan_sc_emulation_on_vulkan", false},
    {28, "mesa_kosmickrisp", false},
};
inline constexpr FeatureRow kFeatures[] = {
    {"", "bufferDeviceAddress", "", 51, 38},
    {"", "vulkanMemoryModel", "", 51, 41},
    {"", "vulkanMemoryModelDeviceScope", "", 51, 42},
    {"", "shaderInt64", "", 1000059000, 40},
    {"", "computeFullSubgroups", "", 53, 8},
    {"", "subgroupSizeControl", "", 53, 7},
    {"float16", "shaderFloat16", "", 51, 7},
    {"float64", "shaderFloat64", "", 1000059000, 39},
    {"int8", "shaderInt8", "", 51, 8},
    {"int16", "shaderInt16", "", 1000059000, 41},
    {"storage8", "storageBuffer8BitAccess", "", 51, 2},
    {"storage16", "storageBuffer16BitAccess", "", 49, 0},
    {"explicit_workgroup_layout", "workgroupMemoryExplicitLayout", "VK_KHR_workgroup_memory_explicit_layout", 1000336000, 0},
    {"explicit_workgroup_layout", "workgroupMemoryExplicitLayoutScalarBlockLayout", "VK_KHR_workgroup_memory_explicit_layout", 1000336000, 1},
    {"explicit_workgroup_layout", "workgroupMemoryExplicitLayout8BitAccess", "VK_KHR_workgroup_memory_explicit_layout", 1000336000, 2},
    {"explicit_workgroup_layout", "workgroupMemoryExplicitLayout16BitAccess", "VK_KHR_workgroup_memory_explicit_layout", 1000336000, 3},
    {"int64_atomics", "shaderBufferInt64Atomics", "", 51, 5},
    {"device_clock", "shaderDeviceClock", "VK_KHR_shader_clock", 1000181000, 1},
    {"multiprocessor_built_ins", "shaderSMBuiltins", "VK_NV_shader_sm_builtins", 1000154000, 0},
    {"float32_atomic_add", "shaderBufferFloat32AtomicAdd", "VK_EXT_shader_atomic_float", 1000260000, 1},
    {"float64_atomic_add", "shaderBufferFloat64AtomicAdd", "VK_EXT_shader_atomic_float", 1000260000, 3},
    {"matrices", "cooperativeMatrix", "VK_KHR_cooperative_matrix", 1000506000, 0},
    {"bfloat16_matrices", "cooperativeMatrix", "VK_KHR_cooperative_matrix", 1000506000, 0},
    {"bfloat16_matrices", "shaderBFloat16Type", "VK_KHR_shader_bfloat16", 1000141000, 0},
    {"bfloat16_matrices", "shaderBFloat16CooperativeMatrix", "VK_KHR_shader_bfloat16", 1000141000, 2},
};
inline constexpr ControlRow kControls[] = {
    {"round_to_nearest_even16", &VkPhysicalDeviceFloatControlsProperties::shaderRoundingModeRTEFloat16},
    {"round_to_nearest_even32", &VkPhysicalDeviceFloatControlsProperties::shaderRoundingModeRTEFloat32},
    {"round_to_nearest_even64", &VkPhysicalDeviceFloatControlsProperties::shaderRoundingModeRTEFloat64},
    {"preserve_denormals16", &VkPhysicalDeviceFloatControlsProperties::shaderDenormPreserveFloat16},
    {"preserve_denormals32", &VkPhysicalDeviceFloatControlsProperties::shaderDenormPreserveFloat32},
    {"preserve_denormals64", &VkPhysicalDeviceFloatControlsProperties::shaderDenormPreserveFloat64},
    {"preserve_signed_zero_inf_nan16", &VkPhysicalDeviceFloatControlsProperties::shaderSignedZeroInfNanPreserveFloat16},
    {"preserve_signed_zero_inf_nan32", &VkPhysicalDeviceFloatControlsProperties::shaderSignedZeroInfNanPreserveFloat32},
    {"preserve_signed_zero_inf_nan64", &VkPhysicalDeviceFloatControlsProperties::shaderSignedZeroInfNanPreserveFloat64},
};
// end of what is written
// clang-format on

// The VkDriverId as targets name drivers.
inline const DriverRow *driver(uint32_t id) {
  for (const DriverRow &row : kDrivers)
    if (row.id == id) return &row;
  return nullptr;
}
inline std::string driver_name(VkDriverId id) {
  const DriverRow *found = driver(static_cast<uint32_t>(id));
  return found ? found->name : "driver " + std::to_string(static_cast<uint32_t>(id));
}

// Any of Vulkan's feature structures: they are a header and flags.
struct FeatureBlock {
  VkStructureType type;
  void *next;
  VkBool32 flags[64];
};
constexpr uint32_t kFeatures2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;

// A chain of feature structures, that of Vulkan 1.0 first.
class FeatureChain {
 public:
  FeatureChain() { add(kFeatures2); }
  FeatureChain(const FeatureChain &) = delete;
  FeatureChain &operator=(const FeatureChain &) = delete;
  VkBool32 *flag(const FeatureRow &row) {
    for (size_t i = 0; i < count_; ++i)
      if (static_cast<uint32_t>(blocks_[i].type) == row.structure) return &blocks_[i].flags[row.index];
    return nullptr;
  }
  void add(uint32_t structure) {
    if (count_ && flag({"", "", "", structure, 0})) return;
    FeatureBlock &block = blocks_[count_++];
    block.type = static_cast<VkStructureType>(structure);
    if (count_ > 1) blocks_[count_ - 2].next = &block;
  }
  FeatureBlock *head() { return blocks_; }
  void **tail() { return &blocks_[count_ - 1].next; }

 private:
  FeatureBlock blocks_[std::size(kFeatures)]{};
  size_t count_ = 0;
};
#endif  // TRITON_SPIRV_NO_VULKAN

#ifndef TRITON_SPIRV_NO_FILES
inline Result<std::string> contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error("there is no file " + path + "; `triton-spirv compile` writes a .spv and its .json");
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
#endif

// A number in a smaller binary format, rounded to nearest, ties to even: fp16
// is (10, 5), bf16 (7, 8).
inline uint16_t narrow(double value, int mantissa, int exponent) {
  const int bias = (1 << (exponent - 1)) - 1;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent) - 1) << mantissa);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | (1 << (mantissa - 1)));
  double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<uint16_t>(sign | infinity);
  if (size == 0) return sign;
  int power = std::max(std::ilogb(size), 1 - bias);
  // In units of the last place; one more than the largest mantissa carries into
  // the exponent by itself.
  double units = std::nearbyint(std::ldexp(size, mantissa - power));
  double bits = units + std::ldexp(static_cast<double>(power + bias - 1), mantissa);
  return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::min(bits, static_cast<double>(infinity))));
}

}  // namespace detail

using detail::Returned;

// -- the files
// ---------------------------------------------------------------------------------------------------

// An entry of the argument block.
struct Argument {
  std::string name, type;
  uint32_t offset = 0, bytes = 0;
  bool written = true;        // whether the kernel may write through it, where it is a pointer
  uint32_t divisible_by = 1;  // what its value or address must be a multiple of
};

// Of a kernel that was compiled for a processor: the ELF object with its code, and how it is called.
struct MachineCode {
  uint32_t launch = 0;         // the version of how it is called
  std::string processor;       // whose instructions it has: x86-64-v3, say
  uint32_t scratch_bytes = 0;  // memory that each thread has for it
  std::string sha256;          // of the object
};

// What the JSON beside a module says.
struct Abi {
  std::string kernel, sha256, target;
  std::vector<std::string> required_features;
  uint32_t subgroup_size = 0, shared_bytes = 0, block_bytes = 0;
  std::array<uint32_t, 3> workgroup_size{};
  std::vector<Argument> arguments;
  std::map<std::string, double> constants;  // numbers that were compiled in, by the parameter's name: BLOCK, say
  bool indirect_arguments = false;
  std::optional<MachineCode> machine_code;

  static Returned<Abi> parse(std::string_view text) {
    Result<detail::Json> json = detail::JsonReader(text).document();
    if (!json) return detail::give<Abi>(Error(json.error()));
    return detail::give<Abi>(from(*json));
  }

  // The same of a document that is read already.
  static Result<Abi> from(const detail::Json &json) {
    using detail::Json;
    detail::Fields fields;
    if (fields.get<std::string>(json, "format") != "triton-spirv-kernel")
      fields.fail("the JSON does not describe a kernel of triton-spirv");
    const uint32_t version = fields.number(json, "version");
    if (version != kAbiVersion)
      fields.fail("the kernel has version " + std::to_string(version) + " of the ABI, this loader " +
                  std::to_string(kAbiVersion) + ": take triton_spirv.hpp of the wheel that compiled it");
    if (!fields.fault().empty()) return Error(fields.fault());
    Abi abi;
    abi.kernel = fields.get<std::string>(json, "kernel");
    abi.sha256 = fields.get<std::string>(json, "sha256");
    abi.target = fields.get<std::string>(json, "target");
    abi.subgroup_size = fields.number(json, "subgroup_size");
    abi.shared_bytes = fields.number(json, "shared_bytes");
    abi.block_bytes = fields.number(json, "block_bytes");
    abi.indirect_arguments = fields.get<bool>(json, "indirect_arguments");
    for (const Json &feature : fields.get<Json::List>(json, "required_features"))
      abi.required_features.push_back(fields.as<std::string>(feature, "required_features"));
    const Json::List &sizes = fields.get<Json::List>(json, "workgroup_size");
    if (sizes.size() != 3) fields.fail(detail::damaged("workgroup_size does not have three numbers"));
    for (size_t i = 0; i < sizes.size() && i < 3; ++i)
      abi.workgroup_size[i] = fields.to_number(sizes[i], "workgroup_size");
    if (abi.driver().empty()) fields.fail(detail::damaged("its target names no driver"));
    if (!fields.get<Json::List>(json, "reports").empty())
      fields.fail("kernel '" + abi.kernel +
                  "' reports (device_print, device_assert, bounds), which this loader does not serve: compile it "
                  "without --debug and --check-bounds");
    const Json::Map *entries = std::get_if<Json::Map>(&json.value);
    if (entries && entries->count("machine_code")) {
      const Json &code = fields.entry(json, "machine_code");
      abi.machine_code = MachineCode{fields.number(code, "launch"), fields.get<std::string>(code, "processor"),
                                     fields.number(code, "scratch_bytes"), fields.get<std::string>(code, "sha256")};
    }
    const Json::List &parameters = fields.get<Json::List>(json, "parameters");
    for (const Json &parameter : parameters) {
      const std::string &name = fields.get<std::string>(parameter, "name");
      if (!fields.entry(parameter, "type").is_null()) continue;
      const Json &value = fields.entry(parameter, "value");
      if (const Json::Number *number = std::get_if<Json::Number>(&value.value)) abi.constants[name] = number->value;
      if (const bool *flag = std::get_if<bool>(&value.value)) abi.constants[name] = *flag;
    }
    for (const Json &entry : fields.get<Json::List>(json, "arguments")) {
      Argument argument;
      argument.name = fields.get<std::string>(entry, "name");
      argument.type = fields.get<std::string>(entry, "type");
      argument.offset = fields.number(entry, "offset");
      argument.bytes = fields.number(entry, "bytes");
      argument.written = fields.get<bool>(entry, "written");
      const Json &index = fields.entry(entry, "parameter");
      const size_t owner = index.is_null() ? parameters.size() : fields.to_number(index, "parameter");
      if (owner >= parameters.size()) {
        fields.fail(detail::damaged("argument " + argument.name + " has no parameter"));
        break;
      }
      const Json &parameter = parameters[owner];
      if (!fields.entry(parameter, "type").is_null() && fields.get<std::string>(parameter, "type") == argument.type)
        argument.divisible_by = fields.number(parameter, "divisible_by");
      if (argument.type.empty() || argument.bytes > 8 || argument.bytes == 0 || argument.divisible_by == 0 ||
          argument.offset > abi.block_bytes || argument.bytes > abi.block_bytes - argument.offset)
        fields.fail(detail::damaged("argument " + argument.name + " lies outside of the block"));
      abi.arguments.push_back(argument);
    }
    if (fields.get<std::string>(json, "checksum") != detail::checksum(json))
      fields.fail(
          "the kernel's JSON is damaged, or was changed by hand: its checksum is not that of its other entries; "
          "compile the kernel again");
    if (!fields.fault().empty()) return Error(fields.fault());
    return abi;
  }

  // A number that was compiled in, such as a block's size; 0 where there is none of that name.
  uint32_t constant(const std::string &name) const {
    const auto found = constants.find(name);
    return found == constants.end() ? 0 : static_cast<uint32_t>(found->second);
  }
  // The driver that it was compiled for.
  std::string driver() const {
    const std::string key = ";driver=";
    const size_t start = target.find(key);
    if (start == std::string::npos) return {};
    return target.substr(start + key.size(), target.find(';', start + key.size()) - start - key.size());
  }
};

#ifndef TRITON_SPIRV_NO_FILES
namespace detail {
inline Result<Abi> abi_beside(const std::string &module) {
  const size_t dot = module.rfind('.');
  const std::string suffix = dot == std::string::npos ? "" : module.substr(dot);
  if (suffix != ".spv" && suffix != ".o") return Error(module + " does not end in .spv or .o");
  Result<std::string> text = contents(module.substr(0, dot) + ".json");
  if (!text) return Error(text.error());
  Result<Json> json = JsonReader(*text).document();
  if (!json) return Error(json.error());
  return Abi::from(*json);
}
}  // namespace detail

// Read what is beside a module, before there is a device.
inline Returned<Abi> read_abi(const std::string &module) { return detail::give(detail::abi_beside(module)); }
#endif

// -- what is passed
// ----------------------------------------------------------------------------------------------

// The address of the first element of a tensor in a buffer.
struct Pointer {
  uint64_t address;
};
inline Pointer pointer(uint64_t address) { return {address}; }
// The same in this process's memory, for kernels that run on the processor.
template <class T>
Pointer pointer(T *first) {
  return {reinterpret_cast<uintptr_t>(first)};
}

// A value for one argument; which kinds suit is decided by the argument's type.
class Value {
 public:
  Value(Pointer value) : value_(value) {}
  Value(bool value) : value_(int64_t(value)) {}
  Value(int value) : value_(int64_t(value)) {}
  Value(long value) : value_(int64_t(value)) {}
  Value(long long value) : value_(int64_t(value)) {}
  Value(unsigned value) : value_(uint64_t(value)) {}
  Value(unsigned long value) : value_(uint64_t(value)) {}
  Value(unsigned long long value) : value_(uint64_t(value)) {}
  Value(float value) : value_(double(value)) {}
  Value(double value) : value_(value) {}

  // The argument's bytes, little-endian, in the low bytes of the result.
  Returned<uint64_t> encode(const Argument &argument, const std::string &kernel) const {
    return detail::give(encoded(argument, kernel));
  }
  Result<uint64_t> encoded(const Argument &argument, const std::string &kernel) const {
    uint64_t bits = 0;
    const char *why = argument.type[0] == '*'   ? address(bits)
                      : argument.type[0] == 'i' ? integer(argument.type, bits)
                      : argument.type[0] == 'u' ? integer(argument.type, bits)
                                                : floating(argument.type, bits);
    std::string said = why ? why : "";
    const bool whole = argument.type[0] == '*' || argument.type[0] == 'i' || argument.type[0] == 'u';
    if (!why && whole && bits % argument.divisible_by)
      said = "it was compiled for multiples of " + std::to_string(argument.divisible_by);
    if (said.empty()) return bits;
    return Error("kernel '" + kernel + "', argument '" + argument.name + "' (" + argument.type + "): " + said);
  }

 private:
  // Each gives the bits, or says what is wrong.
  const char *address(uint64_t &bits) const {
    const Pointer *found = std::get_if<Pointer>(&value_);
    if (!found) return "it must be a triton_spirv::Pointer";
    bits = found->address;
    return nullptr;
  }
  const char *integer(const std::string &type, uint64_t &bits) const {
    const bool is_signed = type[0] == 'i';
    int width = 0;
    for (size_t i = 1; i < type.size() && width <= 64; ++i)
      width = type[i] >= '0' && type[i] <= '9' ? width * 10 + (type[i] - '0') : 65;
    if (width < 1 || width > 64) return "this loader does not know its type";
    bool fits = false;
    const uint64_t top = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
    if (const int64_t *whole = std::get_if<int64_t>(&value_)) {
      bits = static_cast<uint64_t>(*whole);
      fits = width == 1 || !is_signed ? *whole >= 0 && bits <= top
                                      : *whole >= -int64_t(top / 2) - 1 && *whole <= int64_t(top / 2);
    } else if (const uint64_t *natural = std::get_if<uint64_t>(&value_)) {
      bits = *natural;
      fits = bits <= (is_signed && width > 1 ? top / 2 : top);
    } else {
      return "it must be an integer";
    }
    return fits ? nullptr : "the value does not fit";
  }
  const char *floating(const std::string &type, uint64_t &bits) const {
    double number = 0;
    if (const double *real = std::get_if<double>(&value_))
      number = *real;
    else if (const int64_t *whole = std::get_if<int64_t>(&value_))
      number = static_cast<double>(*whole);
    else if (const uint64_t *natural = std::get_if<uint64_t>(&value_))
      number = static_cast<double>(*natural);
    else
      return "it must be a number";
    if (type == "fp64") {
      std::memcpy(&bits, &number, 8);
    } else if (type == "fp32") {
      float small = static_cast<float>(number);
      uint32_t word = 0;
      std::memcpy(&word, &small, 4);
      bits = word;
    } else if (type == "fp16") {
      bits = detail::narrow(number, 10, 5);
    } else if (type == "bf16") {
      bits = detail::narrow(number, 7, 8);
    } else {
      return "this loader does not know its type";
    }
    return nullptr;
  }

  std::variant<Pointer, int64_t, uint64_t, double> value_;
};

namespace detail {
inline Error refused(const Abi &abi, const std::string &why) { return Error("kernel '" + abi.kernel + "' " + why); }

// The argument block of a kernel.
inline Result<std::vector<unsigned char>> packed(const Abi &abi, const std::vector<Value> &values) {
  if (values.size() != abi.arguments.size())
    return refused(
        abi, "takes " + std::to_string(abi.arguments.size()) + " arguments, not " + std::to_string(values.size()));
  std::vector<unsigned char> block(abi.block_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const Argument &argument = abi.arguments[i];
    Result<uint64_t> bits = values[i].encoded(argument, abi.kernel);
    if (!bits) return Error(bits.error());
    for (uint32_t byte = 0; byte < argument.bytes; ++byte)
      block[argument.offset + byte] = static_cast<unsigned char>(*bits >> (8 * byte));
  }
  return block;
}
}  // namespace detail

#ifndef TRITON_SPIRV_NO_VULKAN
// -- the device
// --------------------------------------------------------------------------------------------------

// The Vulkan functions that are called.
#define TRITON_SPIRV_FUNCTIONS(X)       \
  X(GetPhysicalDeviceProperties2)       \
  X(GetPhysicalDeviceFeatures2)         \
  X(EnumerateDeviceExtensionProperties) \
  X(CreateShaderModule)                 \
  X(DestroyShaderModule)                \
  X(CreatePipelineLayout)               \
  X(DestroyPipelineLayout)              \
  X(CreateComputePipelines)             \
  X(DestroyPipeline)                    \
  X(CmdBindPipeline)                    \
  X(CmdPushConstants)                   \
  X(CmdDispatch)

struct Functions {
#define TRITON_SPIRV_MEMBER(name) PFN_vk##name name = nullptr;
  TRITON_SPIRV_FUNCTIONS(TRITON_SPIRV_MEMBER)
#undef TRITON_SPIRV_MEMBER

  // From a loader, such as volk's vkGetInstanceProcAddr.
  static Functions load(VkInstance instance, PFN_vkGetInstanceProcAddr address) {
    Functions found;
#define TRITON_SPIRV_LOAD(name) found.name = reinterpret_cast<PFN_vk##name>(address(instance, "vk" #name));
    TRITON_SPIRV_FUNCTIONS(TRITON_SPIRV_LOAD)
#undef TRITON_SPIRV_LOAD
    return found;
  }
  // Those that the program is linked with; none with VK_NO_PROTOTYPES.
  static Functions linked() {
    Functions found;
#ifndef VK_NO_PROTOTYPES
#define TRITON_SPIRV_LINK(name) found.name = vk##name;
    TRITON_SPIRV_FUNCTIONS(TRITON_SPIRV_LINK)
#undef TRITON_SPIRV_LINK
#endif
    return found;
  }
  // The name of one that is missing, or null.
  const char *missing() const {
#define TRITON_SPIRV_ASK(name) \
  if (!name) return "vk" #name;
    TRITON_SPIRV_FUNCTIONS(TRITON_SPIRV_ASK)
#undef TRITON_SPIRV_ASK
    return nullptr;
  }
};

struct Options {
  VkPipelineCache cache = VK_NULL_HANDLE;
  // Which lane holds which element of a matrix unit's operands depends on the GPU. Python measures it; here kernels for
  // matrix units run only where the program says that the device is of the kind that they were compiled for.
  bool trust_matrices = false;
  Functions functions = Functions::linked();
};

// What of a device decides whether a kernel can run there. Nothing of it depends on a kernel.
class DeviceFacts {
 public:
  static Returned<DeviceFacts> of(VkPhysicalDevice physical, const Options &options = {}) {
    return detail::give(found(physical, options));
  }
  static Result<DeviceFacts> found(VkPhysicalDevice physical, const Options &options) {
    const Functions &vk = options.functions;
    if (const char *name = vk.missing())
      return Error(std::string(name) +
                   " is missing: set Options::functions to Functions::load(instance, "
                   "vkGetInstanceProcAddr)");
    DeviceFacts facts;
    facts.trust_matrices_ = options.trust_matrices;
    VkPhysicalDeviceSubgroupSizeControlProperties sizes{};
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
    facts.floats_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    facts.floats_.pNext = &sizes;
    VkPhysicalDeviceDriverProperties driver{};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    driver.pNext = &facts.floats_;
    VkPhysicalDeviceProperties2 all{};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    all.pNext = &driver;
    vk.GetPhysicalDeviceProperties2(physical, &all);
    facts.floats_.pNext = nullptr;
    facts.limits_ = all.properties.limits;
    facts.name_ = all.properties.deviceName;
    facts.driver_ = driver.driverID;
    facts.sizes_ = sizes;
    facts.sizes_.pNext = nullptr;
    uint32_t count = 0;
    vk.EnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> extensions(count);
    vk.EnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions.data());
    auto has = [&](const char *name) {
      return std::any_of(extensions.begin(), extensions.end(),
                         [&](const VkExtensionProperties &one) { return !std::strcmp(one.extensionName, name); });
    };
    detail::FeatureChain chain;
    for (const detail::FeatureRow &row : detail::kFeatures)
      if (!*row.extension || has(row.extension)) chain.add(row.structure);
    vk.GetPhysicalDeviceFeatures2(physical, reinterpret_cast<VkPhysicalDeviceFeatures2 *>(chain.head()));
    for (size_t i = 0; i < std::size(detail::kFeatures); ++i) {
      const VkBool32 *flag = chain.flag(detail::kFeatures[i]);
      facts.has_[i] = flag && *flag;
    }
    return facts;
  }

  const std::string &name() const { return name_; }
  bool chooses_subgroup_size() const { return sizes_.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT; }
  const uint32_t *grid_limits() const { return limits_.maxComputeWorkGroupCount; }

  // Why a kernel cannot run there, "" where it can.
  std::string refusal(const Abi &abi) const {
    const std::string wanted = abi.driver(), there = detail::driver_name(driver_);
    // Kernels for one driver have its workarounds.
    const detail::DriverRow *row = detail::driver(static_cast<uint32_t>(driver_));
    if (wanted == "generic" ? row && row->own_modules : wanted != there)
      return "it was compiled for the driver " + wanted + ", not " + there;
    if (abi.subgroup_size < sizes_.minSubgroupSize || abi.subgroup_size > sizes_.maxSubgroupSize ||
        (sizes_.minSubgroupSize != sizes_.maxSubgroupSize && !chooses_subgroup_size()))
      return "it needs subgroups of " + std::to_string(abi.subgroup_size);
    for (size_t i = 0; i < std::size(detail::kFeatures); ++i)
      if (!*detail::kFeatures[i].key && !has_[i]) return std::string("every kernel needs ") + detail::kFeatures[i].name;
    for (const std::string &feature : abi.required_features) {
      bool known = false;
      for (size_t i = 0; i < std::size(detail::kFeatures); ++i) {
        if (feature != detail::kFeatures[i].key) continue;
        known = true;
        if (!has_[i]) return "it needs " + feature + " (" + detail::kFeatures[i].name + "), which the device lacks";
      }
      for (const detail::ControlRow &control : detail::kControls) {
        if (feature != control.key) continue;
        known = true;
        if (!(floats_.*control.has)) return "it needs " + feature + ", which the device lacks";
      }
      if (!known) return "it needs " + feature + ", which this loader does not know";
      if (feature == "matrices" && !trust_matrices_)
        return "which lane holds which element of its matrices is not measured here: set Options::trust_matrices if "
               "the GPU is of the kind that it was compiled for";
    }
    const uint64_t invocations = uint64_t(abi.workgroup_size[0]) * abi.workgroup_size[1] * abi.workgroup_size[2];
    if (invocations > limits_.maxComputeWorkGroupInvocations ||
        invocations > uint64_t(sizes_.maxComputeWorkgroupSubgroups) * abi.subgroup_size)
      return "it has workgroups of " + std::to_string(invocations) + " invocations";
    for (size_t i = 0; i < 3; ++i)
      if (abi.workgroup_size[i] > limits_.maxComputeWorkGroupSize[i])
        return "it has workgroups of " + std::to_string(abi.workgroup_size[i]) + " invocations along one axis";
    if (abi.shared_bytes > limits_.maxComputeSharedMemorySize)
      return "it takes " + std::to_string(abi.shared_bytes) + " bytes of shared memory";
    if (!abi.indirect_arguments && abi.block_bytes > limits_.maxPushConstantsSize)
      return "its arguments take " + std::to_string(abi.block_bytes) + " bytes of push constants";
    return {};
  }

 private:
  std::string name_;
  VkDriverId driver_{};
  VkPhysicalDeviceLimits limits_{};
  VkPhysicalDeviceFloatControlsProperties floats_{};
  VkPhysicalDeviceSubgroupSizeControlProperties sizes_{};
  std::array<bool, std::size(detail::kFeatures)> has_{};
  bool trust_matrices_ = false;
};

// The features to make a device with, for some kernels: VkDeviceCreateInfo::pNext = features.head(), and
// ppEnabledExtensionNames what extensions() gives.
class Features {
 public:
  Features() { enable(""); }

  // Add what a kernel needs. Returns what this class does not know.
  std::vector<std::string> need(const Abi &abi) {
    std::vector<std::string> left;
    for (const std::string &feature : abi.required_features) {
      const bool is_control = std::any_of(std::begin(detail::kControls), std::end(detail::kControls),
                                          [&](const detail::ControlRow &row) { return feature == row.key; });
      // Float controls are properties of the device, which Kernel checks.
      if (!is_control && !enable(feature)) left.push_back(feature);
    }
    return left;
  }
  const std::vector<const char *> &extensions() const { return extensions_; }
  // The last structure of the chain is free for the caller's own: *features.tail() = &more, after all need().
  const void *head() { return chain_.head(); }
  void **tail() { return chain_.tail(); }

 private:
  bool enable(const std::string &key) {
    bool known = false;
    for (const detail::FeatureRow &row : detail::kFeatures) {
      if (key != row.key) continue;
      known = true;
      chain_.add(row.structure);
      *chain_.flag(row) = VK_TRUE;
      auto is_it = [&](const char *name) { return !std::strcmp(name, row.extension); };
      if (*row.extension && std::none_of(extensions_.begin(), extensions_.end(), is_it))
        extensions_.push_back(row.extension);
    }
    return known;
  }
  detail::FeatureChain chain_;
  std::vector<const char *> extensions_;
};

// -- the kernel
// --------------------------------------------------------------------------------------------------

// A compiled kernel on a device. It must outlive the command buffers that it was recorded into. It can be moved.
class Kernel {
 public:
  // A module and the text of its JSON, in memory.
  static Returned<Kernel> create(VkPhysicalDevice physical, VkDevice device, const void *spirv, size_t bytes,
                                 std::string_view json, const Options &options = {}) {
    return detail::give(made(physical, device, spirv, bytes, json, options));
  }
#ifndef TRITON_SPIRV_NO_FILES
  // A module's file; its JSON has the same path, ending in .json.
  static Returned<Kernel> create(VkPhysicalDevice physical, VkDevice device, const std::string &module,
                                 const Options &options = {}) {
    return detail::give(read(physical, device, module, options));
  }
#endif
#ifndef TRITON_SPIRV_NO_EXCEPTIONS
#ifndef TRITON_SPIRV_NO_FILES
  Kernel(VkPhysicalDevice physical, VkDevice device, const std::string &module, const Options &options = {})
      : Kernel(create(physical, device, module, options)) {}
#endif
  Kernel(VkPhysicalDevice physical, VkDevice device, const void *spirv, size_t bytes, std::string_view json,
         const Options &options = {})
      : Kernel(create(physical, device, spirv, bytes, json, options)) {}
#endif
  ~Kernel() { destroy(); }
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;
  Kernel(Kernel &&other) noexcept { swap(other); }
  Kernel &operator=(Kernel &&other) noexcept {
    Kernel gone(std::move(other));
    swap(gone);
    return *this;
  }

  const Abi &abi() const { return abi_; }
  VkPipeline pipeline() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_; }

  // The argument block. Where abi().indirect_arguments, it goes into a buffer, and that one's address is pushed.
  Returned<std::vector<unsigned char>> pack(const std::vector<Value> &values) const {
    return detail::give(detail::packed(abi_, values));
  }
  // Record a launch. Barriers before and after it are the caller's: it reads and writes in the compute stage.
  Returned<Done> record(VkCommandBuffer commands, std::array<uint32_t, 3> grid,
                        const std::vector<Value> &values) const {
    return detail::give(recorded(commands, grid, values));
  }
  Returned<Done> record_indirect(VkCommandBuffer commands, std::array<uint32_t, 3> grid, VkDeviceAddress block) const {
    if (!abi_.indirect_arguments)
      return detail::give<Done>(refuse("takes its arguments as push constants: use record()"));
    return detail::give(dispatch(commands, grid, &block, sizeof block));
  }

  // The same where nothing throws: what the functions above give, as a Result.
  static Result<Kernel> made(VkPhysicalDevice physical, VkDevice device, const void *spirv, size_t bytes,
                             std::string_view json, const Options &options) {
    Result<detail::Json> document = detail::JsonReader(json).document();
    if (!document) return Error(document.error());
    Result<Abi> abi = Abi::from(*document);
    if (!abi) return Error(abi.error());
    Result<DeviceFacts> facts = DeviceFacts::found(physical, options);
    if (!facts) return Error(facts.error());
    return made(device, spirv, bytes, *abi, *facts, options);
  }
  static Result<Kernel> made(VkDevice device, const void *spirv, size_t bytes, const Abi &abi, const DeviceFacts &facts,
                             const Options &options) {
    Kernel kernel;
    kernel.device_ = device;
    kernel.vk_ = options.functions;
    kernel.abi_ = abi;
    if (bytes % 4 || detail::sha256(std::string(static_cast<const char *>(spirv), bytes)) != abi.sha256)
      return kernel.refuse("has a module other than the one that its JSON describes: compile it again");
    if (const std::string why = facts.refusal(abi); !why.empty())
      return kernel.refuse(
          "cannot run on " + facts.name() + ": " + why +
          "; compile it with `triton-spirv compile --target device` there, or for that device's profile");
    std::copy_n(facts.grid_limits(), 3, kernel.grid_limits_.begin());
    if (const std::string why = kernel.make(spirv, bytes, facts.chooses_subgroup_size(), options.cache); !why.empty())
      return kernel.refuse(why);
    return kernel;
  }
#ifndef TRITON_SPIRV_NO_FILES
  static Result<Kernel> read(VkPhysicalDevice physical, VkDevice device, const std::string &module,
                             const Options &options) {
    Result<Abi> abi = detail::abi_beside(module);
    if (!abi) return Error(abi.error());
    Result<std::string> spirv = detail::contents(module);
    if (!spirv) return Error(spirv.error());
    if (detail::sha256(*spirv) != abi->sha256)
      return Error(module + " is not the module that the JSON beside it describes: compile it again");
    Result<DeviceFacts> facts = DeviceFacts::found(physical, options);
    if (!facts) return Error(facts.error());
    return made(device, spirv->data(), spirv->size(), *abi, *facts, options);
  }
#endif

 private:
  Kernel() = default;
  void swap(Kernel &other) noexcept {
    std::swap(device_, other.device_);
    std::swap(vk_, other.vk_);
    std::swap(abi_, other.abi_);
    std::swap(grid_limits_, other.grid_limits_);
    std::swap(module_, other.module_);
    std::swap(layout_, other.layout_);
    std::swap(pipeline_, other.pipeline_);
  }
  Error refuse(const std::string &why) const { return detail::refused(abi_, why); }

  Result<Done> recorded(VkCommandBuffer commands, std::array<uint32_t, 3> grid,
                        const std::vector<Value> &values) const {
    if (abi_.indirect_arguments)
      return refuse(
          "takes its arguments from a buffer: put pack()'s bytes into one, and its address into "
          "record_indirect()");
    Result<std::vector<unsigned char>> block = detail::packed(abi_, values);
    if (!block) return Error(block.error());
    return dispatch(commands, grid, block->data(), static_cast<uint32_t>(block->size()));
  }

  // Makes the pipeline; what went wrong, "" where nothing did.
  std::string make(const void *spirv, size_t bytes, bool chooses_size, VkPipelineCache cache) {
    auto failed = [](VkResult result, const char *what) {
      return result == VK_SUCCESS ? std::string() : what + (" (VkResult " + std::to_string(result)) + ")";
    };
    std::vector<uint32_t> words(bytes / 4);
    std::memcpy(words.data(), spirv, bytes);
    VkShaderModuleCreateInfo module_info{};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = bytes;
    module_info.pCode = words.data();
    std::string why = failed(vk_.CreateShaderModule(device_, &module_info, nullptr, &module_),
                             "was refused: the module cannot be made");
    if (!why.empty()) return why;

    VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, abi_.indirect_arguments ? 8 : abi_.block_bytes};
    VkPipelineLayoutCreateInfo layout_info{};
    layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout_info.pushConstantRangeCount = range.size ? 1 : 0;
    layout_info.pPushConstantRanges = &range;
    why = failed(vk_.CreatePipelineLayout(device_, &layout_info, nullptr, &layout_),
                 "was refused: the pipeline's layout cannot be made");
    if (!why.empty()) return why;

    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size_info{};
    size_info.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    size_info.requiredSubgroupSize = abi_.subgroup_size;
    VkComputePipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.layout = layout_;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.pNext = chooses_size ? &size_info : nullptr;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module_;
    info.stage.pName = abi_.kernel.c_str();
    return failed(vk_.CreateComputePipelines(device_, cache, 1, &info, nullptr, &pipeline_),
                  "was refused: the pipeline cannot be made");
  }

  Result<Done> dispatch(VkCommandBuffer commands, std::array<uint32_t, 3> grid, const void *data,
                        uint32_t bytes) const {
    for (size_t axis = 0; axis < 3; ++axis)
      if (grid[axis] > grid_limits_[axis])
        return refuse("cannot have a grid of " + std::to_string(grid[axis]) + " on axis " + std::to_string(axis) +
                      ": the device runs at most " + std::to_string(grid_limits_[axis]));
    vk_.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    if (bytes) vk_.CmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, data);
    vk_.CmdDispatch(commands, grid[0], grid[1], grid[2]);
    return Done{};
  }

  void destroy() {
    if (pipeline_) vk_.DestroyPipeline(device_, pipeline_, nullptr);
    if (layout_) vk_.DestroyPipelineLayout(device_, layout_, nullptr);
    if (module_) vk_.DestroyShaderModule(device_, module_, nullptr);
  }

  VkDevice device_ = VK_NULL_HANDLE;
  Functions vk_;
  Abi abi_;
  std::array<uint32_t, 3> grid_limits_{};
  VkShaderModule module_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};
#endif  // TRITON_SPIRV_NO_VULKAN

#ifdef TRITON_SPIRV_NO_EXCEPTIONS
}  // namespace results
#endif
}  // namespace triton_spirv

#ifdef TRITON_SPIRV_HAS_CPU
#include "triton_spirv/cpu_kernel.hpp"
#endif

namespace triton_spirv {
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
inline namespace results {
#endif

// -- bundles
// -----------------------------------------------------------------------------------------------------

// Kernels in one file that `triton-spirv compile --bundle` wrote, each in variants for several devices.
class Bundle {
 public:
  struct Variant {
    std::string name;  // of the kernel in the bundle
    Abi abi;
    size_t offset = 0, bytes = 0;
  };
  Bundle() = default;  // an empty one

  // A copy of the data is kept.
  static Returned<Bundle> from_memory(const void *data, size_t bytes) {
    return detail::give(parsed(std::string(static_cast<const char *>(data), bytes)));
  }
#ifndef TRITON_SPIRV_NO_FILES
  static Returned<Bundle> read(const std::string &path) {
    Result<std::string> data = detail::contents(path);
    if (!data) return detail::give<Bundle>(Error(data.error()));
    return detail::give(parsed(std::move(*data)));
  }
#endif

  // In the order in which they are tried: what is made for one driver before what suits all.
  const std::vector<Variant> &variants() const { return variants_; }

#ifdef TRITON_SPIRV_HAS_CPU
  // The first variant of a kernel that this processor can run, to fall back to where there is no GPU.
  Returned<CpuKernel> cpu_kernel(const std::string &name) const {
    Result<const Variant *> variant = picked(name, "this processor", CpuKernel::refusal);
    if (!variant) return detail::give<CpuKernel>(Error(variant.error()));
    const Variant &found = **variant;
    return detail::give(CpuKernel::made(data_.data() + found.offset, found.bytes, found.abi));
  }
#endif
#ifndef TRITON_SPIRV_NO_VULKAN
  // The first variant of a kernel that can run on a device.
  Returned<const Variant *> pick(VkPhysicalDevice physical, const std::string &name,
                                 const Options &options = {}) const {
    Result<DeviceFacts> facts = DeviceFacts::found(physical, options);
    if (!facts) return detail::give<const Variant *>(Error(facts.error()));
    return detail::give(picked(*facts, name));
  }
  Returned<Kernel> kernel(VkPhysicalDevice physical, VkDevice device, const std::string &name,
                          const Options &options = {}) const {
    Result<DeviceFacts> facts = DeviceFacts::found(physical, options);
    if (!facts) return detail::give<Kernel>(Error(facts.error()));
    Result<const Variant *> variant = picked(*facts, name);
    if (!variant) return detail::give<Kernel>(Error(variant.error()));
    const Variant &found = **variant;
    return detail::give(Kernel::made(device, data_.data() + found.offset, found.bytes, found.abi, *facts, options));
  }
#endif

 private:
  static Result<Bundle> parsed(std::string data) {
    const char magic[] = "TSPIRVB";  // and a zero
    auto word = [&](size_t at) {
      uint32_t value = 0;
      for (size_t i = 0; i < 4; ++i) value |= uint32_t(static_cast<unsigned char>(data[at + i])) << (8 * i);
      return value;
    };
    if (data.size() < 16 || std::memcmp(data.data(), magic, 8))
      return Error("this is no bundle of kernels; `triton-spirv compile --bundle` writes one");
    if (word(8) != kBundleVersion)
      return Error("the bundle has version " + std::to_string(word(8)) + ", this loader reads " +
                   std::to_string(kBundleVersion) + ": take triton_spirv.hpp of the wheel that wrote it");
    const size_t length = word(12);
    if (length > data.size() - 16) return Error("the bundle is damaged: it is cut off");
    Result<detail::Json> json = detail::JsonReader(std::string_view(data).substr(16, length)).document();
    if (!json) return Error(json.error());
    Bundle bundle;
    detail::Fields fields;
    for (const detail::Json &entry : fields.get<detail::Json::List>(*json, "variants")) {
      Variant variant;
      variant.name = fields.get<std::string>(entry, "name");
      variant.offset = 16 + length + fields.number(entry, "offset");
      variant.bytes = fields.number(entry, "bytes");
      Result<Abi> abi = Abi::from(fields.entry(entry, "abi"));
      if (!abi) return Error(abi.error());
      variant.abi = std::move(abi).value();
      if (variant.offset > data.size() || variant.bytes > data.size() - variant.offset)
        fields.fail("the bundle is damaged: it is cut off");
      bundle.variants_.push_back(std::move(variant));
    }
    if (!fields.fault().empty()) return Error(fields.fault());
    bundle.data_ = std::move(data);
    return bundle;
  }

#ifndef TRITON_SPIRV_NO_VULKAN
  Result<const Variant *> picked(const DeviceFacts &facts, const std::string &name) const {
    return picked(name, facts.name(), [&](const Abi &abi) { return facts.refusal(abi); });
  }
#endif
  // The first variant that is not refused. `refusal` says why one is, "" where it is not.
  template <class Refusal>
  Result<const Variant *> picked(const std::string &name, const std::string &where, Refusal refusal) const {
    std::string why, names;
    for (const Variant &variant : variants_) {
      if (names.find("'" + variant.name + "'") == std::string::npos) names += " '" + variant.name + "'";
      if (variant.name != name) continue;
      const std::string refused = refusal(variant.abi);
      if (refused.empty()) return &variant;
      why += "; for " + variant.abi.driver() + ": " + refused;
    }
    if (why.empty()) return Error("the bundle has no kernel '" + name + "'; it has" + names);
    return Error("no variant of kernel '" + name + "' in the bundle runs on " + where + why);
  }

  std::string data_;
  std::vector<Variant> variants_;
};

#ifdef TRITON_SPIRV_NO_EXCEPTIONS
}  // namespace results
#endif
}  // namespace triton_spirv
