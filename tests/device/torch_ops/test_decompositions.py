"""QR, eigenvalues, singular values and least squares: against float64, with errors of the order of LAPACK's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from triton.backends.spirv.torch import registration
from triton.backends.spirv.torch.ops import jacobi

from .conftest import compare, with_gradients

pytestmark = pytest.mark.usefixtures("compiled")

_TYPES = [torch.float32, torch.float64]
_BATCHES: list[tuple[int, ...]] = [(1, 1), (2, 2), (3, 3), (2, 5, 3), (2, 2, 3, 5), (2, 33, 9), (9, 33)]


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype)


def _low_rank(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """With one direction and exact numbers, so that the other singular values are 0 or rounding."""
    down, across = torch.arange(1.0, shape[-2] + 1, dtype=dtype), torch.arange(2.0, shape[-1] + 2, dtype=dtype)
    return (down[:, None] * across).expand(shape).clone()


def _orthogonal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """All singular values are 1."""
    size = max(shape[-2:])
    q = torch.linalg.qr(_random(*shape[:-2], size, size, dtype=torch.float64))[0]
    return q[..., : shape[-2], : shape[-1]].to(dtype)


def _hilbert(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Ill-conditioned."""
    i, j = torch.arange(shape[-2])[:, None], torch.arange(shape[-1])
    return (1.0 / (i + j + 1).to(dtype)).expand(shape).clone()


def _graded(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Columns of sizes from 1 to 1e-30, the first of which is 0."""
    sizes = torch.logspace(0, -30, shape[-1], dtype=torch.float64)
    sizes[0] = 0
    return (_random(*shape, dtype=torch.float64) * sizes).to(dtype)


_KINDS: dict[str, Callable[..., torch.Tensor]] = {
    "random": _random,
    "low rank": _low_rank,
    "repeated": _orthogonal,
    "ill-conditioned": _hilbert,
    "graded": _graded,
    "zero": torch.zeros,
    "diagonal": lambda *shape, dtype: torch.eye(*shape[-2:], dtype=dtype).expand(shape).clone() * -3,
    "large": lambda *shape, dtype: _random(*shape, dtype=dtype) * 1e30,
    "small": lambda *shape, dtype: _random(*shape, dtype=dtype) * 1e-30,
}


def _bounded(error: torch.Tensor, size: torch.Tensor | float, a: torch.Tensor, factor: float = 4) -> None:
    """Check that every element of an error (…, i, j) is below ``factor`` · n · eps · size."""
    bound = factor * max(a.shape[-2:]) * torch.finfo(a.dtype).eps * torch.as_tensor(size, dtype=torch.float64)
    assert error.isfinite().all()
    assert (error.abs().amax((-2, -1)) <= bound).all(), (error.abs().amax((-2, -1)) / bound).max()


def _norm(a: torch.Tensor) -> torch.Tensor:
    return torch.linalg.matrix_norm(a.double(), 2)


def _orthonormal(q: torch.Tensor, a: torch.Tensor) -> None:
    """Check the columns of q."""
    _bounded(q.mT @ q - torch.eye(q.shape[-1], dtype=q.dtype), 1.0, a)


def _back(*tensors: torch.Tensor) -> list[torch.Tensor]:
    assert all(tensor.device.type == "spirv" for tensor in tensors)
    return [tensor.cpu().double() for tensor in tensors]


@pytest.mark.parametrize("dtype", _TYPES, ids=str)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.usefixtures("no_fallbacks")
def test_qr(kind: str, dtype: torch.dtype) -> None:
    for shape in _BATCHES:
        a = _KINDS[kind](*shape, dtype=dtype)
        for mode in ("reduced", "complete"):
            q, r = _back(*torch.linalg.qr(a.to("spirv"), mode))
            _bounded(q @ r - a.double(), _norm(a), a)
            _orthonormal(q, a)
            assert torch.equal(r, r.triu())
        empty, alone = torch.linalg.qr(a.to("spirv"), "r")
        assert empty.shape == (0,)
        assert torch.equal(alone.cpu().double(), r[..., : min(shape[-2:]), :])


@pytest.mark.usefixtures("no_fallbacks")
def test_reflections_are_lapacks() -> None:
    for shape in _BATCHES:
        a = _random(*shape)
        for given in (a, a.mT.contiguous().mT, a[..., ::2]):
            for mode in ("reduced", "complete", "r"):
                compare(lambda a, mode=mode: tuple(torch.linalg.qr(a, mode)), given, tolerance=(1e-4, 1e-5))
            compare(lambda a: tuple(torch.geqrf(a)), given, tolerance=(1e-4, 1e-5))
    factors, taus = torch.geqrf(_random(2, 9, 6))
    for k in (0, 4, 6):
        for product in (torch.linalg.householder_product, torch.orgqr):
            compare(product, factors, taus[..., :k], tolerance=(1e-4, 1e-5))
        for left in (True, False):
            for transpose in (True, False):
                other = _random(2, 9, 5) if left else _random(2, 5, 9)
                compare(
                    lambda a, t, c, left=left, transpose=transpose: torch.ormqr(a, t, c, left, transpose),
                    *(factors[..., :k], taus[..., :k], other),
                    tolerance=(1e-4, 1e-5),
                )


@pytest.mark.usefixtures("no_fallbacks")
def test_qr_of_many_columns_in_panels() -> None:
    for shape in ((150, 140), (2, 20, 150), (300, 10)):
        a = _random(*shape)
        q, r = _back(*torch.linalg.qr(a.to("spirv")))
        _bounded(q @ r - a.double(), _norm(a), a)
        _orthonormal(q, a)
        compare(lambda a: torch.linalg.qr(a, "r")[1], a, tolerance=(1e-3, 1e-4))


def _symmetric(kind: str, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    a = _KINDS[kind](*shape, dtype=dtype)
    return a / 2 + a.mT / 2


@pytest.mark.parametrize("dtype", _TYPES, ids=str)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.usefixtures("no_fallbacks")
def test_eigenvalues_of_symmetric_matrices(kind: str, dtype: torch.dtype) -> None:
    for shape in ((1, 1), (2, 2), (3, 3), (2, 2, 5, 5), (33, 33)):
        a = _symmetric(kind, *shape, dtype=dtype)
        other = torch.full_like(a, float("nan")).triu(1)  # is not read
        for uplo, given in (("L", a.tril() + other), ("U", (a.tril() + other).mT), ("l", a.tril() + other)):
            values, v = _back(*torch.linalg.eigh(given.to("spirv"), uplo))
            _bounded(a.double() @ v - v * values[..., None, :], _norm(a), a)
            _bounded((values - torch.linalg.eigvalsh(a.double()))[..., None], _norm(a), a)
            _orthonormal(v, a)
            assert (values.diff() >= 0).all()
        alone = torch.linalg.eigvalsh(a.to("spirv"))
        assert torch.equal(alone.cpu().double(), values)


@pytest.mark.usefixtures("no_fallbacks")
def test_eigenvalues_of_both_signs_that_are_one_singular_value() -> None:
    a = torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, -1], [0, 0, -1, 0]])
    values, v = _back(*torch.linalg.eigh(a.to("spirv")))
    torch.testing.assert_close(values, torch.tensor([-1.0, -1, 1, 1], dtype=torch.float64))
    _bounded(a.double() @ v - v * values, 1.0, a)


@pytest.mark.parametrize("dtype", _TYPES, ids=str)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.usefixtures("no_fallbacks")
def test_singular_values(kind: str, dtype: torch.dtype) -> None:
    for shape in _BATCHES:
        a = _KINDS[kind](*shape, dtype=dtype)
        k = min(shape[-2:])
        for full in (False, True):
            u, s, vh = _back(*torch.linalg.svd(a.to("spirv"), full_matrices=full))
            assert (u.shape[-1], vh.shape[-2]) == (shape[-2:] if full else (k, k))
            _bounded(u[..., :k] * s[..., None, :] @ vh[..., :k, :] - a.double(), _norm(a), a)
            _bounded((s - torch.linalg.svdvals(a.double()))[..., None], _norm(a), a)
            _orthonormal(u, a)
            _orthonormal(vh.mT, a)
            assert (s.diff() <= 0).all()
            assert (s >= 0).all()
        alone = torch.linalg.svdvals(a.to("spirv")).cpu().double()
        _bounded((s - alone)[..., None], _norm(a), a)


@pytest.mark.parametrize("dtype", _TYPES, ids=str)
@pytest.mark.parametrize("kind", ["random", "low rank", "ill-conditioned", "graded"])
@pytest.mark.usefixtures("no_fallbacks")
def test_the_largest_matrices(kind: str, dtype: torch.dtype) -> None:
    a = _KINDS[kind](128, 128, dtype=dtype)
    symmetric = a / 2 + a.mT / 2
    values, v = _back(*torch.linalg.eigh(symmetric.to("spirv")))
    _bounded(symmetric.double() @ v - v * values, _norm(symmetric), a, 0.5)
    _orthonormal(v, a)
    u, s, vh = _back(*torch.linalg.svd(a.to("spirv")))
    _bounded(u * s @ vh - a.double(), _norm(a), a, 0.5)
    _orthonormal(u, a)
    _orthonormal(vh, a)


@pytest.mark.usefixtures("no_fallbacks")
def test_sweeps_of_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrices that were done stay as they are, and the others go on; those past the last launch are an error."""
    a = torch.stack((_random(9, 9), torch.eye(9), _low_rank(9, 9)))
    symmetric = a + a.mT
    want = torch.linalg.eigvalsh(symmetric), torch.linalg.svdvals(a)
    monkeypatch.setattr(jacobi, "_SWEEPS", 2)
    values, v = torch.linalg.eigh(symmetric.to("spirv"))
    torch.testing.assert_close(values.cpu(), want[0], rtol=1e-4, atol=1e-3)
    torch.testing.assert_close((v * values[:, None] @ v.mT).cpu(), symmetric, rtol=1e-4, atol=1e-3)
    u, s, vh = torch.linalg.svd(a.to("spirv"))
    torch.testing.assert_close(s.cpu(), want[1], rtol=1e-4, atol=1e-3)
    torch.testing.assert_close((u * s[:, None] @ vh).cpu(), a, rtol=1e-4, atol=1e-3)
    monkeypatch.setattr(jacobi, "_LAUNCHES", 1)
    for call in (torch.linalg.svdvals, torch.linalg.eigvalsh):
        with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 0\): The algorithm failed to converge"):
            call(symmetric.to("spirv"))


def test_larger_ones_are_left_to_the_cpu() -> None:
    a = _random(130, 129)
    before = registration.FALLBACKS.copy()
    compare(torch.linalg.svdvals, a, tolerance=(1e-4, 1e-4))
    compare(lambda a: torch.linalg.eigvalsh(a.mT @ a), a, tolerance=(1e-3, 1e-2))
    compare(lambda a: torch.linalg.qr(a.expand(2, -1, -1).reshape(-1, 1)[:2049], "r")[1], a, tolerance=(1e-4, 1e-4))
    compare(lambda a: torch.linalg.lstsq(a, a[:, :1], driver="gels")[0], a, tolerance=(1e-2, 1e-2))
    found = registration.FALLBACKS - before
    assert found["aten::linalg_lstsq.out"] == 1
    del found["aten::linalg_lstsq.out"]
    assert set(found) == {"aten::_linalg_svd.U", "aten::_linalg_eigh.eigenvalues", "aten::linalg_qr.out"}


@pytest.mark.usefixtures("no_fallbacks")
def test_more_matrices_than_a_grid_has_rows_for() -> None:
    a = _random(65537, 2, 2)
    values = torch.linalg.eigvalsh(a.to("spirv")).cpu()
    torch.testing.assert_close(values, torch.linalg.eigvalsh(a), rtol=1e-4, atol=1e-5)
    values = torch.linalg.svdvals(a.to("spirv")).cpu()
    torch.testing.assert_close(values, torch.linalg.svdvals(a), rtol=1e-4, atol=1e-5)
    q, r = _back(*torch.linalg.qr(a.to("spirv")))
    torch.testing.assert_close(q @ r, a.double(), rtol=1e-4, atol=1e-5)


def test_numbers_that_are_not_finite() -> None:
    for bad in (float("nan"), float("inf"), -float("inf")):
        a = _random(3, 4, 4)
        a[1, 2, 1] = bad
        there = a.to("spirv")
        symmetric = a @ a.mT
        exact = torch.linalg.eigvalsh(symmetric[::2])
        for got in (torch.linalg.eigvalsh(symmetric.to("spirv")), torch.linalg.eigh(symmetric.to("spirv"))[0]):
            assert got[1].isnan().all()  # MKL gives NaN or raises, as it comes
            torch.testing.assert_close(got[::2].cpu(), exact, rtol=1e-3, atol=1e-4)
        assert torch.linalg.eigh(symmetric.to("spirv"))[1][1].isnan().all()
        want, got = torch.linalg.qr(a)[1], torch.linalg.qr(there)[1].cpu()
        assert torch.equal(got.isfinite(), want.isfinite())
        torch.testing.assert_close(got[::2], want[::2], rtol=1e-3, atol=1e-4)
        compare(torch.linalg.eigvalsh, a[1:2, 2:3, 1:2])
        if bad == bad:
            for got in (torch.linalg.svdvals(there), *torch.linalg.svd(there)):
                assert got[1].isnan().all()
                assert got[::2].isfinite().all()
            continue
        for call in (torch.linalg.svdvals, torch.linalg.svd, torch.linalg.pinv, torch.linalg.matrix_rank):
            for given in (a, there):
                with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 1.*non-finite"):
                    call(given)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 2), (2, 3, 0), (0, 3, 3)], ids=str)
def test_empty_ones(shape: tuple[int, ...]) -> None:
    a = torch.zeros(shape)
    for mode in ("reduced", "complete", "r"):
        compare(lambda a, mode=mode: tuple(torch.linalg.qr(a, mode)), a)
    compare(lambda a: tuple(torch.geqrf(a)), a)
    for full in (True, False):
        compare(lambda a, full=full: tuple(torch.linalg.svd(a, full_matrices=full)), a)
    compare(torch.linalg.svdvals, a)
    if shape[-1] == shape[-2]:
        compare(lambda a: tuple(torch.linalg.eigh(a)), a)
        compare(torch.linalg.eigvalsh, a)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        b = torch.zeros(*shape[:-1], 2)
        compare(lambda a, b, driver=driver: tuple(torch.linalg.lstsq(a, b, driver=driver)), a, b)


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
@pytest.mark.usefixtures("no_fallbacks")
def test_values_and_gradients(name: str) -> None:
    for shape in ((3, 3), (2, 2, 5, 3)):
        a = _random(*shape, dtype=torch.float64)
        compare(with_gradients(_OF_ONE[name]), a, tolerance=(1e-8, 1e-9))


@pytest.mark.usefixtures("no_fallbacks")
def test_ranks() -> None:
    a = torch.stack((_low_rank(6, 4), _random(6, 4), torch.zeros(6, 4), _random(6, 2) @ _random(2, 4)))
    compare(torch.linalg.matrix_rank, a)
    compare(lambda a: torch.linalg.matrix_rank(a, atol=1.0, rtol=0.1), a)
    symmetric = torch.stack((_low_rank(9, 9) + _low_rank(9, 9).mT, torch.eye(9), torch.zeros(9, 9)))
    compare(lambda a: torch.linalg.matrix_rank(a, hermitian=True), symmetric)
    tall = _random(40, 3)
    compare(torch.linalg.matrix_rank, tall @ tall.mT)
    compare(lambda a: torch.linalg.matrix_rank(a, hermitian=True), tall @ tall.mT)


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.usefixtures("no_fallbacks")
def test_least_squares(driver: str | None) -> None:
    def solve(a: torch.Tensor, b: torch.Tensor) -> Any:
        return tuple(torch.linalg.lstsq(a, b, driver=driver))

    for shape in ((3, 3), (5, 3), (3, 5), (2, 2, 7, 4), (2, 4, 7)):
        a, b = _random(*shape, dtype=torch.float64), _random(*shape[:-1], 2, dtype=torch.float64)
        compare(solve, a, b, tolerance=(1e-9, 1e-10))
        compare(with_gradients(lambda a, b: solve(a, b)[0]), a, b, tolerance=(1e-8, 1e-9))
        if len(shape) > 2:
            compare(solve, a, b[..., 0], tolerance=(1e-9, 1e-10))
    if driver != "gels":
        a = _random(6, 2, dtype=torch.float64) @ _random(2, 4, dtype=torch.float64)
        compare(solve, a, _random(6, 2, dtype=torch.float64), tolerance=(1e-9, 1e-10))
        if driver in ("gelsd", "gelss"):
            compare(lambda a, b: tuple(torch.linalg.lstsq(a, b, 0.5, driver=driver)), a, a, tolerance=(1e-9, 1e-10))
        return
    singular = torch.ones(2, 3, 3).tril(-1)
    for device in ("cpu", "spirv"):
        with pytest.raises(torch.linalg.LinAlgError, match="full rank"):
            solve(singular.to(device), singular.to(device))


@pytest.mark.usefixtures("no_fallbacks")
def test_results_of_the_callers() -> None:
    a = _random(2, 5, 3)

    def fresh(a: torch.Tensor, *shapes: tuple[int, ...], dtype: Any = None) -> list[torch.Tensor]:
        return [torch.empty(shape, dtype=dtype or a.dtype, device=a.device) for shape in shapes]

    def gaps(a: torch.Tensor, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, 2, dtype=a.dtype, device=a.device)[..., 0]

    close = 1e-4, 1e-5
    compare(lambda a: torch.linalg.qr(a, out=fresh(a, (0,), (0,))), a, tolerance=close)
    compare(lambda a: torch.linalg.qr(a, out=(gaps(a, 2, 5, 3), gaps(a, 2, 3, 3))), a, tolerance=close)
    compare(lambda a: torch.geqrf(a, out=(gaps(a, 2, 5, 3), gaps(a, 2, 3))), a, tolerance=close)
    compare(lambda a: torch.linalg.svdvals(a, out=gaps(a, 2, 3)), a, tolerance=close)
    compare(lambda a: torch.linalg.eigvalsh(a.mT @ a, out=fresh(a, (0,))[0]), a, tolerance=(1e-3, 1e-4))
    compare(lambda a: torch.linalg.pinv(a, out=gaps(a, 2, 3, 5)), a, tolerance=close)
    for shapes in (((0,), (0,), (0,)), ((2, 5, 3), (2, 3), (2, 3, 3))):
        u, s, vh = torch.linalg.svd(a.to("spirv"), False, out=fresh(a.to("spirv"), *shapes))
        torch.testing.assert_close((u * s[..., None, :] @ vh).cpu(), a, rtol=1e-4, atol=1e-5)
    into = gaps(a.to("spirv"), 2, 5, 3), gaps(a.to("spirv"), 2, 3), gaps(a.to("spirv"), 2, 3, 3)
    u, s, vh = torch.linalg.svd(a.to("spirv"), False, out=into)
    torch.testing.assert_close((u * s[..., None, :] @ vh).cpu(), a, rtol=1e-4, atol=1e-5)
    square = a.mT @ a
    values, v = torch.linalg.eigh(square.to("spirv"), out=(gaps(a.to("spirv"), 2, 3), gaps(a.to("spirv"), 2, 3, 3)))
    torch.testing.assert_close((v * values[..., None, :] @ v.mT).cpu(), square, rtol=1e-4, atol=1e-4)
    x = square.to("spirv")
    torch.linalg.eigh(x, out=(values, x))  # an output that is read
    torch.testing.assert_close(x.abs().cpu(), v.abs().cpu())


@pytest.mark.usefixtures("no_fallbacks")
def test_an_older_way_to_divide_by_triangles() -> None:
    a, b = _random(2, 4, 4) + 3 * torch.eye(4), _random(2, 4, 3)
    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                how = (upper, transpose, unit)
                compare(lambda b, a, how=how: tuple(torch.triangular_solve(b, a, *how)), b, a, tolerance=(1e-3, 1e-4))


def test_how_many_kernels(launches: list[Any]) -> None:
    """For a batch of any size, copies of the arguments and results apart, which are no more than as many again."""
    a = _random(3, 5, 4).to("spirv")
    kernels = {"qr": 2, "eigh": 1, "svd": 5, "svdvals": 2}
    calls = (torch.linalg.qr, lambda a: torch.linalg.eigh(a.mT @ a), torch.linalg.svd, torch.linalg.svdvals)
    for (name, count), call in zip(kernels.items(), calls, strict=True):
        launches.clear()
        call(a)
        ours = [kernel for kernel in launches if kernel._function.__module__.endswith(("householder", "jacobi"))]
        assert len(ours) == count, name
        assert len(launches) <= 2 * count + 4, name


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
