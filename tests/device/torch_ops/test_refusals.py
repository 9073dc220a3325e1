"""What torch refuses on the CPU is refused with the same class of error."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .conftest import compare

_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")


@pytest.mark.parametrize("name", _BITS)
def test_bits_of_floats(name: str) -> None:
    x = torch.ones(3, dtype=torch.float16, device="spirv")
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        getattr(torch, name)(x, x)


@pytest.mark.parametrize("chance", [1.5, -0.1, float("nan")])
def test_probabilities(chance: float) -> None:
    with pytest.raises(RuntimeError, match="not in \\[0, 1\\] in bernoulli"):
        torch.bernoulli(torch.tensor([0.5, chance, 0.5], device="spirv")).cpu()
    with pytest.raises(RuntimeError, match="not in \\[0, 1\\] in bernoulli"):
        torch.empty(2, 2, device="spirv").bernoulli_(torch.tensor([0.5, chance], device="spirv")).tolist()
    with pytest.raises(RuntimeError, match="to be in \\[0, 1\\]"):
        torch.empty(3, device="spirv").bernoulli_(chance)
    assert torch.bernoulli(torch.tensor([0.0, 1.0], device="spirv")).tolist() == [0.0, 1.0]


_DIVISIONS = {
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "inplace": lambda x, y: x.floor_divide_(y),
}


@pytest.mark.parametrize("name", _DIVISIONS)
def test_integers_divided_by_0(name: str) -> None:
    x = torch.tensor([7, -7, 3], dtype=torch.int32)
    compare(_DIVISIONS[name], x, torch.tensor([2, 3, -1], dtype=torch.int32))
    compare(_DIVISIONS[name], x.float(), torch.tensor([2.0, 0.0, -1.0]))
    for divisor in (0, torch.tensor([2, 0, 1], dtype=torch.int32, device="spirv")):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            _DIVISIONS[name](x.to("spirv"), divisor).cpu()


@pytest.mark.parametrize("classes", [[1, 5], [1, -5], [-1, -1], [[1, 0], [2, 3]]])
def test_classes(classes: list[int]) -> None:
    for count in (4, -1):
        here = torch.tensor(classes)
        try:
            want = F.one_hot(here, count)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=str(error).rstrip(".")):
                F.one_hot(here.to("spirv"), count).cpu()
        else:
            assert torch.equal(F.one_hot(here.to("spirv"), count).cpu(), want)
    with pytest.raises(RuntimeError, match="empty tensor"):
        F.one_hot(torch.empty(0, dtype=torch.int64, device="spirv"))
    assert F.one_hot(torch.empty(0, dtype=torch.int64, device="spirv"), 3).shape == (0, 3)


@pytest.mark.usefixtures("no_fallbacks")
@pytest.mark.parametrize("name", _BITS)
def test_bits_of_small_integers_stay_on_the_device(name: str) -> None:
    compare(
        getattr(torch, name), torch.tensor([-3, 5, 127], dtype=torch.int8), torch.tensor([1, 3, 6], dtype=torch.int8)
    )


def test_scores_and_classes_of_a_loss_with_margins() -> None:
    one = torch.tensor(1)
    for scores, classes in (([5], one.expand(2)), ([2, 5], one), ([2, 3, 5], one.view(1))):
        for device in ("cpu", "spirv"):
            with pytest.raises(RuntimeError):
                F.multi_margin_loss(torch.zeros(scores, device=device), classes.to(device))


#: Reductions whose dimensions torch leaves to the device to check.
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "var": torch.var,
    "std": torch.std,
    "var_mean": torch.var_mean,
    "std_mean": torch.std_mean,
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "nansum": torch.nansum,
    "all": torch.all,
    "logsumexp": torch.logsumexp,
    "norm": torch.linalg.vector_norm,
    "count_nonzero": torch.count_nonzero,
}


@pytest.mark.parametrize("dim", [2, -3, (0, 0), (1, -1), (0, 5)], ids=str)
@pytest.mark.parametrize("name", _REDUCTIONS)
def test_dimensions_out_of_range_or_named_twice(name: str, dim: Any) -> None:
    reduce, x = _REDUCTIONS[name], torch.randn(3, 4)
    how = {"dim": dim}
    with pytest.raises((IndexError, RuntimeError)) as expected:
        reduce(x, **how)
    with pytest.raises(expected.type):
        reduce(x.to("spirv"), **how)
