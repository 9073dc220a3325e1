"""grid_sample, and reductions of elements that an index or offsets put together."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare, with_gradients
from .test_elementwise import values

pytestmark = pytest.mark.usefixtures("no_fallbacks")


def _gradients(function: Any, *inputs: torch.Tensor) -> Any:
    """The result of a function and the gradients of its inputs, with a weight for each element."""
    return with_gradients(function)(*inputs)


@pytest.mark.parametrize(
    ("mode", "padding", "align", "dims"),
    [
        ("bilinear", "zeros", False, 2),
        ("bilinear", "border", True, 2),
        ("bicubic", "reflection", True, 2),
        ("nearest", "border", False, 2),
        ("bilinear", "reflection", False, 3),
    ],
)
def test_grid_sample_and_its_gradients(mode: str, padding: str, align: bool, dims: int) -> None:
    """Places inside, outside, past both ends and at the edges, of images whose channels lie apart in memory."""
    torch.manual_seed(0)
    image = values(2, *(4, 5, 7)[3 - dims :], 3).movedim(-1, 1)
    grid = torch.rand(2, *(3, 4, 6)[3 - dims :], dims) * 3.6 - 1.8
    grid[0].view(-1)[:4] = torch.tensor([1.0, -1.0, 2.5, -2.5])

    def sample(x: torch.Tensor, grid: torch.Tensor) -> list[torch.Tensor]:
        how: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align}
        found = _gradients(lambda *given: F.grid_sample(*given, **how), x, grid)
        return [tensor.contiguous() for tensor in found]

    compare(sample, image, grid, tolerance=(1e-4, 1e-4))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_cubic_samples_far_away_and_their_gradients(padding: str, align: bool) -> None:
    far = [1e30, 1e10, 3e9, 1e9, 2e7, 1e5, 100.0, 3.0, 1.0, 0.3]
    places = torch.tensor([*far, *(-x for x in far)])
    grid = torch.cartesian_prod(places, torch.tensor([0.1, -1e10, 3.0])).view(1, -1, 1, 2)

    def sample(x: torch.Tensor, grid: torch.Tensor) -> list[torch.Tensor]:
        how: dict[str, Any] = {"mode": "bicubic", "padding_mode": padding, "align_corners": align}
        return [y.contiguous() for y in _gradients(lambda *given: F.grid_sample(*given, **how), x, grid)]

    compare(sample, values(1, 2, 4, 5), grid, tolerance=(1e-4, 1e-4))


def test_gradients_of_places_that_are_nowhere_are_numbers() -> None:
    """Infinite and NaN ones. The CPU's differ between images and volumes, and may end the process."""
    grid = torch.tensor([[float("inf"), 0.1], [-float("inf"), 3.0], [float("nan"), 0.2]], device="spirv")
    out, of_image, of_grid = _gradients(F.grid_sample, values(1, 2, 4, 5).to("spirv"), grid.view(1, 3, 1, 2))
    assert not out.any() and not of_image.any() and not of_grid.any()


def test_grid_sample_far_away_and_of_halves() -> None:
    """What is infinitely far away is nowhere, as on CUDA; the CPU has NaN there."""
    image, grid = values(1, 2, 5, 7), torch.tensor([[[[1e30, 0.0], [0.2, -0.4], [float("inf"), 0.3]]]])
    exact = F.grid_sample(image.double(), grid[..., :2, :].double(), align_corners=False)
    for dtype, unit in ((torch.float32, 2**-20), (torch.float16, 2**-8)):
        found = F.grid_sample(image.to("spirv", dtype), grid.to("spirv", dtype), align_corners=False).cpu()
        assert (found[..., :2].double() - exact).abs().max() < unit * image.abs().max()
        assert not found[..., 2].any()


@pytest.mark.parametrize("how", ["prod", "mean", "amax", "amin"])
def test_scatter_reduce_and_index_reduce(how: str) -> None:
    torch.manual_seed(0)
    x, source, index = values(5, 9), values(6, 7), torch.randint(0, 4, (6, 7))  # row 4 gets nothing
    source[2, 3] = float("nan")
    line = torch.tensor([2, 0, 2, 4, 2, 2])

    def run(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, line: torch.Tensor) -> Any:
        return [
            x.scatter_reduce(0, index, source, how),
            x.t().scatter_reduce(1, index.t(), source.t(), how, include_self=False).contiguous(),
            x.index_reduce(0, line, source.repeat(1, 2)[:, :9], how),
        ]

    compare(run, x, index, source, line)
    if how == "amax":
        compare(lambda x, i, s: x.scatter_reduce(0, i, s, how), (x * 9).long(), index, (source.nan_to_num() * 9).long())
        compare(lambda x, i, s: _gradients(lambda a, b: a.scatter_reduce(0, i, b, how), x, s), x, index, source * 2)


def test_scatter_reduce_by_sums() -> None:
    index = torch.randint(0, 4, (6, 7))
    kept, new = (lambda x, i, s, k=k: x.scatter_reduce(0, i, s, "sum", include_self=k) for k in (True, False))
    compare(kept, values(5, 9), index, values(6, 7), tolerance=(1e-5, 1e-5))
    compare(new, values(5, 9) > 0, index, values(6, 7) > 0)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_and_its_gradients(mode: str) -> None:
    """Bags of several, one and no rows, with rows that are left out; no rows at all."""
    indices, offsets = torch.tensor([1, 9, 4, 4, 0, 2, 9, 7, 3]), torch.tensor([0, 3, 3, 4])

    def run(table: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor) -> Any:
        return _gradients(lambda w: F.embedding_bag(indices, w, offsets, mode=mode, padding_idx=4), table)

    for given in ((indices, offsets), (indices[:0], offsets * 0)):
        compare(run, values(10, 5), *given, tolerance=(1e-5, 1e-5))


def test_embedding_bag_with_weights_and_bad_indices() -> None:
    def run(table: torch.Tensor, index: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor) -> Any:
        how: dict[str, Any] = {"mode": "sum", "include_last_offset": True}
        return _gradients(lambda w, s: F.embedding_bag(index, w, offsets, per_sample_weights=s, **how), table, weights)

    given = torch.tensor([1, 9, 4, 4, 0]), torch.tensor([0, 3, 5]), torch.rand(5)
    for few in (given, (given[0][:0], given[1] * 0, given[2][:0])):
        compare(run, values(10, 5), *few, tolerance=(1e-5, 1e-5))
    F.embedding_bag(torch.tensor([1, 10], device="spirv"), values(10, 5).to("spirv"), torch.tensor([0], device="spirv"))
    with pytest.raises(IndexError, match="embedding_bag"):
        torch.zeros(1, device="spirv").cpu()


def test_segments() -> None:
    lengths = torch.tensor([2, 0, 5])

    def run(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        how: list[tuple[str, float | None]] = [("sum", 2.0), ("max", None), ("mean", None), ("mean", 3.0)]
        return [torch.segment_reduce(x, name, lengths=lengths, axis=0, initial=first) for name, first in how]

    compare(run, values(7, 3), lengths, tolerance=(1e-6, 1e-6))


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 1.5])
def test_gradients_of_segments(how: str, initial: float | None) -> None:
    """Of empty ones, of equal elements, of zeros and NaN in a product, of elements that belong to none, and of several
    lines of segments."""
    nan = float("nan")
    x = torch.tensor([[3.0, 3.0, 1.0, 0.0, 2.0, 5.0, 0.5, 4.0], [2.0, 0.0, 0.0, nan, 1.0, nan, nan, 3.0]])
    weights = torch.tensor([[1.0, -2.0, 3.0, 0.5], [-1.0, 2.0, 4.0, 1.0]])

    def run(x: torch.Tensor, w: torch.Tensor, along: torch.Tensor, offsets: torch.Tensor, each: torch.Tensor) -> Any:
        def segments(x: torch.Tensor) -> torch.Tensor:
            kinds: list[dict[str, Any]] = [{"lengths": along}, {"offsets": offsets}]
            columns = [torch.segment_reduce(x.t(), how, axis=0, initial=initial, **kind).mul(w.t()) for kind in kinds]
            wide = torch.segment_reduce(x[..., None] * 2, how, lengths=each, axis=1, initial=initial)
            return sum(columns).sum() + (wide[..., 0] * w).sum()

        return _gradients(segments, x)

    lengths = torch.tensor([2, 0, 5, 1]), torch.tensor([0, 3, 3, 5, 8]), torch.tensor([[1, 4, 0, 3], [2, 0, 5, 1]])
    compare(run, x, weights, *lengths, tolerance=(1e-5, 1e-6))
    compare(run, x.double(), weights.double(), *lengths, tolerance=(1e-10, 1e-10))
    unchecked = lambda x, lengths: _gradients(  # noqa: E731
        lambda x: torch.segment_reduce(x, how, lengths=lengths, axis=0, unsafe=True, initial=initial), x
    )
    compare(unchecked, x[0], torch.tensor([2, 0, 3, 1]), tolerance=(1e-5, 1e-6))


def test_what_is_there_once() -> None:
    x = torch.tensor([[1, 2, 2], [0, 5, 5], [1, 2, 2], [1, 2, 3], [1, 2, 3]])
    how: Any = {"return_inverse": True, "return_counts": True}
    compare(lambda x: (torch.unique(x, dim=0, **how), torch.unique_consecutive(x, dim=0, **how)), x)
    compare(lambda x: (torch.unique(x, dim=1, **how), torch.unique_consecutive(x.mT, dim=-1, **how)), x)
    compare(lambda x: torch.unique_consecutive(x, **how), x)
    compare(lambda x, w: (x.bincount(), x.bincount(w, minlength=9)), x[:, 2].contiguous(), torch.rand(5))
    compare(lambda x: (x.histc(5), x.histc(4, -1, 1)), values(70))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_histograms_of_integers(dtype: torch.dtype) -> None:
    """torch's CPU refuses them, CUDA does not: experts that tokens go to are counted so."""
    x = torch.tensor([0, 3, 3, 1, 0, 3, 5, 9], dtype=dtype)
    on_device = x.to("spirv")
    counts = on_device.histc(4, 0, 3)
    assert counts.dtype == dtype and counts.tolist() == [2, 1, 0, 3]
    assert on_device.histc(3, 1, 9).tolist() == [4, 1, 1]
    assert on_device.histc(5).tolist() == x.to(torch.float32).histc(5).tolist()
    assert on_device[:0].histc(3, 0, 2).tolist() == [0, 0, 0]
