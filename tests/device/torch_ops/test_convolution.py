"""Convolutions and pooling, with their gradients."""

from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from triton.backends.spirv.torch.ops.convolution import dividing_by
from triton.backends.spirv.torch.ops.convolution_axes import gradient_axes

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks", "compiled")


#: (input, weight, what else the convolution takes): channels that are whole steps of a tile and not, of windows that
#: see every so many positions, of several groups, and alone; without a batch, and of three dimensions in groups.
_SIZES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 64, 9, 7), (70, 64, 3, 3), {"padding": 1}),
    ((2, 32, 11, 8), (24, 32, 3, 3), {"stride": 2, "padding": 1}),
    ((1, 40, 9, 10), (33, 40, 2, 3), {"stride": (2, 3), "padding": (0, 2), "dilation": (2, 1)}),
    ((2, 8, 13, 12), (16, 8, 3, 3), {"stride": 4, "dilation": 2, "padding": 1}),
    ((1, 8, 13, 12), (16, 8, 3, 2), {"stride": 3, "dilation": 2}),
    ((3, 32, 8, 8), (64, 32, 1, 1), {"stride": 2}),
    ((2, 24, 6, 5), (17, 24, 1, 1), {}),
    ((2, 24, 4, 4), (8, 24, 1, 1), {"padding": 1}),
    ((2, 3, 16, 24), (20, 3, 8, 8), {"stride": 8}),
    ((2, 36, 7, 6), (40, 9, 3, 3), {"groups": 4, "padding": 1}),
    ((2, 24, 9, 8), (48, 1, 3, 3), {"groups": 24, "stride": 2, "padding": 1}),
    ((3, 1, 9, 8), (5, 1, 3, 3), {}),
    ((1, 33, 1, 1), (32, 33, 1, 1), {}),
    ((3, 16, 40), (20, 16, 5), {"stride": 2, "padding": 2}),
    ((1, 16, 4, 5, 6), (18, 16, 2, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 6, 7, 7), (6, 1, 3, 3), {"groups": 6, "padding": "same"}),
    ((3, 30), (4, 3, 5), {}),
    ((2, 4, 5, 6, 7), (6, 2, 2, 3, 3), {"stride": (2, 1, 2), "padding": (1, 0, 2), "groups": 2}),
    ((1, 2, 1, 5, 5), (3, 2, 1, 3, 3), {"stride": 3, "padding": 1}),
]


def with_gradients_of_convolutions(
    dtype: torch.dtype, dimensions: int, transposed: bool = False, **options: Any
) -> Any:
    """A function of x and w: the result, and the gradients of x, w and a bias, in numbers that ``dtype`` has."""
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{dimensions}d")

    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        channels = w.shape[1] * options.get("groups", 1) if transposed else w.shape[0]
        bias = torch.linspace(-1, 1, channels).to(dtype).to(x)
        leaves = [tensor.detach().requires_grad_() for tensor in (x, w, bias)]
        y = function(*leaves, **options)
        made = torch.linspace(-1, 2, y.numel()).sin().view(y.shape).to(dtype).to(y)
        made = made.contiguous(memory_format=torch.channels_last) if is_last(y) else made
        return y.detach(), *torch.autograd.grad(y, leaves, made)

    return run


def is_last(x: torch.Tensor) -> bool:
    """Whether an image's channels come last in memory."""
    return x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)


def near_exact(run: Any, x: torch.Tensor, w: torch.Tensor) -> None:
    """Check the device's results against float64's: within roundings of the largest, and of a half's own."""
    exact = run(x.double(), w.double())
    for got, wanted in zip(run(x.to("spirv"), w.to("spirv")), exact, strict=True):
        assert got.dtype == x.dtype and got.shape == wanted.shape
        bound = max(2 * torch.finfo(x.dtype).eps, 2e-6)
        error = (got.cpu().double() - wanted).abs() - bound * wanted.abs()
        assert error.max() <= 4e-6 * max(1.0, float(wanted.abs().max())), float(error.max())


@pytest.mark.parametrize(
    ("case", "dtype"),
    [(case, torch.float32) for case in _SIZES]
    + [(case, torch.bfloat16) for case in _SIZES[:2]]
    + [(case, torch.float16) for case in (_SIZES[1], _SIZES[10])],
    ids=str,
)
def test_against_float64(case: Any, dtype: torch.dtype) -> None:
    size, weight, options = case
    run = with_gradients_of_convolutions(dtype, len(weight) - 2, **options)
    near_exact(run, values(*size).to(dtype), values(*weight).to(dtype))


@pytest.mark.parametrize("case", [_SIZES[n] for n in (0, 1, 2, 5, 8, 9, 10)], ids=str)
def test_channels_that_come_last(case: Any) -> None:
    size, weight, options = case
    x = values(*size).contiguous(memory_format=torch.channels_last)
    near_exact(with_gradients_of_convolutions(x.dtype, 2, **options), x, values(*weight))


@pytest.mark.parametrize(
    ("size", "weight", "options"),
    [
        ((2, 32, 5, 6), (32, 20, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
        ((2, 32, 5, 6), (32, 10, 3, 2), {"stride": 3, "dilation": 2, "groups": 2}),
        ((2, 12, 5, 6), (12, 2, 3, 3), {"stride": 2, "groups": 12}),
        ((2, 12, 7), (12, 8, 4), {"stride": 4}),
        ((1, 16, 3, 4, 3), (16, 5, 2, 3, 2), {"stride": 2, "padding": 1, "output_padding": (1, 0, 1)}),
        ((2, 4, 5, 6), (4, 3, 3, 2), {}),
    ],
    ids=str,
)
def test_transposed_convolutions_against_float64(size: Any, weight: Any, options: Any) -> None:
    run = with_gradients_of_convolutions(torch.float32, len(size) - 2, transposed=True, **options)
    near_exact(run, values(*size), values(*weight))


def test_what_is_beside_an_image_is_not_read() -> None:
    """Not even multiplied by 0: neither other images of a batch nor what lies between rows."""
    x = torch.full((3, 5, 9, 9), float("nan"))
    x[1] = values(5, 9, 9)
    w = values(7, 5, 3, 3)
    for order in (torch.contiguous_format, torch.channels_last):
        got = F.conv2d(x.contiguous(memory_format=order).to("spirv"), w.to("spirv"), padding=2)
        torch.testing.assert_close(got[1].cpu(), F.conv2d(x[1], w, padding=2), rtol=1e-4, atol=1e-4)


def test_divisions_by_products() -> None:
    """As kernels divide positions."""
    for divisor in (1, 2, 3, 7, 56, 112, 641, 4096, 65_535, 65_536, 2**30 + 1, 2**31 - 1):
        factor, shift = dividing_by(divisor)
        assert factor == 0 if divisor == 1 else -(2**31) < factor < 0
        for i in {0, 1, divisor - 1, divisor, 3 * divisor - 1, 2**31 - 1, 2**31 - 1 - (2**31 - 1) % divisor, 2**31 - 2}:
            if 0 <= i < 2**31 and factor:
                assert (i * (factor + 2**32) >> 32) >> shift == i // divisor


@pytest.mark.parametrize(
    ("stride", "dilation", "padding"), [(1, 1, 1), (2, 1, 1), (3, 2, 0), (4, 2, 3), (5, 1, 7), (6, 4, 2)]
)
def test_positions_of_a_gradient_see_what_was_seen_of_them(stride: int, dilation: int, padding: int) -> None:
    size, taps = 23, 4
    wanted = {(p * stride - padding + r * dilation, p, r) for p in range(-40, 40) for r in range(taps)}
    found = [
        (axis.at + h * axis.apart, h * axis.step + axis.start + r * axis.move, axis.first + r * axis.every)
        for axis in gradient_axes(size, taps, stride, padding, dilation)
        for h in range(axis.size)
        for r in range(axis.taps)
    ]
    assert sorted(found) == sorted(one for one in wanted if 0 <= one[0] < size)


def test_more_groups_than_a_grid_has_programs_on_an_axis() -> None:
    """Of channels that are each convolved alone."""
    groups = 65_537
    compare(lambda x, w: F.conv1d(x, w, groups=groups), torch.randn(1, groups, 4), torch.randn(groups, 1, 3))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (partial(F.max_pool2d, kernel_size=3, return_indices=True), (2, 3, 10, 13)),
        (partial(F.max_pool2d, kernel_size=3, stride=1, return_indices=True), (2, 3, 10, 13)),
        (partial(F.max_pool2d, kernel_size=3, padding=1, ceil_mode=True, return_indices=True), (2, 3, 10, 13)),
        (partial(F.max_pool2d, kernel_size=3, dilation=2, stride=1, return_indices=True), (2, 3, 10, 13)),
        (lambda x: F.max_pool3d(x, (2, 3, 2), 2, (1, 1, 0), return_indices=True), (2, 3, 5, 7, 6)),
        (lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True), (2, 3, 10, 13)),
        (lambda x: F.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True), (3, 5, 7, 4)),
    ],
)
def test_maxima_and_their_gradients(function: Any, shape: Any) -> None:
    def run(x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y, places = function(x)
        (y * y.detach()).sum().backward()
        return y.detach(), places, x.grad

    compare(run, values(*shape), tolerance=(1e-5, 1e-5))
    low = values(*shape)
    low[:, 1], low[:, 2, ..., 3] = float("-inf"), float("nan")
    compare(lambda x: function(x), low)
