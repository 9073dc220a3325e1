// A relocatable ELF object: what its file says, laid out for memory and linked there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/relocations.h"

namespace triton_spirv::cpu {

// An object that cannot be loaded: what is wrong with it.
class ObjectError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How the pages of a section may be used. The regions lie in this order.
enum class Region { kCode, kConstants, kData };
constexpr std::size_t kRegions = 3;

// A section that is in memory, by its number in the file.
struct Placed {
  uint32_t section;
  std::string name;
  Region region;
  uint64_t offset;  // from the image's first byte
  uint64_t bytes;
};

// Reads and links an object. The file may be anything: every number in it is checked before it is used.
class Image {
 public:
  // The address of a symbol that the object does not define, or 0.
  using Resolve = std::function<uint64_t(std::string_view)>;

  // Reads the object's tables and lays its sections out. `file` must live as long as this object. Regions begin at
  // multiples of `page`. Throws ObjectError.
  Image(std::string_view file, Machine machine, uint64_t page, const Resolve& resolve);

  // The image's length: a multiple of the page size.
  uint64_t bytes() const { return ends_[kRegions - 1]; }
  // Where a region begins and ends.
  uint64_t begin(Region region) const { return region == Region::kCode ? 0 : ends_[static_cast<int>(region) - 1]; }
  uint64_t end(Region region) const { return ends_[static_cast<int>(region)]; }
  // Writes the image for the address `base`, a multiple of the page size. `memory` is zeroed and bytes() long.
  void link(std::byte* memory, uint64_t base) const;
  // Offsets of the functions that other objects may call.
  const std::map<std::string, uint64_t, std::less<>>& functions() const { return functions_; }
  const std::vector<Placed>& sections() const { return placed_; }

 private:
  struct Section;
  struct Symbol;

  template <typename T>
  T read(uint64_t offset, const char* what) const;
  std::string_view text_at(const Section& table, uint32_t offset, const char* what) const;
  void check_header() const;
  void read_sections();
  void read_symbols(const Resolve& resolve);
  void read_relocations();
  void place();
  uint64_t address_of(const Symbol& symbol, uint64_t base) const;

  struct Section {
    std::string name;
    uint32_t type;
    uint64_t flags;
    uint64_t offset;
    uint64_t bytes;
    uint32_t link;
    uint32_t info;
    uint64_t alignment;
    bool loaded = false;
    Region region = Region::kConstants;
    uint64_t place = 0;
  };
  struct Symbol {
    std::string name;
    uint16_t section;  // 0: `value` is the address of a function outside
    bool absolute;
    uint64_t value;
    uint64_t stub = 0;  // offsets in the image, if there is one
    uint64_t got = 0;
    bool needs_stub = false;
    bool needs_got = false;
  };
  struct Relocation {
    uint32_t section;
    uint32_t symbol;
    uint32_t number;
    Through through;
    uint64_t offset;
    int64_t addend;
  };

  std::string_view file_;
  Machine machine_;
  uint64_t page_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<Relocation> relocations_;
  std::vector<Placed> placed_;
  std::map<std::string, uint64_t, std::less<>> functions_;
  std::map<std::string, uint32_t> entries_;  // symbols of functions by name
  uint64_t ends_[kRegions] = {};
};

}  // namespace triton_spirv::cpu
