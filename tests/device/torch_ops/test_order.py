"""Where extremes are, running sums and extremes, sorting, and elements that a condition selects."""

from typing import Any

import pytest
import torch

from .conftest import compare

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def _numbers() -> torch.Tensor:
    """Numbers of which some are equal, infinite or NaN."""
    torch.manual_seed(0)
    x = torch.randn(7, 33).mul(3).round().div(2)
    x[2, 5] = x[2, 9] = x[3] = float("nan")
    x[4, 1], x[4, 2] = float("inf"), float("-inf")
    return x


def _integers(dtype: torch.dtype) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randint(0 if dtype == torch.uint8 else -5, 5, (7, 33)).to(dtype)


_INPUTS = {
    "float32": _numbers,
    "float16": lambda: _numbers().half(),
    "float64": lambda: _numbers().double(),
    "int64": lambda: _integers(torch.int64),
    "uint8": lambda: _integers(torch.uint8),
    "transposed": lambda: _numbers().t(),
    "sliced": lambda: _numbers()[1:, 3::2],
    "expanded": lambda: _numbers()[:1].expand(4, 33),
    "empty": lambda: _numbers()[:0],
}


@pytest.mark.parametrize("name", _INPUTS)
def test_orders(name: str) -> None:
    x = _INPUTS[name]()
    compare(lambda x: (x.argmax(1), x.argmin(-1, keepdim=True), x.max(1), x.min(1, keepdim=True)), x)
    compare(lambda x: (torch.sort(x, stable=True), torch.sort(x, dim=0, stable=True, descending=True)), x)
    compare(lambda x: (x.cumsum(0), x.cumsum(1), x[:, :5].cumprod(1), x.cummax(0), x.cummin(1)), x)
    if x.numel():
        compare(lambda x: (x.argmax(), x.min(0), x.aminmax(), x.kthvalue(2, 1).values, x.median(0).values), x)


@pytest.mark.parametrize("name", _INPUTS)
def test_selections(name: str) -> None:
    x = _INPUTS[name]()
    compare(lambda x: (x.nonzero(), x[x > 0], x.masked_select(x[:, 1:2] > 0), x.any(1), x.count_nonzero()), x)
    compare(lambda x: (x.flip(0), x.flip(0, 1), x.roll(3, 1), x.roll((1, -2), (0, 1)), x.roll(5)), x)
    compare(lambda x: (x[:, x[0] > 0] if len(x) else x, x[x[:, 0] > 0], x[x[:, 0] > 0, 1]), x)


@pytest.mark.parametrize("count", [1, 31, 129, 1000, 2600])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.uint32], ids=str)
def test_sorts_of_any_length_are_stable(count: int, dtype: torch.dtype) -> None:
    x = torch.randint(0, 50, (3, count), generator=torch.Generator().manual_seed(count)).to(dtype)
    if dtype.is_floating_point:
        x[1, :3] = torch.tensor([float("nan"), float("-inf"), -0.0])[:count]
    else:
        x *= torch.iinfo(dtype).max // 57  # the high half of 64 bits, too
    compare(lambda x: (torch.sort(x, stable=True), torch.sort(x, stable=True, descending=True)), x)
    if dtype != torch.uint32:  # torch's CPU has no topk of it
        compare(lambda x: (x.topk(x.shape[1] // 2 + 1).values, x.topk(1, largest=False).values), x)
        compare(lambda x: x.gather(1, x.topk(min(count, 50)).indices), x)


def test_scans_of_long_rows() -> None:
    torch.manual_seed(0)
    compare(lambda x: (x.cumsum(1), x.t().contiguous().cumsum(0)), torch.randn(3, 20001), tolerance=(1e-4, 1e-3))
    compare(lambda x: x.cumsum(1), torch.rand(2, 20000).half() / 1000)
    compare(lambda x: (x.cumsum(1), x.sign().cumprod(1)), torch.randint(-9, 9, (3, 20001)))
    compare(lambda x: (x.logcumsumexp(0), x.logcumsumexp(1)), torch.randn(7, 33))


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(70_001,), (67, 1025), (3, 129, 260)])
def test_selections_of_more_elements_than_a_branch_each_is_for(shape: tuple[int, ...], share: float) -> None:
    """Blocks end within rows, and the last one is not full."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    chosen = torch.rand(shape, generator=torch.Generator().manual_seed(4)) < share

    def select(x: torch.Tensor, chosen: torch.Tensor) -> Any:
        wide, halves = torch.stack((x, -x), -1), x.half()
        line = x.flatten()[:68]
        return (
            (chosen.nonzero(), x.where(chosen, 0).nonzero(), *torch.where(chosen)),
            (x[chosen], halves[chosen], wide[..., 1][chosen], wide[chosen], chosen[chosen], x.double()[chosen]),
            (x.masked_select(chosen), line[:, None].masked_select(chosen.flatten()[:68_000].view(68, 1000))),
        )

    compare(select, x, chosen)
    if share:
        assert chosen.to("spirv").nonzero().stride() == chosen.nonzero().stride()


def test_writes_at_masks() -> None:
    def write(x: torch.Tensor) -> Any:
        mask = x > 0.5
        x[mask] = torch.arange(int(mask.sum()), device=x.device).to(x.dtype)
        x[mask[:, 0]] *= 2
        x[x < -1] = 3.0
        return x.masked_scatter(mask, x.flip(0))

    compare(write, torch.randn(7, 33, generator=torch.Generator().manual_seed(2)))


def test_gradients() -> None:
    def run(x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        weights = torch.arange(6.0, device=x.device)
        loss = (x.cumsum(1) * x.max(0).values).sum() + (x.sort(1).values * weights).sum() + x.cummax(1).values.sum()
        (loss + (x.topk(3).values * x[x > 0].sum()).sum() + x.flip(1).roll(1, 0).mul(weights).sum()).backward()
        return x.grad

    compare(run, torch.randn(5, 6, generator=torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.bfloat16, torch.bool], ids=str)
def test_modes(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randint(0, 2 if dtype == torch.bool else 5, (6, 3, 11)).to(dtype)
    for dim, keepdim in ((0, False), (1, True), (-1, False)):
        compare(lambda x, dim=dim, keepdim=keepdim: tuple(x.mode(dim, keepdim)), x)
    compare(lambda x: tuple(x[:, :, :1].mode()), x)
