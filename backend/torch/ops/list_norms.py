"""Norms of all tensors of a list by two kernels: of each program's elements, and of each tensor's programs.

torch.nn.utils.clip_grad_norm_ is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from . import lists
from .dtypes import OnHost, computed_in
from .elementwise import TILE, Body
from .prepared import tensors_like
from .reducing import MAX, SUM, What, reduce_together

#: Order → (what an element gives, what a program's give together, how programs' are combined, the norm).
_ORDERS: dict[float, tuple[str, str, Any, str]] = {
    1.0: ("tl.abs(self)", "tl.sum(x, 0)", SUM, "acc"),
    2.0: ("self * self", "tl.sum(x, 0)", SUM, "libdevice.sqrt(acc)"),
    math.inf: ("tl.abs(self)", "tl.reduce(x, 0, fn.maximum)", MAX, "acc"),
}
#: Where programs' results and their places are kept, by device, type and sizes of the tensors: a step has them again.
_scratch: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}
_KEPT = 64


def norms(self: Sequence[torch.Tensor], ord: Any = 2, dtype: torch.dtype | None = None) -> list[torch.Tensor]:  # noqa: A002
    """aten::_foreach_norm: a norm of each tensor, without a copy to the host."""
    try:
        return _together(list(self), float(ord), dtype)
    except OnHost:
        return [torch.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in self]


def _together(tensors: list[torch.Tensor], order: float, dtype: torch.dtype | None) -> list[torch.Tensor]:
    kind, device = tensors[0].dtype, tensors[0].device
    if order not in _ORDERS or not kind.is_floating_point or dtype not in (None, kind) or len(tensors) < 2:
        raise OnHost("norms that are done one by one")
    if any(tensor.dtype != kind or not tensor.numel() for tensor in tensors):
        raise OnHost("lists of several types, or with empty tensors")
    compute = computed_in(kind)
    element, together, fold, finish = _ORDERS[order]
    sizes = tuple(-(-tensor.numel() // TILE) for tensor in tensors)
    partial, places = _kept(sizes, compute, device)
    text = f"x = tl.where(mask, {element}, 0.0)\ntl.store(partial + program, {together}, mask=there)"
    lists.run(
        Body(text, places=frozenset(("partial",))),
        {},
        {"self": tensors, "partial": [partial[:1]] * len(tensors)},
        {},
        compute,
    )
    load = "tl.load(partial + (begin + column) + zero, mask=mask & (column < size), other=0)"
    what = What(f"x_acc = {load}", (("acc", fold),), f"out = {finish}", frozenset(("begin", "size")), _PARTIAL)
    operands = {"begin": places[0][:, None], "size": places[1][:, None]}
    operands["partial"] = partial.as_strided((len(sizes), max(sizes)), (0, 0))
    (out,) = reduce_together(what, {"out": kind}, operands, (1,), compute)
    # Each in memory of its own, as torch's are: what compiles for the results takes them for aligned.
    parts = list(out.view(-1).unbind())
    results = tensors_like(parts)
    torch._foreach_copy_(results, parts)
    return results


_PARTIAL = frozenset(("partial",))


def _kept(sizes: tuple[int, ...], compute: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """(memory for all programs' results, int64 (first, count) of each tensor's)."""
    key = sizes, compute, device
    if key not in _scratch:
        if len(_scratch) >= _KEPT:
            _scratch.clear()
        counts = torch.tensor(sizes, dtype=torch.int64)
        places = torch.stack((counts.cumsum(0) - counts, counts)).to(device)
        _scratch[key] = torch.empty(sum(sizes), dtype=compute, device=device), places
    return _scratch[key]
