// Views of tensors on the device, as kernels of torch that need no Python.
#pragma once

namespace triton_spirv {

// Enters aten::view, aten::_unsafe_view, aten::_reshape_alias and aten::as_strided for torch's key PrivateUse1, for as
// long as the process runs. False, with nothing entered, where this torch has no stable C ABI to do it by (2.10 and
// newer do).
bool enter_torch_views();

}  // namespace triton_spirv
