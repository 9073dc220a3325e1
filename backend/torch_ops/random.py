"""Random numbers that are made on the device: Philox by element, from the seed and count of runtime/torch_random.py.

Calls with a generator of the CPU's are left to it, as are float64 numbers, which have more bits than are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..runtime.torch_random import philox_of
from .elementwise import Body, run
from .library import enter_by_name
from .types import OnHost, computed_in

_UNIFORM = "u = tl.rand(seed, first + i0.to(tl.int64))\n"
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def enter_random(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


def _drawn(self: torch.Tensor, text: str, generator: Any, **numbers: float) -> torch.Tensor:
    source = philox_of(generator)
    if source is None or self.dtype not in _FLOATS:
        raise OnHost("a generator of the CPU's, or numbers that are not of 32 bits")
    target = self if self.is_contiguous() else torch.empty(self.shape, dtype=self.dtype, device=self.device)
    seed, first = source.draw(self.numel())
    operands = {name: float(value) for name, value in numbers.items()}
    run(Body(text), {"out": target}, operands, torch.float32, {"seed": seed, "first": first})
    return self if target is self else self.copy_(target)


def _uniform(
    self: torch.Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **rest: Any
) -> torch.Tensor:
    low = rest.get("from", from_)
    if not low <= to:
        raise OnHost("a range that is refused")
    if self.dtype not in _FLOATS:
        raise OnHost("numbers of 64 bits")
    # The largest numbers would be rounded to the end of the range, which is not in it.
    limits = torch.finfo(self.dtype)
    limit = to - limits.eps * abs(to) if to else -limits.smallest_normal
    text = _UNIFORM + "out = tl.minimum(low + u * (high - low), limit)"
    return _drawn(self, text, generator, low=low, high=to, limit=max(low, limit))


def _normal(self: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if std < 0:
        raise OnHost("a deviation that is refused")
    text = "out = mean + std * tl.randn(seed, first + i0.to(tl.int64))"
    return _drawn(self, text, generator, mean=mean, std=std)


def _exponential(self: torch.Tensor, lambd: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if not lambd > 0 or math.isinf(lambd):
        raise OnHost("a rate that is refused")
    text = _UNIFORM + "out = -libdevice.log(1 - u) / rate"
    return _drawn(self, text, generator, rate=lambd)


def _bernoulli(self: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> torch.Tensor:
    source = philox_of(generator)
    if source is None or not 0 <= p <= 1 or self.dtype == torch.float64 or not self.is_contiguous():
        raise OnHost("a generator of the CPU's, or a probability that is refused")
    seed, first = source.draw(self.numel())
    text = _UNIFORM + "out = u < p"
    run(Body(text), {"out": self}, {"p": float(p)}, torch.float32, {"seed": seed, "first": first})
    return self


def _dropout(input: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: A002
    if not input.dtype.is_floating_point:
        raise OnHost("numbers that are not floats")
    mask = torch.ones(input.shape, dtype=torch.bool, device=input.device)
    if train is False or p == 0:
        return input.clone(), mask
    _bernoulli(mask, 1 - p)
    return native_dropout_backward(input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


def native_dropout_backward(grad_output: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """aten::native_dropout_backward: the elements that the mask has, times ``scale``."""
    if not grad_output.dtype.is_floating_point:
        raise OnHost("gradients that are not floats")
    out = torch.empty_like(grad_output)
    operands = {"grad": grad_output, "kept": mask, "scale": float(scale)}
    run(Body.of("tl.where(kept, grad * scale, 0.0)", "kept"), {"out": out}, operands, computed_in(grad_output.dtype))
    return out


_TABLE: dict[str, Callable[..., Any]] = {
    "uniform_": _uniform,
    "normal_": _normal,
    "exponential_": _exponential,
    "bernoulli_.float": _bernoulli,
    "native_dropout": _dropout,
    "native_dropout_backward": native_dropout_backward,
}
