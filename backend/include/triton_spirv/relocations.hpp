// Relocations of relocatable ELF objects for x86-64 and aarch64.
//
// The numbers and formulas are those of the System V ABI supplements: "x86-64 psABI", chapter 4.4, and "ELF for the Arm
// 64-bit Architecture", chapter 5.7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "elf.hpp"

namespace triton_spirv::cpu {

enum class Machine : uint16_t { kX86_64 = 62, kAArch64 = 183 };  // e_machine of ELF

// What a relocation refers to, beside its symbol's own address.
enum class Through {
  kNothing,  // the address itself
  kStub,     // a branch: an undefined symbol needs code that jumps to it
  kGot,      // an entry of the table of addresses
};

// A kind of relocation: how many bytes it changes, and through what it refers to its symbol.
struct RelocationKind {
  const char* name;
  uint32_t bytes;
  Through through;
};

namespace detail {

// Where a value goes.
enum class Field {
  kWord32,       // 32 bits, taken as either sign
  kSigned32,     // 32 bits that are sign-extended
  kUnsigned32,   // 32 bits that are zero-extended
  kWord64,       // 64 bits
  kPage21,       // adrp: pages between the places
  kByte21,       // adr
  kLow12,        // bits of an offset in a page, divided by the size of the access
  kBranch26,     // b, bl
  kBranch19,     // b.cond, ldr (literal)
  kBranch14,     // tbz
  kMove16,       // movz, movk: 16 bits
  kMove16Exact,  // the same, where nothing may be above them
};

struct Row {
  uint32_t number;
  RelocationKind kind;
  Field field;
  bool relative;  // to the place
  uint32_t shift = 0;
};

inline constexpr Row kX86[] = {
    {R_X86_64_64, {"R_X86_64_64", 8, Through::kNothing}, Field::kWord64, false},
    {R_X86_64_PC64, {"R_X86_64_PC64", 8, Through::kNothing}, Field::kWord64, true},
    {R_X86_64_32, {"R_X86_64_32", 4, Through::kNothing}, Field::kUnsigned32, false},
    {R_X86_64_32S, {"R_X86_64_32S", 4, Through::kNothing}, Field::kSigned32, false},
    {R_X86_64_PC32, {"R_X86_64_PC32", 4, Through::kStub}, Field::kSigned32, true},
    {R_X86_64_PLT32, {"R_X86_64_PLT32", 4, Through::kStub}, Field::kSigned32, true},
    {R_X86_64_GOTPCREL, {"R_X86_64_GOTPCREL", 4, Through::kGot}, Field::kSigned32, true},
    {R_X86_64_GOTPCRELX, {"R_X86_64_GOTPCRELX", 4, Through::kGot}, Field::kSigned32, true},
    {R_X86_64_REX_GOTPCRELX, {"R_X86_64_REX_GOTPCRELX", 4, Through::kGot}, Field::kSigned32, true},
};

inline constexpr Through kNone = Through::kNothing;
inline constexpr Row kArm[] = {
    {R_AARCH64_ABS64, {"R_AARCH64_ABS64", 8, kNone}, Field::kWord64, false},
    {R_AARCH64_PREL64, {"R_AARCH64_PREL64", 8, kNone}, Field::kWord64, true},
    {R_AARCH64_ABS32, {"R_AARCH64_ABS32", 4, kNone}, Field::kWord32, false},
    {R_AARCH64_PREL32, {"R_AARCH64_PREL32", 4, kNone}, Field::kWord32, true},
    {R_AARCH64_ADR_PREL_PG_HI21, {"R_AARCH64_ADR_PREL_PG_HI21", 4, kNone}, Field::kPage21, true},
    {R_AARCH64_ADR_PREL_LO21, {"R_AARCH64_ADR_PREL_LO21", 4, kNone}, Field::kByte21, true},
    {R_AARCH64_ADD_ABS_LO12_NC, {"R_AARCH64_ADD_ABS_LO12_NC", 4, kNone}, Field::kLow12, false, 0},
    {R_AARCH64_LDST8_ABS_LO12_NC, {"R_AARCH64_LDST8_ABS_LO12_NC", 4, kNone}, Field::kLow12, false, 0},
    {R_AARCH64_LDST16_ABS_LO12_NC, {"R_AARCH64_LDST16_ABS_LO12_NC", 4, kNone}, Field::kLow12, false, 1},
    {R_AARCH64_LDST32_ABS_LO12_NC, {"R_AARCH64_LDST32_ABS_LO12_NC", 4, kNone}, Field::kLow12, false, 2},
    {R_AARCH64_LDST64_ABS_LO12_NC, {"R_AARCH64_LDST64_ABS_LO12_NC", 4, kNone}, Field::kLow12, false, 3},
    {R_AARCH64_LDST128_ABS_LO12_NC, {"R_AARCH64_LDST128_ABS_LO12_NC", 4, kNone}, Field::kLow12, false, 4},
    {R_AARCH64_LD_PREL_LO19, {"R_AARCH64_LD_PREL_LO19", 4, kNone}, Field::kBranch19, true},
    {R_AARCH64_CALL26, {"R_AARCH64_CALL26", 4, Through::kStub}, Field::kBranch26, true},
    {R_AARCH64_JUMP26, {"R_AARCH64_JUMP26", 4, Through::kStub}, Field::kBranch26, true},
    {R_AARCH64_CONDBR19, {"R_AARCH64_CONDBR19", 4, Through::kStub}, Field::kBranch19, true},
    {R_AARCH64_TSTBR14, {"R_AARCH64_TSTBR14", 4, Through::kStub}, Field::kBranch14, true},
    {R_AARCH64_ADR_GOT_PAGE, {"R_AARCH64_ADR_GOT_PAGE", 4, Through::kGot}, Field::kPage21, true},
    {R_AARCH64_LD64_GOT_LO12_NC, {"R_AARCH64_LD64_GOT_LO12_NC", 4, Through::kGot}, Field::kLow12, false, 3},
    {R_AARCH64_MOVW_UABS_G0, {"R_AARCH64_MOVW_UABS_G0", 4, kNone}, Field::kMove16Exact, false, 0},
    {R_AARCH64_MOVW_UABS_G0_NC, {"R_AARCH64_MOVW_UABS_G0_NC", 4, kNone}, Field::kMove16, false, 0},
    {R_AARCH64_MOVW_UABS_G1, {"R_AARCH64_MOVW_UABS_G1", 4, kNone}, Field::kMove16Exact, false, 16},
    {R_AARCH64_MOVW_UABS_G1_NC, {"R_AARCH64_MOVW_UABS_G1_NC", 4, kNone}, Field::kMove16, false, 16},
    {R_AARCH64_MOVW_UABS_G2, {"R_AARCH64_MOVW_UABS_G2", 4, kNone}, Field::kMove16Exact, false, 32},
    {R_AARCH64_MOVW_UABS_G2_NC, {"R_AARCH64_MOVW_UABS_G2_NC", 4, kNone}, Field::kMove16, false, 32},
    {R_AARCH64_MOVW_UABS_G3, {"R_AARCH64_MOVW_UABS_G3", 4, kNone}, Field::kMove16, false, 48},
};

template <std::size_t kRows>
const Row* find(const Row (&rows)[kRows], uint32_t number) {
  for (const Row& row : rows)
    if (row.number == number) return &row;
  return nullptr;
}

inline const Row* row_of(Machine machine, uint32_t number) {
  return machine == Machine::kX86_64 ? find(kX86, number) : find(kArm, number);
}

// Replaces `count` bits of an instruction from bit `first` on.
inline void put(std::byte* bytes, uint64_t value, int first, int count) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  const uint32_t mask = (count == 32 ? ~uint32_t{0} : (uint32_t{1} << count) - 1) << first;
  word = (word & ~mask) | (static_cast<uint32_t>(value) << first & mask);
  std::memcpy(bytes, &word, sizeof word);
}

inline bool fits_signed(int64_t value, int bits) {
  return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
}

inline bool put_address21(std::byte* bytes, int64_t value) {
  if (!fits_signed(value, 21)) return false;
  put(bytes, static_cast<uint64_t>(value), 29, 2);
  put(bytes, static_cast<uint64_t>(value >> 2), 5, 19);
  return true;
}

inline bool put_branch(std::byte* bytes, int64_t distance, int first, int bits) {
  if (distance % 4 != 0 || !fits_signed(distance, bits + 2)) return false;
  put(bytes, static_cast<uint64_t>(distance >> 2), first, bits);
  return true;
}

}  // namespace detail

// Returns what is known about a relocation by its number, or nothing for a number that is not supported.
inline std::optional<RelocationKind> relocation_kind(Machine machine, uint32_t number) {
  const detail::Row* const row = detail::row_of(machine, number);
  if (row == nullptr) return std::nullopt;
  return row->kind;
}

// Writes `value` (the symbol's address and the addend) at `bytes`, which will lie at the address `place`. Returns
// false if the value does not fit in the field.
inline bool relocate(Machine machine, uint32_t number, std::byte* bytes, uint64_t place, uint64_t value) {
  const detail::Row& row = *detail::row_of(machine, number);
  const uint64_t result = row.relative ? value - place : value;
  const auto distance = static_cast<int64_t>(result);
  switch (row.field) {
    case detail::Field::kWord64:
      std::memcpy(bytes, &result, 8);
      return true;
    case detail::Field::kWord32:
    case detail::Field::kSigned32:
    case detail::Field::kUnsigned32:
      if (row.field == detail::Field::kUnsigned32
              ? result >> 32 != 0
              : !detail::fits_signed(distance, 32) && (row.field == detail::Field::kSigned32 || result >> 32 != 0))
        return false;
      detail::put(bytes, result, 0, 32);
      return true;
    case detail::Field::kPage21: {
      constexpr uint64_t kPage = 0xfff;
      return detail::put_address21(bytes, static_cast<int64_t>((value & ~kPage) - (place & ~kPage)) >> 12);
    }
    case detail::Field::kByte21:
      return detail::put_address21(bytes, distance);
    case detail::Field::kLow12:
      if (result & ((uint64_t{1} << row.shift) - 1)) return false;  // the access is not aligned
      detail::put(bytes, (result & 0xfff) >> row.shift, 10, 12);
      return true;
    case detail::Field::kBranch26:
      return detail::put_branch(bytes, distance, 0, 26);
    case detail::Field::kBranch19:
      return detail::put_branch(bytes, distance, 5, 19);
    case detail::Field::kBranch14:
      return detail::put_branch(bytes, distance, 5, 14);
    case detail::Field::kMove16Exact:
      if (result >> row.shift >> 16 != 0) return false;
      [[fallthrough]];
    case detail::Field::kMove16:
      detail::put(bytes, result >> row.shift, 5, 16);
      return true;
  }
  return false;
}

// Writes a stub, kStubBytes long, that jumps to an address.
inline constexpr std::size_t kStubBytes = 16;
inline void write_stub(Machine machine, std::byte* bytes, uint64_t target) {
  // movabs rax, target; jmp rax — rax holds the number of vector arguments of variadic calls only.
  // ldr x16, 8; br x16; target — x16 is for such code.
  constexpr unsigned char kX86Stub[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0, 0xcc, 0xcc, 0xcc, 0xcc};
  constexpr unsigned char kArmStub[] = {0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0};
  static_assert(sizeof kX86Stub == kStubBytes && sizeof kArmStub == kStubBytes);
  const bool x86 = machine == Machine::kX86_64;
  std::memcpy(bytes, x86 ? kX86Stub : kArmStub, kStubBytes);
  std::memcpy(bytes + (x86 ? 2 : 8), &target, sizeof target);
}

}  // namespace triton_spirv::cpu
