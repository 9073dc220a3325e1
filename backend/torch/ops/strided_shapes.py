"""Shapes and strides: broadcasting, what an output's strides are, and dimensions that can be walked as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import torch
import torch._prims_common.wrappers
from torch._prims_common import suggest_memory_format

from ..device.tensor_memory import answered_by_keys, window

Dims = tuple[int, ...]
_torch: Any = torch._C
_prims: Any = torch._prims_common.wrappers
#: Whether two tensors are views of one storage, which does not tell prepared calls apart.
_share_memory: Callable[[torch.Tensor, torch.Tensor], bool] = _torch._is_alias_of


def broadcast(*shapes: Sequence[int]) -> torch.Size:
    """What torch.broadcast_shapes() gives, in a tenth of its time; the error of other shapes is an operation's."""
    return reduce(_torch._infer_size, shapes, torch.Size())


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


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the memory between the first and the last elements of two tensors is in part the same."""
    return _share_memory(one, other) and not are_apart((one, other))


def are_apart(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether no two of the tensors overlap()."""
    windows = sorted(map(window, tensors))
    return all(start + bytes_ <= after for (start, bytes_), (after, _) in pairwise(windows))


@answered_by_keys
def distance(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many elements the first of ``other`` is behind that of ``one``, which overlap() and are of one type."""
    return (other.data_ptr() - one.data_ptr()) // one.element_size()


@answered_by_keys
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
