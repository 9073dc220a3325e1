// torch's stable C ABI (torch/csrc/stable/c/shim.h and inductor/aoti_torch/c/shim.h), looked up in the libtorch that
// the process has loaded: this module is built without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace triton_spirv {

using Handle = void*;          // AtenTensorHandle, StableListHandle, StringHandle, TorchLibraryHandle
using Passed = std::uint64_t;  // StableIValue
using Kernel = void (*)(Passed*, std::uint64_t, std::uint64_t);
using Numbers = std::vector<std::int64_t>;

// The version of the ABI that this module is written for: TORCH_VERSION_2_10_0.
inline constexpr std::uint64_t kVersion = (2ULL << 56) | (10ULL << 48);

#define TORCH_FUNCTIONS(_)                                                                                             \
  _(aoti_torch_library_init_impl, int, const char*, const char*, const char*, std::uint32_t, Handle*)                  \
  _(torch_library_impl, int, Handle, const char*, Kernel, std::uint64_t)                                               \
  _(torch_call_dispatcher, int, const char*, const char*, Passed*, std::uint64_t)                                      \
  _(torch_new_list_reserve_size, int, std::size_t, Handle*)                                                            \
  _(torch_list_push_back, int, Handle, Passed)                                                                         \
  _(torch_list_size, int, Handle, std::size_t*)                                                                        \
  _(torch_list_get_item, int, Handle, std::size_t, Passed*)                                                            \
  _(torch_delete_list, int, Handle)                                                                                    \
  _(torch_string_length, int, Handle, std::size_t*)                                                                    \
  _(torch_string_c_str, int, Handle, const char**)                                                                     \
  _(torch_delete_string, int, Handle)                                                                                  \
  _(aoti_torch_new_tensor_handle, int, Handle, Handle*)                                                                \
  _(aoti_torch_new_uninitialized_tensor, int, Handle*)                                                                 \
  _(aoti_torch_create_tensor_from_blob, int, void*, std::int64_t, const std::int64_t*, const std::int64_t*,            \
    std::int64_t, std::int32_t, std::int32_t, std::int32_t, Handle*)                                                   \
  _(aoti_torch_delete_tensor_object, int, Handle)                                                                      \
  _(aoti_torch_is_defined, int, Handle, bool*)                                                                         \
  _(aoti_torch_get_data_ptr, int, Handle, void**)                                                                      \
  _(aoti_torch_get_dim, int, Handle, std::int64_t*)                                                                    \
  _(aoti_torch_get_sizes, int, Handle, std::int64_t**)                                                                 \
  _(aoti_torch_get_strides, int, Handle, std::int64_t**)                                                               \
  _(aoti_torch_get_storage_offset, int, Handle, std::int64_t*)                                                         \
  _(aoti_torch_get_storage_size, int, Handle, std::int64_t*)                                                           \
  _(aoti_torch_get_dtype, int, Handle, std::int32_t*)                                                                  \
  _(aoti_torch_get_layout, int, Handle, std::int32_t*)                                                                 \
  _(aoti_torch_get_device_type, int, Handle, std::int32_t*)                                                            \
  _(aoti_torch_get_device_index, int, Handle, std::int32_t*)                                                           \
  _(aoti_torch_device_type_cpu, std::int32_t)                                                                          \
  _(aoti_torch_device_type_privateuse1, std::int32_t)                                                                  \
  _(aoti_torch_layout_strided, std::int32_t)                                                                           \
  _(aoti_torch_dtype_element_size, std::size_t, std::int32_t)                                                          \
  _(aoti_torch__reinterpret_tensor, int, Handle, std::int64_t, const std::int64_t*, const std::int64_t*, std::int64_t, \
    Handle*)

// An at::Tensor that a function returns. It holds one address, and what a handle points to is one.
struct NewTensor {
  NewTensor(const NewTensor&) = delete;  // so that it is returned as an at::Tensor is: in memory of the caller
  ~NewTensor() {}
  void* object;
};

struct TorchInterface {
#define DECLARE_TORCH_FUNCTION(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  TORCH_FUNCTIONS(DECLARE_TORCH_FUNCTION)
#undef DECLARE_TORCH_FUNCTION
  bool (*inference_mode)() = nullptr;                       // c10::InferenceMode::is_enabled
  std::int8_t (*default_type)() = nullptr;                  // c10::get_default_dtype_as_scalartype
  std::int8_t (*autocast_type)(std::int8_t) = nullptr;      // at::autocast::get_autocast_dtype
  bool (*is_key_excluded)(std::uint16_t) = nullptr;         // c10::impl::tls_is_dispatch_key_excluded
  void (*set_key_excluded)(std::uint16_t, bool) = nullptr;  // c10::impl::tls_set_dispatch_key_excluded
  bool (*is_neg)(Handle) = nullptr;                         // at::native::is_neg
  bool (*is_conj)(Handle) = nullptr;                        // at::native::is_conj
  // at::fromDLPack: takes a DLManagedTensor, and what is called once the tensor is not used any more.
  NewTensor (*from_dlpack)(void*, std::function<void(void*)>) = nullptr;
};

// Null where this torch lacks one of them: before 2.10.
const TorchInterface* torch_interface();
inline const TorchInterface& torch() { return *torch_interface(); }
// Throws std::runtime_error if a function gave an error.
void check(int error);

inline Passed passed(Handle handle) { return reinterpret_cast<Passed>(handle); }
inline Handle handle(Passed value) { return reinterpret_cast<Handle>(value); }
// The values of a list, which is deleted.
std::vector<Passed> taken(Passed list);
Passed list_of(const std::vector<Passed>& values);
// Sizes as torch's messages have them.
std::string text(const Numbers& values);
// Another reference to a tensor.
Handle again(Handle tensor);
// Enters a kernel of aten::`name` for a dispatch key, for as long as the process runs. False if torch refuses.
bool enter_kernel(const char* key, const char* name, Kernel kernel);
// The same of a function. False, too, where too many were entered.
bool enter_kernel(const char* key, const char* name, std::function<void(Passed*)> function);

}  // namespace triton_spirv
