// Runs a kernel on the processor, for test_cpu_app.py, in each form of triton_spirv.hpp.
//
// runner MODULE.o MODULE.json X Y Z THREADS ARGUMENT…
//
// An argument is @FILE, whose bytes are passed by a pointer and written back; i<number>, or d<number>, a double.
// TIMES in the environment says how often it runs.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <triton_spirv.hpp>
#include <vector>

using namespace triton_spirv;

static std::string read(const std::string &path) {
  std::string data;
  if (std::FILE *file = std::fopen(path.c_str(), "rb")) {
    char part[4096];
    for (size_t bytes; (bytes = std::fread(part, 1, sizeof part, file)) != 0;) data.append(part, bytes);
    std::fclose(file);
  }
  return data;
}

static int run(int argc, char **argv) {
  const std::string object = read(argv[1]), json = read(argv[2]);
  Result<CpuKernel> kernel = [&]() -> Result<CpuKernel> {
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
    return CpuKernel::create(object.data(), object.size(), json);
#else
    try {
      return CpuKernel(object.data(), object.size(), json);
    } catch (const Error &error) {
      return error;
    }
#endif
  }();
  if (!kernel) {
    std::fprintf(stderr, "%s\n", kernel.error());
    return 1;
  }
  std::deque<std::pair<std::string, std::string>> files;
  std::vector<Value> values;
  for (int i = 7; i < argc; ++i) {
    const std::string text = argv[i], rest = text.substr(1);
    if (text[0] == '@') {
      files.emplace_back(rest, read(rest));
      values.push_back(pointer(files.back().second.data()));
    } else if (text[0] == 'i') {
      values.push_back(std::stoll(rest));
    } else {
      values.push_back(std::stod(rest));
    }
  }
  const auto number = [&](int at) { return static_cast<uint32_t>(std::stoul(argv[at])); };
  RunOptions options;
  options.threads = number(6);
  const char *const times = std::getenv("TIMES");
  for (int time = times ? std::atoi(times) : 1; time > 0; --time) {
    Result<Done> done = kernel->ran({number(3), number(4), number(5)}, values, options);
    if (!done) {
      std::fprintf(stderr, "%s\n", done.error());
      return 1;
    }
  }
  for (const auto &[path, data] : files) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(data.data(), 1, data.size(), file) != data.size()) return 2;
    std::fclose(file);
  }
  return 0;
}

int main(int argc, char **argv) { return run(argc, argv); }
