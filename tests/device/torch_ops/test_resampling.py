"""Interpolation, pooling by mean and padding, with their gradients."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare, with_gradients

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mean": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "mean of what there is": lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False),
    "mean, another divisor": lambda x: F.avg_pool2d(x, 3, divisor_override=5),
    "mean of one dimension": lambda x: F.avg_pool1d(x[0], 3),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (4, 5)),
    "nearest": lambda x: F.interpolate(F.interpolate(x, scale_factor=2), size=(7, 30)),
    "nearest-exact": lambda x: F.interpolate(x, size=(13, 5), mode="nearest-exact"),
    "linear": lambda x: F.interpolate(x[0], size=17, mode="linear"),
    "bilinear": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
    "bilinear, corners": lambda x: F.interpolate(x, size=(5, 23), mode="bilinear", align_corners=True),
    "bicubic": lambda x: F.interpolate(x, size=(13, 8), mode="bicubic"),
    "antialiased": lambda x: F.interpolate(x, size=(4, 17), mode="bilinear", antialias=True),
    "antialiased, scales": lambda x: F.interpolate(x, scale_factor=(0.3, 1.7), mode="bilinear", antialias=True),
    "antialiased, corners": lambda x: F.interpolate(x, (1, 5), mode="bilinear", align_corners=True, antialias=True),
    "antialiased, bicubic": lambda x: F.interpolate(x, size=(4, 17), mode="bicubic", antialias=True),
    "antialiased, bicubic, corners": lambda x: F.interpolate(
        x, (3, 20), mode="bicubic", align_corners=True, antialias=True
    ),
    **(
        {"antialiased, lanczos": lambda x: F.interpolate(x, size=(4, 17), mode="lanczos", antialias=True)}
        if hasattr(torch.ops.aten, "_upsample_lanczos2d_aa")  # from torch 2.13 on
        else {}
    ),
    "reflect": lambda x: F.pad(x, (2, 3, 1, 0), mode="reflect"),
    "replicate": lambda x: F.pad(x, (2, 3, 1, 4), mode="replicate"),
}


def _images(*shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(*shape or (2, 3, 9, 11))


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions_and_their_gradients(name: str) -> None:
    compare(with_gradients(_FUNCTIONS[name]), _images())


def test_types_and_strides() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(F.avg_pool2d(x, 2), scale_factor=2, mode="bilinear")

    compare(with_gradients(both), _images().transpose(2, 3))
    compare(both, _images().half())
    compare(both, _images().double())
    integers = (_images() * 1e6).long()
    compare(lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False), integers)
    compare(lambda x: (F.avg_pool2d(x, 3, padding=1), F.avg_pool2d(x, 3, divisor_override=7)), integers)
    compare(lambda x: (F.avg_pool1d(x[0], 2), F.avg_pool3d(x, 2)), integers)
    compare(lambda x: F.interpolate(x.mT, size=(3, 4), mode="bicubic", antialias=True), _images().double())
    compare(lambda x: F.pad(x.conj(), (2, 1), mode="reflect"), torch.complex(_images(), _images() * 2)[0])
    compare(with_gradients(lambda x: F.interpolate(F.avg_pool2d(x, 2), scale_factor=2)), _images()[:, ::2, 1:, 2:])
    volume = lambda x: F.interpolate(F.avg_pool3d(x, 2), scale_factor=2, mode="trilinear")  # noqa: E731
    compare(with_gradients(volume), _images(1, 2, 4, 6, 5))


def test_what_is_not_finite_stays_where_it_is() -> None:
    x = _images()
    x[0, 0, 4, 4], x[1, 1, 3, 3] = float("nan"), float("inf")
    compare(lambda x: (F.avg_pool2d(x, 3, 2, 1), F.interpolate(x, scale_factor=2), F.adaptive_avg_pool2d(x, (4, 5))), x)
