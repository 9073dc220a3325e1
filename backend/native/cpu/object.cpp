#include "cpu/object.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cpu/symbols.h"

namespace triton_spirv::cpu {
namespace {

[[noreturn]] void refuse(const char* what) {
  const int error = errno;
  throw ObjectError(std::string(what) + ": " + std::strerror(error) +
                    (error == EACCES || error == EPERM ? "; this system forbids processes to make code" : ""));
}

}  // namespace

Object::Object(std::string_view file) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const Image image(file, kHostMachine, page, callable);
  functions_ = image.functions();
  sections_ = image.sections();
  bytes_ = image.bytes();
  if (bytes_ == 0) throw ObjectError("it has no code");
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse("no memory for it");
  address_ = reinterpret_cast<uint64_t>(memory);
  try {
    auto* const bytes = static_cast<std::byte*>(memory);
    image.link(bytes, address_);
    const auto protect = [&](Region region, int protection) {
      const uint64_t begin = image.begin(region), length = image.end(region) - begin;
      if (length != 0 && mprotect(bytes + begin, length, protection) != 0) refuse("its memory cannot be protected");
    };
    protect(Region::kCode, PROT_READ | PROT_EXEC);
    protect(Region::kConstants, PROT_READ);
    code_bytes_ = image.end(Region::kCode);
    __builtin___clear_cache(reinterpret_cast<char*>(memory), reinterpret_cast<char*>(memory) + code_bytes_);
  } catch (...) {
    munmap(memory, bytes_);
    throw;
  }
}

Object::~Object() { munmap(reinterpret_cast<void*>(address_), bytes_); }

uint64_t Object::function(std::string_view name) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) throw ObjectError("it has no function '" + std::string(name) + "'");
  return address_ + found->second;
}

std::vector<std::string> Object::functions() const {
  std::vector<std::string> names;
  for (const auto& [name, offset] : functions_) names.push_back(name);
  return names;
}

std::optional<Object::Place> Object::place(uint64_t address) const {
  if (!has_code(address)) return std::nullopt;
  const uint64_t offset = address - address_;
  for (const Placed& section : sections_)
    if (section.region == Region::kCode && offset - section.offset < section.bytes)
      return Place{section.section, section.name, offset - section.offset};
  return std::nullopt;
}

}  // namespace triton_spirv::cpu
