"""Copies between types and strides, fills, and operations that put tensors together.

Copies of one type move integers of the elements' size, so that every bit pattern arrives as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..device import tensor_memory
from ..device.native_module import torch_native
from . import elementwise
from .dtypes import NAMES, OnHost, as_integer, computed_in
from .elementwise import Body, numbers_along
from .library import aten, enter_by_name
from .pointwise import number, of_type, output_strides, single
from .splitting import parts, split
from .strided_shapes import distance, overlap, resized

COPY = Body.of("self")
_FILL = Body.of("value")


def enter_movement(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)
    tensor_memory.KERNELS.update(copy=_copy, fill=_fill)


def _copy(self: torch.Tensor, dst: torch.Tensor) -> bool:
    try:
        copied(self, dst)
    except OnHost:
        return False
    return True


def copied(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """Copy on one device, with a kernel. Raises OnHost."""
    if self.is_conj() and not dst.is_conj() and self.dtype == dst.dtype and not self.is_neg():
        return aten.conj_physical.out(torch._conj(self), out=dst)
    if self.is_neg() or self.is_conj() or dst.is_neg() or dst.is_conj() or self._is_zerotensor():
        raise OnHost("a pending change of sign")
    if self.dtype == dst.dtype:
        kind = as_integer(self.dtype)
        elementwise.run(COPY, {"out": retyped(dst, kind)}, {"self": retyped(self, kind)}, kind)
        return dst
    if self.dtype not in NAMES or dst.dtype not in NAMES:
        raise OnHost("complex numbers")
    compute = self.dtype if self.dtype != torch.bool else torch.int8
    elementwise.run(COPY, {"out": dst}, {"self": self}, computed_in(compute))
    return dst


def retyped(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor's memory as of another type of the same size."""
    if tensor.dtype == dtype:
        return tensor
    return tensor_memory.metadata(aten.view.dtype)(tensor, dtype)


_WHERE_COMPLEX = Body(
    "out_re = tl.where(condition != 0, self_re, other_re)\nout_im = tl.where(condition != 0, self_im, other_im)",
    frozenset(("condition",)),
)


def _fill(self: torch.Tensor, value: Any) -> bool:
    if not isinstance(value, (bool, int, float)) or self.dtype not in NAMES:
        return False
    compute = computed_in(self.dtype)
    try:
        value = number(bool(value) if self.dtype == torch.bool else value, compute)
        elementwise.run(_FILL, {"out": self}, {"value": value}, compute)
    except OnHost:
        return False
    return True


def _fill_tensor(self: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    if value.dim():
        raise OnHost("a value with dimensions")
    if value.device.type == "cpu":
        return self.fill_(value.item())
    return self.copy_(value)


def _cat(tensors: Sequence[torch.Tensor], dim: int = 0, *, out: torch.Tensor) -> torch.Tensor:
    if not all(torch.can_cast(tensor.dtype, out.dtype) for tensor in tensors):
        raise OnHost(f"an output of {out.dtype}")
    devices = sorted({str(tensor.device) for tensor in (*tensors, out)})
    if len(devices) > 1:
        raise RuntimeError(f"cat: all tensors have to be on one device, but there are some on {' and '.join(devices)}")
    tensors = [tensor for tensor in tensors if tensor.shape != (0,)] or list(tensors[:1])
    shape = list(tensors[0].shape)
    if not shape:
        raise OnHost("tensors without dimensions")
    is_one = -len(shape) <= dim < len(shape)
    dim %= len(shape)
    if not is_one or len({(t.dim(), *t.shape[:dim], *t.shape[dim + 1 :]) for t in tensors}) > 1:
        raise OnHost("shapes that are refused")
    shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
    resized(out, shape)
    if torch_native().overlaps_itself(out.shape, out.stride()):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    start = 0
    for tensor in _joined(tensors, dim):
        out.narrow(dim, start, tensor.shape[dim]).copy_(tensor)
        start += tensor.shape[dim]
    return out


def _joined(tensors: Sequence[torch.Tensor], dim: int) -> list[torch.Tensor]:
    """The tensors; as one those that overlap, by which prepared calls differ, and go on along ``dim``, like columns."""
    found: list[torch.Tensor] = []
    for tensor in tensors:
        last = found[-1] if found else None
        if last is None or last.dtype != tensor.dtype or not overlap(last, tensor):
            found.append(tensor)
            continue
        apart = distance(last, tensor)
        step = apart // last.shape[dim] if last.shape[dim] else 0
        like = (*(s for d, s in enumerate(tensor.stride()) if d != dim),)
        same = like == (*(s for d, s in enumerate(last.stride()) if d != dim),)
        steps = {one.stride(dim) for one in (last, tensor) if one.shape[dim] > 1}
        plain = not (last.is_neg() or last.is_conj() or tensor.is_neg() or tensor.is_conj())
        others = last.shape[:dim] == tensor.shape[:dim] and last.shape[dim + 1 :] == tensor.shape[dim + 1 :]
        if plain and same and others and step > 0 and step * last.shape[dim] == apart and steps <= {step}:
            shape = [*last.shape]
            shape[dim] += tensor.shape[dim]
            strides = [step if d == dim else stride for d, stride in enumerate(last.stride())]
            found[-1] = last.as_strided(shape, strides)
        else:
            found.append(tensor)
    return found


def _arange(start: Any, end: Any, step: Any = 1, *, out: torch.Tensor) -> torch.Tensor:
    if not out.is_contiguous():
        return _with_gaps(out, lambda fresh: _arange(start, end, step, out=fresh))
    if out.dtype not in NAMES or not step or (end - start) / step < 0:
        raise OnHost("an arange that is refused")
    whole = all(isinstance(value, int) for value in (start, end, step))
    count = -((start - end) // step) if whole else math.ceil((end - start) / step)
    resized(out, (count,))
    compute = computed_in(out.dtype)
    numbers = {"start": number(start, compute), "step": number(step, compute)}
    return _line(out, numbers, compute)


def _linspace(start: Any, end: Any, steps: int, *, out: torch.Tensor) -> torch.Tensor:
    """From both ends, as torch does, so that the last is exact."""
    if not out.dtype.is_floating_point or steps < 0 or not all(isinstance(x, (int, float)) for x in (start, end)):
        raise OnHost("a line of numbers that are not floats")
    if not out.is_contiguous():
        return _with_gaps(out, lambda fresh: _linspace(start, end, steps, out=fresh))
    resized(out, (steps,))
    compute = computed_in(out.dtype)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    numbers = {"start": number(start, compute), "end": number(end, compute), "step": number(step, compute)}
    text = "tl.where(i0 < half, start + i0.to(step.dtype) * step, end - (last - i0).to(step.dtype) * step)"
    counts = {"half": max(steps // 2, 1), "last": steps - 1}
    elementwise.run(Body.of(text), {"out": out}, numbers, compute, counts)
    return out


def _logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: torch.Tensor) -> torch.Tensor:
    if out.dtype not in (torch.float32, torch.float64):
        raise OnHost("powers that are not floats")
    exponents = _linspace(start, end, steps, out=out.new_empty(0))
    return resized(out, exponents.shape).copy_(torch.pow(base, exponents))


def _with_gaps(out: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """What ``make`` writes to a contiguous tensor in one that is not."""
    made = make(out.new_empty(0))
    return resized(out, made.shape).copy_(made)


def _line(out: torch.Tensor, numbers: dict[str, Any], compute: torch.dtype) -> torch.Tensor:
    elementwise.run(Body.of("start + i0.to(step.dtype) * step"), {"out": out}, numbers, compute)
    return out


def _masked_fill(self: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        if value.dim():
            raise OnHost("a value with dimensions")
        value = single(value) if value.device.type == "cpu" else value
    if mask.dtype != torch.bool:
        raise OnHost("a mask that is not bool")
    if self.dim() < mask.dim() or torch.broadcast_shapes(self.shape, mask.shape) != self.shape:
        raise OnHost("a mask that is not broadcast to the tensor")
    if self.dtype.is_complex:
        for name, part in zip(("value_re", "value_im"), parts(self), strict=True):
            _masked_fill(part, mask, split({"value": value})[name])
        return self
    compute = computed_in(self.dtype)
    value = value if isinstance(value, torch.Tensor) else number(value, compute)
    body = Body.of("tl.where(mask_, value, self)", "mask_")
    elementwise.run(body, {"out": self}, {"mask_": mask, "value": value, "self": self}, compute)
    return self


def where(condition: torch.Tensor, self: Any, other: Any, out: torch.Tensor | None = None) -> torch.Tensor:
    """aten::where.self."""
    if condition.dtype not in (torch.bool, torch.uint8):
        raise OnHost("a condition that is not bool")
    operands = [single(t) if t.device.type == "cpu" else t for t in (self, other)]
    dtype = torch.result_type(*operands)
    if condition.device.type == "cpu":
        raise OnHost("a condition on the CPU")
    shape = torch.broadcast_shapes(condition.shape, self.shape, other.shape)
    if out is None:
        strides = output_strides([t for t in (condition, self, other) if t.device.type != "cpu"], shape)
        out = torch.empty_strided(shape, strides, dtype=dtype, device=condition.device)
    elif out.dtype != dtype:
        raise OnHost("an output of another type")
    else:
        resized(out, shape)
    if dtype.is_complex:
        outs = dict(zip(("out_re", "out_im"), parts(out), strict=True))
        given = split({"self": operands[0], "other": operands[1]})
        elementwise.run(_WHERE_COMPLEX, outs, {"condition": condition, **given}, outs["out_re"].dtype)
        return out
    compute = computed_in(dtype)
    values = [value if isinstance(value, torch.Tensor) else number(value, compute) for value in operands]
    body = Body.of("tl.where(condition != 0, self, other)", "condition")
    elementwise.run(
        body, {"out": out}, dict(zip(("condition", "self", "other"), (condition, *values), strict=True)), compute
    )
    return out


def _triangle(keep: str) -> Callable[..., torch.Tensor]:
    def tril(self: torch.Tensor, diagonal: int = 0, *, out: torch.Tensor) -> torch.Tensor:
        if self.dim() < 2:
            raise OnHost("dimensions that are refused")
        of_type(out, self.dtype, self.shape)
        if self.is_complex():
            for part, result in zip(parts(self.resolve_conj().resolve_neg()), parts(out), strict=True):
                tril(part, diagonal, out=result)
            return out
        if not out.numel():
            return out
        compute = computed_in(self.dtype)
        zero = "0.0" if compute.is_floating_point else "0"
        text = f"out = tl.where(column_ - row_ {keep} diagonal, self, {zero})"
        body = Body(text, numbered=frozenset(("row_", "column_")))
        operands = {"self": self, "row_": numbers_along(-2, out), "column_": numbers_along(-1, out)}
        elementwise.run(body, {"out": out}, operands, compute, {"diagonal": diagonal})
        return out

    return tril


def _zeros(size: Sequence[int], *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """aten::_efficientzerotensor, with memory: a tangent that is 0."""
    return torch.zeros(size, dtype=dtype, device=device)


_TABLE: dict[str, Callable[..., Any]] = {
    "_efficientzerotensor": _zeros,
    "fill_.Tensor": _fill_tensor,
    "cat.out": _cat,
    "narrow_copy.out": lambda self, dim, start, length: self.narrow(dim, start, length),
    "arange.start_out": _arange,
    "linspace.out": _linspace,
    "logspace.out": _logspace,
    "masked_fill_.Scalar masked_fill_.Tensor": _masked_fill,
    "where.self where.self_out": where,
    "tril.out": _triangle("<="),
    "triu.out": _triangle(">="),
}
