// Launch kernels that `triton-spirv compile` wrote, from any Vulkan 1.3
// program.
//
// C++17, this header alone; it needs Vulkan's headers and loader, and no
// Triton. docs/abi.md of Triton for every Vulkan device describes the files.
// Everything throws triton_spirv::Error, whose text says what is wrong and what
// to do.
//
//     triton_spirv::Kernel add(physical_device, device, "add.spv");
//     add.record(commands, {groups, 1, 1}, {pointer(x), pointer(y),
//     pointer(out), n, 0.5});
//
// The device must have been made with the features that its
// Abi::required_features name: class Features does that.
#pragma once

#include <vulkan/vulkan.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <locale>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace triton_spirv {

constexpr int kAbiVersion = 1;

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

// -- JSON (RFC 8259), strict: what is not exactly a document is refused
// ------------------------------------------

struct Json {
  using List = std::vector<Json>;
  using Map = std::map<std::string, Json>;
  std::variant<std::nullptr_t, bool, double, std::string, List, Map> value = nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
  template <class T>
  const T &as(const char *what) const {
    if (const T *found = std::get_if<T>(&value)) return *found;
    throw Error(std::string("the kernel's JSON is damaged: ") + what + " has another type than it should have");
  }
  const Json &operator[](const char *key) const {
    const Map &entries = as<Map>(key);
    auto found = entries.find(key);
    if (found == entries.end()) throw Error(std::string("the kernel's JSON is damaged: it has no entry ") + key);
    return found->second;
  }
  const std::string &text(const char *key) const { return (*this)[key].as<std::string>(key); }
  bool flag(const char *key) const { return (*this)[key].as<bool>(key); }
  const List &list(const char *key) const { return (*this)[key].as<List>(key); }
  uint32_t number(const char *key) const { return to_number((*this)[key], key); }
  static uint32_t to_number(const Json &entry, const char *what) {
    double found = entry.as<double>(what);
    if (!(found >= 0 && found <= 4294967295.0) || found != std::floor(found))
      throw Error(std::string("the kernel's JSON is damaged: ") + what + " is not a whole number of 32 bits");
    return static_cast<uint32_t>(found);
  }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string &text) : text_(text) {}
  Json document() {
    Json found = read(0);
    space();
    if (at_ != text_.size()) fail("something after its end");
    return found;
  }

 private:
  [[noreturn]] void fail(const char *what) const {
    throw Error("the kernel's JSON is damaged: " + std::string(what) + " at byte " + std::to_string(at_));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) && text_[at_]) ++at_;
  }
  bool accept(char wanted) {
    space();
    if (peek() != wanted || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail("another character than expected");
  }
  bool word(const char *wanted) {
    if (text_.compare(at_, std::strlen(wanted), wanted) != 0) return false;
    at_ += std::strlen(wanted);
    return true;
  }
  Json read(int depth) {
    if (depth > 64) fail("too many levels");
    space();
    Json found;
    if (accept('{')) {
      Json::Map entries;
      if (!accept('}')) {
        do {
          space();
          std::string key = string();
          expect(':');
          if (!entries.emplace(key, read(depth + 1)).second) fail("an entry that is there twice");
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
  bool digits() {
    size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > start;
  }
  double number() {
    size_t start = at_;
    word("-");
    if (peek() == '0')
      ++at_;
    else if (!digits())
      fail("no value");
    if (word(".") && !digits()) fail("a number without digits after its point");
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) fail("a number without digits in its exponent");
    }
    std::istringstream digits_of(text_.substr(start, at_ - start));
    digits_of.imbue(std::locale::classic());  // a point is a point, whatever the
                                              // program's locale
    double found = 0;
    digits_of >> found;
    return found;
  }
  uint32_t hex() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char *all = "0123456789abcdef";
      char lower = static_cast<char>(peek() | 0x20);
      const char *found = peek() ? std::strchr(all, lower) : nullptr;
      if (!found) fail("an escape that is none");
      code = code * 16 + static_cast<uint32_t>(found - all);
    }
    return code;
  }
  std::string string() {
    if (peek() != '"') fail("no text");
    ++at_;
    std::string found;
    while (peek() != '"') {
      if (at_ >= text_.size() || static_cast<unsigned char>(peek()) < 0x20) fail("a text without an end");
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
        fail("an escape that is none");
      }
    }
    ++at_;
    return found;
  }
  uint32_t surrogate(uint32_t code) {
    if (code < 0xD800 || code > 0xDFFF) return code;
    if (code > 0xDBFF || !word("\\u")) fail("half a character");
    uint32_t low = hex();
    if (low < 0xDC00 || low > 0xDFFF) fail("half a character");
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  static void append(std::string &text, uint32_t code) {
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

  const std::string &text_;
  size_t at_ = 0;
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

// The VkDriverId in lower case, as targets name drivers.
inline std::string driver_name(VkDriverId id) {
  static const char *const names[] = {
      "",
      "amd_proprietary",
      "amd_open_source",
      "mesa_radv",
      "nvidia_proprietary",
      "intel_proprietary_windows",
      "intel_open_source_mesa",
      "imagination_proprietary",
      "qualcomm_proprietary",
      "arm_proprietary",
      "google_swiftshader",
      "ggp_proprietary",
      "broadcom_proprietary",
      "mesa_llvmpipe",
      "moltenvk",
  };
  const size_t index = static_cast<size_t>(id);
  return index > 0 && index < std::size(names) ? names[index] : "driver " + std::to_string(index);
}

// Whether a required feature is one of the float controls, and the device does
// not have it.
inline bool lacks_float_control(const std::string &feature, const VkPhysicalDeviceFloatControlsProperties &has) {
  using P = VkPhysicalDeviceFloatControlsProperties;
  static const std::map<std::string, VkBool32 P::*> known = {
      {"preserve_signed_zero_inf_nan16", &P::shaderSignedZeroInfNanPreserveFloat16},
      {"preserve_signed_zero_inf_nan32", &P::shaderSignedZeroInfNanPreserveFloat32},
      {"preserve_signed_zero_inf_nan64", &P::shaderSignedZeroInfNanPreserveFloat64},
      {"round_to_nearest_even16", &P::shaderRoundingModeRTEFloat16},
      {"round_to_nearest_even32", &P::shaderRoundingModeRTEFloat32},
      {"round_to_nearest_even64", &P::shaderRoundingModeRTEFloat64},
      {"preserve_denormals16", &P::shaderDenormPreserveFloat16},
      {"preserve_denormals32", &P::shaderDenormPreserveFloat32},
      {"preserve_denormals64", &P::shaderDenormPreserveFloat64},
  };
  auto found = known.find(feature);
  return found != known.end() && !(has.*(found->second));
}

inline std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("there is no file " + path + "; `triton-spirv compile` writes a .spv and its .json");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

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

// -- the files
// ---------------------------------------------------------------------------------------------------

// An entry of the argument block.
struct Argument {
  std::string name, type;
  uint32_t offset = 0, bytes = 0;
  bool written = true;        // whether the kernel may write through it, where it is a pointer
  uint32_t divisible_by = 1;  // what its value or address must be a multiple of
};

// What the JSON beside a module says.
struct Abi {
  std::string kernel, sha256, target;
  std::vector<std::string> required_features;
  uint32_t subgroup_size = 0, shared_bytes = 0, block_bytes = 0;
  std::array<uint32_t, 3> workgroup_size{};
  std::vector<Argument> arguments;
  bool indirect_arguments = false;

  static Abi parse(const std::string &text) {
    detail::Json json = detail::JsonReader(text).document();
    if (json.text("format") != "triton-spirv-kernel") throw Error("the JSON is not that of a kernel of triton-spirv");
    if (json.number("version") != kAbiVersion)
      throw Error("the kernel has version " + std::to_string(json.number("version")) + " of the ABI, this loader " +
                  std::to_string(kAbiVersion) + ": take triton_spirv.hpp of the wheel that compiled it");
    Abi abi;
    abi.kernel = json.text("kernel");
    abi.sha256 = json.text("sha256");
    abi.target = json.text("target");
    abi.subgroup_size = json.number("subgroup_size");
    abi.shared_bytes = json.number("shared_bytes");
    abi.block_bytes = json.number("block_bytes");
    abi.indirect_arguments = json.flag("indirect_arguments");
    for (const detail::Json &feature : json.list("required_features"))
      abi.required_features.push_back(feature.as<std::string>("required_features"));
    const detail::Json::List &sizes = json.list("workgroup_size");
    if (sizes.size() != 3) throw Error("the kernel's JSON is damaged: workgroup_size has not three numbers");
    for (size_t i = 0; i < 3; ++i) abi.workgroup_size[i] = detail::Json::to_number(sizes[i], "workgroup_size");
    if (!json.list("reports").empty())
      throw Error("kernel '" + abi.kernel +
                  "' reports (device_print, device_assert, bounds), which this "
                  "loader does not serve: compile it "
                  "without --debug and --check-bounds");
    const detail::Json::List &parameters = json.list("parameters");
    for (const detail::Json &entry : json.list("arguments")) {
      Argument argument;
      argument.name = entry.text("name");
      argument.type = entry.text("type");
      argument.offset = entry.number("offset");
      argument.bytes = entry.number("bytes");
      argument.written = entry.flag("written");
      if (entry["parameter"].is_null() || entry.number("parameter") >= parameters.size())
        throw Error("the kernel's JSON is damaged: argument " + argument.name + " has no parameter");
      const detail::Json &parameter = parameters[entry.number("parameter")];
      if (!parameter["type"].is_null() && parameter.text("type") == argument.type)
        argument.divisible_by = parameter.number("divisible_by");
      if (argument.bytes > 8 || argument.bytes == 0 || argument.divisible_by == 0 ||
          argument.offset > abi.block_bytes || argument.bytes > abi.block_bytes - argument.offset)
        throw Error("the kernel's JSON is damaged: argument " + argument.name + " lies outside of the block");
      abi.arguments.push_back(argument);
    }
    return abi;
  }
};

// -- what is passed
// ----------------------------------------------------------------------------------------------

// The address of the first element of a tensor in a buffer.
struct Pointer {
  VkDeviceAddress address;
};
inline Pointer pointer(VkDeviceAddress address) { return {address}; }

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
  uint64_t encode(const Argument &argument, const std::string &kernel) const {
    auto refuse = [&](const std::string &why) -> Error {
      return Error("kernel '" + kernel + "', argument '" + argument.name + "' (" + argument.type + "): " + why);
    };
    const std::string &type = argument.type;
    uint64_t bits = 0;
    if (type[0] == '*') {
      const Pointer *found = std::get_if<Pointer>(&value_);
      if (!found) throw refuse("it must be a triton_spirv::Pointer");
      bits = found->address;
    } else if (type[0] == 'i' || type[0] == 'u') {
      bits = integer(argument, refuse);
    } else {
      return floating(type, refuse);
    }
    if (bits % argument.divisible_by)
      throw refuse("it was compiled for multiples of " + std::to_string(argument.divisible_by));
    return bits;
  }

 private:
  template <class Refuse>
  uint64_t integer(const Argument &argument, Refuse refuse) const {
    const bool is_signed = argument.type[0] == 'i';
    int width = 0;
    for (size_t i = 1; i < argument.type.size() && width <= 64; ++i)
      width = argument.type[i] >= '0' && argument.type[i] <= '9' ? width * 10 + (argument.type[i] - '0') : 65;
    if (width < 1 || width > 64) throw refuse("this loader does not know its type");
    bool fits = false;
    uint64_t bits = 0;
    const uint64_t top = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
    if (const int64_t *found = std::get_if<int64_t>(&value_)) {
      bits = static_cast<uint64_t>(*found);
      fits = width == 1 || !is_signed ? *found >= 0 && bits <= top
                                      : *found >= -int64_t(top / 2) - 1 && *found <= int64_t(top / 2);
    } else if (const uint64_t *found = std::get_if<uint64_t>(&value_)) {
      bits = *found;
      fits = bits <= (is_signed && width > 1 ? top / 2 : top);
    } else {
      throw refuse("it must be an integer");
    }
    if (!fits) throw refuse("the value does not fit");
    return bits;
  }
  template <class Refuse>
  uint64_t floating(const std::string &type, Refuse refuse) const {
    double number = 0;
    if (const double *found = std::get_if<double>(&value_))
      number = *found;
    else if (const int64_t *found = std::get_if<int64_t>(&value_))
      number = static_cast<double>(*found);
    else if (const uint64_t *found = std::get_if<uint64_t>(&value_))
      number = static_cast<double>(*found);
    else
      throw refuse("it must be a number");
    uint64_t bits = 0;
    if (type == "fp64") {
      std::memcpy(&bits, &number, 8);
    } else if (type == "fp32") {
      float small = static_cast<float>(number);
      std::memcpy(&bits, &small, 4);
    } else if (type == "fp16") {
      bits = detail::narrow(number, 10, 5);
    } else if (type == "bf16") {
      bits = detail::narrow(number, 7, 8);
    } else {
      throw refuse("this loader does not know its type");
    }
    return bits;
  }

  std::variant<Pointer, int64_t, uint64_t, double> value_;
};

// -- the device
// --------------------------------------------------------------------------------------------------

// The features to make a device with, for some kernels:
// VkDeviceCreateInfo::pNext = features.head().
class Features {
 public:
  Features() {
    core_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    v11_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    v12_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    v13_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    core_.pNext = &v11_, v11_.pNext = &v12_, v12_.pNext = &v13_;
    core_.features.shaderInt64 = v12_.bufferDeviceAddress = VK_TRUE;
    v12_.vulkanMemoryModel = v12_.vulkanMemoryModelDeviceScope = VK_TRUE;
    v13_.subgroupSizeControl = v13_.computeFullSubgroups = VK_TRUE;
  }
  Features(const Features &) = delete;
  Features &operator=(const Features &) = delete;

  // Add what a kernel needs. Returns what this class does not set: the caller
  // must enable it, by its extension.
  std::vector<std::string> need(const Abi &abi) {
    const std::map<std::string, VkBool32 *> known = {
        {"float16", &v12_.shaderFloat16},
        {"float64", &core_.features.shaderFloat64},
        {"int8", &v12_.shaderInt8},
        {"int16", &core_.features.shaderInt16},
        {"storage8", &v12_.storageBuffer8BitAccess},
        {"storage16", &v11_.storageBuffer16BitAccess},
        {"int64_atomics", &v12_.shaderBufferInt64Atomics},
    };
    std::vector<std::string> left;
    for (const std::string &feature : abi.required_features) {
      auto found = known.find(feature);
      if (found != known.end())
        *found->second = VK_TRUE;
      else if (feature.rfind("preserve_", 0) && feature.rfind("round_to_", 0))
        left.push_back(feature);  // the others are properties of the device,
                                  // which Kernel checks
    }
    return left;
  }
  // The last structure of the chain is free for the caller's own:
  // *features.tail() = &more.
  const void *head() const { return &core_; }
  void **tail() { return &v13_.pNext; }

 private:
  VkPhysicalDeviceFeatures2 core_{};
  VkPhysicalDeviceVulkan11Features v11_{};
  VkPhysicalDeviceVulkan12Features v12_{};
  VkPhysicalDeviceVulkan13Features v13_{};
};

// Read what is beside a module, before there is a device.
inline Abi read_abi(const std::string &module) {
  size_t dot = module.rfind('.');
  if (dot == std::string::npos || module.substr(dot) != ".spv") throw Error(module + " does not end in .spv");
  return Abi::parse(detail::read_file(module.substr(0, dot) + ".json"));
}

// -- the kernel
// --------------------------------------------------------------------------------------------------

// A compiled kernel on a device. It must outlive the command buffers that it
// was recorded into.
class Kernel {
 public:
  // Reads the module, its JSON beside it (the same path, ending in .json), and
  // makes the pipeline.
  Kernel(VkPhysicalDevice physical, VkDevice device, const std::string &module, VkPipelineCache cache = VK_NULL_HANDLE)
      : device_(device) {
    abi_ = read_abi(module);
    std::string spirv = detail::read_file(module);
    if (detail::sha256(spirv) != abi_.sha256 || spirv.size() % 4)
      throw Error(module +
                  " is not the module that the JSON beside it "
                  "describes: compile it again");
    check_device(physical);
    try {
      make(spirv, cache);
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Kernel() { destroy(); }
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  const Abi &abi() const { return abi_; }
  VkPipeline pipeline() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_; }

  // The argument block. Where abi().indirect_arguments, it goes into a buffer,
  // and that one's address is pushed.
  std::vector<unsigned char> pack(const std::vector<Value> &values) const {
    if (values.size() != abi_.arguments.size())
      throw Error("kernel '" + abi_.kernel + "' takes " + std::to_string(abi_.arguments.size()) + " arguments, not " +
                  std::to_string(values.size()));
    std::vector<unsigned char> block(abi_.block_bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      uint64_t bits = values[i].encode(abi_.arguments[i], abi_.kernel);
      for (uint32_t byte = 0; byte < abi_.arguments[i].bytes; ++byte)
        block[abi_.arguments[i].offset + byte] = static_cast<unsigned char>(bits >> (8 * byte));
    }
    return block;
  }

  // Record a launch. Barriers before and after it are the caller's: it reads
  // and writes in the compute stage.
  void record(VkCommandBuffer commands, std::array<uint32_t, 3> grid, const std::vector<Value> &values) const {
    if (abi_.indirect_arguments)
      throw Error("kernel '" + abi_.kernel +
                  "' takes its arguments from a buffer: put pack()'s bytes "
                  "into one, and "
                  "its address into record_indirect()");
    std::vector<unsigned char> block = pack(values);
    dispatch(commands, grid, block.data(), static_cast<uint32_t>(block.size()));
  }
  void record_indirect(VkCommandBuffer commands, std::array<uint32_t, 3> grid, VkDeviceAddress block) const {
    if (!abi_.indirect_arguments)
      throw Error("kernel '" + abi_.kernel + "' takes its arguments as push constants: use record()");
    dispatch(commands, grid, &block, sizeof block);
  }

 private:
  void check_device(VkPhysicalDevice physical) {
    VkPhysicalDeviceSubgroupSizeControlProperties sizes{};
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
    VkPhysicalDeviceFloatControlsProperties floats{};
    floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    floats.pNext = &sizes;
    VkPhysicalDeviceDriverProperties driver{};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    driver.pNext = &floats;
    VkPhysicalDeviceProperties2 all{};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    all.pNext = &driver;
    vkGetPhysicalDeviceProperties2(physical, &all);
    const VkPhysicalDeviceLimits &limits = all.properties.limits;
    auto refuse = [&](const std::string &why) {
      throw Error("kernel '" + abi_.kernel + "' cannot run on " + all.properties.deviceName + ": " + why +
                  "; compile it with `triton-spirv compile --target device` "
                  "there, or for that device's profile");
    };
    const std::string wanted = target_driver(), there = detail::driver_name(driver.driverID);
    // Kernels for one driver have its workarounds. Those for `generic` suit all
    // but Mesa's CPU driver, which needs some.
    if (wanted == "generic" ? driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE : wanted != there)
      refuse("it was compiled for the driver " + wanted + ", not " + there);
    const uint64_t invocations = uint64_t(abi_.workgroup_size[0]) * abi_.workgroup_size[1] * abi_.workgroup_size[2];
    if (abi_.subgroup_size < sizes.minSubgroupSize || abi_.subgroup_size > sizes.maxSubgroupSize ||
        (sizes.minSubgroupSize != sizes.maxSubgroupSize &&
         !(sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)))
      refuse("it needs subgroups of " + std::to_string(abi_.subgroup_size));
    if (invocations > limits.maxComputeWorkGroupInvocations)
      refuse("it has workgroups of " + std::to_string(invocations) + " invocations");
    if (abi_.shared_bytes > limits.maxComputeSharedMemorySize)
      refuse("it takes " + std::to_string(abi_.shared_bytes) + " bytes of shared memory");
    if (!abi_.indirect_arguments && abi_.block_bytes > limits.maxPushConstantsSize)
      refuse("its arguments take " + std::to_string(abi_.block_bytes) + " bytes of push constants");
    for (const std::string &feature : abi_.required_features)
      if (detail::lacks_float_control(feature, floats)) refuse("it needs " + feature);
    explicit_size_ = sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
  }

  std::string target_driver() const {
    const std::string key = "driver=";
    size_t start = abi_.target.find(key);
    if (start == std::string::npos) throw Error("the kernel's JSON is damaged: its target names no driver");
    start += key.size();
    return abi_.target.substr(start, abi_.target.find(';', start) - start);
  }

  void make(const std::string &spirv, VkPipelineCache cache) {
    std::vector<uint32_t> words(spirv.size() / 4);
    std::memcpy(words.data(), spirv.data(), spirv.size());
    VkShaderModuleCreateInfo module_info{};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = spirv.size();
    module_info.pCode = words.data();
    check(vkCreateShaderModule(device_, &module_info, nullptr, &module_), "the module cannot be made");

    VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, abi_.indirect_arguments ? 8 : abi_.block_bytes};
    VkPipelineLayoutCreateInfo layout_info{};
    layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout_info.pushConstantRangeCount = range.size ? 1 : 0;
    layout_info.pPushConstantRanges = &range;
    check(vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout_), "the pipeline's layout cannot be made");

    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size_info{};
    size_info.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    size_info.requiredSubgroupSize = abi_.subgroup_size;
    VkComputePipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.layout = layout_;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.pNext = explicit_size_ ? &size_info : nullptr;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module_;
    info.stage.pName = abi_.kernel.c_str();
    check(vkCreateComputePipelines(device_, cache, 1, &info, nullptr, &pipeline_), "the pipeline cannot be made");
  }

  void check(VkResult result, const char *what) const {
    if (result != VK_SUCCESS)
      throw Error("kernel '" + abi_.kernel + "': " + what + " (VkResult " + std::to_string(result) + ")");
  }

  void dispatch(VkCommandBuffer commands, std::array<uint32_t, 3> grid, const void *data, uint32_t bytes) const {
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    if (bytes) vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, data);
    vkCmdDispatch(commands, grid[0], grid[1], grid[2]);
  }

  void destroy() {
    vkDestroyPipeline(device_, pipeline_, nullptr);
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyShaderModule(device_, module_, nullptr);
  }

  VkDevice device_;
  Abi abi_;
  bool explicit_size_ = false;
  VkShaderModule module_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace triton_spirv
