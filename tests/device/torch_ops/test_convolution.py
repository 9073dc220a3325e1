"""Convolutions and pooling, with their gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (torch's own convention)

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

#: (input, weight, what else the convolution takes).
_CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9, 11), (5, 3, 3, 3), {}),
    ((2, 4, 9, 11), (6, 2, 3, 2), {"stride": (2, 3), "padding": (1, 2), "groups": 2}),
    ((1, 3, 12, 12), (4, 3, 3, 3), {"dilation": 2, "padding": 2}),
    ((3, 20, 5, 5), (18, 20, 1, 1), {}),
    ((2, 6, 7, 7), (6, 1, 3, 3), {"groups": 6, "padding": "same"}),
    ((2, 3, 30), (4, 3, 5), {"stride": 2, "padding": 3}),
    ((3, 30), (4, 3, 5), {}),
    ((2, 4, 5, 6, 7), (6, 2, 2, 3, 3), {"stride": (2, 1, 2), "padding": (1, 0, 2), "groups": 2}),
    ((1, 2, 1, 5, 5), (3, 2, 1, 3, 3), {"stride": 3, "padding": 1}),
]


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_convolutions_and_their_gradients(case: Any) -> None:
    size, weight, options = case
    convolution = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(weight)]

    def run(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> Any:
        x, w, bias = (tensor.detach().requires_grad_() for tensor in (x, w, bias))
        y = convolution(x, w, bias, **options)
        (y * y.detach()).sum().backward()
        return y.detach(), x.grad, w.grad, bias.grad

    compare(run, values(*size), values(*weight), values(weight[0]), tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}]
)
def test_transposed_convolutions_and_their_gradients(options: Any) -> None:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = F.conv_transpose2d(x, w, **options)
        (y * y.detach()).sum().backward()
        return y.detach(), x.grad, w.grad

    compare(run, values(2, 4, 5, 6), values(4, 3, 3, 2), tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize(
    "options", [{}, {"stride": 1}, {"padding": 1, "ceil_mode": True}, {"dilation": 2, "stride": 1}]
)
def test_maxima_and_their_gradients(options: Any) -> None:
    def run(x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y, places = F.max_pool2d(x, 3, **options, return_indices=True)
        (y * y.detach()).sum().backward()
        return y.detach(), places, x.grad

    compare(run, values(2, 3, 10, 13), tolerance=(1e-5, 1e-5))


def test_more_groups_than_a_grid_has_programs_on_an_axis() -> None:
    """Of channels that are each convolved alone."""
    groups = 65_537
    compare(lambda x, w: F.conv1d(x, w, groups=groups), torch.randn(1, groups, 4), torch.randn(groups, 1, 3))


def test_a_transposed_convolution_of_three_dimensions() -> None:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = F.conv_transpose3d(x, w, stride=2, padding=1, output_padding=(1, 0, 1))
        (y * y.detach()).sum().backward()
        return y.detach(), x.grad, w.grad

    compare(run, values(1, 2, 3, 4, 3), values(2, 3, 2, 3, 3), tolerance=(1e-4, 1e-3))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: F.max_pool3d(x, (2, 3, 2), 2, (1, 1, 0), return_indices=True), (2, 3, 5, 7, 6)),
        (lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True), (2, 3, 10, 13)),
        (lambda x: F.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True), (3, 5, 7, 4)),
    ],
)
def test_maxima_of_three_dimensions_and_of_as_many_windows_as_asked_for(function: Any, shape: Any) -> None:
    def run(x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y, places = function(x)
        (y * y.detach()).sum().backward()
        return y.detach(), places, x.grad

    compare(run, values(*shape), tolerance=(1e-5, 1e-5))
    low = values(*shape)
    low[:, 1], low[:, 2, ..., 3] = float("-inf"), float("nan")
    compare(lambda x: function(x), low)
