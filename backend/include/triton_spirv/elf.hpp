// The names of ELF's format: elf.h, or what the loader needs of it on a system that has none.
#pragma once

#if defined(__has_include) && __has_include(<elf.h>)
#include <elf.h>
#else

#include <cstdint>

namespace triton_spirv::cpu {

// System V ABI, "Object Files".
inline constexpr char ELFMAG[] =
    "\x7f"
    "ELF";
enum { EI_CLASS = 4, EI_DATA = 5, EI_NIDENT = 16 };
enum { ELFCLASS64 = 2, ELFDATA2LSB = 1, ET_REL = 1, EM_X86_64 = 62, EM_AARCH64 = 183 };
enum { SHN_UNDEF = 0, SHN_ABS = 0xfff1, SHN_COMMON = 0xfff2 };
enum { SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS = 8, SHT_REL = 9 };
enum { SHF_WRITE = 1, SHF_ALLOC = 2, SHF_EXECINSTR = 4, SHF_TLS = 1 << 10, SHF_COMPRESSED = 1 << 11 };
enum { STB_LOCAL = 0, STT_FUNC = 2, STT_TLS = 6, STT_GNU_IFUNC = 10 };

struct Elf64_Ehdr {
  unsigned char e_ident[EI_NIDENT];
  uint16_t e_type, e_machine;
  uint32_t e_version;
  uint64_t e_entry, e_phoff, e_shoff;
  uint32_t e_flags;
  uint16_t e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx;
};
struct Elf64_Shdr {
  uint32_t sh_name, sh_type;
  uint64_t sh_flags, sh_addr, sh_offset, sh_size;
  uint32_t sh_link, sh_info;
  uint64_t sh_addralign, sh_entsize;
};
struct Elf64_Sym {
  uint32_t st_name;
  unsigned char st_info, st_other;
  uint16_t st_shndx;
  uint64_t st_value, st_size;
};
struct Elf64_Rela {
  uint64_t r_offset, r_info;
  int64_t r_addend;
};
static_assert(sizeof(Elf64_Ehdr) == 64 && sizeof(Elf64_Shdr) == 64 && sizeof(Elf64_Sym) == 24 &&
              sizeof(Elf64_Rela) == 24);

constexpr unsigned ELF64_ST_BIND(unsigned info) { return info >> 4; }
constexpr unsigned ELF64_ST_TYPE(unsigned info) { return info & 0xf; }
constexpr uint64_t ELF64_R_SYM(uint64_t info) { return info >> 32; }
constexpr uint64_t ELF64_R_TYPE(uint64_t info) { return info & 0xffffffff; }

// The supplements that relocations.hpp names.
enum {
  R_X86_64_64 = 1,
  R_X86_64_PC32 = 2,
  R_X86_64_PLT32 = 4,
  R_X86_64_GOTPCREL = 9,
  R_X86_64_32 = 10,
  R_X86_64_32S = 11,
  R_X86_64_PC64 = 24,
  R_X86_64_GOTPCRELX = 41,
  R_X86_64_REX_GOTPCRELX = 42,
};
enum {
  R_AARCH64_ABS64 = 257,
  R_AARCH64_ABS32 = 258,
  R_AARCH64_PREL64 = 260,
  R_AARCH64_PREL32 = 261,
  R_AARCH64_MOVW_UABS_G0 = 263,
  R_AARCH64_MOVW_UABS_G0_NC = 264,
  R_AARCH64_MOVW_UABS_G1 = 265,
  R_AARCH64_MOVW_UABS_G1_NC = 266,
  R_AARCH64_MOVW_UABS_G2 = 267,
  R_AARCH64_MOVW_UABS_G2_NC = 268,
  R_AARCH64_MOVW_UABS_G3 = 269,
  R_AARCH64_LD_PREL_LO19 = 273,
  R_AARCH64_ADR_PREL_LO21 = 274,
  R_AARCH64_ADR_PREL_PG_HI21 = 275,
  R_AARCH64_ADD_ABS_LO12_NC = 277,
  R_AARCH64_LDST8_ABS_LO12_NC = 278,
  R_AARCH64_TSTBR14 = 279,
  R_AARCH64_CONDBR19 = 280,
  R_AARCH64_JUMP26 = 282,
  R_AARCH64_CALL26 = 283,
  R_AARCH64_LDST16_ABS_LO12_NC = 284,
  R_AARCH64_LDST32_ABS_LO12_NC = 285,
  R_AARCH64_LDST64_ABS_LO12_NC = 286,
  R_AARCH64_LDST128_ABS_LO12_NC = 299,
  R_AARCH64_ADR_GOT_PAGE = 311,
  R_AARCH64_LD64_GOT_LO12_NC = 312,
};

}  // namespace triton_spirv::cpu

#endif
