// A part of triton_spirv.hpp, which includes it: kernels that run on the processor.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "object.hpp"
#include "processor.hpp"

namespace triton_spirv {
#ifdef TRITON_SPIRV_NO_EXCEPTIONS
inline namespace results {
#endif

struct RunOptions {
  // How many threads share the programs; 0: one for each processor.
  unsigned threads = 0;
  // Where this is set to another number than 0 the kernel ends early: before its next program, or in a loop that may
  // have no end.
  const std::atomic<int32_t> *stop = nullptr;
};

namespace detail {

// One run of a kernel, shared by threads. They take ranges of programs in ascending order, so a program may wait for
// one of a lower number.
class CpuRun {
 public:
  CpuRun(cpu::Entry entry, uint64_t scratch, const std::byte *block, const std::array<uint32_t, 3> &grid,
         const RunOptions &options)
      : entry_(entry), scratch_(scratch), block_(block), grid_{grid[0], grid[1], grid[2], 0}, stop_(options.stop) {
    programs_ = uint64_t(grid[0]) * grid[1] * grid[2];
    const unsigned here = std::max(std::thread::hardware_concurrency(), 1u);
    threads_ = options.threads != 0 ? options.threads : here;
  }

  // Returns whether there was memory for it.
  bool run() {
    static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free);
    std::vector<pthread_t> helpers;
    work(&helpers);
    for (const pthread_t helper : helpers) pthread_join(helper, nullptr);
    return next_.load() >= programs_ || stopped();
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Helpers are started once what is left is expected to take longer than this: to start one takes some 30 µs.
  static constexpr double kWorthStarting = 200e-6;
  // Each thread takes so many ranges of the programs that are left, at least.
  static constexpr uint64_t kRangesOfThread = 4;

  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed) != 0; }

  // Runs ranges of programs until there are none. `helpers`: null in one of them.
  void work(std::vector<pthread_t> *helpers) {
    const std::unique_ptr<std::byte[], Free> memory(static_cast<std::byte *>(
        ::operator new(std::max<uint64_t>(scratch_, 1), std::align_val_t(cpu::kScratchAlignment), std::nothrow)));
    if (memory == nullptr) return;  // other threads go on
    static constexpr std::atomic<int32_t> kNever{0};
    const auto *const stop = reinterpret_cast<const int32_t *>(stop_ != nullptr ? stop_ : &kNever);
    const cpu::FloatMode mode;
    const auto begin = Clock::now();
    bool alone = helpers != nullptr && threads_ > 1;
    uint64_t own = 0;
    while (!stopped()) {
      const uint64_t seen = std::min(next_.load(std::memory_order_relaxed), programs_);
      // While this thread is alone, it looks at the clock often.
      const uint64_t share = alone ? std::max<uint64_t>(own, 1) : (programs_ - seen) / (kRangesOfThread * threads_);
      const uint64_t length = std::max<uint64_t>(threads_ == 1 ? programs_ : share, 1);
      const uint64_t first = next_.fetch_add(length, std::memory_order_relaxed);
      if (first >= programs_) break;
      const uint64_t last = first + std::min(length, programs_ - first);
      entry_(block_, first, last, grid_.data(), memory.get(), stop);
      own += last - first;
      if (!alone) continue;
      const std::chrono::duration<double> taken = Clock::now() - begin;
      if (taken.count() / static_cast<double>(own) * static_cast<double>(programs_ - last) < kWorthStarting) continue;
      alone = false;
      start(*helpers, programs_ - last);
    }
  }
  void start(std::vector<pthread_t> &helpers, uint64_t left) {
    const auto begin = [](void *run) -> void * {
      static_cast<CpuRun *>(run)->work(nullptr);
      return nullptr;
    };
    for (uint64_t number = 1; number < threads_ && number <= left; ++number) {
      pthread_t thread;
      if (pthread_create(&thread, nullptr, begin, this) != 0) break;  // with fewer threads it takes longer
      helpers.push_back(thread);
    }
  }
  struct Free {
    void operator()(std::byte *memory) const { ::operator delete(memory, std::align_val_t(cpu::kScratchAlignment)); }
  };

  const cpu::Entry entry_;
  const uint64_t scratch_;
  const std::byte *const block_;
  const std::array<uint32_t, 4> grid_;  // another thread of the program may run a kernel meanwhile, on the same memory
  const std::atomic<int32_t> *const stop_;
  uint64_t programs_;
  unsigned threads_;
  std::atomic<uint64_t> next_{0};  // the first program that no thread has taken
};

}  // namespace detail

// A kernel that was compiled for a processor, in this process. Copies share its code. It may run in several threads at
// once. A wild access of a kernel is one of the program's own.
class CpuKernel {
 public:
  // An ELF object and the text of its JSON, in memory.
  static Returned<CpuKernel> create(const void *object, size_t bytes, std::string_view json) {
    Result<Abi> abi = parsed(json);
    return detail::give(abi ? made(object, bytes, *abi) : Result<CpuKernel>(Error(abi.error())));
  }
#ifndef TRITON_SPIRV_NO_FILES
  // The object's file; its JSON has the same path, ending in .json. Of a .spv, the object that lies beside it.
  static Returned<CpuKernel> create(const std::string &module) { return detail::give(read(module)); }
#endif
#ifndef TRITON_SPIRV_NO_EXCEPTIONS
#ifndef TRITON_SPIRV_NO_FILES
  explicit CpuKernel(const std::string &module) : CpuKernel(create(module)) {}
#endif
  CpuKernel(const void *object, size_t bytes, std::string_view json) : CpuKernel(create(object, bytes, json)) {}
#endif

  const Abi &abi() const { return abi_; }

  // Run all programs of a grid, and return when they are done.
  Returned<Done> run(std::array<uint32_t, 3> grid, const std::vector<Value> &values,
                     const RunOptions &options = {}) const {
    return detail::give(ran(grid, values, options));
  }

  // Why this processor cannot run a kernel, "" where it can.
  static std::string refusal(const Abi &abi) {
    if (!abi.machine_code) return "it has no machine code: it was compiled for the driver " + abi.driver();
    const MachineCode &code = *abi.machine_code;
    if (code.launch != cpu::kLaunchVersion)
      return "its machine code is called in version " + std::to_string(code.launch) + ", this loader knows " +
             std::to_string(cpu::kLaunchVersion) + ": take triton_spirv.hpp of the wheel that compiled it";
    if (const char *here = cpu::processor_level(); !cpu::runs(code.processor, here))
      return "its machine code is for " + code.processor + ", and this processor is " + here;
    return {};
  }

  // The same where nothing throws: what the functions above give, as a Result.
  static Result<CpuKernel> made(const void *object, size_t bytes, const Abi &abi) {
    if (const std::string why = refusal(abi); !why.empty())
      return detail::refused(abi, "cannot run here: " + why + "; compile it with --target for this processor");
    const std::string_view file(static_cast<const char *>(object), bytes);
    if (detail::sha256(std::string(file)) != abi.machine_code->sha256)
      return detail::refused(abi, "has machine code other than that which its JSON describes: compile it again");
    CpuKernel kernel;
    kernel.abi_ = abi;
    std::string fault;
    kernel.object_ = cpu::Object::load(file, fault);
    if (kernel.object_ == nullptr) return detail::refused(abi, "cannot be loaded: " + fault);
    kernel.entry_ = reinterpret_cast<cpu::Entry>(kernel.object_->function(abi.kernel));
    if (kernel.entry_ == nullptr) return detail::refused(abi, "is not in its object");
    return kernel;
  }
#ifndef TRITON_SPIRV_NO_FILES
  static Result<CpuKernel> read(const std::string &module) {
    Result<Abi> abi = detail::abi_beside(module);
    if (!abi) return Error(abi.error());
    const std::string file = module.substr(0, module.rfind('.')) + ".o";
    Result<std::string> object = detail::contents(file);
    if (!object) return Error(object.error());
    return made(object->data(), object->size(), *abi);
  }
#endif
  Result<Done> ran(std::array<uint32_t, 3> grid, const std::vector<Value> &values, const RunOptions &options) const {
    Result<std::vector<unsigned char>> block = detail::packed(abi_, values);
    if (!block) return Error(block.error());
    if (uint64_t(grid[0]) * grid[1] > (uint64_t(1) << 62) / std::max(grid[2], 1u))
      return detail::refused(abi_, "cannot have a grid of more than 2^62 programs");
    // The block, or its address, at a multiple of kBlockAlignment.
    struct alignas(cpu::kBlockAlignment) Unit {
      std::byte bytes[cpu::kBlockAlignment];
    };
    std::vector<Unit> aligned(block->size() / sizeof(Unit) + 1);
    if (!block->empty()) std::memcpy(aligned.data(), block->data(), block->size());
    Unit address{};
    const Unit *const first = aligned.data();
    std::memcpy(&address, &first, sizeof first);
    const std::byte *const passed = abi_.indirect_arguments ? address.bytes : first->bytes;
    if (!detail::CpuRun(entry_, abi_.machine_code->scratch_bytes, passed, grid, options).run())
      return detail::refused(
          abi_, "found no memory for " + std::to_string(abi_.machine_code->scratch_bytes) + " bytes of scratch");
    return Done{};
  }

 private:
  CpuKernel() = default;
  static Result<Abi> parsed(std::string_view json) {
    Result<detail::Json> document = detail::JsonReader(json).document();
    if (!document) return Error(document.error());
    return Abi::from(*document);
  }

  Abi abi_;
  std::shared_ptr<const cpu::Object> object_;
  cpu::Entry entry_ = nullptr;
};

#ifdef TRITON_SPIRV_NO_EXCEPTIONS
}  // namespace results
#endif
}  // namespace triton_spirv
