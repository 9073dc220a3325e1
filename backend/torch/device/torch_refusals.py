"""Tensors that have no kernels on the device ``spirv``: sparse, quantized, and nested ones of the old layout."""

from __future__ import annotations

from collections.abc import Callable
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


def refuse_layouts(library: torch.library.Library) -> None:
    """Refuse every operation on such tensors. ``library``: one of fallbacks ("_")."""
    for key, kind in _KINDS.items():
        library.fallback(_refusal(*kind), key)


def _refusal(what: str, instead: str) -> Callable[..., Any]:
    def refuse(op: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{op.name()}: the device '{NAME}' has no kernels for {what}: {instead}")

    return refuse
