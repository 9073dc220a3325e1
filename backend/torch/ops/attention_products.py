"""scaled_dot_product_attention as matrix products, with one kernel for the weights between them, and its gradient.

For devices that compile the kernels of attention.py slowly. The scores, which are stored, are of float32, as are the
products, whatever type the queries have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..device.tensor_memory import empty
from . import rows
from .dtypes import OnHost
from .matmul import product

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


@dataclass(frozen=True, slots=True)
class Attention:
    """What attention is computed of: ``query``, ``key`` and ``value`` of (B, H, rows, columns); a ``mask`` of Booleans,
    or of numbers to add to the scores, or None; whether it is ``causal``; the ``scale`` of the scores."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    causal: bool
    scale: float

    @property
    def kind(self) -> str:
        """The kind of the mask."""
        return "none" if self.mask is None else "bool" if self.mask.dtype == torch.bool else "bias"

    def inputs(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Query, key and value in this type."""
        given = self.query, self.key, self.value
        return given if self.query.dtype == dtype else (given[0].to(dtype), given[1].to(dtype), given[2].to(dtype))


def fits(query: torch.Tensor, key: torch.Tensor) -> bool:
    """Whether a query's scores, of (B, H, rows, columns), fit a kernel."""
    return rows.fits(torch.Size((*query.shape[:3], key.shape[2])), (3,))


def _require_float32(tensor: torch.Tensor) -> None:
    if tensor.dtype == torch.float64:
        raise OnHost("scores of float64")


def _scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    out = empty((*q.shape[:3], k.shape[2]), dtype=torch.float32, device=q.device)
    return product(out, q, k.transpose(2, 3))


def _weigh(text: str, outputs: dict[str, torch.Tensor], operands: dict[str, Any], of: Attention) -> None:
    """Run ``text`` of each query's scores."""
    given = {**operands, "scale": of.scale} | ({} if of.mask is None else {"mask_": of.mask})
    counts = {"queries": operands["score"].shape[2]}
    rows.run(_SEEN[of.kind] + (_CAUSAL if of.causal else "") + text, outputs, given, (3,), torch.float32, counts)


def forward(of: Attention, out: torch.Tensor) -> None:
    """Writes ``out`` (B, H, rows, columns). Raises OnHost for float64."""
    _require_float32(of.query)
    q, k, v = of.inputs(torch.float32)
    scores = _scores(q, k)
    weights = empty(scores.shape, dtype=torch.float32, device=scores.device)
    _weigh(_WEIGHTS, {"weight": weights}, {"score": scores}, of)
    result = out if out.dtype == torch.float32 else torch.empty_like(out, dtype=torch.float32)
    product(result, weights, v)
    if result is not out:
        out.copy_(result)


def backward(grad: torch.Tensor, of: Attention) -> tuple[torch.Tensor, ...]:
    """Gradients of query, key and value, in their type. Raises OnHost for float64."""
    _require_float32(of.query)
    q, k, v = of.inputs(torch.float32)
    grad = grad.float()
    scores = _scores(q, k)
    of_weights = product(torch.empty_like(scores), grad, v.transpose(2, 3))
    outs = {"out": torch.empty_like(scores), "weight": torch.empty_like(scores)}
    _weigh(_GRADIENTS, outs, {"score": scores, "grad": of_weights}, of)
    of_scores, weights = outs.values()
    dq, dk, dv = (torch.empty(t.shape, dtype=torch.float32, device=t.device) for t in (q, k, v))
    product(dq, of_scores, k, alpha=of.scale)
    product(dk, of_scores.transpose(2, 3), q, alpha=of.scale)
    product(dv, weights.transpose(2, 3), grad)
    return tuple(tensor.to(of.query.dtype) for tensor in (dq, dk, dv))


def composed(of: Attention) -> torch.Tensor:
    """(B, H, rows, columns) by torch's operations, each of which runs where it can: for what no kernel here does."""
    weights = _composed_weights(of)
    return (weights @ of.value.to(weights.dtype)).to(of.query.dtype)


def composed_gradients(grad: torch.Tensor, of: Attention) -> tuple[torch.Tensor, ...]:
    """Gradients of query, key and value of ``composed``, in their type."""
    weights = _composed_weights(of)
    q, k, v = of.inputs(weights.dtype)
    grad = grad.to(weights.dtype)
    of_weights = grad @ v.transpose(2, 3)
    of_scores = weights * (of_weights - (weights * of_weights).sum(3, keepdim=True)) * of.scale
    gradients = of_scores @ k, of_scores.transpose(2, 3) @ q, weights.transpose(2, 3) @ grad
    return tuple(tensor.to(of.query.dtype) for tensor in gradients)


def _composed_weights(of: Attention) -> torch.Tensor:
    kind = torch.promote_types(of.query.dtype, torch.float32)
    scores = of.query.to(kind) @ of.key.to(kind).transpose(2, 3) * of.scale
    if of.mask is not None:
        scores = scores.masked_fill(~of.mask, float("-inf")) if of.kind == "bool" else scores + of.mask
    if of.causal:
        above = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(above, float("-inf"))
    nowhere = scores.amax(3, keepdim=True) == float("-inf")
    return scores.softmax(3).masked_fill(nowhere, 0)
