"""Operations that put elements elsewhere, or are a few others on views: patches of images (unfold and fold), halves of
channels (glu), shuffled channels, the identity, cross products, distances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from .dtypes import NAMES, OnHost, computed_in
from .elementwise import Body, run
from .pointwise import of_type
from .reducing import MAX, SUM, reduce
from .strided_shapes import empty_in_order_of, resized

_GLU = Body.of("fn.gated(self, gate)")
_GLU_BACKWARD = Body(
    "first = fn.gated(grad, gate)\nsecond = fn.gated(grad * self, gate) * (1 - fn.sigmoid(gate))", frozenset()
)
_PRELU_BACKWARD = Body(
    "first = tl.where(self > 0, grad, weight * grad)\nsecond = tl.where(self > 0, 0.0, self * grad)", frozenset()
)


def _floats(*tensors: Tensor) -> torch.dtype:
    """The type that is computed in. Raises OnHost except for tensors of one float type."""
    kind = tensors[0].dtype
    if not kind.is_floating_point or any(tensor.dtype != kind for tensor in tensors):
        raise OnHost("numbers that are not of one float type")
    return computed_in(kind)


# ---- Halves ------------------------------------------------------------------------------------------------------


def _halves(tensor: Tensor, dim: int) -> Sequence[Tensor]:
    if not tensor.dim() or not -tensor.dim() <= dim < tensor.dim() or tensor.shape[dim] % 2:
        raise OnHost("a dimension that is refused")
    return tensor.chunk(2, dim)


def _glu(self: Tensor, dim: int = -1, *, out: Tensor) -> Tensor:
    compute = _floats(self)
    first, gate = _halves(self, dim)
    run(_GLU, {"out": of_type(out, self.dtype, first.shape)}, {"self": first, "gate": gate}, compute)
    return out


def _glu_backward(grad_output: Tensor, self: Tensor, dim: int, *, grad_input: Tensor | None = None) -> Tensor:
    compute = _floats(grad_output, self)
    first, gate = _halves(self, dim)
    out = self.new_empty(self.shape) if grad_input is None else resized(grad_input, self.shape)
    outs = dict(zip(("first", "second"), out.chunk(2, dim), strict=True))
    run(_GLU_BACKWARD, outs, {"grad": grad_output, "self": first, "gate": gate}, compute)
    return out


def _prelu_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the input and of each element's weight, which torch sums."""
    compute = _floats(grad_output, self, weight)
    outs = {name: torch.empty_like(self) for name in ("first", "second")}
    run(_PRELU_BACKWARD, outs, {"grad": grad_output, "self": self, "weight": weight}, compute)
    return outs["first"], outs["second"]


# ---- Patches of images -------------------------------------------------------------------------------------------


def _pairs(*values: Sequence[int]) -> list[tuple[int, int]]:
    """One number stands for both dimensions."""
    if any(len(numbers) not in (1, 2) for numbers in values):
        raise OnHost("windows that are refused")
    return [(numbers[0], numbers[-1]) for numbers in values]


def _windows(size: Sequence[int], *how: Sequence[int]) -> list[int]:
    """How many windows there are in each dimension. ``how``: kernel, dilation, padding, stride."""
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, *how, strict=True)]
    if min(counts) < 1:
        raise OnHost("windows that are refused")
    return counts


def _patches(padded: Tensor, counts: list[int], *how: Sequence[int]) -> Tensor:
    """The view (N, C, kernel …, counts …) of padded images (N, C, H, W)."""
    kernel, dilation, _, stride = how
    batch, channels, down, right = padded.stride()
    steps = (batch, channels, down * dilation[0], right * dilation[1], down * stride[0], right * stride[1])
    return padded.as_strided((*padded.shape[:2], *kernel, *counts), steps)


def _unfold(
    self: Tensor, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """aten::im2col: (N, C kernel, windows) of (N, C, H, W)."""
    kernel_size, dilation, padding, stride = how = _pairs(kernel_size, dilation, padding, stride)
    if self.dim() not in (3, 4) or any(min(values) < 0 for values in how) or not self.shape[-3:].numel():
        raise OnHost("images or windows that are refused")
    if not all((*kernel_size, *dilation, *stride)):
        raise OnHost("windows that are refused")
    x = self if self.dim() == 4 else self[None]
    counts = _windows(x.shape[2:], *how)
    padded = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0])) if any(padding) else x
    shape = (x.shape[0], x.shape[1] * kernel_size[0] * kernel_size[1], counts[0] * counts[1])
    out = _patches(padded, counts, *how).reshape(shape)
    return out if self.dim() == 4 else out[0]


def _fold(
    self: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """aten::col2im: (N, C, H, W), the sums of what unfolding had taken from each place."""
    output_size, kernel_size, dilation, padding, stride = _pairs(output_size, kernel_size, dilation, padding, stride)
    how = kernel_size, dilation, padding, stride
    if self.dim() not in (2, 3) or not self.shape[-2:].numel():
        raise OnHost("patches or windows that are refused")
    if not all((*kernel_size, *dilation, *stride)):
        raise OnHost("windows that are refused")
    x = self if self.dim() == 3 else self[None]
    counts, window = _windows(output_size, *how), kernel_size[0] * kernel_size[1]
    if x.shape[1] % window or x.shape[2] != counts[0] * counts[1] or self.dtype not in NAMES:
        raise OnHost("patches that are refused")
    size = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    total = torch.zeros(x.shape[0], x.shape[1] // window, *size, dtype=self.dtype, device=self.device)
    target = _patches(total, counts, *how)
    source = (
        x.view(x.shape[0], x.shape[1] // window, *kernel_size, *counts)
        if x.is_contiguous()
        else x.reshape(target.shape)
    )
    for i in range(kernel_size[0]):
        for j in range(kernel_size[1]):
            target[:, :, i, j].add_(source[:, :, i, j])
    out = total[:, :, padding[0] : size[0] - padding[0], padding[1] : size[1] - padding[1]].contiguous()
    return out if self.dim() == 3 else out[0]


# ---- Others ------------------------------------------------------------------------------------------------------


def _pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    """Channels of which each makes a pixel of an image that is so many times larger in both directions."""
    factor = upscale_factor
    if self.dim() < 3 or factor < 1 or self.shape[-3] % factor**2:
        raise OnHost("channels that are refused")
    *lead, channels, rows, columns = self.shape
    parts = self.reshape(*lead, channels // factor**2, factor, factor, rows, columns)
    return _moved(parts, (-5, -2, -4, -1, -3), (*lead, channels // factor**2, rows * factor, columns * factor), self)


def _pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    """Its inverse."""
    factor = downscale_factor
    if self.dim() < 3 or factor < 1 or self.shape[-2] % factor or self.shape[-1] % factor:
        raise OnHost("images that are refused")
    *lead, channels, rows, columns = self.shape
    parts = self.reshape(*lead, channels, rows // factor, factor, columns // factor, factor)
    return _moved(parts, (-5, -3, -1, -4, -2), (*lead, channels * factor**2, rows // factor, columns // factor), self)


def _moved(parts: Tensor, last: tuple[int, ...], shape: Sequence[int], like: Tensor) -> Tensor:
    """``parts`` with their last dimensions in the order ``last``, as of ``shape``, with channels in the order of
    ``like``."""
    lead = range(parts.dim() - len(last))
    result = parts.permute(*lead, *last).reshape(tuple(shape))
    return result.contiguous(memory_format=suggest_memory_format(like)) if result.dim() == 4 else result


def _channel_shuffle(self: Tensor, groups: int) -> Tensor:
    if self.dim() < 3 or groups < 1 or self.shape[1] % groups or not self.numel():
        raise OnHost("channels that are refused")
    parts = self.reshape(self.shape[0], groups, -1, *self.shape[2:]).transpose(1, 2)
    out = empty_in_order_of(self, self.shape) if self.dim() == 4 else self.new_empty(self.shape)
    out.unflatten(1, parts.shape[1:3]).copy_(parts)
    return out


def _eye(n: int, m: int | None = None, *, out: Tensor) -> Tensor:
    m = n if m is None else m
    if n < 0 or m < 0 or not (out.dtype in NAMES or out.is_complex()):
        raise OnHost("sizes that are refused")
    resized(out, (n, m)).zero_()
    if n and m:
        out.diagonal().fill_(1)
    return out


def _cross(self: Tensor, other: Tensor, *, dim: int = -1, out: Tensor) -> Tensor:
    if self.dtype != other.dtype or self.dtype not in NAMES or self.dtype == torch.bool or self.dim() != other.dim():
        raise OnHost("vectors of two types")
    if not -self.dim() <= dim < self.dim() or self.shape[dim] != 3 or other.shape[dim] != 3:
        raise OnHost("a dimension that is refused")
    shape = torch.broadcast_shapes(self.shape, other.shape)
    of_type(out, self.dtype, shape)
    operands = {
        f"{name}{i}": tensor.expand(shape).select(dim, i)
        for name, tensor in (("a", self), ("b", other))
        for i in range(3)
    }
    outs = {f"out{i}": out.select(dim, i) for i in range(3)}
    text = "\n".join(f"out{i} = a{j} * b{k} - a{k} * b{j}" for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)))
    run(Body(text), outs, operands, computed_in(self.dtype))
    return out


def _addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, **more: Any) -> Tensor:
    """The sum of the products of two batches of matrices: one product of all columns with all rows."""
    if batch1.dim() != 3 or batch2.dim() != 3 or batch1.shape[::2] != (batch2.shape[0], batch2.shape[1]):
        raise OnHost("matrices that are refused")
    left, right = batch1.movedim(0, 1).flatten(1), batch2.flatten(0, 1)
    return torch.addmm(self, left, right, beta=beta, alpha=alpha, **more)


def _distances(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """aten::_cdist_forward: (…, P, R) of (…, P, D) and (…, R, D), each pair's norm of the difference."""
    compute = _floats(x1, x2)
    if x1.shape[-1] != x2.shape[-1] or not x1.shape[-1] or not p >= 0 or compute != x1.dtype:
        raise OnHost("vectors that are refused")
    text, fold, finish = {
        0.0: ("tl.where(a - b == a - b, (a != b).to(blank.dtype), a - b)", SUM, "acc"),
        1.0: ("tl.abs(a - b)", SUM, "acc"),
        2.0: ("(a - b) * (a - b)", SUM, "libdevice.sqrt(acc)"),
        float("inf"): ("tl.abs(a - b)", MAX, "acc"),
    }.get(float(p), ("libdevice.pow(tl.abs(a - b), order)", SUM, "libdevice.pow(acc, 1 / order)"))
    operands: dict[str, Any] = {"a": x1.unsqueeze(-2), "b": x2.unsqueeze(-3)}
    operands |= {"order": float(p)} if "order" in text else {}
    return reduce(text, fold, operands, (-1,), finish=finish, dtype=x1.dtype)


def _distances_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """The gradient of ``x1``."""
    _floats(grad, x1, x2, cdist)
    if not grad.numel() or not x1.numel():
        return x1.new_zeros((*grad.shape[:-2], *x1.shape[-2:]))
    power = "grad * fn.sign(a - b) * libdevice.pow(tl.abs(a - b) / distance, order)"
    text = {
        0.0: "grad * 0",
        1.0: "grad * fn.sign(a - b)",
        2.0: "tl.where(distance == 0, 0.0, grad * (a - b) / distance)",
        float("inf"): "tl.where(tl.abs(a - b) == distance, grad * fn.sign(a - b), 0.0)",
    }.get(float(p), f"tl.where((distance == 0) | (a == b), 0.0, {power})")
    operands: dict[str, Any] = {"grad": grad.unsqueeze(-1), "a": x1.unsqueeze(-2), "b": x2.unsqueeze(-3)}
    operands |= {"distance": cdist.unsqueeze(-1)} if "distance" in text else {}
    operands |= {"order": float(p) - 1} if "order" in text else {}
    return reduce(text, SUM, operands, (-2,), dtype=x1.dtype)


def _unfold_backward(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """The gradient of Tensor.unfold: windows that overlap are added one element of each at a time."""
    out = torch.zeros(list(input_sizes), dtype=grad_in.dtype, device=grad_in.device)
    if not grad_in.numel():
        return out
    if not out.dim():
        return out.copy_(grad_in.view(()))
    if step >= size:
        out.unfold(dim, size, step).copy_(grad_in)
        return out
    windows = out.unfold(dim, size, step)
    for place in range(size):
        windows.select(-1, place).add_(grad_in.select(-1, place))
    return out


def _trace(self: Tensor) -> Tensor:
    if self.dim() != 2 or not (self.dtype in NAMES or self.is_complex()):
        raise OnHost("a matrix that is refused")
    return self.diagonal().sum()


def _renorm(self: Tensor, p: Any, dim: int, maxnorm: Any, *, out: Tensor) -> Tensor:
    """Slices along ``dim`` with a norm above maxnorm are scaled to it."""
    compute = _floats(self)
    if self.dim() < 2 or not -self.dim() <= dim < self.dim() or not p > 0 or not maxnorm >= 0 or not self.numel():
        raise OnHost("norms that are refused")
    others = [d for d in range(self.dim()) if d != dim % self.dim()]
    norm = torch.linalg.vector_norm(self.to(compute), p, others, keepdim=True)
    body = Body.of("self * tl.where(norm > limit, limit / (norm + 1e-7), 1.0)")
    run(
        body,
        {"out": of_type(out, self.dtype, self.shape)},
        {"self": self, "norm": norm, "limit": float(maxnorm)},
        compute,
    )
    return out


TABLE: dict[str, Callable[..., Any]] = {
    "glu.out": _glu,
    "glu_backward glu_backward.grad_input": _glu_backward,
    "_prelu_kernel_backward": _prelu_backward,
    "im2col": _unfold,
    "col2im": _fold,
    "channel_shuffle": _channel_shuffle,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "eye.out eye.m_out": _eye,
    "linalg_cross.out": _cross,
    "addbmm addbmm.out": _addbmm,
    "addbmm_": lambda self, *args, **how: _addbmm(self, *args, **how, out=self),
    "_cdist_forward": _distances,
    "_cdist_backward": _distances_backward,
    "unfold_backward": _unfold_backward,
    "trace": _trace,
    "renorm.out": _renorm,
}
