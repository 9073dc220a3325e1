#include "vulkan/slot.h"

#include <cstring>
#include <functional>
#include <string_view>

namespace triton_spirv {

// The commands of an indirect dispatch do not contain its argument block, so neither does the key.
LaunchKey::LaunchKey(const Dispatch& dispatch) {
  const struct {
    KernelHandle kernel;
    uint32_t grid[3];
    uint32_t block_bytes;
    uint64_t indirect;
  } head{dispatch.kernel,
         {dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]},
         dispatch.block_bytes,
         dispatch.indirect ? 1u : 0u};
  static_assert(sizeof(head) == sizeof(KernelHandle) + 24, "no padding, whose bytes may differ");
  bytes_.resize(sizeof(head) + (dispatch.indirect ? 0 : dispatch.block_bytes));
  std::memcpy(bytes_.data(), &head, sizeof(head));
  if (!dispatch.indirect && dispatch.block_bytes != 0)
    std::memcpy(bytes_.data() + sizeof(head), dispatch.block, dispatch.block_bytes);
  hash_ = std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
}

bool LaunchKey::is_of(KernelHandle kernel) const {
  return !bytes_.empty() && std::memcmp(bytes_.data(), &kernel, sizeof(kernel)) == 0;
}

}  // namespace triton_spirv
