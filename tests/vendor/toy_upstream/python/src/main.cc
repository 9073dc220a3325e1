// libtriton of the toy: calls init_triton_<name> for each name of TRITON_BACKENDS, of which there is room for five.
#include "nanobind/nanobind.h"

#define FOR_EACH_1(DO, X) DO(X)
#define FOR_EACH_2(DO, X, ...) DO(X) FOR_EACH_1(DO, __VA_ARGS__)
#define FOR_EACH_3(DO, X, ...) DO(X) FOR_EACH_2(DO, __VA_ARGS__)
#define FOR_EACH_4(DO, X, ...) DO(X) FOR_EACH_3(DO, __VA_ARGS__)
#define FOR_EACH_5(DO, X, ...) DO(X) FOR_EACH_4(DO, __VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, NAME, ...) NAME
#define FOR_EACH(DO, ...)                                                      \
  PICK(__VA_ARGS__, FOR_EACH_5, FOR_EACH_4, FOR_EACH_3, FOR_EACH_2,            \
       FOR_EACH_1)(DO, __VA_ARGS__)

#define DECLARE(NAME) void init_triton_##NAME(nanobind::module_ &m);
#define CALL(NAME) init_triton_##NAME(m);

FOR_EACH(DECLARE, TRITON_BACKENDS)

extern "C" const char *toy_modules() {
  static std::string text;
  nanobind::module_ m;
  FOR_EACH(CALL, TRITON_BACKENDS)
  text.clear();
  for (const std::string &name : m.attributes)
    text += (text.empty() ? "" : " ") + name;
  return text.c_str();
}
