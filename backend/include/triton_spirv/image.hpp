// A relocatable ELF object: what its file says, laid out for memory and linked there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf.hpp"
#include "relocations.hpp"

namespace triton_spirv::cpu {
namespace detail {

inline constexpr uint64_t kMostBytes = uint64_t{256}
                                       << 20;  // of a file and of its image; branches reach that far on x86-64
inline constexpr uint64_t kMostRelocations = uint64_t{16} << 20;

inline uint64_t aligned(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

inline bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

inline std::string quoted(std::string_view name) {
  std::string result = "'";
  for (const char c : name.substr(0, 200)) result += c >= 0x20 && c < 0x7f ? c : '?';
  return result + (name.size() > 200 ? "…'" : "'");
}

// Sections that running code does not read: unwinding, notes, and what LLVM writes for its own tools.
inline bool is_left_out(std::string_view name) {
  return begins_with(name, ".eh_frame") || begins_with(name, ".note") || begins_with(name, ".llvm") ||
         begins_with(name, ".comment");
}

}  // namespace detail

// How the pages of a section may be used. The regions lie in this order.
enum class Region { kCode, kConstants, kData };
inline constexpr std::size_t kRegions = 3;

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
  // multiples of `page`.
  Image(std::string_view file, Machine machine, uint64_t page, const Resolve& resolve)
      : file_(file), machine_(machine), page_(page) {
    if (check_header() && read_sections() && read_symbols(resolve) && read_relocations()) place();
  }

  // What is wrong with the object, "" where nothing is. Nothing else may be asked of one that something is wrong with.
  const std::string& fault() const { return fault_; }

  // The image's length: a multiple of the page size.
  uint64_t bytes() const { return ends_[kRegions - 1]; }
  // Where a region begins and ends.
  uint64_t begin(Region region) const { return region == Region::kCode ? 0 : ends_[static_cast<int>(region) - 1]; }
  uint64_t end(Region region) const { return ends_[static_cast<int>(region)]; }
  // Writes the image for the address `base`, a multiple of the page size. `memory` is zeroed and bytes() long. Returns
  // what is wrong, "" where nothing is.
  std::string link(std::byte* memory, uint64_t base) const;
  // Offsets of the functions that other objects may call.
  const std::map<std::string, uint64_t, std::less<>>& functions() const { return functions_; }
  const std::vector<Placed>& sections() const { return placed_; }

 private:
  struct Section;
  struct Symbol;

  // Each returns whether it went well; where it did not, fault_ says why.
  template <typename T>
  bool read(uint64_t offset, const char* what, T& value);
  bool text_at(const Section& table, uint32_t offset, const char* what, std::string_view& text);
  bool check_header();
  bool check_section(Section& section);
  bool read_sections();
  bool read_symbols(const Resolve& resolve);
  bool read_relocations();
  bool place();
  bool fail(std::string why) {
    fault_ = std::move(why);
    return false;
  }
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

  std::string fault_;
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

template <typename T>
bool Image::read(uint64_t offset, const char* what, T& value) {
  if (offset > file_.size() || file_.size() - offset < sizeof(T))
    return fail(std::string(what) + " reaches past the end of the file");
  std::memcpy(&value, file_.data() + offset, sizeof value);
  return true;
}

inline bool Image::text_at(const Section& table, uint32_t offset, const char* what, std::string_view& text) {
  if (table.type != SHT_STRTAB) return fail(std::string(what) + " is not in a string table");
  if (offset >= table.bytes) return fail(std::string(what) + " is outside its string table");
  const std::string_view rest = file_.substr(table.offset + offset, table.bytes - offset);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return fail(std::string(what) + " has no end");
  text = rest.substr(0, end);
  return true;
}

inline bool Image::check_header() {
  if (file_.size() > detail::kMostBytes) return fail("the file is larger than 256 MiB");
  if (!detail::begins_with(file_, ELFMAG)) return fail("this is not an ELF file");
  Elf64_Ehdr header;
  if (!read(0, "the header", header)) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return fail("this is not a little-endian ELF file of 64 bits");
  if (header.e_type != ET_REL)
    return fail("this is not a relocatable object (ELF type " + std::to_string(header.e_type) + ")");
  if (header.e_machine != static_cast<uint16_t>(machine_)) {
    const auto name = [](uint16_t number) -> std::string {
      if (number == EM_X86_64) return "x86-64";
      if (number == EM_AARCH64) return "aarch64";
      return "ELF machine " + std::to_string(number);
    };
    return fail("its code is for " + name(header.e_machine) + ", and this processor is " +
                name(static_cast<uint16_t>(machine_)));
  }
  return true;
}

inline bool Image::read_sections() {
  Elf64_Ehdr header;
  if (!read(0, "the header", header)) return false;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 || header.e_shoff == 0)
    return fail("it has no sections, or headers of an unknown size");
  for (uint32_t index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr raw;
    if (!read(header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr), "a section's header", raw)) return false;
    Section section{"",          raw.sh_type, raw.sh_flags, raw.sh_offset,
                    raw.sh_size, raw.sh_link, raw.sh_info,  raw.sh_addralign};
    const bool in_file = raw.sh_type != SHT_NOBITS && raw.sh_type != SHT_NULL;
    if (in_file && (raw.sh_offset > file_.size() || file_.size() - raw.sh_offset < raw.sh_size))
      return fail("section " + std::to_string(index) + " reaches past the end of the file");
    sections_.push_back(std::move(section));
  }
  if (header.e_shstrndx >= sections_.size()) return fail("the sections' names are missing");
  for (uint32_t index = 1; index < sections_.size(); ++index) {
    Elf64_Shdr raw;
    std::string_view name;
    if (!read(header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr), "a section's header", raw) ||
        !text_at(sections_[header.e_shstrndx], raw.sh_name, "a section's name", name))
      return false;
    sections_[index].name = name;
    if (!check_section(sections_[index])) return false;
  }
  return true;
}

// Decides where a section goes.
inline bool Image::check_section(Section& section) {
  if (!(section.flags & SHF_ALLOC) || detail::is_left_out(section.name)) return true;
  const auto refuse = [&](const std::string& why) {
    return fail("section " + detail::quoted(section.name) + " " + why);
  };
  constexpr uint32_t kUnwind = 0x70000001;  // SHT_X86_64_UNWIND
  if (section.type == kUnwind) return true;
  if (detail::begins_with(section.name, ".ctors") || detail::begins_with(section.name, ".dtors"))
    return refuse("runs code when it is loaded, which kernels may not ask for");
  if (section.type != SHT_PROGBITS && section.type != SHT_NOBITS)
    return refuse("is of type " + std::to_string(section.type) + ", which kernels may not have");
  if (section.flags & SHF_TLS) return refuse("is memory of a thread, which kernels may not have");
  if (section.flags & SHF_COMPRESSED) return refuse("is compressed");
  if ((section.flags & SHF_WRITE) && (section.flags & SHF_EXECINSTR)) return refuse("is both writable and code");
  if (section.type == SHT_NOBITS && (section.flags & SHF_EXECINSTR)) return refuse("is code that is not in the file");
  if (section.alignment == 0) section.alignment = 1;
  if ((section.alignment & (section.alignment - 1)) || section.alignment > page_)
    return refuse("has the alignment " + std::to_string(section.alignment));
  if (section.bytes > detail::kMostBytes) return refuse("is larger than 256 MiB");
  section.loaded = true;
  section.region = section.flags & SHF_EXECINSTR ? Region::kCode
                   : section.flags & SHF_WRITE   ? Region::kData
                                                 : Region::kConstants;
  return true;
}

inline bool Image::read_symbols(const Resolve& resolve) {
  const Section* table = nullptr;
  for (const Section& section : sections_) {
    if (section.type != SHT_SYMTAB) continue;
    if (table != nullptr) return fail("it has two symbol tables");
    table = &section;
  }
  if (table == nullptr) return fail("it has no symbol table");
  if (table->link >= sections_.size()) return fail("the symbols' names are missing");
  if (table->bytes % sizeof(Elf64_Sym) != 0) return fail("the symbol table ends within a symbol");
  for (uint64_t at = 0; at < table->bytes; at += sizeof(Elf64_Sym)) {
    Elf64_Sym raw;
    if (!read(table->offset + at, "the symbol table", raw)) return false;
    std::string_view name;
    if (at != 0 && !text_at(sections_[table->link], raw.st_name, "a symbol's name", name)) return false;
    const unsigned type = ELF64_ST_TYPE(raw.st_info);
    Symbol symbol{std::string(name), raw.st_shndx, raw.st_shndx == SHN_ABS, raw.st_value};
    const auto refuse = [&](const char* why) { return fail("symbol " + detail::quoted(name) + " " + why); };
    if (type == STT_TLS) return refuse("is a thread's variable, which kernels may not have");
    if (type == STT_GNU_IFUNC) return refuse("is chosen when it is loaded, which kernels may not ask for");
    if (raw.st_shndx == SHN_COMMON) return refuse("is a common variable, which kernels may not have");
    if (raw.st_shndx == SHN_UNDEF) {
      symbol.value = name.empty() ? 0 : resolve(name);
      // A null symbol and names that nothing refers to need no address.
    } else if (!symbol.absolute) {
      if (raw.st_shndx >= sections_.size()) return refuse("is in a section that does not exist");
      const Section& section = sections_[raw.st_shndx];
      if (section.loaded && raw.st_value > section.bytes) return refuse("is outside its section");
      const bool visible = ELF64_ST_BIND(raw.st_info) != STB_LOCAL;
      if (visible && type == STT_FUNC && section.loaded && section.region == Region::kCode &&
          raw.st_value < section.bytes)
        if (!entries_.emplace(name, static_cast<uint32_t>(symbols_.size())).second) return refuse("is defined twice");
    }
    symbols_.push_back(std::move(symbol));
  }
  return true;
}

inline bool Image::read_relocations() {
  for (const Section& section : sections_) {
    if (section.type != SHT_RELA && section.type != SHT_REL) continue;
    if (section.info >= sections_.size()) return fail("relocations change a section that does not exist");
    const Section& target = sections_[section.info];
    if (!target.loaded) continue;
    if (section.type == SHT_REL) return fail("its relocations have no addends");
    if (section.link >= sections_.size() || sections_[section.link].type != SHT_SYMTAB)
      return fail("relocations do not name the symbol table");
    if (target.type == SHT_NOBITS) return fail("relocations change a section that is not in the file");
    if (section.bytes % sizeof(Elf64_Rela) != 0) return fail("a relocation table ends within a relocation");
    for (uint64_t at = 0; at < section.bytes; at += sizeof(Elf64_Rela)) {
      Elf64_Rela raw;
      if (!read(section.offset + at, "a relocation", raw)) return false;
      const auto number = static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info));
      if (number == 0) continue;  // R_X86_64_NONE, R_AARCH64_NONE
      const auto index = static_cast<uint32_t>(ELF64_R_SYM(raw.r_info));
      const std::optional<RelocationKind> kind = relocation_kind(machine_, number);
      if (!kind)
        return fail("relocation type " + std::to_string(number) + " in section " + detail::quoted(target.name) +
                    " is not supported");
      if (index >= symbols_.size()) return fail("a relocation names a symbol that does not exist");
      if (raw.r_offset > target.bytes || target.bytes - raw.r_offset < kind->bytes)
        return fail("a relocation changes bytes outside section " + detail::quoted(target.name));
      Symbol& symbol = symbols_[index];
      if (symbol.section == SHN_UNDEF) {
        if (index != 0 && symbol.value == 0)
          return fail("it needs the function " + detail::quoted(symbol.name) + ", which kernels cannot call");
      } else if (!symbol.absolute && !sections_[symbol.section].loaded) {
        return fail("a relocation of section " + detail::quoted(target.name) + " refers to " +
                    detail::quoted(symbol.name) + " in a section that is not loaded");
      }
      Through through = kind->through;
      if (through == Through::kStub && (symbol.section != SHN_UNDEF || index == 0)) through = Through::kNothing;
      symbol.needs_stub |= through == Through::kStub;
      symbol.needs_got |= through == Through::kGot;
      if (relocations_.size() == detail::kMostRelocations) return fail("it has more than 16 million relocations");
      relocations_.push_back({section.info, index, number, through, raw.r_offset, raw.r_addend});
    }
  }
  return true;
}

inline bool Image::place() {
  uint64_t next = 0;
  const auto take = [&](uint64_t bytes, uint64_t alignment) {
    const uint64_t start = detail::aligned(next, alignment);
    next = start + bytes;
    return start;
  };
  for (std::size_t region = 0; region < kRegions; ++region) {
    for (uint32_t index = 0; index < sections_.size(); ++index) {
      Section& section = sections_[index];
      if (!section.loaded || section.region != static_cast<Region>(region)) continue;
      section.place = take(section.bytes, section.alignment);
      placed_.push_back({index, section.name, section.region, section.place, section.bytes});
    }
    for (Symbol& symbol : symbols_) {
      if (region == static_cast<int>(Region::kCode) && symbol.needs_stub) symbol.stub = take(kStubBytes, kStubBytes);
      if (region == static_cast<int>(Region::kConstants) && symbol.needs_got) symbol.got = take(8, 8);
    }
    next = ends_[region] = detail::aligned(next, page_);
    if (next > detail::kMostBytes) return fail("it takes more than 256 MiB of memory");
  }
  for (const auto& [name, index] : entries_) functions_[name] = address_of(symbols_[index], 0);
  return true;
}

inline uint64_t Image::address_of(const Symbol& symbol, uint64_t base) const {
  if (symbol.section == SHN_UNDEF || symbol.absolute) return symbol.value;
  return base + sections_[symbol.section].place + symbol.value;
}

inline std::string Image::link(std::byte* memory, uint64_t base) const {
  for (const Section& section : sections_)
    if (section.loaded && section.type != SHT_NOBITS)
      std::memcpy(memory + section.place, file_.data() + section.offset, section.bytes);
  for (const Symbol& symbol : symbols_) {
    const uint64_t address = address_of(symbol, base);
    if (symbol.needs_stub) write_stub(machine_, memory + symbol.stub, address);
    if (symbol.needs_got) std::memcpy(memory + symbol.got, &address, sizeof address);
  }
  for (const Relocation& relocation : relocations_) {
    const Symbol& symbol = symbols_[relocation.symbol];
    const Section& section = sections_[relocation.section];
    const uint64_t place = section.place + relocation.offset;
    const uint64_t target = relocation.through == Through::kStub  ? base + symbol.stub
                            : relocation.through == Through::kGot ? base + symbol.got
                                                                  : address_of(symbol, base);
    if (!relocate(machine_, relocation.number, memory + place, base + place,
                  target + static_cast<uint64_t>(relocation.addend)))
      return std::string("relocation ") + relocation_kind(machine_, relocation.number)->name + " of " +
             detail::quoted(symbol.name.empty() ? "a section" : symbol.name) + " in section " +
             detail::quoted(section.name) + " does not reach its target";
  }
  return {};
}

}  // namespace triton_spirv::cpu
