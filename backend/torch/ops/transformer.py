"""torch's one operation for a whole layer of nn.TransformerEncoder, and for nn.MultiheadAttention, in inference.

nn.TransformerEncoderLayer calls them outside of training, where no gradient is asked for. Here they are what the layer
does in training: products, attention and norms, each of which is on the device.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

_Optional = torch.Tensor | None


def _encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: _Optional = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """aten::_transformer_encoder_layer_fwd, of (batch, length, ``embed_dim``)."""

    def attended(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (_heads(part, num_heads) for part in F.linear(x, qkv_weight, qkv_bias).chunk(3, -1))
        out = F.scaled_dot_product_attention(q, k, v, _added(mask, mask_type, q, k))
        return F.linear(out.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def fed_forward(x: torch.Tensor) -> torch.Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    def first(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(first(src))
        return x + fed_forward(second(x))
    x = first(src + attended(src))
    return second(x + fed_forward(x))


def _multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: _Optional = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, _Optional]:
    """aten::_native_multi_head_attention, of (batch, length, ``embed_dim``): (results, weights, if they are needed, of
    (batch, heads, length, length of keys), or their mean over the heads)."""
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (_heads(F.linear(x, weight, bias), num_head) for x, weight, bias in parts)
    added = _added(mask, mask_type, q, k)
    weights = None
    if need_weights:
        scores = torch.matmul(q, k.mT) * (1 / math.sqrt(q.shape[-1]))
        weights = torch.softmax(scores if added is None else scores + added, -1)
        out = torch.matmul(weights, v)
    else:
        out = F.scaled_dot_product_attention(q, k, v, added)
    out = F.linear(out.transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return out, weights.mean(1) if weights is not None and average_attn_weights else weights


def _heads(x: torch.Tensor, count: int) -> torch.Tensor:
    """(batch, heads, length, width of a head) of (batch, length, width)."""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def _added(mask: _Optional, mask_type: int | None, q: torch.Tensor, k: torch.Tensor) -> _Optional:
    """What is added to the scores. ``mask_type``: 0 is of (queries, keys), 1 of (batch, keys), 2 of all dimensions."""
    if mask is None:
        return None
    if mask_type == 1:
        mask = mask.view(k.shape[0], 1, 1, k.shape[2])
    if mask.dtype == torch.bool:  # where it is true, nothing is seen
        mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(mask, float("-inf"))
    return mask.to(q.dtype).expand(*q.shape[:3], k.shape[2])


def _is_left_aligned(_: torch.Tensor, mask: torch.Tensor) -> bool:
    """aten::_nested_tensor_from_mask_left_aligned: whether nn.TransformerEncoder may make a nested tensor, of which the
    device has none."""
    return False


TABLE: dict[str, Any] = {
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "_native_multi_head_attention": _multi_head_attention,
    "_nested_tensor_from_mask_left_aligned": _is_left_aligned,
}
