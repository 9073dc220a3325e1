// An allocator for torch.cuda.MemPool whose memory other APIs can import. torch calls the two functions below by name.
//
// The first allocation loads libcuda. Building this file does not need CUDA.
#include <dlfcn.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <unordered_map>

namespace {

// The layout of cuda.h from CUDA 10.2 on.
struct Location {
  int type;
  int id;
};

struct AllocationProperties {
  int type;
  int handle_types;
  Location location;
  void* win32;
  unsigned char compression;
  unsigned char rdma;
  unsigned short usage;
  unsigned char reserved[4];
};

struct AccessDescription {
  Location location;
  int flags;
};

constexpr int kPinned = 1, kOnDevice = 1, kPosixFd = 1, kReadWrite = 3;

#define CUDA_FUNCTIONS(X)                                                                             \
  X(cuMemGetAllocationGranularity, std::size_t*, const AllocationProperties*, int)                    \
  X(cuMemCreate, std::uint64_t*, std::size_t, const AllocationProperties*, unsigned long long)        \
  X(cuMemAddressReserve, std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long) \
  X(cuMemMap, std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long)             \
  X(cuMemSetAccess, std::uint64_t, std::size_t, const AccessDescription*, std::size_t)                \
  X(cuMemUnmap, std::uint64_t, std::size_t)                                                           \
  X(cuMemAddressFree, std::uint64_t, std::size_t)                                                     \
  X(cuMemRelease, std::uint64_t)                                                                      \
  X(cuCtxSynchronize, void)

struct Cuda {
#define X(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  CUDA_FUNCTIONS(X)
#undef X
  bool loaded = false;

  Cuda() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    loaded = true;
#define X(name, ...)                                              \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  loaded = loaded && name != nullptr;
    CUDA_FUNCTIONS(X)
#undef X
  }
};

const Cuda& cuda() {
  static const Cuda* functions = new Cuda;
  return *functions;
}

struct Block {
  std::size_t bytes;
  std::uint64_t handle;
};

std::mutex blocks_mutex;

std::unordered_map<std::uint64_t, Block>& blocks() {
  static auto* map = new std::unordered_map<std::uint64_t, Block>;
  return *map;
}

}  // namespace

extern "C" {

// Returns null if there is no memory or no CUDA. torch then frees what it can, tries again, and reports the failure.
__attribute__((visibility("default"))) void* triton_spirv_cuda_allocate(ssize_t size, int device, void*) {
  const Cuda& api = cuda();
  if (!api.loaded || size <= 0) return nullptr;
  AllocationProperties properties{};
  properties.type = kPinned;
  properties.handle_types = kPosixFd;
  properties.location = {kOnDevice, device};
  std::size_t granularity = 0;
  if (api.cuMemGetAllocationGranularity(&granularity, &properties, 0) != 0 || granularity == 0) return nullptr;
  const std::size_t bytes = (static_cast<std::size_t>(size) + granularity - 1) / granularity * granularity;
  Block block{bytes, 0};
  std::uint64_t address = 0;
  if (api.cuMemCreate(&block.handle, bytes, &properties, 0) != 0) return nullptr;
  if (api.cuMemAddressReserve(&address, bytes, granularity, 0, 0) != 0) {
    api.cuMemRelease(block.handle);
    return nullptr;
  }
  const AccessDescription access{{kOnDevice, device}, kReadWrite};
  const bool mapped = api.cuMemMap(address, bytes, 0, block.handle, 0) == 0;
  if (!mapped || api.cuMemSetAccess(address, bytes, &access, 1) != 0) {
    if (mapped) api.cuMemUnmap(address, bytes);
    api.cuMemAddressFree(address, bytes);
    api.cuMemRelease(block.handle);
    return nullptr;
  }
  const std::lock_guard<std::mutex> guard(blocks_mutex);
  blocks()[address] = block;
  return reinterpret_cast<void*>(address);
}

__attribute__((visibility("default"))) void triton_spirv_cuda_free(void* pointer, ssize_t, int, void*) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  Block block{};
  {
    const std::lock_guard<std::mutex> guard(blocks_mutex);
    const auto found = blocks().find(address);
    if (found == blocks().end()) return;
    block = found->second;
    blocks().erase(found);
  }
  const Cuda& api = cuda();
  api.cuCtxSynchronize();
  api.cuMemUnmap(address, block.bytes);
  api.cuMemAddressFree(address, block.bytes);
  api.cuMemRelease(block.handle);
}

}  // extern "C"
