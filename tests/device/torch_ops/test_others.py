"""Operations of several families that a table and small tensors do for: searches, patches, halves, RMS norm."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare, with_gradients
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


_DIFFERENTIABLE: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "rms_norm": (lambda x, w: F.rms_norm(x, (33,), w), (values(4, 7, 33), values(33))),
    "rms_norm of long rows": (lambda x: F.rms_norm(x, (5, 1000), eps=0.1), (values(3, 5, 1000),)),
    "glu": (lambda x: F.glu(x, 1), (values(5, 8, 3),)),
    "prelu": (F.prelu, (values(5, 8, 3), values(8))),
    "unfold": (lambda x: F.unfold(x, (3, 2), (2, 1), (1, 2), (2, 1)), (values(2, 3, 9, 8),)),
    "fold": (lambda x: F.fold(x, (6, 7), 3, padding=1, stride=2), (values(2, 18, 12),)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), (values(2, 6, 4, 5),)),
    "cross": (torch.linalg.cross, (values(4, 3), values(1, 3))),
    "addbmm": (lambda c, a, b: c.addbmm(a, b, beta=2, alpha=0.5), (values(5, 4), values(3, 5, 6), values(3, 6, 4))),
    "addbmm of no rows": (lambda c, a, b: c.addbmm(a, b), (values(0, 4), values(3, 0, 6), values(3, 6, 4))),
    "addbmm of no columns": (lambda c, a, b: c.addbmm(a, b), (values(5, 0), values(3, 5, 6), values(3, 6, 0))),
    "logaddexp2": (torch.logaddexp2, (values(9), values(3, 1))),
    "cdist": (lambda a, b: torch.cdist(a, b), (values(2, 5, 4), values(2, 3, 4))),
    "cdist of order 3": (lambda a, b: torch.cdist(a, b, 3), (values(5, 4), values(3, 4))),
    "cdist of order 0.5": (lambda a, b: torch.cdist(a.round(), b.round(), 0.5), (values(5, 4), values(3, 4))),
    "cdist of nothing": (lambda a, b: torch.cdist(a, b), (values(2, 5, 4), values(1, 0, 4))),
}


@pytest.mark.parametrize("name", _DIFFERENTIABLE)
def test_results_and_gradients(name: str) -> None:
    function, arguments = _DIFFERENTIABLE[name]
    compare(with_gradients(function), *arguments, tolerance=(1e-4, 1e-4))


def test_rms_norm_of_halves() -> None:
    norm = with_gradients(lambda x, w: F.rms_norm(x, (33,), w))
    compare(norm, values(4, 33).half(), values(33).half(), tolerance=(4e-3, 4e-3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
def test_searches(dtype: torch.dtype) -> None:
    line = values(40, dtype=dtype).sort()[0]
    line[3:7] = line[3]
    x = torch.cat([values(5, 9, dtype=dtype), line[:9].view(1, 9)])
    if dtype.is_floating_point:
        x[0, 0], x[0, 1], line[-1] = float("nan"), float("inf"), float("nan")
    for right in (False, True):
        compare(lambda line, x, right=right: torch.searchsorted(line, x, right=right), line, x)
        for few in (1, 2, 8):  # numbers, of which each lane has one at most
            compare(lambda line, x, right=right: torch.searchsorted(line, x, right=right), line[:9], x.flatten()[:few])
    rows, queries = values(3, 2, 11, dtype=dtype).sort()[0], values(3, 2, 4, dtype=dtype)
    compare(lambda rows, x: torch.searchsorted(rows, x, out_int32=True), rows, queries)
    compare(lambda x, line: [torch.isin(x, line[:n], invert=n == 5) for n in (None, 5, 0)], x, line)
    numbers = values(70, dtype=dtype)
    compare(lambda x: torch.unique(x.view(7, 10), return_inverse=True, return_counts=True), numbers)


def test_writes_along_a_dimension() -> None:
    index, lines, x = torch.tensor([4, 0]), values(2, 3), values(5, 3)
    compare(lambda x, i, y: (x.index_copy_(0, i, y), x.index_fill(0, i - 5, 2.5), x), x, index, lines)
    compare(lambda x, i, y: x.t().index_add(1, i, y.t(), alpha=3), x, index, lines)
    compare(lambda x, i: (x.index_copy(0, i, x * 2), x.index_fill(0, i, 3), x.index_add(0, i, x)), x[0, 0], index[1:])
    for kind in (torch.bool, torch.int16):
        compare(lambda x, i, y: x.index_copy(0, i, y).index_fill(1, i[1:], 1), x.to(kind), index, lines.to(kind))
    there = x.to("spirv").index_fill(0, torch.tensor([7], device="spirv"), 1.0)
    with pytest.raises(IndexError, match="index_fill"):
        there.cpu()


def test_repeats() -> None:
    x, repeats = values(4, 3), torch.tensor([2, 0, 3, 1])
    compare(
        lambda x, n: (x.repeat_interleave(n, 0), n.repeat_interleave(n), torch.eye(3, 5, device=x.device)), x, repeats
    )
    with pytest.raises(RuntimeError, match="negative"):
        x.to("spirv").repeat_interleave((repeats - 1).to("spirv"), 0)


def test_weight_norm() -> None:
    def run(x: torch.Tensor, w: torch.Tensor) -> Any:
        layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(5, 4, bias=False).to(x.device))
        with torch.no_grad():
            layer.weight = w
        y = layer(x)
        (y * y.detach()).sum().backward()
        return y.detach(), [parameter.grad for parameter in layer.parameters()]

    compare(run, values(3, 5), values(4, 5), tolerance=(1e-4, 1e-4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_fractions_and_exponents(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    x = torch.tensor(
        [0.0, -0.0, 1, -1.5, 0.75, limits.max, limits.tiny, -limits.tiny * 1.5, float("inf"), float("nan")]
    )
    compare(torch.frexp, torch.cat((x.to(dtype), values(33, dtype=dtype) * 100)).view(-1, 1).expand(43, 2))
    smallest = x.new_tensor([limits.smallest_normal / 4]).to(dtype)  # which some drivers take for 0
    mantissa, exponent = torch.frexp(smallest.to("spirv"))
    assert (mantissa.cpu().double() * 2.0 ** exponent.cpu().double()).item() in (0.0, smallest.item())


@pytest.mark.parametrize("exponent", [0, 1, -2, 2, 3, -1, 0.5, -0.5, 1.5])
def test_powers(exponent: float) -> None:
    """Those that are products, roots or quotients; of some types, strided, in place, and in the gradient of another."""
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x = torch.cat((values(53), torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan")]))).to(dtype)
        compare(lambda x: (x**exponent, x[::2].clone().pow_(exponent)), x)
    compare(with_gradients(lambda x: x.abs() ** (exponent + 1)), values(41))
    n = torch.tensor([0, -9, 1, 17, 200, 30_000, 2**40])  # to 2 their squares wrap, to 2.0 they are floats
    compare(lambda *xs: [(x ** float(exponent), x ** int(abs(exponent))) for x in xs], n.byte(), n.short(), n)


def test_powers_of_numbers_in_a_line() -> None:
    for start, end, base in ((0, 3, 10.0), (-2.5, 2.5, 2.0), (0, 4, -2.0), (1, 1, 0.5)):
        how: dict[str, Any] = {"steps": 5, "base": base}
        compare(lambda x, s=start, e=end, h=how: torch.logspace(s, e, **h, device=x.device), values(1))
        compare(lambda x, s=start, e=end, h=how: torch.logspace(s, e, **h, out=x[::2]), values(10))


def test_permutations_and_tries() -> None:
    order = torch.randperm(1000, device="spirv")
    assert torch.equal(order.sort().values.cpu(), torch.arange(1000)) and order.tolist() != list(range(1000))
    tries = torch.empty(4000, dtype=torch.int64, device="spirv").geometric_(0.25).cpu()
    assert tries.min() == 1 and abs(tries.float().mean() - 4) < 0.3


def test_a_subclass_of_tensors() -> None:
    class Named(torch.Tensor):
        pass

    x = values(3).to("spirv").as_subclass(Named)
    assert type(x + 1) is Named and x.device.type == "spirv"
    torch.testing.assert_close((x + 1).as_subclass(torch.Tensor).cpu(), x.cpu().as_subclass(torch.Tensor) + 1)
