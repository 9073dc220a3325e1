"""Attention as one operation of a graph that is being traced, so that what compiles the graph calls the kernels of
attention.py. torch has one for such devices, but says that it keeps one number of each query, and the kernels keep
two."""

from __future__ import annotations

from typing import Any

import torch

from . import attention

_NAME = "triton_spirv"
_FORWARD = (
    "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float? scale) -> (Tensor, Tensor)"
)
_BACKWARD = (
    "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor out, Tensor kept, "
    "bool causal, float? scale) -> (Tensor, Tensor, Tensor)"
)

#: Kinds of calls that the kernels could not do when they ran: these have kept nothing.
_COMPOSED: set[tuple[Any, ...]] = set()


def enter_traced_attention() -> torch.library.Library:
    """Defines the operations, their results' shapes, and the gradient. The caller keeps what it gives."""
    library = torch.library.Library(_NAME, "DEF")
    library.define(_FORWARD)
    library.define(_BACKWARD)
    for name, kernel, shapes in (
        ("attention", _attention, _shapes),
        ("attention_backward", _attention_backward, _gradients_shapes),
    ):
        library.impl(name, kernel, "PrivateUse1")
        torch.library.register_fake(f"{_NAME}::{name}", shapes, lib=library)
    torch.library.register_autograd(f"{_NAME}::attention", _gradient, setup_context=_keep, lib=library)
    return library


def _kind(query: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, causal: bool) -> tuple[Any, ...]:
    mask_type = None if mask is None else mask.dtype
    return query.device, query.dtype, query.shape[3], value.shape[3], mask_type, causal


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    out, kept = attention.forward(query, key, value, mask, 0.0, causal, scale=scale)[:2]
    if not kept.numel():
        _COMPOSED.add(_kind(query, value, mask, causal))
        kept = torch.zeros(2, *query.shape[:3], dtype=torch.float32, device=query.device)
    return out, kept


def _shapes(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    return attention.empty_result(query, value), query.new_empty((2, *query.shape[:3]), dtype=torch.float32)


def _attention_backward(
    grad: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    out: torch.Tensor,
    kept: torch.Tensor,
    causal: bool,
    scale: float | None,
) -> tuple[torch.Tensor, ...]:
    if _kind(query, value, mask, causal) in _COMPOSED:
        kept = kept.new_empty(0)
    of = attention.attention_of(query, key, value, mask, causal, scale)
    return attention.backward(grad, of, out, kept, [True, True, True])


def _gradients_shapes(
    grad: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any
) -> tuple[torch.Tensor, ...]:
    return tuple(t.new_empty(t.shape) for t in (query, key, value))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    query, key, value, mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, mask, *output)


def _gradient(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    of = torch.ops.triton_spirv.attention_backward(grad, *ctx.saved_tensors, ctx.causal, ctx.scale)
    return *of, None, None, None
