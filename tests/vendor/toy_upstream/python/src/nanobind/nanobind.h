// As much of nanobind as the toy needs.
#pragma once
#include <string>
#include <vector>

namespace nanobind {
class module_ {
public:
  std::vector<std::string> attributes;
};
} // namespace nanobind
