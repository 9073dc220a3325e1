"""Eigenvalues of symmetric matrices, singular values, and least squares, of what householder.py and jacobi.py compute.

Larger matrices than these take are left to the CPU, as are complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .dtypes import OnHost
from .householder import factor_, reflect
from .jacobi import LARGEST, eigen, singular
from .library import aten
from .linear_algebra import LARGEST_SOLVED, divide, is_vector
from .matrix_batches import as_columns, columns_for, count_of, put, put_numbers, require_matrices
from .strided_shapes import resized

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _eigh(
    A: torch.Tensor,  # noqa: N803 (torch's names)
    UPLO: str = "L",  # noqa: N803
    compute_v: bool = True,
    *,
    eigenvalues: torch.Tensor,
    eigenvectors: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    require_matrices(A)
    if A.shape[-1] != A.shape[-2] or UPLO.upper() not in ("L", "U"):
        raise OnHost("a call that is refused")
    n, batch = A.shape[-1], A.shape[:-2]
    values, vectors, info = eigen(A.reshape(count_of(A), n, n), compute_v, UPLO.upper() == "U")
    outs = put_numbers(eigenvalues, values.view(*batch, n)), eigenvectors
    if compute_v:
        put(eigenvectors, vectors.view(A.shape).mT)
    if info is not None:
        aten._linalg_check_errors(info.view(batch), "linalg.eigh", is_matrix=A.dim() == 2)
    return outs


def _check_values(info: torch.Tensor, a: torch.Tensor) -> None:
    """Raises LinAlgError if singular values were not found. Matrices with an infinity and no NaN have NaN, as on the
    CPU."""
    missing = a.isnan().any(-1).any(-1)
    info = torch.where(missing | (info > 0), info, torch.zeros_like(info))
    aten._linalg_check_errors(info, "linalg.svd", is_matrix=a.dim() == 2)


def _svd(
    A: torch.Tensor,  # noqa: N803
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
    U: torch.Tensor,  # noqa: N803
    S: torch.Tensor,  # noqa: N803
    Vh: torch.Tensor,  # noqa: N803
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    require_matrices(A)
    if driver is not None or min(A.shape[-2:]) > LARGEST:
        raise OnHost("large matrices, or a call that is refused")
    (m, n), batch = A.shape[-2:], A.shape[:-2]
    is_tall = m >= n
    columns = as_columns(A if is_tall else A.mT)
    taus = factor_(columns)
    values, right, left, info = singular(columns, compute_uv)
    if compute_uv:
        k = min(m, n)
        # The singular vectors as columns: of the longer side, and of the other one.
        longer = (*batch, m, m if full_matrices else k) if is_tall else (*batch, n if full_matrices else k, n)
        shorter = (*batch, n, n) if is_tall else (*batch, m, m)
        tall, square = (U, Vh) if is_tall else (Vh, U)
        into = columns_for(tall, longer, A)
        reflect(columns, taus, into if is_tall else into.mT, left)
        put(tall, into.mT)
        # Values of 0 have no vector yet, and rotations leave small ones orthogonal to rounding of their own size:
        # reflections make those vectors complete.
        again = factor_(right)
        into = columns_for(square, shorter, A)
        reflect(right, again, into.mT if is_tall else into, signed=True)
        put(square, into.mT)
    put_numbers(S, values)
    if info is not None:
        _check_values(info, A)
    return U, S, Vh


def _lstsq(
    self: torch.Tensor,
    b: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    solution: torch.Tensor,
    residuals: torch.Tensor,
    rank: torch.Tensor,
    singular_values: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Least squares as the CPU computes them: "gels" by reflections, of matrices of full rank; the others by singular
    values."""
    require_matrices(self)
    driver = driver or "gelsy"
    vector = is_vector(self, b)
    other = b.unsqueeze(-1) if vector else b
    (m, n), batch = self.shape[-2:], self.shape[:-2]
    outs = solution, residuals, rank, singular_values
    kinds = [self.dtype] * 2 + [torch.int64, self.dtype]
    same = other.dtype == self.dtype and other.dim() == self.dim() and other.shape[:-1] == self.shape[:-1]
    if driver not in _DRIVERS or not same or [out.dtype for out in outs] != kinds or not (self.numel() and b.numel()):
        raise OnHost("a call that is refused, or with nothing to solve")
    if driver == "gels":
        found, lost = _by_reflections(self, other)
        values, ranks = self.new_empty(0), rank.new_empty(0)
    else:
        found, lost, values, ranks = _by_values(self, other, rcond, driver)
    _put_solution(solution, found[..., 0] if vector else found, max(m, n), vector)
    put_numbers(residuals, self.new_empty(0) if lost is None else lost)
    put_numbers(rank, ranks.view(batch) if driver != "gels" else ranks)
    put_numbers(singular_values, values)
    return outs


def _put_solution(out: torch.Tensor, value: torch.Tensor, rows: int, is_vector: bool) -> None:
    """Puts the solution as put() does; a new output lies where LAPACK leaves it: within as many rows as the longer side
    of the matrix has."""
    if out.shape == value.shape:
        out.copy_(value)
        return
    shape = (*value.shape[:-1], rows) if is_vector else (*value.shape[:-2], value.shape[-1], rows)
    memory = torch.empty(shape, device="meta")
    resized(out, shape).as_strided_(value.shape, (memory if is_vector else memory.mT).stride()).copy_(value)


def _by_reflections(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(solution, residuals). Raises LinAlgError if R has a 0 in its diagonal, and OnHost for large matrices."""
    m, n = a.shape[-2:]
    if min(m, n) > LARGEST_SOLVED:
        raise OnHost(f"triangles of {min(m, n)} rows")
    columns = as_columns(a if m >= n else a.mT)
    taus = factor_(columns)
    k = min(m, n)
    triangle = columns.mT[..., :k, :]
    zeros = triangle.diagonal(dim1=-2, dim2=-1) == 0
    first = torch.where(zeros.any(-1), zeros.int().argmax(-1) + 1, 0)
    aten._linalg_check_errors(first.int(), "torch.linalg.lstsq", is_matrix=a.dim() == 2)
    begin = as_columns(b)
    if m >= n:
        turned = reflect(columns, taus, torch.empty_like(begin), begin, backward=False).mT
        lost = turned[..., n:, :].square().sum(-2) if m > n else None
        return divide(triangle, turned[..., :n, :], up="diagonal"), lost
    short = divide(triangle, b, down="diagonal", transposed=(True, False))
    out = a.new_empty((*a.shape[:-2], b.shape[-1], n))
    return reflect(columns, taus, out, as_columns(short)).mT, None


def _by_values(
    a: torch.Tensor, b: torch.Tensor, rcond: float | None, driver: str
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor, torch.Tensor]:
    """(solution, residuals, singular values, ranks): the shortest of the best solutions."""
    m, n = a.shape[-2:]
    eps = torch.finfo(a.dtype).eps
    relative = eps * max(m, n) if rcond is None else rcond
    if driver == "gelsy" and relative > eps * max(m, n):
        raise OnHost("what is left of columns in another order, which are not as small as rounding")
    left, values, right = torch._linalg_svd(a, False, True)
    counted = values > values[..., :1] * (relative if relative >= 0 else eps)
    ranks = counted.sum(-1)
    parts = left.mT @ b * torch.where(counted, 1 / values, 0.0)[..., None]
    found = right.mT @ parts
    lost = None
    if m > n and driver != "gelsy" and bool((ranks == n).all()):
        lost = (b - a @ found).square().sum(-2)
    return found, lost, values if driver != "gelsy" else values.new_empty(0), ranks


def _triangular_solve(
    self: torch.Tensor,
    A: torch.Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    X: torch.Tensor,  # noqa: N803
    M: torch.Tensor,  # noqa: N803
) -> tuple[torch.Tensor, torch.Tensor]:
    kind = "unit" if unitriangular else "diagonal"
    if upper == transpose:
        found = divide(A, self, down=kind, transposed=(transpose, False))
    else:
        found = divide(A, self, up=kind, transposed=(False, transpose))
    return put(X, found), put(M, A.expand(*found.shape[:-2], *A.shape[-2:]))


TABLE: dict[str, Callable[..., Any]] = {
    "_linalg_eigh.eigenvalues": _eigh,
    "_linalg_svd.U": _svd,
    "linalg_lstsq.out": _lstsq,
    "triangular_solve.X": _triangular_solve,
}
