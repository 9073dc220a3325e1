"""The exponential of matrices on the device alone, against the CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .conftest import compare

pytestmark = pytest.mark.usefixtures("no_fallbacks", "compiled")

_LOOSE, _TIGHT = (1e-4, 1e-4), (1e-10, 1e-10)


def _matrices(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
def test_exponentials_of_small_and_large_matrices(dtype: torch.dtype) -> None:
    x = _matrices(4, 5, 5, dtype=dtype) * torch.tensor([1e-3, 0.1, 1.0, 6.0])[:, None, None]
    tolerance = _LOOSE if dtype in (torch.float32, torch.complex64) else _TIGHT
    compare(torch.linalg.matrix_exp, x.to(dtype), tolerance=tolerance)
    compare(torch.linalg.matrix_exp, x.to(dtype).mT, tolerance=tolerance)


def test_shapes() -> None:
    for shape in ((1, 1), (4, 1, 1), (4, 0, 0), (0, 3, 3), (2, 3, 4, 4)):
        compare(torch.linalg.matrix_exp, _matrices(*shape), tolerance=_TIGHT)
    compare(torch.linalg.matrix_exp, _matrices(70, 70) * 0.3, tolerance=_TIGHT)


def test_what_is_no_number_is_in_all_of_the_result() -> None:
    x = _matrices(3, 2, 2)
    x[0, 0, 1], x[1, 0, 0] = float("inf"), float("nan")
    compare(torch.linalg.matrix_exp, x, tolerance=_TIGHT)


def test_gradient() -> None:
    def run(x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y = torch.linalg.matrix_exp(x)
        return torch.autograd.grad((y * torch.arange(y.numel(), device=y.device).view(y.shape)).sum(), x)

    compare(run, _matrices(2, 3, 3), tolerance=(1e-9, 1e-9))
