// Loaded objects of kernels, and what is wrong with those that cannot be loaded.
#pragma once

#include <memory>
#include <stdexcept>
#include <string_view>

#include "cpu/emulation.h"
#include "triton_spirv/object.hpp"

namespace triton_spirv::cpu {

// An object that cannot be loaded: what is wrong with it.
class ObjectError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The address of a function of program_races.cpp that code may call by this name; 0 if there is none.
uint64_t program_races_function(std::string_view name);

// The functions that code of any device of this module may call: those of emulated devices too.
inline uint64_t resolve(std::string_view symbol) {
  const uint64_t address = callable(symbol);
  if (address != 0) return address;
  const uint64_t emulated = emulation_function(symbol);
  return emulated != 0 ? emulated : program_races_function(symbol);
}

// Throws ObjectError.
inline std::shared_ptr<Object> load_object(std::string_view file) {
  std::string fault;
  std::shared_ptr<Object> object = Object::load(file, fault, resolve);
  if (object == nullptr) throw ObjectError(fault);
  return object;
}

// The address of a function that the object defines. Throws ObjectError if there is none of that name.
inline uint64_t function_of(const Object& object, std::string_view name) {
  const uint64_t address = object.function(name);
  if (address == 0) throw ObjectError("it has no function '" + std::string(name) + "'");
  return address;
}

}  // namespace triton_spirv::cpu
