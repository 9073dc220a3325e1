"""Norms of all tensors of a list by two kernels: of each program's elements, and of each tensor's programs.

torch.nn.utils.clip_grad_norm_ is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from . import lists
from .dtypes import IN_SOURCE, NAMES, OnHost, computed_in
from .elementwise import TILE, Body
from .prepared import tensors_like

#: Order → (what an element gives, what a block gives together, how blocks are added up, the norm).
_ORDERS: dict[float, tuple[str, str, str, str]] = {
    1.0: ("tl.abs(self)", "tl.sum(x, 0)", "x + part", "acc"),
    2.0: ("self * self", "tl.sum(x, 0)", "x + part", "libdevice.sqrt(acc)"),
    math.inf: ("tl.abs(self)", "tl.reduce(x, 0, fn.maximum)", "fn.maximum(x, part)", "acc"),
}
#: Where programs' results and their places are kept, by device, type and sizes of the tensors: a step has them again.
_scratch: dict[Any, dict[str, torch.Tensor]] = {}
_KEPT = 64


def norms(self: Sequence[torch.Tensor], ord: Any = 2, dtype: torch.dtype | None = None) -> list[torch.Tensor]:
    """aten::_foreach_norm: a norm of each tensor, without a copy to the host."""
    try:
        return _together(list(self), float(ord), dtype)
    except OnHost:
        return [torch.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in self]


def _together(tensors: list[torch.Tensor], order: float, dtype: torch.dtype | None) -> list[torch.Tensor]:
    kind, device = tensors[0].dtype, tensors[0].device
    if order not in _ORDERS or not kind.is_floating_point or dtype not in (None, kind) or len(tensors) < 2:
        raise OnHost("norms that are done one by one")
    elements = [tensor.numel() for tensor in tensors]
    if not all(elements) or any(tensor.dtype != kind for tensor in tensors):
        raise OnHost("lists of several types, or with empty tensors")
    compute = computed_in(kind)
    element, together, fold, finish = _ORDERS[order]
    sizes = tuple(-(-count // TILE) for count in elements)
    kept = _kept(sizes, compute, device)
    scratch = {name: [tensor] * len(sizes) for name, tensor in kept.items()}
    text = f"x = tl.where(mask, {element}, 0.0)\ntl.store(partial + program, {together}, mask=there)"
    body = Body(text, places=frozenset(("partial",)))
    lists.run(body, {}, {"self": tensors, "partial": scratch["partial"]}, {}, compute)
    text = f"""x = tl.zeros([{TILE}], {IN_SOURCE[NAMES[compute]]})
size = tl.load(counts + places + where)
for at in range(0, size, {TILE}):
    part = tl.load(partial + tl.load(counts + where) + at + i0, mask=at + i0 < size, other=0)
    x = {fold}
acc = {together}
out = zero + {finish}"""
    # Each in memory of its own, as torch's are: what compiles for the results takes them for aligned.
    results = tensors_like([tensors[0].new_empty(())] * len(sizes))
    lists.run(Body(text, places=frozenset(scratch)), {"out": results}, scratch, {}, compute)
    return results


def _kept(sizes: tuple[int, ...], compute: torch.dtype, device: torch.device) -> dict[str, torch.Tensor]:
    """One element, where memory begins, of: "partial", all programs' results; "counts", int64, the first of each
    tensor's, then how many each has."""
    key = sizes, compute, device
    if key not in _scratch:
        if len(_scratch) >= _KEPT:
            _scratch.clear()
        counts = torch.tensor(sizes, dtype=torch.int64)
        places = torch.cat((counts.cumsum(0) - counts, counts)).to(device)
        _scratch[key] = {"partial": torch.empty(sum(sizes), dtype=compute, device=device)[:1], "counts": places[:1]}
    return _scratch[key]
