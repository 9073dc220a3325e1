#include "torch_interface.h"

#include <dlfcn.h>

#include <stdexcept>
#include <type_traits>

namespace triton_spirv {
namespace {

// Whether all that a torch of 2.10 has were found.
bool look_up(TorchInterface& torch) {
  void* cpu = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  void* c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (cpu == nullptr || c10 == nullptr) return false;
  const auto find = [](void* library, const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  bool found = true;
#define FIND(name, ...) found &= find(cpu, #name, torch.name);
  TORCH_FUNCTIONS(FIND)
#undef FIND
  found &= find(c10, "_ZN3c1013InferenceMode10is_enabledEv", torch.inference_mode);
  found &= find(c10, "_ZN3c1031get_default_dtype_as_scalartypeEv", torch.default_type);
  found &= find(cpu, "_ZN2at6native6is_negERKNS_6TensorE", torch.is_neg);
  found &= find(cpu, "_ZN2at10fromDLPackEP15DLManagedTensorSt8functionIFvPvEE", torch.from_dlpack);
  return found;
}

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

bool enter_kernel(const char* name, Kernel kernel) {
  static Handle library = nullptr;  // what it entered stays until it is deleted, which nobody does
  const TorchInterface* const torch = torch_interface();
  if (torch == nullptr) return false;
  if (library == nullptr &&
      torch->aoti_torch_library_init_impl("aten", "PrivateUse1", __FILE__, __LINE__, &library) != 0)
    return false;
  return torch->torch_library_impl(library, name, kernel, kVersion) == 0;
}

}  // namespace triton_spirv
