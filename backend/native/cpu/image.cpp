#include "cpu/image.h"

#include <elf.h>

#include <cstring>

namespace triton_spirv::cpu {
namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of a file and of its image; branches reach that far on x86-64
constexpr uint64_t kMostRelocations = uint64_t{16} << 20;

uint64_t aligned(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

bool begins_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

std::string quoted(std::string_view name) {
  std::string result = "'";
  for (const char c : name.substr(0, 200)) result += c >= 0x20 && c < 0x7f ? c : '?';
  return result + (name.size() > 200 ? "…'" : "'");
}

// Sections that running code does not read: unwinding, notes, and what LLVM writes for its own tools.
bool is_left_out(std::string_view name) {
  return begins_with(name, ".eh_frame") || begins_with(name, ".note") || begins_with(name, ".llvm") ||
         begins_with(name, ".comment");
}

}  // namespace

template <typename T>
T Image::read(uint64_t offset, const char* what) const {
  if (offset > file_.size() || file_.size() - offset < sizeof(T))
    throw ObjectError(std::string(what) + " reaches past the end of the file");
  T value;
  std::memcpy(&value, file_.data() + offset, sizeof value);
  return value;
}

std::string_view Image::text_at(const Section& table, uint32_t offset, const char* what) const {
  if (table.type != SHT_STRTAB) throw ObjectError(std::string(what) + " is not in a string table");
  if (offset >= table.bytes) throw ObjectError(std::string(what) + " is outside its string table");
  const std::string_view rest = file_.substr(table.offset + offset, table.bytes - offset);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) throw ObjectError(std::string(what) + " has no end");
  return rest.substr(0, end);
}

Image::Image(std::string_view file, Machine machine, uint64_t page, const Resolve& resolve)
    : file_(file), machine_(machine), page_(page) {
  check_header();
  read_sections();
  read_symbols(resolve);
  read_relocations();
  place();
}

void Image::check_header() const {
  if (file_.size() > kMostBytes) throw ObjectError("the file is larger than 256 MiB");
  if (!begins_with(file_, ELFMAG)) throw ObjectError("this is not an ELF file");
  const auto header = read<Elf64_Ehdr>(0, "the header");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    throw ObjectError("this is not a little-endian ELF file of 64 bits");
  if (header.e_type != ET_REL)
    throw ObjectError("this is not a relocatable object (ELF type " + std::to_string(header.e_type) + ")");
  if (header.e_machine != static_cast<uint16_t>(machine_)) {
    const auto name = [](uint16_t number) -> std::string {
      if (number == EM_X86_64) return "x86-64";
      if (number == EM_AARCH64) return "aarch64";
      return "ELF machine " + std::to_string(number);
    };
    throw ObjectError("its code is for " + name(header.e_machine) + ", and this processor is " +
                      name(static_cast<uint16_t>(machine_)));
  }
}

void Image::read_sections() {
  const auto header = read<Elf64_Ehdr>(0, "the header");
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 || header.e_shoff == 0)
    throw ObjectError("it has no sections, or headers of an unknown size");
  for (uint32_t index = 0; index < header.e_shnum; ++index) {
    const auto raw = read<Elf64_Shdr>(header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr), "a section's header");
    Section section{"",          raw.sh_type, raw.sh_flags, raw.sh_offset,
                    raw.sh_size, raw.sh_link, raw.sh_info,  raw.sh_addralign};
    const bool in_file = raw.sh_type != SHT_NOBITS && raw.sh_type != SHT_NULL;
    if (in_file && (raw.sh_offset > file_.size() || file_.size() - raw.sh_offset < raw.sh_size))
      throw ObjectError("section " + std::to_string(index) + " reaches past the end of the file");
    sections_.push_back(std::move(section));
  }
  if (header.e_shstrndx >= sections_.size()) throw ObjectError("the sections' names are missing");
  for (uint32_t index = 1; index < sections_.size(); ++index) {
    Section& section = sections_[index];
    const auto raw = read<Elf64_Shdr>(header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr), "a section's header");
    section.name = text_at(sections_[header.e_shstrndx], raw.sh_name, "a section's name");
    if (!(section.flags & SHF_ALLOC) || is_left_out(section.name)) continue;
    const auto refuse = [&](const std::string& why) {
      throw ObjectError("section " + quoted(section.name) + " " + why);
    };
    constexpr uint32_t kUnwind = 0x70000001;  // SHT_X86_64_UNWIND
    if (section.type == kUnwind) continue;
    if (begins_with(section.name, ".ctors") || begins_with(section.name, ".dtors"))
      refuse("runs code when it is loaded, which kernels may not ask for");
    if (section.type != SHT_PROGBITS && section.type != SHT_NOBITS)
      refuse("is of type " + std::to_string(section.type) + ", which kernels may not have");
    if (section.flags & SHF_TLS) refuse("is memory of a thread, which kernels may not have");
    if (section.flags & SHF_COMPRESSED) refuse("is compressed");
    if ((section.flags & SHF_WRITE) && (section.flags & SHF_EXECINSTR)) refuse("is both writable and code");
    if (section.type == SHT_NOBITS && (section.flags & SHF_EXECINSTR)) refuse("is code that is not in the file");
    if (section.alignment == 0) section.alignment = 1;
    if ((section.alignment & (section.alignment - 1)) || section.alignment > page_)
      refuse("has the alignment " + std::to_string(section.alignment));
    if (section.bytes > kMostBytes) refuse("is larger than 256 MiB");
    section.loaded = true;
    section.region = section.flags & SHF_EXECINSTR ? Region::kCode
                     : section.flags & SHF_WRITE   ? Region::kData
                                                   : Region::kConstants;
  }
}

void Image::read_symbols(const Resolve& resolve) {
  const Section* table = nullptr;
  for (const Section& section : sections_) {
    if (section.type != SHT_SYMTAB) continue;
    if (table != nullptr) throw ObjectError("it has two symbol tables");
    table = &section;
  }
  if (table == nullptr) throw ObjectError("it has no symbol table");
  if (table->link >= sections_.size()) throw ObjectError("the symbols' names are missing");
  if (table->bytes % sizeof(Elf64_Sym) != 0) throw ObjectError("the symbol table ends within a symbol");
  for (uint64_t at = 0; at < table->bytes; at += sizeof(Elf64_Sym)) {
    const auto raw = read<Elf64_Sym>(table->offset + at, "the symbol table");
    const auto name = at == 0 ? std::string_view() : text_at(sections_[table->link], raw.st_name, "a symbol's name");
    const unsigned type = ELF64_ST_TYPE(raw.st_info);
    Symbol symbol{std::string(name), raw.st_shndx, raw.st_shndx == SHN_ABS, raw.st_value};
    const auto refuse = [&](const char* why) { throw ObjectError("symbol " + quoted(name) + " " + why); };
    if (type == STT_TLS) refuse("is a thread's variable, which kernels may not have");
    if (type == STT_GNU_IFUNC) refuse("is chosen when it is loaded, which kernels may not ask for");
    if (raw.st_shndx == SHN_COMMON) refuse("is a common variable, which kernels may not have");
    if (raw.st_shndx == SHN_UNDEF) {
      symbol.value = name.empty() ? 0 : resolve(name);
      // A null symbol and names that nothing refers to need no address.
    } else if (!symbol.absolute) {
      if (raw.st_shndx >= sections_.size()) refuse("is in a section that does not exist");
      const Section& section = sections_[raw.st_shndx];
      if (section.loaded && raw.st_value > section.bytes) refuse("is outside its section");
      const bool visible = ELF64_ST_BIND(raw.st_info) != STB_LOCAL;
      if (visible && type == STT_FUNC && section.loaded && section.region == Region::kCode &&
          raw.st_value < section.bytes)
        if (!entries_.emplace(name, static_cast<uint32_t>(symbols_.size())).second) refuse("is defined twice");
    }
    symbols_.push_back(std::move(symbol));
  }
}

void Image::read_relocations() {
  for (const Section& section : sections_) {
    if (section.type != SHT_RELA && section.type != SHT_REL) continue;
    if (section.info >= sections_.size()) throw ObjectError("relocations change a section that does not exist");
    const Section& target = sections_[section.info];
    if (!target.loaded) continue;
    if (section.type == SHT_REL) throw ObjectError("its relocations have no addends");
    if (section.link >= sections_.size() || sections_[section.link].type != SHT_SYMTAB)
      throw ObjectError("relocations do not name the symbol table");
    if (target.type == SHT_NOBITS) throw ObjectError("relocations change a section that is not in the file");
    if (section.bytes % sizeof(Elf64_Rela) != 0) throw ObjectError("a relocation table ends within a relocation");
    for (uint64_t at = 0; at < section.bytes; at += sizeof(Elf64_Rela)) {
      const auto raw = read<Elf64_Rela>(section.offset + at, "a relocation");
      const auto number = static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info));
      if (number == 0) continue;  // R_X86_64_NONE, R_AARCH64_NONE
      const auto index = static_cast<uint32_t>(ELF64_R_SYM(raw.r_info));
      const std::optional<RelocationKind> kind = relocation_kind(machine_, number);
      if (!kind)
        throw ObjectError("relocation type " + std::to_string(number) + " in section " + quoted(target.name) +
                          " is not supported");
      if (index >= symbols_.size()) throw ObjectError("a relocation names a symbol that does not exist");
      if (raw.r_offset > target.bytes || target.bytes - raw.r_offset < kind->bytes)
        throw ObjectError("a relocation changes bytes outside section " + quoted(target.name));
      Symbol& symbol = symbols_[index];
      if (symbol.section == SHN_UNDEF) {
        if (index != 0 && symbol.value == 0)
          throw ObjectError("it needs the function " + quoted(symbol.name) + ", which kernels cannot call");
      } else if (!symbol.absolute && !sections_[symbol.section].loaded) {
        throw ObjectError("a relocation of section " + quoted(target.name) + " refers to " + quoted(symbol.name) +
                          " in a section that is not loaded");
      }
      Through through = kind->through;
      if (through == Through::kStub && (symbol.section != SHN_UNDEF || index == 0)) through = Through::kNothing;
      symbol.needs_stub |= through == Through::kStub;
      symbol.needs_got |= through == Through::kGot;
      if (relocations_.size() == kMostRelocations) throw ObjectError("it has more than 16 million relocations");
      relocations_.push_back({section.info, index, number, through, raw.r_offset, raw.r_addend});
    }
  }
}

void Image::place() {
  uint64_t next = 0;
  const auto take = [&](uint64_t bytes, uint64_t alignment) {
    const uint64_t place = aligned(next, alignment);
    next = place + bytes;
    if (next > kMostBytes) throw ObjectError("it takes more than 256 MiB of memory");
    return place;
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
    next = ends_[region] = aligned(next, page_);
  }
  for (const auto& [name, index] : entries_) functions_[name] = address_of(symbols_[index], 0);
}

uint64_t Image::address_of(const Symbol& symbol, uint64_t base) const {
  if (symbol.section == SHN_UNDEF || symbol.absolute) return symbol.value;
  return base + sections_[symbol.section].place + symbol.value;
}

void Image::link(std::byte* memory, uint64_t base) const {
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
      throw ObjectError(std::string("relocation ") + relocation_kind(machine_, relocation.number)->name + " of " +
                        quoted(symbol.name.empty() ? "a section" : symbol.name) + " in section " +
                        quoted(section.name) + " does not reach its target");
  }
}

}  // namespace triton_spirv::cpu
