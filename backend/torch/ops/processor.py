"""Operations that torch's own kernels do where the device is the processor, on its memory (device/cpu_fallback.py).

They are those whose kernels here, which GPUs need, took much more than the time of torch's: what is a library's there
(LAPACK, MKL's transforms, double precision, complex numbers), what depends on values, and what only moves elements. To
get there takes 30 µs, or 3 to 5 as a prepared call, so that an operation which is faster here for some has a condition.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import torch

from ... import runtime
from ...settings import TORCH_COMPILED
from ..device.cpu_fallback import by_torchs_kernel
from ..device.tensor_memory import context_of, is_ours, shares_host_memory
from . import prepared
from .expressions import POWERS

#: Of the first tensor among an operation's arguments, and of all arguments that have no name.
_Condition = Callable[[torch.Tensor, tuple[Any, ...]], bool]


def _always(x: torch.Tensor, args: tuple[Any, ...]) -> bool:
    return True


def _elements(least: int, most: int = 2**62) -> _Condition:
    return lambda x, args: least <= x.numel() <= most


def _convolves(x: torch.Tensor, args: tuple[Any, ...]) -> bool:
    """Whether (image, weights, bias, stride …) have so many products that the way to torch's is worth it. Windows of
    one element are products of matrices, which are faster here."""
    image, weights, _, stride, *_, groups = args
    if x.dtype not in fast_types():
        return False
    each = image.numel() // max(1, image.shape[1] * prod(stride)) * weights.numel()
    return each >= (100_000 if groups > 1 else 3_000_000 if prod(weights.shape[2:]) > 1 else 2**62)


@functools.cache
def fast_types() -> tuple[torch.dtype, ...]:
    """The types that torch has products of for this processor: those of bfloat16 it adds up one at a time elsewhere."""
    has_bfloat16 = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return (torch.float32, torch.bfloat16) if has_bfloat16 else (torch.float32,)


def _along(last: bool, least: int, place: int = 1) -> _Condition:
    """Whether an operation is along the last dimension, or along another one, of so many elements; ``place``: of the
    dimension's number among its arguments."""
    return lambda x, args: x.numel() >= least and (args[place] % max(1, x.dim()) == x.dim() - 1) == last


def _is_general(x: torch.Tensor, args: tuple[Any, ...]) -> bool:
    simple = len(args) > 1 and isinstance(args[1], (int, float)) and float(args[1]) in POWERS
    return x.is_complex() or (x.is_floating_point() and x.numel() >= 1 << 13 and not simple)


def _has_mask(x: torch.Tensor, args: tuple[Any, ...]) -> bool:
    return x.numel() <= _FEW and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])


def _has_short_rows(x: torch.Tensor, args: tuple[Any, ...]) -> bool:
    """Whether few elements lie together, and the next ones of the copy elsewhere: windows of a line, parts of rows."""
    is_cut = x.dim() > 1 and x.stride(-1) == 1 < x.shape[-1] <= 64 and x.stride(-2) != x.shape[-1]
    return is_cut and x.numel() >= 1 << 13


def _joins(x: torch.Tensor, args: tuple[Any, ...]) -> bool:
    """Whether the tensors are as many as prepared calls may have, and in the order of memory, as torch turns no tiles.
    Of less than four elements in a row each, such as stack's last dimension, torch copies one by one."""
    rows = prod(x.shape[: args[1] % max(1, x.dim())]) if len(args) > 1 else 1
    many = sum(one.numel() for one in args[0]) >= max(_MANY, 4 * len(args[0]) * rows)
    return many and len(args[0]) <= 16 and all(one.is_contiguous() for one in args[0])


#: Elements of a result from which torch's way pays where both only move them.
_MANY = 1 << 15
#: Of more elements that are looked at, a kernel without a branch for each is faster.
_FEW = 1 << 16

_CONDITIONS: dict[str, _Condition] = {
    "_fft_c2c _fft_c2r _fft_r2c": _elements(1),  # of none MKL has an error
    "_linalg_solve_ex linalg_inv_ex linalg_lu": lambda x, args: x.shape[-1] >= 32,
    "_linalg_det _linalg_slogdet": _elements(1 << 9),
    "mm bmm addmm baddbmm": lambda x, args: (
        x.is_complex() or (x.dtype in (torch.float64, torch.int64) and args[-1].numel() >= 1 << 11)
    ),
    "convolution": _convolves,
    "mkldnn_rnn_layer mkldnn_rnn_layer_backward": _always,
    "convolution_backward": lambda x, args: _convolves(x, args[1:-1]),
    "pow": _is_general,
    "add sub mul div neg reciprocal eq ne sgn conj_physical sum mean prod": lambda x, args: x.is_complex(),
    "cumsum": lambda x, args: x.is_complex() or (not x.is_floating_point() and _along(True, 1 << 11)(x, args)),
    "_cummax_helper _cummin_helper": _along(True, 1 << 16, place=3),
    "_softmax _log_softmax": _along(False, 1 << 13),
    "index_select": lambda x, a: x.dim() > 0 and x.numel() * a[2].numel() >= _MANY * x.shape[a[1] % x.dim()] > 0,
    "cat": _joins,
    "native_group_norm": lambda x, args: x.numel() >= (1 << 12 if args[1] is not None else 1 << 14),
    "native_group_norm_backward": lambda x, args: x.numel() >= 1 << 12 and all(args[-1]),
    "gather": _along(True, 1 << 13),
    "clone": _has_short_rows,
    "flip": lambda x, args: x.numel() >= (1 << 12 if {-1, x.dim() - 1} & {*args[1]} else 1 << 16),
    "upsample_bilinear2d_backward": _elements(1 << 16),
    "erfinv special_ndtri": _always,
    "reflection_pad2d reflection_pad3d replication_pad2d replication_pad3d": _elements(1 << 16),
    "upsample_bilinear2d": _elements(1 << 12),
    "grid_sampler_2d": _elements(1 << 10),
    "_adaptive_avg_pool2d": _elements(1 << 15),
    "sort": lambda x, args: max(x.shape, default=0) > 8192,
    # Of equal numbers, which are many in 16 bits, the first are found here, as on CUDA; torch's finds any.
    "topk": lambda x, args: x.dtype.itemsize > 2 and x.numel() >= 256,
    "median nanmedian": lambda x, args: len(args) == 1 and x.numel() >= 64,
    "_unique2 unique_consecutive bincount repeat_interleave index_reduce histc": _always,
    "scatter_reduce": lambda x, args: args[4] != "sum",
    "nonzero masked_select": _elements(0, _FEW),
    "index": _has_mask,
}
_TABLE = {name: condition for names, condition in _CONDITIONS.items() for name in names.split()}


def is_torchs(x: torch.Tensor) -> bool:
    """Whether torch's own kernels may have it in place. A graph captures launches alone."""
    context = context_of(x)
    return shares_host_memory(context) and not TORCH_COMPILED.get() and runtime.capturing(context) is None


def or_torchs(op: torch._ops.OpOverload, run: Callable[..., Any]) -> Callable[..., Any]:
    """``run``, or torch's kernel for the calls that are torch's."""
    condition = _TABLE.get(op._schema.name.partition("::")[2].removesuffix("_"))
    if condition is None:
        return run

    @functools.wraps(run)
    def either(*args: Any, **kwargs: Any) -> Any:
        x = next((one for arg in args for one in (arg if type(arg) is list else (arg,)) if is_ours(one)), None)
        if x is None or not condition(x, args) or not is_torchs(x):
            return run(*args, **kwargs)
        try:
            result = by_torchs_kernel(op, *args, **kwargs)
        except NotImplementedError:  # of this type of elements; nothing was written
            return run(*args, **kwargs)
        prepared.note_torchs_kernel(op, args, result)
        return result

    return either
