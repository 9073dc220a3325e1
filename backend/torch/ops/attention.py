"""scaled_dot_product_attention by kernels that never store the matrix of scores (FlashAttention-2), and its gradient.

torch decides for a device from outside its tree in C++ alone, so its composite is entered anew: what the kernels do
goes through torch's operation for such devices, whose gradient torch knows; the rest is composed, as torch does it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad
from triton.runtime.errors import OutOfResources

from ..device.tensor_memory import empty
from . import attention_products
from .attention_kernels import forward_kernel, key_kernel, query_kernel
from .attention_products import Attention
from .device_facts import kind_of
from .dtypes import OnHost, require
from .launching import launch
from .library import ON_DEVICE, aten, enter_by_name
from .prepared import prepared
from .reducing import SUM, reduce
from .strided_shapes import power_of_two

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_Optional = Tensor | None
_log = logging.getLogger(__package__)
#: Numbers of a query and of a value are at most so many: a tile of them is kept in shared memory.
_WIDEST = 128
#: Whether a CPU's driver is given the kernels, too: it compiles each for seconds, which is not made up for.
COMPILED_FOR_CPUS = False
_LOG2_E = 1.4426950408889634
#: Tensors of a graph that is being traced.
_TRACED: frozenset[type] = frozenset({FakeTensor, FunctionalTensor})
#: Whether the CPU's kernel takes one batch, and one head of keys for all: since torch 2.14.
_BROADCASTS = torch.__version__ >= "2.14"


def enter_attention(library: torch.library.Library) -> None:
    """Enter torch's composite and the operation of its kernels."""
    enter_by_name(library, _TABLE)
    again = prepared(_attention)

    def attention(*args: Any, **kwargs: Any) -> Any:
        return (again if _gives_values_alone(args) else _attention)(*args, **kwargs)

    for key in ("PrivateUse1", "AutogradPrivateUse1"):
        library.impl("scaled_dot_product_attention", attention, key)
    ON_DEVICE["scaled_dot_product_attention"] = _attention


def _gives_values_alone(args: tuple[Any, ...]) -> bool:
    """Whether nothing but the result is wanted of a call: no gradients, no tangents, and no mode that sees the
    operations within it."""
    if torch.is_grad_enabled() and any([isinstance(one, Tensor) and one.requires_grad for one in args]):
        return False
    return forward_ad._current_level < 0 and not torch._C._len_torch_dispatch_stack()


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: _Optional = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """aten::scaled_dot_product_attention. What the CPU has a kernel for lies in memory as its queries do, as there and
    with CUDA; what torch composes is contiguous."""
    _validate(query, key, value, attn_mask, dropout_p)
    as_queries = not dropout_p and _is_one_kernel_of_torch(query, key, value, attn_mask, enable_gqa)
    if not _fits(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        if attn_mask is not None and attn_mask.dtype == torch.bool:  # torch's composite of the rest would add it
            bias = torch.zeros_like(attn_mask, dtype=query.dtype)
            attn_mask = bias.masked_fill_(attn_mask.logical_not(), float("-inf"))
        composed = aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
        return _laid_out(composed, _order(query)) if as_queries else composed
    lead = query.shape[:-2]
    if key.shape[:-2] != lead:
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    q, k, v = (_of_four(t) for t in (query, key, value))
    if attn_mask is not None:
        attn_mask = _of_four(attn_mask.expand(*lead, query.shape[-2], key.shape[-2]))
    if _is_traced(q):
        out = torch.ops.triton_spirv.attention(q, k, v, attn_mask, is_causal, scale)[0]
    elif _gives_values_alone((q, k, v)) and not any(t is not None and t.is_neg() for t in (q, k, v, attn_mask)):
        out = _forward(attention_of(q, k, v, attn_mask, is_causal, scale))[0]
    else:
        fused = aten._scaled_dot_product_fused_attention_overrideable
        out = fused(q, k, v, attn_mask, 0.0, is_causal, False, scale=scale)[0]
    out = out if len(lead) == 2 else out.view(*lead, *out.shape[-2:])
    return out if as_queries else out.contiguous()


def _validate(query: Tensor, key: Tensor, value: Tensor, mask: _Optional, dropout: float) -> None:
    """Raises RuntimeError for what torch's own kernels refuse (validate_sdpa_input in attention.cpp)."""
    where = "scaled_dot_product_attention"
    if not query.dtype == key.dtype == value.dtype:
        kinds = f"query.dtype: {query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype}"
        raise RuntimeError(f"{where}: Expected query, key, and value to have the same dtype, but got {kinds} instead.")
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(f"{where}: query, key and value must have two dimensions or more")
    if mask is not None and mask.dtype not in (torch.bool, torch.float32, query.dtype):
        raise RuntimeError(
            f"{where}: Expected attn_mask dtype to be bool or float or to match query dtype, but got {mask.dtype} and "
            f"{query.dtype} instead."
        )
    if mask is not None and mask.dim() < 2:
        raise RuntimeError(f"{where}: attn_mask must have two dimensions or more, but has {mask.dim()}")
    if not 0 <= dropout <= 1:
        raise RuntimeError(f"{where}: dropout probability has to be between 0 and 1, but got {dropout}")


def _is_one_kernel_of_torch(query: Tensor, key: Tensor, value: Tensor, mask: _Optional, shared: bool) -> bool:
    """Whether the CPU does a call without dropout by its one kernel (sdp::use_flash_attention_cpp)."""
    dims = query.dim(), key.dim(), value.dim()
    if dims not in ((4, 4, 4), (3, 3, 3) if _BROADCASTS else ()) or (mask is not None and mask.requires_grad):
        return False
    one_for_all = shared or (_BROADCASTS and key.shape[-3] == 1)
    heads = key.shape[-3] == value.shape[-3] and (one_for_all or key.shape[-3] == query.shape[-3])
    widths = query.shape[-1] == key.shape[-1] == value.shape[-1]
    rows = query.stride(-1) == key.stride(-1) == value.stride(-1) == 1
    return heads and widths and rows and bool(query.shape[-2] and key.shape[-2])


def _order(tensor: Tensor) -> list[int]:
    """Dimensions as they lie in memory, the outermost first."""
    steps = torch.empty_like(tensor, device="meta").stride()  # those that are expanded lie where they would
    return sorted(range(tensor.dim()), key=lambda d: steps[d], reverse=True)


def _laid_out(tensor: Tensor, order: list[int]) -> Tensor:
    return tensor.permute(order).contiguous().permute([order.index(d) for d in range(tensor.dim())])


def _of_four(tensor: Tensor) -> Tensor:
    """(B, H, rows, columns) of (…, rows, columns)."""
    dims = tensor.dim()
    if dims == 4:
        return tensor
    return tensor[(None,) * (4 - dims)] if dims < 4 else tensor.flatten(0, -4)


def _fits(
    query: Tensor, key: Tensor, value: Tensor, mask: _Optional, dropout: float, causal: bool, shared: bool
) -> bool:
    """Whether the kernels do it: the rest is composed, what torch refuses among it. What is traced for a CPU's driver
    is composed, too, so that what compiles it sees the operations, and so is all within a level of forward-mode
    differentiation, for which torch has no formula of the kernels' operation."""
    tensors, where = [t for t in (query, key, value, mask) if t is not None], query.device
    kinds = {*map(type, tensors)} - {Tensor, torch.nn.Parameter}
    if dropout or forward_ad._current_level >= 0 or (kinds and (_by_products(query) or not kinds <= _TRACED)):
        return False
    if any([t.device != where or t.dim() < 2 or not 0 < t.numel() < 2**31 for t in tensors]):
        return False
    if query.dtype not in _TYPES or key.dtype != query.dtype or value.dtype != query.dtype:
        return False
    q, k, v = query.shape, key.shape, value.shape
    if not len(q) == len(k) == len(v) <= 4 or k[:-1] != v[:-1] or k[-1] != q[-1]:
        return False
    if k[:-2] != q[:-2] and not (shared and len(q) > 3 and k[:-3] == q[:-3] and not q[-3] % k[-3]):
        return False
    if not _sizes_fit(query, key, value):
        return False
    if mask is None:
        return True
    shape = *query.shape[:-1], key.shape[-2]
    known = mask.dtype in (torch.bool, query.dtype) and not mask.requires_grad
    return known and not causal and mask.dim() <= query.dim() and _expands(mask.shape, shape)


def _is_traced(tensor: Tensor) -> bool:
    return type(tensor) in _TRACED


def _sizes_fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    if _by_products(query):
        return attention_products.fits(_of_four(query), _of_four(key))
    return max(query.shape[-1], value.shape[-1]) <= _WIDEST


def _by_products(query: Tensor) -> bool:
    """Whether attention is composed of matrix products on the device (attention_products.py)."""
    return _on_cpu(query) and not COMPILED_FOR_CPUS


def _on_cpu(tensor: Tensor) -> bool:
    return kind_of(tensor.device.index or 0).cpu


def _expands(shape: Sequence[int], to: Sequence[int]) -> bool:
    return all(one in (1, other) for one, other in zip(reversed(shape), reversed(to), strict=False))


def attention_of(
    query: Tensor, key: Tensor, value: Tensor, mask: _Optional = None, causal: bool = False, scale: float | None = None
) -> Attention:
    """What attention is of, with torch's own scale where there is none."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    return Attention(query, key, value, mask, causal, factor)


def _sizes(of: Attention, o: Tensor) -> dict[str, Any]:
    """Sizes and strides that all kernels have; ``o`` has the result's shape. Raises OnHost."""
    q, k, v, mask = of.query, of.key, of.value, of.mask
    for tensor in (q, k, v, o):
        require(tensor.dtype, q.device.index or 0)
        if tensor.dtype not in _TYPES or tensor.dtype != q.dtype or tensor.dim() != 4:
            raise OnHost("attention of other types")
    if not of.scale > 0:
        raise OnHost("a scale of attention that is not positive")
    sizes: dict[str, Any] = {"H": q.shape[1], "M": q.shape[2], "N": k.shape[2], "D": q.shape[3], "E": v.shape[3]}
    sizes["scale"] = of.scale * _LOG2_E
    if mask is not None and mask.shape != (*q.shape[:3], k.shape[2]):
        mask = mask.expand(*q.shape[:3], k.shape[2])
    steps = (0, 0, 0, 0) if mask is None else mask.stride()
    for name, axes, strides in (("q", "bhmd", q.stride()), ("k", "bhnd", k.stride()), ("v", "bhne", v.stride())):
        sizes |= {f"stride_{name}{axis}": step for axis, step in zip(axes, strides, strict=True)}
    sizes |= {f"stride_o{axis}": step for axis, step in zip("bhme", o.stride(), strict=True)}
    sizes |= {f"stride_m{axis}": step for axis, step in zip("bhmn", steps, strict=True)}
    return sizes


@dataclass(frozen=True, slots=True)
class Blocks:
    """Queries and keys of a tile, and the warps of a program."""

    queries: int
    keys: int
    warps: int = 4


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of the kernels for one kind of multiplication and width of heads: forward, and of the gradients of queries,
    and of keys and values."""

    forward: Blocks
    of_queries: Blocks
    of_keys: Blocks


#: By whether queries or values have more than 64 numbers. An H100 takes, for causal attention of fp32, in ms:
#:
#: - (16, 16, 1024, 64): forward 1.39 (1.54 by 32×32).
#: - (4, 16, 1024, 64): queries' gradient 1.06 (1.12 to 1.75 by seven others); keys' and values' 0.86 (0.94 to 1.83 by
#:   sixteen others, 1.22 of them by 32×32 and 4 warps).
#: - (4, 8, 1024, 128): forward 0.47 (0.61 by 32×32); queries' gradient 0.91 (1.28 to 2.41 by seven others); keys' and
#:   values' 0.95 (1.29 to 3.11 by nine others).
#:
#: On its matrix units bf16 takes, causal and not, in ms:
#:
#: - (16, 16, 2048, 64): forward 0.71, 1.25 (0.78 to 0.87, 1.24 to 1.47 by six others); queries' gradient 0.86, 1.44
#:   (0.89 to 1.03, 1.53 to 1.69 by five others); keys' and values' 1.34, 2.33 (1.27 to 1.47, 2.26 to 2.59 by five
#:   others; 32×128, the fastest of fp16, leaves AMD's GPUs little shared memory).
#: - (8, 16, 2048, 128): forward 0.74, 1.16 (0.83 to 1.50, 1.23 to 2.66 by four others); queries' gradient 0.88, 1.49
#:   (0.92 to 3.26, 1.50 to 5.96 by six others); keys' and values' 1.25, 2.14 (1.28 to 6.86, 2.16 to 11.9 by five
#:   others; 1.52, 2.62 in a launch for each).
ON_CPU = {wide: Tiles(Blocks(16, 16), Blocks(16, 16), Blocks(16, 16)) for wide in (False, True)}
ON_GPU = {
    False: Tiles(Blocks(64, 64, 8), Blocks(64, 64, 8), Blocks(64, 32, 8)),
    True: Tiles(Blocks(64, 32, 8), Blocks(64, 32, 8), Blocks(32, 32, 8)),
}
ON_MATRIX_UNITS = {
    False: Tiles(Blocks(128, 64), Blocks(128, 32), Blocks(64, 64)),
    True: Tiles(Blocks(128, 64, 8), Blocks(128, 64, 8), Blocks(64, 128, 8)),
}
#: Arguments whose multiples of 16 make wider accesses: widths, and the columns of a mask.
_DIVISIBLE = {False: frozenset("DE"), True: frozenset("NDE")}


def _tiles(of: Attention) -> Tiles:
    """The device's tiles for these queries and values."""
    on = kind_of(of.query.device.index or 0)
    tiles = ON_CPU if on.cpu else ON_MATRIX_UNITS if on.multiplies(of.query.dtype) else ON_GPU
    return tiles[max(of.query.shape[3], of.value.shape[3]) > 64]


def _launch(kernel: Any, of: Attention, tile: Blocks, arguments: dict[str, Any]) -> None:
    """A kernel over all heads; of tiles of keys if that is the ``key_kernel``, and else of queries."""
    q, v = of.query, of.value
    widths = [max(16, power_of_two(t.shape[3])) for t in (q, v)]
    blocks = {"BM": tile.queries, "BN": tile.keys, "BD": widths[0], "BE": widths[1]}
    extents = zip((q.shape[2], v.shape[2], q.shape[3], v.shape[3]), blocks.values(), strict=True)
    whole = not _on_cpu(q) and not any(extent % size for extent, size in extents)
    constants = {"CAUSAL": of.causal, "MASK": of.kind, "WHOLE": whole, **blocks}
    programs = -(-v.shape[2] // tile.keys) if kernel is key_kernel else -(-q.shape[2] // tile.queries)
    grid = programs, q.shape[0] * q.shape[1], 1
    launch(kernel, grid, arguments, constants, tile.warps, fusion=True, divisible=_DIVISIBLE[of.mask is not None])


def empty_result(query: Tensor, value: Tensor) -> Tensor:
    """What attention of (B, H, rows, columns) writes, in the order of its queries."""
    if value.shape[3] == query.shape[3]:
        plain = type(query) is Tensor and query.is_contiguous()
        return empty(query.shape, dtype=query.dtype, device=query.device) if plain else torch.empty_like(query)
    shape = *query.shape[:3], value.shape[3]
    return torch.empty_permuted(shape, _order(query), dtype=query.dtype, device=query.device)


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: _Optional = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """torch's operation for devices like this one, of (B, H, rows, columns)."""
    if dropout_p:
        raise RuntimeError(
            "attention with dropout has no kernel on this device: scaled_dot_product_attention composes it"
        )
    out, kept = _forward(attention_of(query, key, value, attn_bias, is_causal, scale))
    none = query.new_empty(0)
    seed = torch.empty((), dtype=torch.int64, device=query.device)
    return out, none if kept is None else kept, none, none, query.shape[2], key.shape[2], seed, seed, none


def _forward(of: Attention) -> tuple[Tensor, _Optional]:
    """The result, and what _forward_kernel() gives where that made it."""
    out = empty_result(of.query, of.value)
    try:
        if not _by_products(of.query):
            return out, _forward_kernel(of, out)
        attention_products.forward(of, out)
    except (OnHost, OutOfResources) as reason:
        _log.debug("attention is composed: %s", reason)
        out.copy_(attention_products.composed(of))
    return out, None


def _forward_kernel(of: Attention, out: Tensor) -> Tensor:
    """Writes ``out``; of each query the greatest score and the reciprocal of the sum of its exponentials,
    (2, B, H, rows)."""
    sizes, tiles = _sizes(of, out), _tiles(of)
    kept = torch.empty(2, *of.query.shape[:3], dtype=torch.float32, device=of.query.device)
    outputs = {"out": out, "tops": kept[0], "shares": kept[1]}
    _launch(forward_kernel, of, tiles.forward, {**outputs, **_inputs(of), **sizes})
    return kept


def _inputs(of: Attention) -> dict[str, Tensor]:
    """Tensors that all kernels read; one without a mask reads none of it."""
    return {"q": of.query, "k": of.key, "v": of.value, "mask": of.query if of.mask is None else of.mask}


def _backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: _Optional,
    grad_input_mask: list[bool],
    out: Tensor,
    logsumexp: Tensor,
    *how: Any,
    scale: float | None = None,
) -> tuple[_Optional, ...]:
    """Gradients of query, key and value; that of a mask is refused, as scaled_dot_product_attention composes those.
    ``how``: cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset."""
    if grad_input_mask[3]:
        raise RuntimeError("the gradient of an attention mask has no kernel on this device")
    mask = attn_bias if attn_bias is not None and attn_bias.numel() else None
    of = attention_of(query, key, value, mask, how[5], scale)
    return *backward(grad_out, of, out, logsumexp, grad_input_mask), None


def backward(grad: Tensor, of: Attention, out: Tensor, kept: Tensor, wanted: list[bool]) -> tuple[Tensor, ...]:
    """Gradients of query, key and value, those that are ``wanted``; ``kept`` is what forward() gave, without elements
    where it was composed."""
    try:
        if _by_products(of.query):
            return attention_products.backward(grad, of)
        if kept.numel():
            return _backward_kernels(grad, of, out, kept, wanted)
    except (OnHost, OutOfResources) as reason:
        _log.debug("gradients of attention are composed: %s", reason)
    return attention_products.composed_gradients(grad, of)


def _backward_kernels(grad: Tensor, of: Attention, out: Tensor, kept: Tensor, wanted: list[bool]) -> tuple[Tensor, ...]:
    """Those of query, key and value; ``kept`` is what _forward_kernel() gave."""
    sizes, tiles = _sizes(of, grad), _tiles(of)
    delta = reduce("a * b", SUM, {"a": grad, "b": out}, (3,), dtype=torch.float32)
    dq, dk, dv = (torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (of.query, of.key, of.value))
    inputs = {**_inputs(of), "do": grad, "tops": kept[0], "shares": kept[1], "delta": delta, **sizes}
    inputs["factor"] = of.scale
    if wanted[0]:
        _launch(query_kernel, of, tiles.of_queries, {"dq": dq, **inputs})
    if wanted[1] or wanted[2]:
        _launch(key_kernel, of, tiles.of_keys, {"dk": dk, "dv": dv, **inputs})
    return dq, dk, dv


_TABLE: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_fused_attention_overrideable": forward,
    "_scaled_dot_product_fused_attention_overrideable_backward": _backward,
}
