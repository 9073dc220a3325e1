"""Reading and writing at indices, losses of classes, and what happens with an index out of range."""

from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn import functional as F

from .conftest import compare, with_gradients
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def test_reading() -> None:
    x, rows, at = values(7, 5, 9), torch.tensor([3, 0, 6, 6]), torch.randint(0, 5, (7, 3, 9))
    compare(lambda x, rows, at: (x.index_select(0, rows), x.mT.index_select(2, rows % 5), x.gather(1, at)), x, rows, at)
    compare(lambda x, rows, at: (x[rows], x[:, rows - 4], x[rows[:, None], rows % 5], x[rows, :, rows]), x, rows, at)
    compare(lambda x, rows, at: (x.bool()[rows], x.half()[:, :, rows], x.double()[rows]), x, rows, at)


@pytest.mark.parametrize("alpha", [0.5, -2.7, 3, True])
def test_factors_of_added_rows_are_of_the_tensors_type(alpha: float) -> None:
    rows = torch.tensor([3, 0, 6, 6])
    for dtype in (torch.int64, torch.int8, torch.bool, torch.float16):
        x = (values(7, 5) * 9).to(dtype)
        compare(lambda x, rows: x.index_add(0, rows, x[:4], alpha=alpha), x, rows)
    for device in ("spirv", "cpu"):
        x = torch.ones(7, dtype=torch.uint8, device=device)
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8_t without overflow"):
            x.index_add(0, rows.to(device), x[:4], alpha=alpha + 300)


def test_writing() -> None:
    x, rows, at = values(7, 5, 9), torch.tensor([3, 0, 6, 6]), torch.randint(0, 5, (7, 3, 9))
    compare(
        lambda x, rows, at: (
            x.index_add(0, rows, x[:4]),
            x.scatter_add(1, at, x),
            x.scatter(1, rows[:1].view(1, 1, 1), 3.0),
        ),
        x,
        rows,
        at,
    )
    compare(
        lambda x, rows, at: (
            x.index_put_((rows,), x[1, 1, 1].clone()),
            x.index_put_((rows - 7, rows % 5), x[0, 0].clone(), accumulate=True),
        ),
        x,
        rows,
        at,
    )
    compare(lambda x, rows, at: x.half().index_add(0, rows, x[:4].half()), x, rows, at)


def test_what_is_written_has_both_gradients_and_tangents() -> None:
    """torch's formulas for them share one list of indices."""
    x, given, rows = values(7, 5), values(3, 5), torch.tensor([3, 0, 6])

    def written(x: torch.Tensor, given: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = [x.clone().requires_grad_(), given.clone().requires_grad_()]
        gradients = torch.autograd.grad(leaves[0].index_put((rows,), leaves[1]), leaves, x)
        with forward_ad.dual_level():
            pair, pair_given = forward_ad.make_dual(x, x * 2), forward_ad.make_dual(given[0], given[1])
            duals = pair[rows], pair.index_put((rows,), pair_given), pair.clone().index_put_((rows,), pair_given)
            return *gradients, *(forward_ad.unpack_dual(dual)[1] for dual in duals)

    compare(written, x, given, rows)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int8, torch.uint8, torch.int16, torch.bool], ids=str)
def test_additions_of_types_without_an_instruction_for_them(dtype: torch.dtype) -> None:
    """float64, and what is added up in int32, past its own range, too."""
    x = torch.randint(0, 100, (7, 5, 9)).to(dtype)
    rows, at = torch.tensor([3, 0, 6, 6]), torch.randint(0, 2, (7, 3, 9))
    compare(
        lambda x, rows, at: (
            x.index_add(0, rows, x[:4]),
            x.scatter_add(1, at, x),
            x.index_put((rows - 7, rows % 5), x[0, 0].clone(), accumulate=True),
            x.index_put((rows,), x[1, 1, 1].clone(), accumulate=True),
        ),
        x,
        rows,
        at,
    )


def test_gradients_in_float64() -> None:
    def run(x: torch.Tensor, rows: torch.Tensor, at: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        results = x[rows], x.gather(1, at), x.index_select(0, rows), F.embedding(rows, x, padding_idx=3), x.take(rows)
        results += (x.scatter_add(1, at, x[:, :3]), x.index_add(0, rows, x[:4]), F.embedding_bag(rows.view(2, 2), x))
        return torch.autograd.grad(sum((y * y.detach()).sum() for y in results), x)

    compare(run, values(7, 5).double(), torch.tensor([3, 0, 6, 6]), torch.randint(0, 5, (7, 3)))


def test_an_embedding_and_its_gradient() -> None:
    tokens = torch.tensor([[1, 2, 3], [3, 3, 10]])
    compare(with_gradients(lambda weight: F.embedding(tokens.to(weight.device), weight, padding_idx=2)), values(11, 6))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_and_its_gradient(reduction: str) -> None:
    def run(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        options: list[dict[str, Any]] = [{}, {"weight": weight.exp()}, {"label_smoothing": 0.1}, {"ignore_index": 3}]
        losses = [F.cross_entropy(x, target, reduction=reduction, **given) for given in options]
        sum(loss.sum() for loss in losses).backward()
        return [loss.detach() for loss in losses], x.grad

    compare(run, values(8, 6), torch.tensor([0, 3, 5, 2, 1, 3, 4, 0]), values(6))
    compare(run, values(2, 6, 4), torch.tensor([[0, 3, 5, 2], [1, 3, 4, 0]]), values(6))


def test_an_index_out_of_range() -> None:
    x = values(5, 4).to("spirv")
    for wrong in (
        lambda: x[torch.tensor([1, 5], device="spirv")],
        lambda: x.gather(0, torch.full((1, 4), -1, device="spirv")),
    ):
        y = wrong()
        with pytest.raises(IndexError, match="an index was out of range in (index|gather)"):
            y.cpu()
        assert y.cpu().shape == y.shape


def test_tensors_without_dimensions_and_without_elements() -> None:
    index, x = torch.tensor(0), torch.tensor(2.5)
    compare(
        lambda x, i: (x.gather(0, i), x.scatter(0, i, 3.0), x.scatter_add(0, i, x), x.softmax(0), x.take(i)), x, index
    )
    there = torch.ones(3, device="spirv")
    there.take(index.to("spirv")).mul_(2)
    assert there.tolist() == [1, 1, 1]  # the element is no view
    x, none = torch.randn(3, 4), torch.zeros(0, 4, dtype=torch.int64)
    compare(
        lambda x, i: (x.gather(0, i), x.scatter(0, i, 3.0), x.masked_scatter(x > 9, x[:0]), x.equal(x + 0)), x, none
    )


@pytest.mark.parametrize("accumulate", [False, True])
def test_values_that_share_the_memory_are_read_first(accumulate: bool) -> None:
    there, place = torch.arange(90_000, device="spirv"), torch.arange(1, 90_000)
    want = there.cpu().index_put((place,), there.cpu()[:-1], accumulate)
    assert there.index_put_((place.to("spirv"),), there[:-1], accumulate).cpu().equal(want)
