"""Small dense linear algebra: factors, solutions, inverses, determinants, and their gradients, in batches."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .conftest import compare, with_gradients

pytestmark = pytest.mark.usefixtures("no_fallbacks", "compiled")

_CLOSE: dict[Any, tuple[float, float]] = {torch.float32: (2e-3, 2e-3), torch.float64: (1e-9, 1e-9)}


def _matrices(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Whose rows have to be swapped, and which are not nearly singular."""
    torch.manual_seed(sum(shape))
    n = shape[-1]
    return (torch.randn(*shape, dtype=dtype) + 2 * torch.eye(n, dtype=dtype).roll(1, 0) * n**0.5).contiguous()


def _positive(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    a = _matrices(*shape, dtype=dtype)
    return a @ a.mT / shape[-1] + torch.eye(shape[-1], dtype=dtype)


#: Of (…, n, n) and (…, n, m).
_OF_TWO: dict[str, Callable[..., Any]] = {
    "solve": torch.linalg.solve,
    "solve, from the right": lambda a, b: torch.linalg.solve(a, b.mT, left=False),
    "solve for one": lambda a, b: torch.linalg.solve(a, b[..., 0]),
    "lu_solve": lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b),
    "upper": lambda a, b: torch.linalg.solve_triangular(a @ a.mT, b, upper=True),
    "lower": lambda a, b: torch.linalg.solve_triangular(a @ a.mT, b, upper=False),
    "upper, from the right": lambda a, b: torch.linalg.solve_triangular(a @ a.mT, b.mT, upper=True, left=False),
    "lower, from the right": lambda a, b: torch.linalg.solve_triangular(a @ a.mT, b.mT, upper=False, left=False),
    "unit": lambda a, b: torch.linalg.solve_triangular(a / 20, b, upper=True, unitriangular=True),
}
_OF_ONE: dict[str, Callable[..., Any]] = {
    "inverse": torch.linalg.inv,
    "determinant": lambda a: torch.linalg.det(a / 4),
    "its logarithm": lambda a: torch.linalg.slogdet(a)[1],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", _OF_TWO)
def test_solutions(name: str, dtype: torch.dtype) -> None:
    for shape, columns in (((4, 4), 3), ((2, 3, 7, 7), 17)):
        a = _matrices(*shape, dtype=dtype)
        b = torch.randn(*shape[:-1], columns, dtype=dtype)
        compare(with_gradients(_OF_TWO[name], strides=False), a, b, tolerance=_CLOSE[dtype])


@pytest.mark.parametrize("name", _OF_ONE)
def test_inverses_and_determinants(name: str) -> None:
    for shape in ((1, 1), (5, 8, 8), (2, 33, 33)):
        compare(with_gradients(_OF_ONE[name], strides=False), _matrices(*shape), tolerance=(5e-3, 5e-3))


def test_factors() -> None:
    a = _matrices(3, 9, 9)
    for order in (a, a.mT):  # what torch factors of each is its own
        compare(lambda a: torch.linalg.lu_factor_ex(a), order, tolerance=(1e-3, 1e-4))
        compare(lambda a: torch.linalg.lu(a), order, tolerance=(1e-3, 1e-4))
        compare(lambda a: torch._linalg_solve_ex(a, a[..., :2].contiguous())[1:], order, tolerance=(1e-3, 1e-4))
        compare(lambda a: torch._linalg_det(a)[1:], order, tolerance=(1e-3, 1e-4))
    for upper in (False, True):
        compare(
            lambda a, upper=upper: torch.linalg.cholesky_ex(a, upper=upper), _positive(3, 9, 9), tolerance=(1e-3, 1e-4)
        )
        compare(
            lambda a, b, upper=upper: torch.cholesky_solve(b, torch.linalg.cholesky(a, upper=upper), upper=upper),
            *(_positive(2, 6, 6), torch.randn(2, 6, 4)),
            tolerance=(1e-3, 1e-3),
        )
    compare(
        with_gradients(lambda a: torch.linalg.cholesky(a @ a.mT + 9 * torch.eye(9, device=a.device)), strides=False),
        a,
        tolerance=_CLOSE[torch.float32],
    )


def test_batches_that_are_broadcast_and_results_of_the_callers() -> None:
    a, b = _matrices(5, 5), torch.randn(3, 5, 2)
    compare(torch.linalg.solve, a, b, tolerance=(1e-3, 1e-3))
    compare(lambda a, b: torch.linalg.solve(a, b, out=torch.empty(0, device=a.device)), a, b, tolerance=(1e-3, 1e-3))
    compare(lambda a: torch.linalg.inv(a, out=torch.empty(5, 5, device=a.device)), a, tolerance=(1e-3, 1e-3))


def test_what_has_no_solution() -> None:
    singular = torch.ones(2, 3, 3)
    singular[1] = torch.eye(3)
    compare(lambda a: torch.linalg.inv_ex(a)[1], singular)
    compare(lambda a: torch.linalg.lu_factor_ex(a)[2], singular)
    compare(lambda a: torch.linalg.det(a), singular)
    compare(lambda a: torch.linalg.cholesky_ex(a)[1], torch.stack((-torch.eye(3), torch.eye(3), 1 - torch.eye(3))))
    for call in (torch.linalg.inv, torch.linalg.cholesky, lambda a: torch.linalg.solve(a, a)):
        for device in ("cpu", "spirv"):
            with pytest.raises(torch.linalg.LinAlgError, match="Batch element 0"):
                call((singular - torch.eye(3) * 2 * (call is torch.linalg.cholesky)).to(device))


def test_an_older_way_to_divide_by_triangles() -> None:
    a, b = _matrices(2, 4, 4), _matrices(2, 4, 4)[..., :3]
    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                how = (upper, transpose, unit)
                compare(lambda b, a, how=how: tuple(torch.triangular_solve(b, a, *how)), b, a, tolerance=(1e-3, 1e-4))
