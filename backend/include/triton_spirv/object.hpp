// Machine code in this process, from a relocatable ELF object. No linker is needed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image.hpp"
#include "pages.hpp"
#include "symbols.hpp"

namespace triton_spirv::cpu {

// The machine that this process runs on.
inline constexpr Machine kHostMachine =
#if defined(__aarch64__)
    Machine::kAArch64;
#else
    Machine::kX86_64;
#endif

// A loaded object. Its code is never writable and its other memory never code. The memory is freed with the object:
// whoever runs its code keeps it alive.
class Object {
 public:
  // The object in a file's bytes; or null, with what is wrong in `fault`. `resolve` knows the functions that it may
  // call.
  static std::shared_ptr<Object> load(std::string_view file, std::string& fault,
                                      const Image::Resolve& resolve = callable) {
    const Image image(file, kHostMachine, pages::size(), resolve);
    fault = image.fault();
    if (fault.empty() && image.bytes() == 0) fault = "it has no code";
    if (!fault.empty()) return nullptr;
    void* const memory = pages::map(image.bytes());
    if (memory == nullptr) {
      fault = pages::refused("no memory for it");
      return nullptr;
    }
    std::shared_ptr<Object> object(new Object(image, memory));  // which frees the memory
    fault = image.link(static_cast<std::byte*>(memory), object->address_);
    if (fault.empty() && !object->protect(image)) fault = pages::refused("its memory cannot be protected");
    if (!fault.empty()) return nullptr;
    char* const code = static_cast<char*>(memory);
    __builtin___clear_cache(code, code + object->code_bytes_);
    return object;
  }
  ~Object() { pages::unmap(reinterpret_cast<void*>(address_), bytes_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // The address of a function that the object defines, 0 where there is none of that name.
  uint64_t function(std::string_view name) const {
    const auto found = functions_.find(name);
    return found == functions_.end() ? 0 : address_ + found->second;
  }
  std::vector<std::string> functions() const {
    std::vector<std::string> names;
    for (const auto& [name, offset] : functions_) names.push_back(name);
    return names;
  }

  // Whether an address is in the object's code.
  bool has_code(uint64_t address) const { return address - address_ < code_bytes_; }
  // The section of an address in the object's code, by number and name, and the offset in it.
  struct Place {
    uint32_t section;
    std::string name;
    uint64_t offset;
  };
  std::optional<Place> place(uint64_t address) const {
    if (!has_code(address)) return std::nullopt;
    const uint64_t offset = address - address_;
    for (const Placed& section : sections_)
      if (section.region == Region::kCode && offset - section.offset < section.bytes)
        return Place{section.section, section.name, offset - section.offset};
    return std::nullopt;
  }
  uint64_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Object(const Image& image, void* memory)
      : address_(reinterpret_cast<uint64_t>(memory)),
        bytes_(image.bytes()),
        code_bytes_(image.end(Region::kCode)),
        functions_(image.functions()),
        sections_(image.sections()) {}
  bool protect(const Image& image) const {
    const auto set = [&](Region region, pages::Use use) {
      const uint64_t begin = image.begin(region), length = image.end(region) - begin;
      return length == 0 || pages::protect(reinterpret_cast<void*>(address_ + begin), length, use);
    };
    return set(Region::kCode, pages::Use::kCode) && set(Region::kConstants, pages::Use::kRead);
  }

  uint64_t address_;
  uint64_t bytes_;
  uint64_t code_bytes_;
  std::map<std::string, uint64_t, std::less<>> functions_;
  std::vector<Placed> sections_;
};

}  // namespace triton_spirv::cpu
