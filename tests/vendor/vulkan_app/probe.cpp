// What triton_spirv.hpp makes of a JSON and of values, without a device: for
// test_cpp_reader.py.
//
// probe parse FILE            prints the kernel's name, or the error
// probe pack FILE VALUE…      prints the argument block in hex; p<number> is a
// pointer, d<number> a double, b<0|1> a bool,
//                             u<number> an unsigned and i<number> a signed
//                             integer
// probe sha256 FILE           prints the digest
#include <cstdio>
#include <triton_spirv.hpp>

using namespace triton_spirv;

static Value value(const std::string &text) {
  const std::string rest = text.substr(1);
  switch (text[0]) {
    case 'p':
      return pointer(std::stoull(rest));
    case 'd':
      return std::stod(rest);
    case 'b':
      return rest == "1";
    case 'u':
      return std::stoull(rest);
    default:
      return std::stoll(rest);
  }
}

int main(int argc, char **argv) {
  try {
    const std::string verb = argv[1], text = detail::contents(argv[2]).value();
    if (verb == "sha256") {
      std::puts(detail::sha256(text).c_str());
      return 0;
    }
    Abi abi = Abi::parse(text);
    if (verb == "parse") {
      std::puts(abi.kernel.c_str());
      return 0;
    }
    for (int i = 3; i < argc; ++i) {
      const Argument &argument = abi.arguments.at(static_cast<size_t>(i) - 3);
      uint64_t bits = value(argv[i]).encode(argument, abi.kernel);
      for (uint32_t byte = 0; byte < argument.bytes; ++byte)
        std::printf("%02x", static_cast<unsigned>(bits >> (8 * byte)) & 255);
      std::printf(" ");
    }
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
