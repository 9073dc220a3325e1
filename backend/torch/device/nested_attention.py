"""Attention of jagged nested tensors: each sequence by itself. torch's own composition goes by nested tensors of
``layout=torch.strided``, which have no kernels on the device (torch_refusals.py)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.nn import functional

from ...autoload.after_import import after_import
from ...runtime import NAME

_NAME = "jagged_scaled_dot_product_attention"
_VIEW = "nested_view_from_values_offsets_lengths"


def teach_nested_attention() -> None:
    """Makes torch's attention of jagged tensors the one here, for tensors of the device, once torch has its own."""
    after_import("torch.nested._internal.ops", _install)


def _install(module: ModuleType) -> None:
    if hasattr(module, _NAME):
        setattr(module, _NAME, _by_sequence(getattr(module, _NAME)))


def _by_sequence(torchs: Callable[..., Any]) -> Callable[..., Any]:
    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        """torch.nn.functional.scaled_dot_product_attention() of tensors (B, …, j, D), with j a sequence's length. What
        is not of that form is torch's own, which refuses it or does without nested tensors."""
        every = query, key, value
        jagged = all(_is_jagged(one) and one.dim() == query.dim() for one in every)
        if not jagged or attn_mask is not None or len({one.size(0) for one in every}) != 1:
            return torchs(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        parts = [
            functional.scaled_dot_product_attention(
                q, k, v, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
            )
            for q, k, v in zip(_sequences(query), _sequences(key), _sequences(value), strict=True)
        ]
        from torch.nested._internal import nested_tensor

        return getattr(nested_tensor, _VIEW)(
            torch.cat(parts, -2),
            query.offsets(),
            None,
            ragged_idx=query._ragged_idx,
            min_seqlen=query._maybe_min_seqlen,
            max_seqlen=query._maybe_max_seqlen,
        )

    return attention


def _is_jagged(tensor: Any) -> bool:
    """Whether it is a nested tensor of the device without gaps, whose sequences are the last dimension but one."""
    return (
        getattr(tensor, "layout", None) == torch.jagged
        and tensor.device.type == NAME
        and tensor._ragged_idx == tensor.dim() - 2
        and tensor.lengths() is None
        and tensor.size(0) > 0
        and not torch.compiler.is_compiling()
    )


def _sequences(tensor: Any) -> list[torch.Tensor]:
    """(…, length, D) of each sequence."""
    ends = tensor.offsets().tolist()
    return [*tensor.values().split([end - start for start, end in zip(ends, ends[1:], strict=False)], -2)]
