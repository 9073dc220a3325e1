// Machine code in this process, from a relocatable ELF object. No linker is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/image.h"

namespace triton_spirv::cpu {

// The machine that this process runs on.
constexpr Machine kHostMachine =
#if defined(__aarch64__)
    Machine::kAArch64;
#else
    Machine::kX86_64;
#endif

// A loaded object. Its code is never writable and its other memory never code. The memory is freed with the object:
// whoever runs its code keeps it alive.
class Object {
 public:
  // Throws ObjectError for a file that cannot be loaded, by what is wrong with it.
  explicit Object(std::string_view file);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // The address of a function that the object defines. Throws ObjectError if there is none of that name.
  uint64_t function(std::string_view name) const;
  std::vector<std::string> functions() const;

  // Whether an address is in the object's code.
  bool has_code(uint64_t address) const { return address - address_ < code_bytes_; }
  // The section of an address in the object's code, by number and name, and the offset in it.
  struct Place {
    uint32_t section;
    std::string name;
    uint64_t offset;
  };
  std::optional<Place> place(uint64_t address) const;
  uint64_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t address_ = 0;
  uint64_t bytes_ = 0;
  uint64_t code_bytes_ = 0;
  std::map<std::string, uint64_t, std::less<>> functions_;
  std::vector<Placed> sections_;
};

}  // namespace triton_spirv::cpu
