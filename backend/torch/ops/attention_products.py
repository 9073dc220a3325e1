"""scaled_dot_product_attention as matrix products, with one kernel for the weights between them, and its gradient.

For devices that compile the kernels of attention.py slowly. The scores, which are stored, are of float32, as are the
products, whatever type the queries have.
"""

from __future__ import annotations

from typing import Any

import torch

from . import rows
from .matmul import product
from .types import OnHost

_Optional = torch.Tensor | None
#: Scores to weights; a query that looks nowhere has none.
_SEEN = {
    "none": "score = score * scale\n",
    "bias": "score = score * scale + mask_\n",
    "bool": "score = tl.where(mask_ != 0, score * scale, float('-inf'))\n",
}
_CAUSAL = "score = tl.where(column <= row % queries, score, float('-inf'))\n"
_WEIGHTS = """top = fn.row_greatest(score, mask)
base = tl.where(top == float("-inf"), 0.0, top)
weight = tl.exp(score - base)
total = fn.row_sum(weight, mask)
weight = weight * (1 / tl.where(total == 0, 1.0, total))
"""
_GRADIENTS = _WEIGHTS + "out = weight * (grad - fn.row_sum(weight * grad, mask))"


def fits(query: torch.Tensor, key: torch.Tensor) -> bool:
    """Whether a query's scores, of (B, H, rows, columns), fit a kernel."""
    return rows.fits(torch.Size((*query.shape[:3], key.shape[2])), (3,))


def _require_float32(tensor: torch.Tensor) -> None:
    if tensor.dtype == torch.float64:
        raise OnHost("scores of float64")


def _scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    out = torch.empty((*q.shape[:3], k.shape[2]), dtype=torch.float32, device=q.device)
    return product(out, q, k.transpose(2, 3))


def _weigh(
    text: str, outputs: dict[str, torch.Tensor], operands: dict[str, Any], mask: _Optional, causal: bool, scale: float
) -> None:
    """Run ``text`` of each query's scores."""
    kind = "none" if mask is None else "bool" if mask.dtype == torch.bool else "bias"
    given = {**operands, "scale": scale} | ({} if mask is None else {"mask_": mask})
    counts = {"queries": operands["score"].shape[2]}
    rows.run(_SEEN[kind] + (_CAUSAL if causal else "") + text, outputs, given, (3,), torch.float32, counts)


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: _Optional, causal: bool, scale: float, out: torch.Tensor
) -> None:
    """Writes ``out`` (B, H, rows, columns). Raises OnHost for float64."""
    _require_float32(q)
    q, k, v = (tensor.float() for tensor in (q, k, v))
    scores = _scores(q, k)
    weights = torch.empty_like(scores)
    _weigh(_WEIGHTS, {"weight": weights}, {"score": scores}, mask, causal, scale)
    result = out if out.dtype == torch.float32 else torch.empty_like(out, dtype=torch.float32)
    product(result, weights, v)
    if result is not out:
        out.copy_(result)


def backward(
    grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: _Optional, causal: bool, scale: float
) -> tuple[torch.Tensor, ...]:
    """Gradients of q, k and v, in their type. Raises OnHost for float64."""
    _require_float32(q)
    kind = q.dtype
    q, k, v, grad = (tensor.float() for tensor in (q, k, v, grad))
    scores = _scores(q, k)
    of_weights = product(torch.empty_like(scores), grad, v.transpose(2, 3))
    outs = {"out": torch.empty_like(scores), "weight": torch.empty_like(scores)}
    operands = {"score": scores, "grad": of_weights}
    _weigh(_GRADIENTS, outs, operands, mask, causal, scale)
    of_scores, weights = outs.values()
    dq, dk, dv = (torch.empty(t.shape, dtype=torch.float32, device=t.device) for t in (q, k, v))
    product(dq, of_scores, k, alpha=scale)
    product(dk, of_scores.transpose(2, 3), q, alpha=scale)
    product(dv, weights.transpose(2, 3), grad)
    return tuple(tensor.to(kind) for tensor in (dq, dk, dv))


def composed(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: _Optional, causal: bool, scale: float
) -> torch.Tensor:
    """(B, H, rows, columns) by torch's operations, each of which runs where it can: for what no kernel here does."""
    weights = _composed_weights(q, k, mask, causal, scale)
    return (weights @ v.to(weights.dtype)).to(q.dtype)


def composed_gradients(
    grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: _Optional, causal: bool, scale: float
) -> tuple[torch.Tensor, ...]:
    """Gradients of q, k and v of ``composed``, in their type."""
    kind, weights = q.dtype, _composed_weights(q, k, mask, causal, scale)
    q, k, v, grad = (tensor.to(weights.dtype) for tensor in (q, k, v, grad))
    of_weights = grad @ v.transpose(2, 3)
    of_scores = weights * (of_weights - (weights * of_weights).sum(3, keepdim=True)) * scale
    gradients = of_scores @ k, of_scores.transpose(2, 3) @ q, weights.transpose(2, 3) @ grad
    return tuple(tensor.to(kind) for tensor in gradients)


def _composed_weights(q: torch.Tensor, k: torch.Tensor, mask: _Optional, causal: bool, scale: float) -> torch.Tensor:
    kind = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(kind) @ k.to(kind).transpose(2, 3) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    if causal:
        above = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(above, float("-inf"))
    nowhere = scores.amax(3, keepdim=True) == float("-inf")
    return scores.softmax(3).masked_fill(nowhere, 0)
