#include "torch/torch_interface.h"

#include <array>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "platform/platform.h"

namespace triton_spirv {
namespace {

// Whether all that a torch of 2.10 has were found.
bool look_up(TorchInterface& torch) {
  void* cpu = platform::loaded_library(platform::kTorchCpu);
  void* c10 = platform::loaded_library(platform::kTorchCore);
  if (cpu == nullptr || c10 == nullptr || !platform::kTorchHasOurAbi) return false;
  const auto find = [](void* library, const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(platform::function_of(library, name));
    return function != nullptr;
  };
  bool found = true;
#define FIND(name, ...) found &= find(cpu, #name, torch.name);
  TORCH_FUNCTIONS(FIND)
#undef FIND
  found &= find(c10, "_ZN3c1013InferenceMode10is_enabledEv", torch.inference_mode);
  found &= find(c10, "_ZN3c1031get_default_dtype_as_scalartypeEv", torch.default_type);
  found &= find(cpu, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", torch.autocast_type);
  found &= find(c10, "_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE", torch.is_key_excluded);
  found &= find(c10, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb", torch.set_key_excluded);
  found &= find(cpu, "_ZN2at6native6is_negERKNS_6TensorE", torch.is_neg);
  found &= find(cpu, "_ZN2at6native7is_conjERKNS_6TensorE", torch.is_conj);
  found &= find(cpu, "_ZN2at10fromDLPackEP15DLManagedTensorSt8functionIFvPvEE", torch.from_dlpack);
  return found;
}

// torch calls a kernel without saying which one it is, so that each function has a kernel of its own.
constexpr std::size_t kMostFunctions = 2048;

// By their kernels' numbers. Never freed: torch may call them until the process ends.
std::deque<std::function<void(Passed*)>>& functions() {
  static auto* const all = new std::deque<std::function<void(Passed*)>>;
  return *all;
}

template <std::size_t Number>
void kernel(Passed* stack, std::uint64_t, std::uint64_t) {
  functions()[Number](stack);
}

template <std::size_t... Each>
constexpr std::array<Kernel, sizeof...(Each)> kernels(std::index_sequence<Each...>) {
  return {kernel<Each>...};
}

constexpr std::array<Kernel, kMostFunctions> kKernels = kernels(std::make_index_sequence<kMostFunctions>());

}  // namespace

const TorchInterface* torch_interface() {
  static TorchInterface torch;
  static const bool found = look_up(torch);
  return found ? &torch : nullptr;
}

void check(int error) {
  if (error != 0) throw std::runtime_error("torch's C interface failed");
}

std::vector<Passed> taken(Passed list) {
  const TorchInterface& torch = *torch_interface();
  std::size_t count = 0;
  check(torch.torch_list_size(handle(list), &count));
  std::vector<Passed> values(count);
  for (std::size_t at = 0; at < count; ++at) check(torch.torch_list_get_item(handle(list), at, &values[at]));
  check(torch.torch_delete_list(handle(list)));
  return values;
}

Passed list_of(const std::vector<Passed>& values) {
  const TorchInterface& torch = *torch_interface();
  Handle list = nullptr;
  check(torch.torch_new_list_reserve_size(values.size(), &list));
  for (const Passed value : values) check(torch.torch_list_push_back(list, value));
  return passed(list);
}

std::string text(const Numbers& values) {
  std::string all = "[";
  for (const std::int64_t value : values) all += (all.size() > 1 ? ", " : "") + std::to_string(value);
  return all + "]";
}

Handle again(Handle tensor) {
  Handle made = nullptr;
  check(torch_interface()->aoti_torch_new_tensor_handle(tensor, &made));
  return made;
}

bool enter_kernel(const char* key, const char* name, Kernel kernel) {
  static std::map<std::string, Handle> libraries;  // what one entered stays until it is deleted, which nobody does
  const TorchInterface* const torch = torch_interface();
  if (torch == nullptr) return false;
  Handle& library = libraries[key];
  if (library == nullptr && torch->aoti_torch_library_init_impl("aten", key, __FILE__, __LINE__, &library) != 0)
    return false;
  return torch->torch_library_impl(library, name, kernel, kVersion) == 0;
}

bool enter_kernel(const char* key, const char* name, std::function<void(Passed*)> function) {
  const std::size_t number = functions().size();
  if (number == kMostFunctions) return false;
  functions().push_back(std::move(function));
  if (enter_kernel(key, name, kKernels[number])) return true;
  functions().pop_back();
  return false;
}

}  // namespace triton_spirv
