// Relocations of relocatable ELF objects for x86-64 and aarch64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

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

// Returns what is known about a relocation by its number, or nothing for a number that is not supported.
std::optional<RelocationKind> relocation_kind(Machine machine, uint32_t number);

// Writes `value` (the symbol's address and the addend) at `bytes`, which will lie at the address `place`. Returns
// false if the value does not fit in the field.
bool relocate(Machine machine, uint32_t number, std::byte* bytes, uint64_t place, uint64_t value);

// Writes a stub, kStubBytes long, that jumps to an address.
constexpr std::size_t kStubBytes = 16;
void write_stub(Machine machine, std::byte* bytes, uint64_t target);

}  // namespace triton_spirv::cpu
