"""Elementwise operations, with their gradients, of infinities, NaN, zeros of both signs, the smallest numbers and the
largest, against the CPU.

torch's CPU code has two ways, of vectors and of single numbers, which do not always agree: either will do, and so does
what float64 gives, rounded.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from triton.backends.spirv.runtime import context as vulkan_context

pytestmark = pytest.mark.usefixtures("compiled")

_TYPES = (torch.float32, torch.float16, torch.bfloat16)
#: Steps of a type that a result may be away.
_STEPS = {torch.float64: 64, torch.float32: 64, torch.float16: 1, torch.bfloat16: 1}
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}

_UNARY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in (
        "abs neg sign sgn floor ceil trunc round frac relu square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 "
        "log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma i0 "
        "sinc rad2deg deg2rad angle nan_to_num isnan isinf isposinf isneginf isfinite signbit logical_not"
    ).split()
}
_UNARY |= {
    name: getattr(F, name)
    for name in (
        "relu6 elu selu celu leaky_relu gelu silu mish softplus softsign tanhshrink hardtanh hardsigmoid hardswish "
        "hardshrink softshrink logsigmoid"
    ).split()
}
_UNARY |= {name: getattr(torch.special, name) for name in "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri".split()}
_UNARY |= {
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "threshold": lambda x: F.threshold(x, 0.5, 2.0),
    "clamp": lambda x: torch.clamp(x, -1, 2),
    "logit": lambda x: torch.logit(x, 1e-3),
    "logit past a half": lambda x: torch.logit(x, 0.6),
    "logit below zero": lambda x: torch.logit(x, -1),
    "polygamma": lambda x: torch.polygamma(2, x),
    "round to tens": lambda x: torch.round(x, decimals=-1),
    **{f"to the power {n}": lambda x, n=n: x**n for n in (2, 3, 0.5, -0.5, -1, 1.7, 0)},
    "two to the power": lambda x: 2.0**x,
}
_BINARY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in (
        "add sub mul div maximum minimum fmax fmin fmod remainder floor_divide pow atan2 hypot copysign heaviside "
        "nextafter logaddexp logaddexp2 xlogy eq ne lt le gt ge"
    ).split()
}
_BINARY |= {
    "div, trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "zeta": torch.special.zeta,
    **{
        name: lambda a, b, name=name: getattr(F, name)(a, b, reduction="none")
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    },
}

#: What is right here and not on the CPU, or what nothing determines: name → where the arguments are these.
_APART: dict[str, Callable[..., torch.Tensor]] = {
    # The limit; the CPU multiplies an infinity by 0, does not find the poles, and loses what is left of great terms.
    **dict.fromkeys(("i0", "i1", "polygamma"), torch.isinf),
    "digamma": lambda x: (x < 0) & (x.trunc() == x) | (x == 0),
    "zeta": lambda s, q: (s > 80) | q.isinf(),
    # Differences of nearly equal numbers.
    "sinc": lambda x: (x.round() - x).abs() <= x.abs() * 1e-7,
    # The CPU's is 0.
    "log1p": lambda x: x == -5e-324,
    "logaddexp2": lambda a, b: ((a + 1).abs() < 0.01) & ((b + 1).abs() < 0.01),
    # Of two zeros.
    **dict.fromkeys(("fmax", "fmin"), lambda a, b: (a == 0) & (b == 0)),
    # A number below the smallest is 0 of either sign.
    "lerp": lambda a, b: (a.abs() < 1e-44) & (b.abs() < 1e-44),
}
_WITHOUT_GRADIENTS = ("nextafter", "heaviside", "zeta", "floor_divide")
#: Whose gradients are differences of nearly equal numbers, on the CPU as here.
_LOSSY = ("i0e", "i1e", "erfcx", "tanh", "gelu", "ndtr", "log_ndtr", "erfc")


def _edges(dtype: torch.dtype) -> torch.Tensor:
    f = torch.finfo(dtype)
    numbers = [math.inf, f.max, f.max / 2, f.tiny, f.tiny * f.eps, f.tiny / 2, f.eps, 1 - f.eps, 1 + f.eps, f.max**0.5]
    numbers += [0.0, 0.1, 0.3, 0.5, 1, 1.5, 2, 2.5, 3, 6, 7.7, 11, 20, 88, 89, 93, 104, 700, 1e4]
    return torch.tensor([math.nan, *numbers, *(-number for number in numbers)], dtype=torch.float64).to(dtype)


def _steps(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How many steps of their type two tensors are apart."""

    def place(x: torch.Tensor) -> torch.Tensor:
        bits = x.nan_to_num(0, 0, 0).contiguous().view(_BITS[x.itemsize]).long()
        return torch.where(bits < 0, -(bits & (1 << 8 * x.itemsize - 1) - 1), bits)  # as the numbers are ordered

    return (place(one) - place(other)).abs()


def _same(got: torch.Tensor, want: torch.Tensor, steps: int) -> torch.Tensor:
    if not want.dtype.is_floating_point:
        return got == want
    kinds = (got.isnan() == want.isnan()) & (got.isinf() == want.isinf())
    return kinds & (want.isnan() | (got.signbit() == want.signbit())) & (_steps(got, want) <= steps)


def _flushed(dtype: torch.dtype) -> bool:
    """Whether the device may take subnormal numbers of a type, which is computed in float32, for zero."""
    return dtype in (torch.float32, torch.bfloat16) and not vulkan_context.of_device(0).capabilities.has(
        "preserve_denormals32"
    )


def _subnormal(x: torch.Tensor) -> torch.Tensor:
    return (x.abs() < torch.finfo(x.dtype).tiny) & (x != 0)


def _results(function: Callable[..., Any], arguments: list[torch.Tensor], gradients: bool) -> Iterator[torch.Tensor]:
    leaves = [argument.detach().clone().requires_grad_(gradients) for argument in arguments]
    result = function(*leaves)
    yield result.detach()
    if gradients and result.requires_grad:
        found = torch.autograd.grad(result, leaves[:1], torch.ones_like(result), allow_unused=True)[0]
        if found is not None:
            yield found


def _by_single_numbers(function: Callable[..., Any], arguments: list[torch.Tensor], gradients: bool) -> list[Any]:
    each = zip(*(argument.unbind() for argument in arguments), strict=True)
    found = [list(_results(function, [number[None] for number in numbers], gradients)) for numbers in each]
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def _check(name: str, function: Callable[..., Any], arguments: list[torch.Tensor], gradients: bool) -> None:
    dtype = arguments[0].dtype
    try:
        want = list(_results(function, arguments, gradients))
    except NotImplementedError:  # of this type, on the CPU
        assert dtype != torch.float32
        return
    got = list(_results(function, [argument.to("spirv") for argument in arguments], gradients))
    exact = list(_results(function, [argument.double() for argument in arguments], gradients))
    apart = _APART[name](*arguments) if name in _APART else torch.zeros_like(arguments[0], dtype=torch.bool)
    if _flushed(dtype):
        apart = torch.stack([apart, *map(_subnormal, arguments)]).any(0)
    for place, (actual, expected, true) in enumerate(zip(got, want, exact, strict=True)):
        if place and name in _LOSSY:
            continue
        assert actual.dtype == expected.dtype
        there = actual.cpu()
        right = _same(there, expected, _STEPS[dtype]) | apart
        if name != "nextafter":
            right |= _same(there, true.to(expected.dtype), _STEPS[dtype])
        if _flushed(dtype) and expected.is_floating_point():
            right |= _subnormal(expected) & ((there == 0) | _subnormal(there))
        if not right.all():
            right |= _same(there, _by_single_numbers(function, arguments, gradients)[place], _STEPS[dtype])
        wrong = [
            f"{[argument[i].item() for argument in arguments]}: {there[i].item()}, not {expected[i].item()}"
            for i in (~right).nonzero()[:5, 0]
        ]
        assert not wrong, (name, dtype, "gradient" if place else "value", wrong)


@pytest.mark.parametrize("name", _UNARY)
def test_of_one(name: str) -> None:
    for dtype in _TYPES:
        _check(name, _UNARY[name], [_edges(dtype)], gradients=True)


@pytest.mark.parametrize("name", _UNARY)
def test_of_one_in_double_precision(name: str) -> None:
    """Values: the expressions' constants have more than float32's precision."""
    _check(name, _UNARY[name], [_edges(torch.float64)], gradients=False)


@pytest.mark.parametrize("name", _BINARY)
def test_of_two(name: str) -> None:
    for dtype in _TYPES:
        x = _edges(dtype)
        both = [x.repeat_interleave(len(x)), x.repeat(len(x))]
        _check(name, _BINARY[name], both, gradients=name not in _WITHOUT_GRADIENTS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_next_number_of_16_bits(dtype: torch.dtype) -> None:
    """The values of all 65,536 towards both infinities, exactly; of two types in that of both."""
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    for towards in (math.inf, -math.inf, 0.0, math.nan):
        other = torch.full_like(every, towards)
        want, got = torch.nextafter(every, other), torch.nextafter(every.to("spirv"), other.to("spirv")).cpu()
        assert torch.equal(want.isnan(), got.isnan())
        assert torch.equal(want[~want.isnan()].view(torch.int16), got[~want.isnan()].view(torch.int16))
    one, none = torch.ones(2, dtype=dtype, device="spirv"), torch.zeros(1, device="spirv")
    assert torch.nextafter(one, none).tolist() == [1 - torch.finfo(torch.float32).eps / 2] * 2


@pytest.mark.parametrize("name", ["silu", "mish", "gelu", "softplus", "hardswish"])
def test_a_gradient_is_one_kernel(name: str, launches: list[Any]) -> None:
    """Which 16-bit numbers are rounded after once."""
    x = torch.randn(64, dtype=torch.float16, device="spirv", requires_grad=True)
    out, grad = getattr(F, name)(x), torch.ones(64, dtype=torch.float16, device="spirv")
    launches.clear()
    out.backward(grad)
    assert len(launches) == 1
