// Where in a kernel's code a fault happened.
#pragma once

#include "cpu/faults.h"
#include "cpu/object.h"

namespace triton_spirv::cpu {

// A fault this close to the stack pointer, in a page that is not there, is an overflow.
inline bool is_near_stack(uint64_t address, uint64_t sp) {
  constexpr uint64_t kNear = 1 << 20;
  return address <= sp + kNear && sp <= address + kNear;
}

// Fills in Fault::places. `object` may be null: then there are none.
class Places {
 public:
  Places(const Object* object, Fault& fault) : object_(object), fault_(fault) {}

  // An instruction, if it is the kernel's.
  void add(uint64_t address) {
    if (count_ < Fault::kPlaces && object_ != nullptr && object_->has_code(address)) fault_.places[count_++] = address;
  }

  // The callers: what the stack holds from its pointer up to `top`, and what looks like a return address.
  void add_callers(uint64_t sp, uint64_t top) {
    constexpr uint64_t kSearched = 64 << 10;
    if (object_ == nullptr || top < sp) return;
    const uint64_t end = top - sp < kSearched ? top : sp + kSearched;
    for (uint64_t at = (sp + 7) & ~uint64_t{7}; at < end; at += 8) add(*reinterpret_cast<const uint64_t*>(at) - 1);
  }

 private:
  const Object* object_;
  Fault& fault_;
  int count_ = 0;
};

}  // namespace triton_spirv::cpu
