"""Histograms on the device alone, against the CPU's: at edges, with weights, as densities."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_INF, _NAN = float("inf"), float("nan")


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_histogram(dtype: torch.dtype, weighted: bool, density: bool) -> None:
    def run(x: torch.Tensor, weight: torch.Tensor, edges: torch.Tensor) -> Any:
        how: dict[str, Any] = {"density": density, **({"weight": weight} if weighted else {})}
        outs = torch.empty(0, dtype=dtype, device=x.device), torch.empty(0, dtype=dtype, device=x.device)
        torch.histogram(x, 6, **how, out=outs)
        found = [torch.histogram(x, 11, **how), torch.histogram(x, bins=5, range=(-1.0, 1.0), **how)]
        return *found, torch.histogram(x, edges, **how), torch.histogram(x, 1, **how), outs

    x, weight = values(7, 60).to(dtype), values(7, 60).to(dtype).abs()
    edges = torch.tensor([-2, -0.5, -0.5, 0, 0.25, 3], dtype=dtype)
    compare(run, x, weight, edges)
    compare(run, x.t(), weight.t(), edges)


def test_numbers_at_edges() -> None:
    edges = torch.tensor([-1.0, 0, 1, 2])
    x = torch.tensor([-1.0, -0.0, 0, 1, 2, 2.0000002, _NAN, _INF, -_INF, -1.0000001, 0.9999999])
    compare(torch.histogram, x, edges)
    compare(lambda x: torch.histogram(x, 10, range=(0.0, 10.0)), torch.arange(0, 11.0))
    compare(lambda x: torch.histc(x, 7, -1, 1), torch.tensor([_NAN, _INF, -1, 1, 0.5]))
    compare(lambda x: torch.histc(x, 7, -1, 1, out=torch.empty(3, device=x.device)), values(50))


def test_one_number_and_none() -> None:
    compare(lambda x: torch.histogram(x, 4), torch.tensor(3.0))
    compare(lambda x: (torch.histogram(x, 4), torch.histogram(x, 4, density=True)), torch.empty(0))
    compare(lambda x: (torch.histc(x, 4), torch.histc(x, 4, -1, 1)), torch.empty(0))
