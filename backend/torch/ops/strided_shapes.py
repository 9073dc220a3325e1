"""Shapes and strides: broadcasting, what an output's strides are, and dimensions that can be walked as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import torch
import torch._prims_common.wrappers
from torch._prims_common import suggest_memory_format

from ..device.tensor_memory import extent

Dims = tuple[int, ...]
_torch: Any = torch._C
_prims: Any = torch._prims_common.wrappers
#: Whether two tensors are views of one storage.
share_memory: Callable[[torch.Tensor, torch.Tensor], bool] = _torch._is_alias_of


def broadcast(*shapes: Sequence[int]) -> torch.Size:
    """What torch.broadcast_shapes() gives, in a tenth of its time; the error of other shapes is an operation's."""
    return reduce(_torch._infer_size, shapes, torch.Size())


def expanded(shape: Sequence[int], strides: Sequence[int], to: Sequence[int]) -> Dims:
    """Strides with which an operand is read as of shape ``to``: 0 where it is repeated, and any where there is one
    element. Raises RuntimeError, as torch does, where it cannot be."""
    if shape == to:
        return tuple(strides)
    missing = len(to) - len(shape)
    if missing < 0:
        raise RuntimeError(f"a tensor of shape {list(shape)} cannot be broadcast to {list(to)}")
    result = [0] * missing
    for size, stride, wanted in zip(shape, strides, to[missing:], strict=True):
        if size != wanted and size != 1:
            raise RuntimeError(f"a tensor of shape {list(shape)} cannot be broadcast to {list(to)}")
        result.append(0 if size == 1 else stride)
    return tuple(result)


def collapsed(shape: Sequence[int], strides: Sequence[Dims]) -> tuple[Dims, list[Dims]]:
    """The tensor's elements with as few dimensions as can be, the last of which is the one that the first of the
    ``strides`` steps through fastest; and the strides of each. One element has no dimensions."""
    dims = [d for d, size in enumerate(shape) if size != 1]
    first = strides[0]
    if any([first[d] <= first[after] for d, after in pairwise(dims)]):
        dims.sort(key=lambda d: (-first[d] if first[d] else 0, *(-steps[d] for steps in strides[1:])))
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d in dims:
        size, here = shape[d], [stride[d] for stride in strides]
        if sizes and all([step[-1] == stride * size for step, stride in zip(steps, here, strict=True)]):
            sizes[-1] *= size
            for step, stride in zip(steps, here, strict=True):
                step[-1] = stride
        else:
            sizes.append(size)
            for step, stride in zip(steps, here, strict=True):
                step.append(stride)
    return tuple(sizes), [*map(tuple, steps)]


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two of its elements may share memory, so that it cannot be written in parallel."""
    if tensor.is_contiguous():
        return False
    filled = 1
    for step, count in sorted(
        (step, count) for step, count in zip(tensor.stride(), tensor.shape, strict=True) if count != 1
    ):
        if step < filled:
            return True
        filled += step * (count - 1)
    return False


def resized(out: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """``out`` with the shape of the result, as torch gives it one: with a warning where it had elements."""
    if out.shape != torch.Size(shape):
        _prims._maybe_resize_out(out, torch.Size(shape))
    return out


def empty_in_order_of(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Memory for a result of ``shape``, whose channels come last in memory where ``like`` has them last."""
    order = suggest_memory_format(like)
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=order)


def to_the_end(tensor: torch.Tensor) -> torch.Tensor:
    """All elements of its memory from its first one on, in a line."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided((size,), (1,))


def touch(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the memory between the first and the last elements of two tensors is in part the same."""
    ends = [
        (tensor.data_ptr(), tensor.data_ptr() + extent(tensor.shape, tensor.stride()) * tensor.element_size())
        for tensor in (one, other)
    ]
    return ends[0][0] < ends[1][1] and ends[1][0] < ends[0][1]


def same_view(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same elements at the same places."""
    return (
        one.data_ptr() == other.data_ptr()
        and one.stride() == other.stride()
        and one.shape == other.shape
        and one.dtype == other.dtype
    )


def power_of_two(at_least: int) -> int:
    """The smallest power of two that is not below ``at_least``, which is at least 1."""
    return 1 << (at_least - 1).bit_length()
