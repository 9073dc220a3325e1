"""Random numbers that are made on the device: Philox by element, from the seed and count of
torch/device/random_state.py.

Calls with a CPU generator are left to the CPU, as are float64 numbers, which have more bits than are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ..device.random_state import Philox, philox_of
from ..device.tensor_memory import is_captured
from .bounds import PROBABILITY, WEIGHT, fault_of, note_outside
from .dtypes import OnHost, computed_in
from .elementwise import Body, run
from .pointwise import of_type
from .strided_shapes import resized

#: Four words of 32 random bits for each element: draws.py makes numbers of them.
_WORDS = "a, b, c, d = tl.randint4x(seed, first + i0.to(tl.int64))\n"
_UNIFORM = "u = tl.rand(seed, first + i0.to(tl.int64))\n"
_BY_PROBABILITIES = Body(
    f"tl.store(fault + zero, {PROBABILITY}, mask=mask & (((p >= 0) & (p <= 1)) == 0))\n"
    "a, b, c, d = tl.randint4x(seed, first + place)\n"
    "out = draw.unit(a, b) <= p",
    frozenset(("place",)),
    frozenset(("fault",)),
)
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_LARGEST = torch.finfo(torch.float32).max


def _fill(
    body: Body, out: torch.Tensor, source: Philox, operands: dict[str, Any], compute: torch.dtype, **counts: int
) -> None:
    """Compute ``body`` with numbers that are drawn for each element of ``out``."""
    for name, value in source.operands(out.numel(), out.device).items():
        if isinstance(value, torch.Tensor):
            operands = operands | {name: value}
            body = replace(body, as_stored=body.as_stored | {name})
        else:
            counts[name] = value
    run(body, {"out": out}, operands, compute, counts)


def _drawn(self: torch.Tensor, text: str, generator: Any, **numbers: float) -> torch.Tensor:
    source = philox_of(generator)
    if source is None or self.dtype not in _FLOATS:
        raise OnHost("a generator of the CPU's, or numbers that are not of 32 bits")
    if not all(abs(value) <= _LARGEST for value in numbers.values()):
        raise OnHost("parameters that are no numbers of 32 bits")
    target = self if self.is_contiguous() else torch.empty(self.shape, dtype=self.dtype, device=self.device)
    _fill(Body(text), target, source, {name: float(value) for name, value in numbers.items()}, torch.float32)
    return self if target is self else self.copy_(target)


def _uniform(
    self: torch.Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **rest: Any
) -> torch.Tensor:
    low = rest.get("from", from_)
    if self.dtype not in _FLOATS:
        raise OnHost("numbers of 64 bits")
    limits = torch.finfo(self.dtype)
    if not (limits.min <= low <= to <= limits.max and to - low <= limits.max):
        raise OnHost("a range that is refused")
    # The largest numbers would be rounded to the end of the range, which is not in it.
    limit = to - limits.eps * abs(to) if to else -limits.smallest_normal
    text = _UNIFORM + "out = tl.minimum(low + u * (high - low), limit)"
    return _drawn(self, text, generator, low=low, high=to, limit=max(low, limit))


def _normal(self: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if not std >= 0:
        raise OnHost("a deviation that is refused")
    if self.is_complex():  # half of the variance in each part, as on the CPU
        torch.view_as_real(self).normal_(0, std / math.sqrt(2), generator=generator)
        return self.add_(mean) if mean else self
    text = _WORDS + "out = mean + std * draw.normal(a, b, c, d)"
    return _drawn(self, text, generator, mean=mean, std=std)


def _exponential(self: torch.Tensor, lambd: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if not lambd > 0 or math.isinf(lambd):
        raise OnHost("a rate that is refused")
    # Not rounded to 0, by which others divide.
    least = 2.0**-24 if self.dtype == torch.float16 else torch.finfo(torch.float32).smallest_normal
    text = _WORDS + "out = tl.maximum(draw.exponential(a, b) / rate, least)"
    return _drawn(self, text, generator, rate=lambd, least=least)


def _bernoulli(self: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> torch.Tensor:
    source = philox_of(generator)
    if source is None or not 0 <= p <= 1 or self.dtype == torch.float64 or not self.is_contiguous():
        raise OnHost("a generator of the CPU's, or a probability that is refused")
    _fill(Body(_WORDS + "out = draw.unit(a, b) <= p"), self, source, {"p": float(p)}, torch.float32)
    return self


def _bernoulli_of(self: torch.Tensor, p: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """Each with the probability that ``p`` has at its place."""
    source = philox_of(generator)
    if source is None or self.dtype == torch.float64 or p.dtype not in _FLOATS:
        raise OnHost("a generator of the CPU's, or probabilities that are refused")
    if p.device != self.device or torch.broadcast_shapes(p.shape, self.shape) != self.shape:
        raise OnHost("probabilities on another device, or of another shape")
    if not self.is_contiguous():
        fresh = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        return self.copy_(_bernoulli_of(fresh, p, generator=generator))
    place = torch.arange(self.numel(), device=self.device).view(self.shape)
    operands = {"p": p, "place": place, "fault": fault_of(self.device, "bernoulli")}
    _fill(_BY_PROBABILITIES, self, source, operands, torch.float32)
    return self


def _bernoulli_out(self: torch.Tensor, *, generator: Any = None, out: torch.Tensor) -> torch.Tensor:
    return _bernoulli_of(resized(out, self.shape), self, generator=generator)


def _normal_of(mean: Any, std: Any = 1.0, *, generator: Any = None) -> torch.Tensor:
    """aten::normal of tensors of means, of deviations, or of both."""
    given = [value for value in (mean, std) if isinstance(value, torch.Tensor)]
    kind, device = given[0].dtype, given[0].device
    if kind not in _FLOATS or any(t.dtype != kind or t.device != device for t in given):
        raise OnHost("numbers that are refused, or of two types or devices")
    if not std >= 0 if not isinstance(std, torch.Tensor) else std.numel() and not bool((std >= 0).all()):
        raise OnHost("a deviation that is refused")
    try:
        shape = torch.broadcast_shapes(*(t.shape for t in given))
    except RuntimeError:
        raise OnHost("shapes that are refused") from None
    drawn = _normal(torch.empty(shape, dtype=kind, device=device), generator=generator)
    return drawn.mul_(std).add_(mean)


def _log_normal(self: torch.Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> torch.Tensor:
    if not std > 0:
        raise OnHost("a deviation that is refused")
    text = _WORDS + "out = libdevice.exp(mean + std * draw.normal(a, b, c, d))"
    return _drawn(self, text, generator, mean=mean, std=std)


def _cauchy(self: torch.Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if not sigma > 0:
        raise OnHost("a width that is refused")
    text = _WORDS + "out = median + sigma * draw.cauchy(a, b)"
    return _drawn(self, text, generator, median=median, sigma=sigma)


def _geometric(self: torch.Tensor, p: float, *, generator: Any = None) -> torch.Tensor:
    if not 0 < p < 1:
        raise OnHost("a probability that is refused")
    if self.dtype in _INTEGERS:
        if p < _RAREST:
            raise OnHost("numbers of more digits than a float32 has")
        drawn = torch.empty(self.shape, dtype=torch.float32, device=self.device)
        limit = torch.iinfo(self.dtype).max
        return self.copy_(_geometric(drawn, p, generator=generator).clamp_(max=min(limit, 1 << 31)))
    text = _WORDS + "out = tl.maximum(libdevice.ceil(draw.exponential(a, b) / rate), 1.0)"
    return _drawn(self, text, generator, rate=-math.log1p(-p))


#: What is weighed at all is likelier than what is not.
_LEAST = torch.finfo(torch.float32).smallest_normal
#: Of rarer events the tries are not counted in float32.
_RAREST = 1e-5
#: Whole numbers from ``start`` on: of 64 random bits, so that none of 2^31 is likelier than another by more than 2^-33;
#: of 128, the upper half of whose product with the count is taken; and those that are the bits themselves.
_NARROW_RANGE = """high, low, _, _ = tl.randint4x(seed, first + i0.to(tl.int64))
number = (high.to(tl.uint32).to(tl.uint64) << 32) | low.to(tl.uint32).to(tl.uint64)
out = (number % count.to(tl.uint64)).to(tl.int64) + start"""
_ALL_BITS = """a, b, c, d = tl.randint4x(seed, first + i0.to(tl.int64))
out = ((a.to(tl.uint32).to(tl.uint64) << 32) | b.to(tl.uint32).to(tl.uint64)).to(tl.int64)"""
_WIDE_RANGE = f"""{_ALL_BITS}
size, upper = zero.to(tl.int64).to(tl.uint64) + count.to(tl.uint64), out.to(tl.uint64)
lower = (c.to(tl.uint32).to(tl.uint64) << 32) | d.to(tl.uint32).to(tl.uint64)
rest = upper * size
carry = (rest + tl.umulhi(lower, size)) < rest
out = (tl.umulhi(upper, size) + carry.to(tl.uint64)).to(tl.int64) + start"""
_INTEGERS = {torch.uint8: 8, torch.int8: 7, torch.int16: 15, torch.int32: 31, torch.int64: 63}
_FLOAT_BITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}


def _random(self: torch.Tensor, *limits: int | None, generator: Any = None, **named: Any) -> torch.Tensor:
    """Whole numbers from the first of the limits, or 0, up to the last, which is not among them."""
    source = philox_of(generator)
    bits = _INTEGERS.get(self.dtype, _FLOAT_BITS.get(self.dtype))
    if source is None or bits is None:
        raise OnHost("a generator of the CPU's, or numbers that are refused")
    given = [*limits, *(named[name] for name in ("from", "to") if name in named)]
    low = 0 if len(given) < 2 or given[0] is None else int(given[0])
    whole = 1 << bits if self.dtype in _INTEGERS else (1 << bits) + 1
    high = whole if not given or given[-1] is None else int(given[-1])
    count = high - low
    if not 0 < count or high > whole or low < (-(1 << bits) if self.dtype != torch.uint8 else 0):
        raise OnHost("a range that is refused")
    if not self.is_contiguous():
        fresh = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        return self.copy_(_random(fresh, *limits, generator=generator, **named))
    text = _NARROW_RANGE if count <= 1 << 31 else _WIDE_RANGE if count < 1 << 64 else _ALL_BITS
    _fill(Body(text), self, source, {}, torch.int64, count=_signed(count), start=low)
    return self


def _signed(value: int) -> int:
    """The number of 64 bits with a sign that has the low bits of ``value``."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _permutation(n: int, *, generator: Any = None, out: torch.Tensor) -> torch.Tensor:
    """The order of 62 random bits for each."""
    if philox_of(generator) is None or n < 1 or out.dtype not in _INTEGERS or n - 1 > torch.iinfo(out.dtype).max:
        raise OnHost("a generator of the CPU's, or a permutation that is refused")
    low, high = (
        torch.empty(n, dtype=torch.int64, device=out.device).random_(0, 1 << 31, generator=generator) for _ in range(2)
    )
    return resized(out, (n,)).copy_(((high << 31) | low).argsort())


def _multinomial(
    self: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> torch.Tensor:
    """By sums of the weights, or, where each is drawn once, by the largest of weight / exponential number."""
    lines = self if self.dim() == 2 else self[None]
    if self.dtype not in _FLOATS or self.dim() not in (1, 2) or not self.numel() or philox_of(generator) is None:
        raise OnHost("weights that are refused, or a generator of the CPU's")
    categories = lines.shape[1]
    if num_samples < 1 or categories > 1 << 24 or (not replacement and num_samples > categories):
        raise OnHost("samples that are refused")
    weights = lines.to(torch.float32)
    total = weights.sum(1, keepdim=True)
    valid = ((total > 0) & (weights >= 0).all(1, keepdim=True) & (total < math.inf)).all()
    if is_captured(self):
        note_outside(valid.to(torch.int64), 1, 1, WEIGHT, "multinomial")
    elif not bool(valid):
        raise OnHost("weights that are refused")
    if not replacement or num_samples == 1:
        drawn = torch.empty_like(weights).exponential_(generator=generator)
        ratio = torch.where(weights > 0, (weights / total / drawn).clamp_(min=_LEAST), 0.0)
        found = ratio.argmax(1, keepdim=True) if num_samples == 1 else ratio.topk(num_samples)[1]
    else:
        sums = weights.cumsum(1)
        drawn = torch.rand((lines.shape[0], num_samples), device=self.device, generator=generator) * sums[:, -1:]
        found = torch.searchsorted(sums, drawn, right=True).clamp_(max=categories - 1)
        # Sums up to a category of weight 0 may differ from those before it by their rounding, and a number that is
        # rounded up to the last sum is past the end: such a draw is the category's before it that has a weight.
        weighed = weights > 0
        first = weighed.to(torch.int8).argmax(1, keepdim=True)
        own = torch.where(weighed, torch.arange(categories, device=self.device), first)
        found = own.cummax(1)[0].gather(1, found)
    return found if self.dim() == 2 else found[0]


def _dropout(input: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    if not input.dtype.is_floating_point:
        raise OnHost("numbers that are not floats")
    mask = torch.ones(input.shape, dtype=torch.bool, device=input.device)
    if train is False or p == 0:
        return input.clone(), mask
    _bernoulli(mask, 1 - p)
    return native_dropout_backward(input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


def native_dropout_backward(grad_output: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """aten::native_dropout_backward: the elements that the mask has, times ``scale``."""
    if not grad_output.dtype.is_floating_point or mask.shape != grad_output.shape or mask.dtype != torch.bool:
        raise OnHost("gradients that are not floats, or a mask of another shape or type")
    out = torch.empty_like(grad_output)
    operands = {"grad": grad_output, "kept": mask, "scale": float(scale)}
    run(Body.of("grad * kept.to(grad.dtype) * scale", "kept"), {"out": out}, operands, computed_in(grad_output.dtype))
    return out


def _rrelu(
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """aten::rrelu_with_noise: numbers up to 0 times a slope, drawn while training, which ``noise`` is then, 1 above."""
    if not self.dtype.is_floating_point or not math.isfinite(lower) or not math.isfinite(upper) or lower > upper:
        raise OnHost("numbers, or slopes, that are refused")
    if training:
        if noise.dtype != self.dtype or noise.shape != self.shape or noise.device != self.device:
            raise OnHost("noise of another type, shape or device")
        slopes = _uniform(torch.empty_like(noise), lower, upper, generator=generator)
        noise.copy_(torch.where(self <= 0, slopes, 1.0))
        result = torch.where(self <= 0, self * noise, self)
    else:
        result = torch.nn.functional.leaky_relu(self, (float(lower) + float(upper)) / 2)
    return result.contiguous() if out is None else of_type(out, self.dtype, self.shape).copy_(result)


TABLE: dict[str, Callable[..., Any]] = {
    "rrelu_with_noise rrelu_with_noise.out": _rrelu,
    "rrelu_with_noise_": lambda self, *args, **how: _rrelu(self, *args, **how, out=self),
    "uniform_": _uniform,
    "normal_": _normal,
    "exponential_": _exponential,
    "normal.Tensor_float normal.Tensor_float_out normal.float_Tensor normal.float_Tensor_out": _normal_of,
    "normal.Tensor_Tensor normal.Tensor_Tensor_out": _normal_of,
    "log_normal_": _log_normal,
    "cauchy_": _cauchy,
    "geometric_": _geometric,
    "bernoulli_.float": _bernoulli,
    "bernoulli_.Tensor": _bernoulli_of,
    "bernoulli.out": _bernoulli_out,
    "random_ random_.from random_.to": _random,
    "randperm.generator_out": _permutation,
    "multinomial multinomial.out": _multinomial,
    "native_dropout": _dropout,
    "native_dropout_backward": native_dropout_backward,
}
