"""Histograms on the device alone, against the CPU's."""

import pytest
import torch

from .conftest import compare
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")

_INF, _NAN = float("inf"), float("nan")


def test_numbers_at_edges_and_none() -> None:
    compare(lambda x: torch.histc(x, 7, -1, 1), torch.tensor([_NAN, _INF, -1, 1, 0.5]))
    compare(lambda x: torch.histc(x, 7, -1, 1, out=torch.empty(3, device=x.device)), values(50))
    compare(lambda x: (torch.histc(x, 4), torch.histc(x, 4, -1, 1)), torch.empty(0))
