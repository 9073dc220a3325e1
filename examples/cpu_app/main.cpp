// A program that launches a Triton kernel on the processor, with no Vulkan: out = x + scale * y.
//
//     cd ../vulkan_app
//     triton-spirv compile kernel.py:add -s "*fp32, *fp32, *fp32, i32, fp32, 64" -t cpu-x86-64-v3 -o ../cpu_app/add.o
//     cd ../cpu_app
//     cmake -S . -B build -DTRITON_SPIRV_INCLUDE=$(triton-spirv include) && cmake --build build
//     build/cpu_app add.o
//
// A bundle (kernels.tsb) that has a variant for the processor can be given as well.
#include <cstdio>
#include <triton_spirv.hpp>

namespace {

using triton_spirv::pointer;

int run(const std::string &path) {
  const bool is_bundle = path.size() > 4 && path.substr(path.size() - 4) == ".tsb";
  const auto add = is_bundle ? triton_spirv::Bundle::read(path).cpu_kernel("add") : triton_spirv::CpuKernel(path);
  const uint32_t n = 1000, block = add.abi().constant("BLOCK");
  std::vector<float> x(n), y(n), out(n);
  for (uint32_t i = 0; i < n; ++i) x[i] = static_cast<float>(i), y[i] = 0.5f;
  add.run({(n + block - 1) / block, 1, 1}, {pointer(x.data()), pointer(y.data()), pointer(out.data()), n, 2.0f});
  for (uint32_t i = 0; i < n; ++i)
    if (out[i] != x[i] + 2.0f * y[i]) {
      std::fprintf(stderr, "out[%u] is %g\n", i, static_cast<double>(out[i]));
      return 1;
    }
  std::printf("%u numbers are right\n", n);
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "add.o");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
