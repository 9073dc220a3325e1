"""Reading and writing at indices that are in memory: gather, scatter, index_select, embedding, index and index_put.

Each is an elementwise kernel of its indices, in which the indexed tensor is a place: its view with a stride of 0 in the
indexed dimension, to which the kernel adds index times stride.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .bounds import CHECK, CHECK_WRAPPED, LARGE_CLASS, NEGATIVE_CLASS, fault_of
from .dtypes import NAMES, OnHost, adds_wide, as_integer, computed_in, require
from .elementwise import Body, numbers_along, run
from .library import aten, composition
from .movement import retyped
from .pointwise import of_type
from .selection import masked_select, places
from .splitting import parts
from .strided_shapes import overlap

_INDICES = (torch.int64, torch.int32)
#: The type in which numbers of others are added up at indices, by atomic additions: sums of halves are rounded once.
_ADDED_IN = {torch.float32: torch.float32, torch.float16: torch.float32, torch.bfloat16: torch.float32}
_ADDED_IN |= dict.fromkeys((torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool), torch.int32)
_ADDED_IN |= {torch.int64: torch.int64, torch.float64: torch.float64}
_PLACES = frozenset(("self", "fault"))
_composed = composition(aten.index.Tensor)
_GATHER = Body(CHECK + "out = tl.load(self + index * step + zero, mask=mask)", frozenset(("index",)), _PLACES)
_STORED = frozenset(("index", "source"))
_SCATTER = Body(
    CHECK + "tl.store(self + index * step + zero, source.to(self.dtype.element_ty), mask=mask & (bad == 0))",
    _STORED,
    _PLACES,
)
_FILL = Body(_SCATTER.text.replace(CHECK, CHECK_WRAPPED), _STORED, _PLACES)
_ADD = Body(
    CHECK + "use = mask & (bad == 0)\n"
    'tl.atomic_add(self + index * step + zero, source + zero.to(source.dtype), mask=use, sem="relaxed")',
    frozenset(("index",)),
    _PLACES,
)
_EMBEDDING = Body(
    CHECK + "use = mask & (bad == 0) & (index != padding)\n"
    'tl.atomic_add(self + index * step + zero, source + zero.to(source.dtype), mask=use, sem="relaxed")',
    frozenset(("index",)),
    _PLACES,
)
_ONE_HOT = Body(
    f"tl.store(fault + zero, {NEGATIVE_CLASS}, mask=mask & (index < 0))\n"
    f"tl.store(fault + zero, {LARGE_CLASS}, mask=mask & (index >= classes))\n"
    "out = (index == class_).to(tl.int64)",
    places=frozenset(("fault",)),
    numbered=frozenset(("class_",)),
)


def flat(tensor: Tensor, dim: int, shape: Sequence[int]) -> Tensor:
    """The tensor as of ``shape``, whose elements along ``dim`` are all the first."""
    strides = [0 if d == dim else stride for d, stride in enumerate(tensor.stride())]
    return tensor.as_strided(list(shape), strides)


def check_index(index: Tensor, tensor: Tensor) -> None:
    """Raises OnHost unless it is of integers, on the tensor's device."""
    if index.dtype not in _INDICES or index.device != tensor.device:
        raise OnHost("an index of another type or device")


def lines_of(*tensors: Tensor) -> list[Tensor]:
    """The tensors, each without dimensions seen as one of one element."""
    return [tensor if tensor.dim() else tensor.view(1) for tensor in tensors]


def fitting(dim: int, index: Tensor, self: Tensor, *sources: Tensor) -> int:
    """``dim`` from 0 on. Raises OnHost for one that is none, and for an index that is larger than ``self`` in another
    dimension, or than a source in any."""
    wanted, size, *others = (tuple(tensor.shape) or (1,) for tensor in (index, self, *sources))
    if not -len(size) <= dim < len(size):
        raise OnHost("a dimension that is refused")
    at = dim % len(size)
    limits = (*size[:at], *wanted[at : at + 1], *size[at + 1 :]), *others
    if index.numel() and any(len(each) != len(wanted) or any(map(operator.gt, wanted, each)) for each in limits):
        raise OnHost("an index of another shape")
    return at


def _line(tensor: Tensor, dim: int) -> dict[str, int]:
    return {"step": tensor.stride(dim), "size": tensor.shape[dim]}


def _gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor) -> Tensor:
    check_index(index, self)
    at = fitting(dim, index, self)
    of_type(out, self.dtype, index.shape)
    source, places, result = lines_of(self, index, out)
    if not source.numel() and places.numel():
        raise OnHost("an index into nothing")
    if places.numel():
        _read("gather", source, at, places, result)
    return out


def _read(name: str, self: Tensor, dim: int, index: Tensor, out: Tensor) -> None:
    """out[…, i, …] = self[…, index, …], the index having or broadcasting to the shape of ``out``."""
    kind = as_integer(self.dtype)
    source, fault = retyped(flat(self, dim, out.shape), kind), fault_of(self.device, name)
    operands = {"index": index, "self": source, "fault": fault}
    run(_GATHER, {"out": retyped(out, kind)}, operands, kind, _line(self, dim))


def _index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    check_index(index, self)
    if index.dim() > 1 or not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
        raise OnHost("an index of several dimensions")
    (source,) = lines_of(self)
    dim %= source.dim()
    shape = list(source.shape)
    shape[dim] = index.numel()
    out = self.new_empty(shape)
    if not source.numel() and out.numel():
        raise OnHost("an index into nothing")
    if out.numel():
        _read("index_select", source, dim, index.view(-1, *(1,) * (source.dim() - 1 - dim)), out)
    if self.dim() or index.numel() == 1:
        return out if self.dim() else out.view(())
    raise OnHost("several elements of one")


def added_in(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """The type in which numbers are added up at indices. Raises OnHost if the device has no such additions."""
    kind = _ADDED_IN.get(dtype)
    if kind is None or (kind.itemsize == 8 and not adds_wide(device.index or 0)):
        raise OnHost(f"atomic additions of {dtype}")
    require(kind, device.index or 0)
    return kind


def added_at(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor, body: Body = _ADD, **more: int) -> None:
    """self[…, index, …] += source: ``source`` has the shape, the index broadcasts to it."""
    place = self.to(added_in(self.dtype, self.device))
    fault = fault_of(self.device, name)
    operands = {"index": index, "source": source, "self": flat(place, dim, source.shape), "fault": fault}
    run(body, {}, operands, place.dtype, {**_line(place, dim), **more})
    if place is not self:
        self.copy_(place)


def _in_pairs(self: Tensor, dim: int, out: Tensor, source: Tensor) -> tuple[Any, ...]:
    """(``out``, which has the numbers of ``self`` then, the dimension, ``source``): with the parts of each complex
    number in a last dimension. Raises OnHost for outputs and sources of another type."""
    if source.dtype != self.dtype:
        raise OnHost("numbers of two types")
    parts(self)
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    lines = lines_of(out, source.resolve_conj().resolve_neg())
    whole, given = map(torch.view_as_real, lines)
    return whole, dim % lines[0].dim(), given


def _of_pairs(index: Tensor) -> Tensor:
    """The index of an element for both of its parts."""
    (line,) = lines_of(index)
    return line[..., None].expand(*line.shape, 2)


def _scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor) -> Tensor:
    check_index(index, self)
    dim = fitting(dim, index, self, src)
    if self.is_complex():
        pairs, dim, given = _in_pairs(self, dim, out, src)
        pairs.scatter_add_(dim, _of_pairs(index), given)
        return out
    if src.dtype != self.dtype:
        raise OnHost("tensors of two types")
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    if index.numel():
        place, index, src = lines_of(out, index, src)
        added_at("scatter_add", place, dim, index, src[tuple(slice(n) for n in index.shape)])
    return out


def _scatter(self: Tensor, dim: int, index: Tensor, source: Any, *, out: Tensor) -> Tensor:
    check_index(index, self)
    dim = fitting(dim, index, self, *(source,) * isinstance(source, Tensor))
    if self.is_complex():
        if not isinstance(source, Tensor):
            source = torch.full((), source, dtype=self.dtype, device=self.device).expand(index.shape)
        pairs, dim, given = _in_pairs(self, dim, out, source)
        pairs.scatter_(dim, _of_pairs(index), given)
        return out
    if self.dtype not in NAMES:
        raise OnHost("complex numbers")
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    if not isinstance(source, Tensor):
        source = torch.full((), source, dtype=self.dtype, device=self.device)
    elif source.dtype != self.dtype:
        raise OnHost("a source of another type")
    if not index.numel():
        return out
    source = source.expand(index.shape) if not source.dim() else source[tuple(slice(n) for n in index.shape)]
    place, index, source = lines_of(out, index, source)
    operands = {"index": index, "source": source, "self": flat(place, dim, index.shape)}
    operands["fault"] = fault_of(self.device, "scatter")
    run(_SCATTER, {}, operands, computed_in(self.dtype), _line(place, dim))
    return out


def _index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, out: Tensor) -> Tensor:
    check_index(index, self)
    if self.is_complex():
        along(self, dim, index, source)
        pairs, dim, given = _in_pairs(self, dim, out, source * alpha if alpha != 1 else source)
        pairs.index_add_(dim, index, given)
        return out
    if source.dtype != self.dtype:
        raise OnHost("tensors of two types")
    along(self, dim, index, source)
    if alpha != 1:
        source = source * torch.scalar_tensor(alpha, dtype=self.dtype, device="cpu").item()
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    place, source = lines_of(out, source)
    dim %= place.dim()
    if source.numel():
        added_at("index_add", place, dim, index.view(-1, *(1,) * (place.dim() - 1 - dim)), source)
    return out


def along(self: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Raises OnHost unless ``source`` has the shape of ``self`` with as many elements along ``dim`` as there are
    indices, which are in a line."""
    if index.dim() > 1 or source.dim() != self.dim() or not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
        raise OnHost("shapes that are refused")
    source, target = lines_of(source, self)
    shape = list(target.shape)
    shape[dim] = index.numel()
    if list(source.shape) != shape:
        raise OnHost("shapes that are refused")


def _put_along(body: Body, name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """self[…, index, …] = source, which is broadcast to that."""
    check_index(index, self)
    if index.dim() > 1 or self.dtype not in NAMES or not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
        raise OnHost("an index that is refused, or complex numbers")
    (place,) = lines_of(self)
    dim %= place.dim()
    shape = list(place.shape)
    shape[dim] = index.numel()
    if index.numel() and self.numel():
        line = index.view(-1, *(1,) * (place.dim() - 1 - dim))
        operands = {"index": line, "source": source.expand(shape), "self": flat(place, dim, shape)}
        operands["fault"] = fault_of(self.device, name)
        run(body, {}, operands, computed_in(self.dtype), _line(place, dim))
    return self


def _index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor) -> Tensor:
    if source.dtype != self.dtype or source.device != self.device or index.dtype != torch.int64:
        raise OnHost("a source of another type or device, or an index of another type")
    check_index(index, self)
    along(self, dim, index, source)
    if self.is_complex():
        pairs, dim, given = _in_pairs(self, dim, out, source)
        pairs.index_copy_(dim, index, given)
        return out
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    return _put_along(_SCATTER, "index_copy", out, dim, index, source)


def _index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if index.dtype != torch.int64:
        raise OnHost("an index of another type")
    if self.is_complex() and not (isinstance(value, Tensor) and value.dim()):
        number = complex(value)
        for part, filled in zip(map(lines_of, parts(self)), (number.real, number.imag), strict=True):
            part[0].index_fill_(dim, index, filled)
        return self
    if isinstance(value, Tensor):
        if value.dim() or value.dtype.is_complex:
            raise OnHost("a value with dimensions, or complex")
        value = value.to(self.device, self.dtype)
    elif isinstance(value, complex):
        raise OnHost("a complex value")
    else:
        value = torch.full((), value, dtype=self.dtype, device=self.device)
    return _put_along(_FILL, "index_fill", self, dim, index, value)


def lines_added(name: str, total: Tensor, index: Tensor, rows: Tensor, padding: int) -> None:
    """total[index] += rows, of a matrix and a line of indices, except for those that are ``padding``."""
    added_at(name, total, 0, index.view(-1, 1), rows, _EMBEDDING, padding=padding)


def by_frequency(name: str, rows: Tensor, index: Tensor, count: int) -> Tensor:
    """Each row divided by how often there is its index, in a line of those below ``count``."""
    often = torch.zeros(count, dtype=torch.int32, device=rows.device)
    added_at(name, often, 0, index, torch.ones_like(index, dtype=torch.int32))
    return rows / often.gather(0, index.to(torch.int64)).clamp_(min=1)[:, None]


def _embedding_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    check_index(indices, grad_output)
    if not grad_output.dtype.is_floating_point:
        raise OnHost("gradients that are not floats")
    width, kind = grad_output.shape[-1], added_in(grad_output.dtype, grad_output.device)
    total = torch.zeros(num_weights, width, dtype=kind, device=grad_output.device)
    line, rows = indices.reshape(-1), grad_output.reshape(-1, width)
    rows = by_frequency("embedding", rows, line, num_weights) if scale_grad_by_freq else rows
    lines_added("embedding", total, line, rows, padding_idx)
    return total.to(grad_output.dtype)


# ---- index and index_put -----------------------------------------------------------------------------------------


def _without_masks(self: Tensor, indices: Sequence[Any]) -> list[Any]:
    """The indices, where a mask stands for the indices of its True elements."""
    result: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in (torch.bool, torch.uint8):
            result.append(index)
            continue
        at = len(result)
        if index.shape != self.shape[at : at + index.dim()] or index.device != self.device:
            raise OnHost("a mask that is refused")
        if not index.dim():
            raise OnHost("a mask without dimensions")
        result += list(places(index).unbind(1))
    return result


def _indexed(self: Tensor, indices: Sequence[Any]) -> tuple[Tensor, dict[str, Any], dict[str, int], str]:
    """(the view of ``self`` with a stride of 0 in what is indexed, index operands, their integers, lines that add up
    the offset). Raises OnHost for masks."""
    given = {dim: index for dim, index in enumerate(indices) if index is not None}
    if not given:
        raise OnHost("no index")
    for index in given.values():
        check_index(index, self)
    together = torch.broadcast_shapes(*(index.shape for index in given.values()))
    dims = sorted(given)
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    before = list(range(dims[0])) if adjacent else []
    after = [d for d in range(self.dim()) if d not in given and d not in before]
    shape = [self.shape[d] for d in before] + list(together) + [self.shape[d] for d in after]
    strides = [self.stride(d) for d in before] + [0] * len(together) + [self.stride(d) for d in after]
    operands: dict[str, Any] = {}
    counts: dict[str, int] = {}
    lines = ["offset = zero.to(tl.int64)"]
    for d, index in given.items():
        operands[f"index{d}"] = index.expand(together).view(*together, *(1,) * len(after)) if after else index
        counts |= {f"step{d}": self.stride(d), f"size{d}_": self.shape[d]}
        lines += [f"index = index{d}", f"size = size{d}_", *CHECK_WRAPPED.splitlines()]
        lines.append(f"offset += tl.where(bad, 0, index * step{d})")
        lines.append(f"wrong = bad + zero{' + wrong' if d != dims[0] else ''}")
    return self.as_strided(shape, strides), operands, counts, "\n".join(lines) + "\n"


def _index_or_select(self: Tensor, indices: Sequence[Any]) -> Tensor:
    """aten::index, which a mask of all elements makes masked_select."""
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == torch.bool and mask.dim() and mask.shape == self.shape:
        return masked_select(self, mask)
    return _composed(self, indices)


def _index(self: Tensor, indices: Sequence[Any], *, out: Tensor) -> Tensor:
    indices = _without_masks(self, indices)
    place, operands, counts, lines = _indexed(self, indices)
    of_type(out, self.dtype, place.shape)
    kind = as_integer(self.dtype)
    body = Body(lines + "out = tl.load(self + offset, mask=mask)", frozenset(operands), _PLACES)
    operands |= {"self": retyped(place, kind), "fault": fault_of(self.device, "index")}
    run(body, {"out": retyped(out, kind)}, operands, kind, counts)
    return out


def _index_put(
    self: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    masks = [index for index in indices if index is not None]
    if len(masks) == 1 and masks[0].dtype == torch.bool and values.numel() == 1 and not accumulate:
        if indices[0] is masks[0] and values.dtype == self.dtype and masks[0].device == self.device:
            mask = masks[0].view((*masks[0].shape, *(1,) * (self.dim() - masks[0].dim())))
            return self.masked_fill_(mask, values.view(()))
    if values.dtype != self.dtype or values.device != self.device:
        raise OnHost("values of another type or device")
    if overlap(values, self):
        values = values.clone()
    if self.is_complex():
        for part, value in zip(parts(self), parts(values.resolve_conj().resolve_neg()), strict=True):
            _index_put(part, indices, value, accumulate)
        return self
    if self.dtype not in NAMES:
        raise OnHost(f"values of {self.dtype}")
    target = self.to(added_in(self.dtype, self.device)) if accumulate else self
    place, operands, counts, lines = _indexed(target, _without_masks(self, indices))
    action = (
        "source = source + zero.to(source.dtype)\n"
        'tl.atomic_add(self + offset, source, mask=mask & (wrong == 0), sem="relaxed")'
    )
    if not accumulate:
        action = "tl.store(self + offset, source.to(self.dtype.element_ty), mask=mask & (wrong == 0))"
    body = Body(lines + action, frozenset(operands), _PLACES)
    operands |= {"source": values.expand(place.shape), "self": place, "fault": fault_of(self.device, "index_put")}
    run(body, {}, operands, computed_in(target.dtype), counts)
    if target is not self:
        self.copy_(target)
    return self


def _one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """aten::one_hot, whose classes are checked by its kernel."""
    if self.dtype != torch.int64 or not self.numel() or num_classes < 1 and num_classes != -1:
        raise OnHost("classes that are refused, or none")
    if num_classes == -1:
        num_classes = max(int(self.max()) + 1, 1)
    out = torch.empty((*self.shape, num_classes), dtype=torch.int64, device=self.device)
    operands = {
        "index": self.unsqueeze(-1),
        "class_": numbers_along(-1, out),
        "fault": fault_of(self.device, "one_hot"),
    }
    run(_ONE_HOT, {"out": out}, operands, torch.int64, {"classes": num_classes})
    return out


TABLE: dict[str, Callable[..., Any]] = {
    "gather.out": _gather,
    "one_hot": _one_hot,
    "index_select": _index_select,
    "scatter_add.out": _scatter_add,
    "scatter.src_out scatter.value_out": _scatter,
    "index_add.out": _index_add,
    "index_copy.out": _index_copy,
    "index_fill_.int_Scalar index_fill_.int_Tensor": _index_fill,
    "embedding_dense_backward": _embedding_backward,
    "index.Tensor": _index_or_select,
    "index.Tensor_out": _index,
    "_index_put_impl_": _index_put,
}
