"""Tensors that have no kernels on the device ``spirv``: sparse, quantized, and nested ones of the old layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ...runtime import NAME

#: torch's dispatch key of a kind of tensors → (what they are called, what to use instead).
_KINDS = {
    "SparsePrivateUse1": ("sparse tensors", "use dense ones, as of nn.Embedding(sparse=False), or the CPU's"),
    "SparseCsrPrivateUse1": ("sparse tensors", "use dense ones, or the CPU's"),
    "QuantizedPrivateUse1": ("quantized tensors", "use the CPU's"),
    "NestedTensorPrivateUse1": ("nested tensors of layout=torch.strided", "make them with layout=torch.jagged"),
}
#: What makes nested tensors of the old layout of others. One with a history ends the process: autograd asks for its
#: sizes where no error may come (Node::add_input_metadata is noexcept).
_MAKERS = (
    "_nested_tensor_from_tensor_list",
    "_nested_from_padded",
    "_nested_tensor_from_mask",
    "_nested_view_from_buffer",
)


def refuse_layouts(library: torch.library.Library, aten: torch.library.Library) -> None:
    """Refuse every operation on such tensors. ``library``: one of fallbacks ("_")."""
    for key, kind in _KINDS.items():
        library.fallback(_refusal(*kind), key)
    refuse = _refusal(*_KINDS["NestedTensorPrivateUse1"])
    for name in _MAKERS:
        op = getattr(torch.ops.aten, name, None)
        if op is not None:
            aten.impl(name, partial(refuse, op.default), "PrivateUse1")


def _refusal(what: str, instead: str) -> Callable[..., Any]:
    def refuse(op: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{op.name()}: the device '{NAME}' has no kernels for {what}: {instead}")

    return refuse
