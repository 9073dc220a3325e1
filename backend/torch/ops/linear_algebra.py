"""Small dense linear algebra, in batches: LU and Cholesky factors, what they solve, inverses and determinants.

A program has a matrix in its registers, so that larger ones are left to the CPU, as are complex numbers.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .bounds import PIVOT, note_outside
from .dtypes import OnHost, require
from .launching import grid_of, launch
from .library import aten
from .matrix_batches import put, put_numbers
from .strided_shapes import power_of_two

#: Rows of a matrix that a program factors, by type; and of one with which a program solves.
_LARGEST = {torch.float32: 64, torch.float64: 32}
LARGEST_SOLVED = 128
#: Right-hand sides that a program solves for.
_COLUMNS = 16


@triton.jit
def _row(tile, here):
    """The row of a tile where ``here``, of (rows, 1), is True."""
    return tl.sum(tl.where(here, tile, tl.zeros_like(tile)), 0)[None, :]


@triton.jit
def _column(tile, here):
    """The column of a tile where ``here``, of (1, columns), is True."""
    return tl.sum(tl.where(here, tile, tl.zeros_like(tile)), 1)[:, None]


@triton.jit
def lu_kernel(lu, pivots, info, matrices, n, N: tl.constexpr):
    """lu (matrices, n, n) in place: L below the diagonal, which is 1, and U, of the rows that ``pivots`` (from 1) swap
    one after the other; info: the first pivot (from 1) that is 0, or 0."""
    matrix = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    here = (matrix < matrices) & (r < n) & (c < n)
    place = lu + matrix.to(tl.int64) * n * n + r * n + c
    a = tl.load(place, mask=here, other=0.0)
    singular = matrix * 0
    for k in range(n):
        column = _column(a, c == k)
        size = tl.where((r >= k) & (r < n), tl.abs(column), -1.0)
        largest = tl.max(tl.where(size == size, size, float("inf")))
        # The first of the largest; NaN counts as one, as it does not go away.
        p = tl.min(tl.where((size == largest) | (size != size), r, N))
        first, other = _row(a, r == k), _row(a, r == p)
        a = tl.where(r == k, other, tl.where(r == p, first, a))
        pivot = tl.sum(tl.where(c == k, other, tl.zeros_like(other)))
        singular = tl.where((singular == 0) & (pivot == 0), k + 1, singular)
        factor = _column(a, c == k) / tl.where(pivot == 0, 1.0, pivot)
        below = (r > k) & (r < n)
        a = tl.where(below & (c > k), a - factor * other, tl.where(below & (c == k), factor, a))
        tl.store(pivots + matrix * n + k, p + 1, mask=matrix < matrices)
    tl.store(place, a, mask=here)
    tl.store(info + matrix, singular, mask=matrix < matrices)


@triton.jit
def cholesky_kernel(a_, info, matrices, n, N: tl.constexpr):
    """The lower factors of a_ (matrices, n, n), from its lower triangles, in place; info: the first minor
    (from 1) that is not positive, or 0."""
    matrix = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    here = (matrix < matrices) & (r < n) & (c < n)
    place = a_ + matrix.to(tl.int64) * n * n + r * n + c
    a = tl.load(place, mask=here & (r >= c), other=0.0)
    wrong = matrix * 0
    for k in range(n):
        column = _column(a, c == k)
        square = tl.sum(tl.where(r == k, column, tl.zeros_like(column)))
        wrong = tl.where((wrong == 0) & ((square <= 0) | (square != square)), k + 1, wrong)
        factor = tl.where(r >= k, column / tl.sqrt(square), 0.0)
        across = _row(tl.where(r == c, factor + tl.zeros_like(a), tl.zeros_like(a)), r >= 0)  # transposed
        a = tl.where(c == k, factor, tl.where((c > k) & (r >= c), a - factor * across, a))
    tl.store(place, tl.where(r >= c, a, 0.0), mask=here)
    tl.store(info + matrix, wrong, mask=matrix < matrices)


@triton.jit
def _swept(b, a, n, r, stride_row, stride_column, UP: tl.constexpr, UNIT: tl.constexpr):
    """b (rows, columns) divided by a triangle of a: the upper one from its last row, or the lower one."""
    for step in range(n):
        k = n - 1 - step if UP else step
        beyond = (r < k) if UP else (r > k)
        column = tl.load(a + r * stride_row + k * stride_column, mask=(r < n) & beyond, other=0.0)
        x = _row(b, r == k)
        if not UNIT:
            x = x / tl.load(a + k * (stride_row + stride_column))
        b = tl.where(r == k, x, b - column * x)
    return b


@triton.jit
def _swapped(b, pivots, n, r, BACK: tl.constexpr):
    """b with its rows swapped as ``pivots`` say, or swapped back."""
    for step in range(n):
        k = n - 1 - step if BACK else step
        p = tl.load(pivots + k) - 1
        first, other = _row(b, r == k), _row(b, r == p)
        b = tl.where(r == k, other, tl.where(r == p, first, b))
    return b


@triton.jit
def solve_kernel(
    b_, a, pivots, matrices, n, m, wide, down_row, down_column, up_row, up_column,
    SWAP: tl.constexpr, DOWN: tl.constexpr, UP: tl.constexpr, BACK: tl.constexpr,
    N: tl.constexpr, M: tl.constexpr,
):  # fmt: skip
    """b_ (matrices, n, m) in place: its rows are swapped by ``pivots`` (SWAP), divided by a lower triangle of a
    (matrices, n, n; DOWN), by an upper one (UP), and swapped back (BACK). A triangle's strides say whether it is
    transposed; DOWN and UP are "", "unit" where its diagonal is 1, or "diagonal". ``wide``: programs of a matrix."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    which = program // wide
    matrix = tl.minimum(which, matrices - 1).to(tl.int64)  # programs past the last store nothing
    r = tl.arange(0, N)[:, None]
    c = program % wide * M + tl.arange(0, M)[None, :]
    here = (which < matrices) & (r < n) & (c < m)
    place = b_ + matrix * n * m + r * m + c
    a += matrix * n * n
    pivots += matrix * n
    b = tl.load(place, mask=here, other=0.0)
    if SWAP:
        b = _swapped(b, pivots, n, r, False)
    if DOWN != "":
        b = _swept(b, a, n, r, down_row, down_column, False, DOWN == "unit")
    if UP != "":
        b = _swept(b, a, n, r, up_row, up_column, True, UP == "unit")
    if BACK:
        b = _swapped(b, pivots, n, r, True)
    tl.store(place, b, mask=here)


def _matrices(a: Tensor) -> Tensor:
    """A contiguous copy of square matrices that a program can factor. Raises OnHost."""
    require(a.dtype, a.device.index or 0)
    if a.dim() < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] > _LARGEST.get(a.dtype, 0) or not a.numel():
        raise OnHost("matrices that are not square, too large, or of other numbers")
    return a.clone(memory_format=torch.contiguous_format)


def _factor(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(LU, pivots, info) of (…, n, n)."""
    lu = _matrices(a)
    n, count = a.shape[-1], a.numel() // a.shape[-1] ** 2
    pivots = torch.empty(a.shape[:-1], dtype=torch.int32, device=a.device)
    info = torch.empty(a.shape[:-2], dtype=torch.int32, device=a.device)
    given = {"lu": lu, "pivots": pivots, "info": info, "matrices": count, "n": n}
    launch(lu_kernel, grid_of(count), given, {"N": power_of_two(n)})
    return lu, pivots, info


def divide(
    a: Tensor,
    b: Tensor,
    down: str = "",
    up: str = "",
    transposed: tuple[bool, bool] = (False, False),
    pivots: Tensor | None = None,
    back: bool = False,
) -> Tensor:
    """A new tensor of b (…, n, m) divided by triangles of a (…, n, n), with the same or broadcast batches, as
    solve_kernel() does it; ``transposed``: the lower and the upper triangle. Raises OnHost."""
    require(a.dtype, a.device.index or 0)
    n, m = b.shape[-2:]
    if a.dtype not in _LARGEST or b.dtype != a.dtype or a.shape[-1] != n or a.shape[-2] != n or n > LARGEST_SOLVED:
        raise OnHost("matrices that are not square, too large, or of other numbers")
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = b.expand(*batch, n, m).clone(memory_format=torch.contiguous_format)
    if not out.numel():
        return out
    count, wide = out.numel() // (n * m), -(-m // _COLUMNS)
    given: dict[str, Any] = {"b_": out, "a": a.expand(*batch, n, n).contiguous()}
    given["pivots"] = given["a"] if pivots is None else pivots.expand(*batch, n).contiguous()
    given |= {"matrices": count, "n": n, "m": m, "wide": wide}
    for name, turned in zip(("down", "up"), transposed, strict=True):
        given |= {f"{name}_row": 1 if turned else n, f"{name}_column": n if turned else 1}
    how = {"SWAP": pivots is not None and not back, "DOWN": down, "UP": up, "BACK": back}
    launch(solve_kernel, grid_of(count * wide), given, {**how, "N": power_of_two(n), "M": _COLUMNS})
    return out


def _lu_divide(lu: Tensor, pivots: Tensor, b: Tensor, adjoint: bool = False) -> Tensor:
    """b (…, n, m) divided by the matrices that were factored, or by their adjoints."""
    if adjoint:
        return divide(lu, b, "diagonal", "unit", (True, True), pivots, back=True)
    return divide(lu, b, "unit", "diagonal", pivots=pivots)


def _is_transposed(a: Tensor) -> bool:
    """Whether torch factors the transposed matrix for a determinant, which its formulas of gradients count on."""
    return a.is_contiguous() and not a.is_complex()


def is_vector(a: Tensor, b: Tensor) -> bool:
    """Whether B is a vector, as torch.linalg.solve() decides it."""
    return b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])


def _checked(outs: Any, wrong: Tensor, name: str, a: Tensor, check_errors: bool) -> Any:
    """``outs``. Raises what torch does for matrices that are ``wrong``, if it is asked to."""
    if check_errors:
        aten._linalg_check_errors(wrong, name, is_matrix=a.dim() == 2)
    return outs


def _solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    result: Tensor,
    LU: Tensor,
    pivots: Tensor,
    info: Tensor,
) -> tuple[Tensor, ...]:
    vector = is_vector(A, B)
    if A.dtype != B.dtype or (vector and not left):
        raise OnHost("numbers of two types, or a call that is refused")
    b = B.unsqueeze(-1) if vector else B
    lu, swaps, wrong = _factor(A)
    if left:
        found = _lu_divide(lu, swaps, b)
        found = found.squeeze(-1) if vector else found
    else:
        found = _lu_divide(lu, swaps, b.mT, adjoint=True).mT
    outs = put(result, found), put(LU, lu), put(pivots, swaps), put(info, wrong)
    return _checked(outs, wrong, "torch.linalg.solve_ex", A, check_errors)


def _inv_ex(A: Tensor, *, check_errors: bool = False, inverse: Tensor, info: Tensor) -> tuple[Tensor, Tensor]:
    lu, swaps, wrong = _factor(A)
    found = _lu_divide(lu, swaps, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device))
    outs = put(inverse, found), put(info, wrong)
    return _checked(outs, wrong, "linalg.inv_ex", A, check_errors)


def _lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, LU: Tensor, pivots: Tensor, info: Tensor
) -> tuple[Tensor, ...]:
    if not pivot:
        raise OnHost("factors without pivots, which the CPU refuses")
    lu, swaps, wrong = _factor(A)
    outs = put(LU, lu), put(pivots, swaps), put(info, wrong)
    return _checked(outs, wrong, "torch.linalg.lu_factor_ex", A, check_errors)


def _lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor
) -> Tensor:
    if LU.shape[:-1] != pivots.shape or not pivots.dim():
        raise OnHost("pivots of another shape")
    note_outside(pivots, 1, LU.shape[-1], PIVOT, "linalg.lu_solve")
    if left:
        return put(out, _lu_divide(LU, pivots, B, adjoint))
    return put(out, _lu_divide(LU, pivots, B.mT, not adjoint).mT)


def _permutation(swaps: Tensor, kind: torch.dtype) -> Tensor:
    """P of A = P L U."""
    one = torch.eye(swaps.shape[-1], dtype=kind, device=swaps.device)
    return divide(one, one.expand(*swaps.shape, swaps.shape[-1]), pivots=swaps, back=True)


def _triangles(lu: Tensor) -> tuple[Tensor, Tensor]:
    """(L, U)."""
    return lu.tril(-1) + torch.eye(lu.shape[-1], dtype=lu.dtype, device=lu.device), lu.triu()


def _unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    P: Tensor,
    L: Tensor,
    U: Tensor,
) -> tuple[Tensor, ...]:
    if LU_data.shape[-1] != LU_data.shape[-2] or LU_data.dtype not in _LARGEST or not LU_data.numel():
        raise OnHost("matrices that are not square, or of other numbers")
    if unpack_pivots:
        if LU_pivots.shape != LU_data.shape[:-1]:
            raise RuntimeError(f"lu_unpack: matrices {list(LU_data.shape)} with pivots {list(LU_pivots.shape)}")
        note_outside(LU_pivots, 1, LU_data.shape[-2], PIVOT, "lu_unpack")
        put(P, _permutation(LU_pivots, LU_data.dtype))
    if unpack_data:
        lower, upper = _triangles(LU_data)
        put(L, lower), put(U, upper)
    return P, L, U


def _lu(A: Tensor, *, pivot: bool = True, P: Tensor, L: Tensor, U: Tensor) -> tuple[Tensor, ...]:
    if not pivot:
        raise OnHost("factors without pivots, which the CPU refuses")
    lu, swaps, _ = _factor(A)
    lower, upper = _triangles(lu)
    return put(P, _permutation(swaps, A.dtype)), put(L, lower), put(U, upper)


def _sign_of(swaps: Tensor, kind: torch.dtype) -> Tensor:
    """-1 where the rows of a matrix were swapped an odd number of times."""
    moved = swaps != torch.arange(1, swaps.shape[-1] + 1, device=swaps.device)
    return (1 - 2 * (moved.sum(-1) % 2)).to(kind)


def _det(A: Tensor, *, result: Tensor, LU: Tensor, pivots: Tensor) -> tuple[Tensor, ...]:
    lu, swaps, _ = _factor(A.mT if _is_transposed(A) else A)
    found = lu.diagonal(dim1=-2, dim2=-1).prod(-1) * _sign_of(swaps, A.dtype)
    return put_numbers(result, found), put(LU, lu), put(pivots, swaps)


def _slogdet(A: Tensor, *, sign: Tensor, logabsdet: Tensor, LU: Tensor, pivots: Tensor) -> tuple[Tensor, ...]:
    lu, swaps, _ = _factor(A.mT if _is_transposed(A) else A)
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    found = diagonal.sgn().prod(-1) * _sign_of(swaps, A.dtype)
    size = put_numbers(logabsdet, diagonal.abs().log().sum(-1))
    return put_numbers(sign, found), size, put(LU, lu), put(pivots, swaps)


def _solve_triangular(
    self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None
) -> Tensor:
    if self.dim() < 2 or B.dim() < 2:
        raise OnHost("a call that is refused")
    kind = "unit" if unitriangular else "diagonal"
    b = B if left else B.mT
    # From the right, by the transposed triangle.
    if upper == left:
        found = divide(self, b, up=kind, transposed=(False, not left))
    else:
        found = divide(self, b, down=kind, transposed=(not left, False))
    found = found if left else found.mT
    if out is None:  # in the order of columns, as the CPU's
        return found.mT.contiguous().mT
    return put(out, found)


def _cholesky_ex(
    self: Tensor, *, upper: bool = False, check_errors: bool = False, L: Tensor, info: Tensor
) -> tuple[Tensor, Tensor]:
    factor = _matrices(self.mT if upper else self)
    n, count = self.shape[-1], self.numel() // self.shape[-1] ** 2
    wrong = torch.empty(self.shape[:-2], dtype=torch.int32, device=self.device)
    given = {"a_": factor, "info": wrong, "matrices": count, "n": n}
    launch(cholesky_kernel, grid_of(count), given, {"N": power_of_two(n)})
    outs = put(L, factor.mT if upper else factor), put(info, wrong)
    return _checked(outs, wrong, "torch.linalg.cholesky_ex", self, check_errors)


def _cholesky_solve(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    found = divide(A, self, "diagonal", "diagonal", (upper, not upper))
    return found.mT.contiguous().mT


def _triangular_solve(
    self: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    X: Tensor,
    M: Tensor,
) -> tuple[Tensor, Tensor]:
    kind = "unit" if unitriangular else "diagonal"
    if upper == transpose:
        found = divide(A, self, down=kind, transposed=(transpose, False))
    else:
        found = divide(A, self, up=kind, transposed=(False, transpose))
    return put(X, found), put(M, A.expand(*found.shape[:-2], *A.shape[-2:]))


TABLE: dict[str, Callable[..., Any]] = {
    "_linalg_solve_ex.result": _solve_ex,
    "linalg_inv_ex.inverse": _inv_ex,
    "linalg_lu_factor_ex.out": _lu_factor_ex,
    "linalg_lu_solve.out": _lu_solve,
    "linalg_lu.out": _lu,
    "lu_unpack.out": _unpack,
    "_linalg_det.result": _det,
    "_linalg_slogdet.sign": _slogdet,
    "linalg_solve_triangular linalg_solve_triangular.out": _solve_triangular,
    "linalg_cholesky_ex.L": _cholesky_ex,
    "_cholesky_solve_helper": _cholesky_solve,
    "triangular_solve.X": _triangular_solve,
}
