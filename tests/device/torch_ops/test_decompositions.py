"""QR, eigenvalues, singular values and least squares, which LAPACK computes on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .conftest import compare, with_gradients


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype)


def _low_rank(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """With one direction and exact numbers, so that the other singular values are 0 or rounding."""
    down, across = torch.arange(1.0, shape[-2] + 1, dtype=dtype), torch.arange(2.0, shape[-1] + 2, dtype=dtype)
    return (down[:, None] * across).expand(shape).clone()


#: Of (…, m, n); their values do not depend on vectors' signs.
_OF_ONE: dict[str, Callable[..., Any]] = {
    "Q": lambda a: torch.linalg.qr(a)[0],
    "R": lambda a: torch.linalg.qr(a)[1],
    "reflections": lambda a: torch.linalg.householder_product(a.tril(-1) / 4, a[..., 0, :] / 4 + 1),
    "eigenvalues": lambda a: torch.linalg.eigvalsh(a.mT @ a),
    "eigenvectors": lambda a: torch.linalg.eigh(a.mT @ a)[1].abs(),
    "singular values": lambda a: torch.linalg.svdvals(a.mT),
    "left vectors": lambda a: torch.linalg.svd(a, full_matrices=False)[0].abs(),
    "right vectors": lambda a: torch.linalg.svd(a, full_matrices=False)[2].abs(),
    "pseudo-inverse": torch.linalg.pinv,
    "pseudo-inverse of a symmetric one": lambda a: torch.linalg.pinv(a.mT @ a, hermitian=True),
    "condition": torch.linalg.cond,
    "spectral norm": lambda a: torch.linalg.matrix_norm(a, 2),
    "smallest": lambda a: torch.linalg.matrix_norm(a, -2),
    "nuclear norm": lambda a: torch.linalg.matrix_norm(a, "nuc"),
}


@pytest.mark.parametrize("name", _OF_ONE)
def test_values_and_gradients(name: str) -> None:
    for shape in ((3, 3), (2, 2, 5, 3)):
        a = _random(*shape, dtype=torch.float64)
        compare(with_gradients(_OF_ONE[name], strides=False), a, tolerance=(1e-8, 1e-9))


def test_part_of_a_longer_result_keeps_its_strides() -> None:
    a, b = _random(51, 5), _random(51, 2)
    compare(lambda a, b: tuple(torch.linalg.lstsq(a, b)), a, b, tolerance=(1e-4, 1e-5))
    compare(lambda a, b: torch.linalg.qr(a[:, :0]), a, b)


def test_ranks() -> None:
    a = torch.stack((_low_rank(6, 4), _random(6, 4), torch.zeros(6, 4), _random(6, 2) @ _random(2, 4)))
    compare(torch.linalg.matrix_rank, a)
    compare(lambda a: torch.linalg.matrix_rank(a, atol=1.0, rtol=0.1), a)
    symmetric = torch.stack((_low_rank(9, 9) + _low_rank(9, 9).mT, torch.eye(9), torch.zeros(9, 9)))
    compare(lambda a: torch.linalg.matrix_rank(a, hermitian=True), symmetric)
    tall = _random(40, 3)
    compare(torch.linalg.matrix_rank, tall @ tall.mT)
    compare(lambda a: torch.linalg.matrix_rank(a, hermitian=True), tall @ tall.mT)


def test_calls_that_are_refused() -> None:
    def into(a: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        return torch.empty(0, dtype=kind, device=a.device)

    calls: list[Callable[[torch.Tensor], Any]] = [
        lambda a: torch.linalg.qr(a[0]),
        lambda a: torch.linalg.qr(a, "other"),
        lambda a: torch.linalg.qr(a, out=(into(a, torch.float64), into(a, torch.float32))),
        lambda a: torch.linalg.svdvals(a, out=into(a, torch.float64)),
        lambda a: torch.linalg.inv(a[:3], out=into(a, torch.float64)),
        lambda a: torch.linalg.svd(a, driver="gesvd"),
        lambda a: torch.linalg.eigh(a),
        lambda a: torch.linalg.eigh(a[:3], "R"),
        lambda a: torch.ormqr(a, a[0, :2], a),
        lambda a: torch.ormqr(a, a[0], a.mT),
        lambda a: torch.linalg.householder_product(a.mT, a[0]),
        lambda a: torch.linalg.lstsq(a, a[1:]),
        lambda a: torch.linalg.lstsq(a, a, driver="other"),
        lambda a: torch.linalg.lstsq(a, a.double()),
    ]
    a = _random(4, 3)
    for number, call in enumerate(calls):
        with pytest.raises((RuntimeError, ValueError)) as want:
            call(a)
        with pytest.raises(want.type) as got:
            call(a.to("spirv"))
        assert str(got.value)[:60] == str(want.value)[:60], number
