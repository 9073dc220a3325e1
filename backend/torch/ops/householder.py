"""Reflections that make matrices triangular (Householder), and what they are applied to: QR and its parts.

A matrix lies in memory with its columns one after the other. A reflection is H = 1 - tau v vᵀ, where v is 0 above its
own row and 1 in it. As LAPACK's geqrf has them, R is in and above the diagonal and the rest of v below it, and R's
diagonal has the sign that is not the column's own (Golub and Van Loan, Matrix Computations, section 5.1).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .dtypes import OnHost
from .launching import grid_of, launch
from .matrix_batches import as_columns, columns_for, count_of, put, put_numbers, require_matrices
from .strided_shapes import power_of_two

#: Rows of a matrix: a program has a column.
LARGEST = 2048
#: Elements of the columns that a program reflects at a time.
_TILE = 2048
#: A matrix of so many columns is factored by one program; of a wider one so many columns at a time are.
_COLUMNS, _PANEL = 128, 32


@triton.jit
def root(x):
    """The square root, rounded to the nearest of float32."""
    return tl.sqrt_rn(x) if x.dtype == tl.float32 else tl.sqrt(x)


@triton.jit
def quotient(x, y):
    """x / y, rounded to the nearest of float32."""
    return tl.div_rn(x, y) if x.dtype == tl.float32 else x / y


@triton.jit
def scales(size):
    """(s, 1 / s) for a size that is not negative: a power of two by which it becomes 1 to 4, if it is not tiny."""
    if size.dtype == tl.float64:
        exponent = tl.minimum(tl.maximum(size.to(tl.int64, bitcast=True) >> 52, 1), 2045)
        scale, inverse = exponent << 52, (2046 - exponent) << 52
    else:
        exponent = tl.minimum(tl.maximum(size.to(tl.int32, bitcast=True) >> 23, 1), 253)
        scale, inverse = exponent << 23, (254 - exponent) << 23
    return scale.to(size.dtype, bitcast=True), inverse.to(size.dtype, bitcast=True)


@triton.jit
def _reflected(tile, v, tau):
    """Columns (count, M) after a reflection."""
    along = tl.sum(tile * v[None, :], 1) * tau
    return tile - along[:, None] * v[None, :]


@triton.jit
def factor_kernel(a_, taus, matrices, m, n, reflections, first, last, M: tl.constexpr, BLOCK: tl.constexpr):
    """a_ (matrices, n, m) in place: its columns first … last - 1 become R's and the reflections that make them
    so; taus (matrices, reflections). The columns past ``last`` are left as they are."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    last = tl.where(program < matrices, last, first)  # programs past the last do nothing
    a_ += program.to(tl.int64) * n * m
    r = tl.arange(0, M)
    for k in range(first, tl.minimum(last, reflections)):
        tl.debug_barrier()
        x = tl.load(a_ + k * m + r, mask=(r >= k) & (r < m), other=0.0)
        own = tl.load(a_ + k * m + k)
        scale, inverse = scales(tl.max(tl.abs(x)))
        below = tl.where(r > k, x, 0.0) * inverse
        squares = tl.sum(below * below)
        length = root(own * inverse * (own * inverse) + squares) * scale
        diagonal = tl.where(own < 0, length, -length)
        straight = squares == 0
        tau = tl.where(straight, 0.0, quotient(diagonal - own, diagonal))
        v = tl.where(r > k, x, 0.0) / tl.where(straight, 1.0, own - diagonal)
        v = tl.where(straight, 0.0, v)
        tl.store(a_ + k * m + r, tl.where(r == k, tl.where(straight, own, diagonal), v), mask=(r >= k) & (r < m))
        tl.store(taus + program.to(tl.int64) * reflections + k, tau)
        v = tl.where(r == k, 1.0, v)
        for start in range(k + 1, last, BLOCK):
            c = start + tl.arange(0, BLOCK)[:, None]
            place = a_ + c * m + r[None, :]
            here = (c < last) & (r >= k)[None, :] & (r < m)[None, :]
            tl.store(place, _reflected(tl.load(place, mask=here, other=0.0), v, tau), mask=here)


@triton.jit
def reflect_kernel(
    out, begin, a, taus, matrices, m, n, reflections, first, last, columns, wide, start_rows, start_columns,
    matrix_out, column_out, row_out, matrix_begin, column_begin, row_begin, BACKWARD: tl.constexpr,
    SIGNED: tl.constexpr, M: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out (matrices, columns, m): what the reflections first … last - 1 of a (matrices, n, m) make of ``begin``, one
    after the other, or from the last one (BACKWARD). ``begin`` has start_columns columns of start_rows elements, which
    zeros follow; columns past those are the identity's, with the signs of a's diagonal if SIGNED. ``wide``: programs of
    a matrix. ``matrix_…``, ``column_…``, ``row_…``: strides, in elements."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    matrix = (program // wide).to(tl.int64)
    c = program % wide * BLOCK + tl.arange(0, BLOCK)[:, None]
    r = tl.arange(0, M)
    across = r[None, :]
    here = (matrix < matrices) & (c < columns) & (across < m)
    a += matrix * n * m
    given = here & (c < start_columns) & (across < start_rows)
    tile = tl.load(begin + matrix * matrix_begin + c * column_begin + across * row_begin, mask=given, other=0.0)
    one = tl.where(here & (c >= start_columns) & (c == across), 1.0, tl.zeros_like(tile))
    if SIGNED:
        one = tl.where(tl.load(a + c * m + c, mask=(matrix < matrices) & (c < columns), other=0.0) < 0, -one, one)
    tile += one
    last = tl.where(matrix < matrices, last, first)
    for step in range(first, last):
        k = first + last - 1 - step if BACKWARD else step
        v = tl.where(r == k, 1.0, tl.load(a + k * m + r, mask=(r > k) & (r < m), other=0.0))
        tile = _reflected(tile, v, tl.load(taus + matrix * reflections + k))
    tl.debug_barrier()  # ``begin`` may be ``out``
    tl.store(out + matrix * matrix_out + c * column_out + across * row_out, tile, mask=here)


def block_of(rows: int, columns: int, tile: int = _TILE) -> dict[str, int]:
    """Columns that a program has at a time, and the elements of each in registers."""
    size = power_of_two(rows)
    return {"M": size, "BLOCK": min(power_of_two(columns), max(tile // size, 1))}


def _warps(block: dict[str, int]) -> int:
    return 1 if block["M"] * block["BLOCK"] <= 256 else 4


def factor_(columns: torch.Tensor) -> torch.Tensor:
    """Reflections and R in the memory of matrices, contiguous (…, n, m); returns taus (…, min(m, n)). Raises OnHost
    where a column is too long."""
    n, m = columns.shape[-2:]
    if m > LARGEST:
        raise OnHost(f"matrices of {m} rows")
    k, count = min(m, n), count_of(columns)
    taus = columns.new_empty((*columns.shape[:-2], k))
    panel = max(n, 1) if n <= _COLUMNS else _PANEL
    for first in range(0, k if count else 0, panel):
        last = n if n <= _COLUMNS else min(first + panel, k)
        block = block_of(m, last - first)
        given = {"a_": columns, "taus": taus, "matrices": count, "m": m, "n": n, "reflections": k}
        launch(factor_kernel, grid_of(count), given | {"first": first, "last": last}, block, _warps(block))
        if last < n:
            others = columns[..., last:, :]
            _launch(others, others, columns, taus, first, min(last, k), False)
    return taus


def reflect(
    columns: torch.Tensor,
    taus: torch.Tensor,
    out: torch.Tensor,
    begin: torch.Tensor | None = None,
    backward: bool = True,
    signed: bool = False,
) -> torch.Tensor:
    """``out`` (…, c, m), which may have any strides: Q's columns, of the reflections in contiguous (…, n, m), if they
    go backward. ``begin`` (…, c or fewer, m or fewer): what is reflected instead of the identity; where there are fewer
    columns, the identity's follow. ``signed``: see reflect_kernel()."""
    if columns.shape[-1] > LARGEST:
        raise OnHost(f"matrices of {columns.shape[-1]} rows")
    if out.numel():
        _launch(out, begin, columns, taus, 0, taus.shape[-1], backward, signed)
    return out


def _launch(
    out: torch.Tensor,
    begin: torch.Tensor | None,
    columns: torch.Tensor,
    taus: torch.Tensor,
    first: int,
    last: int,
    backward: bool,
    signed: bool = False,
) -> None:
    m, count = columns.shape[-1], count_of(columns)
    block = block_of(m, out.shape[-2])
    wide = -(-out.shape[-2] // block["BLOCK"])
    given: dict[str, Any] = {"out": out, "begin": out if begin is None else begin, "a": columns, "taus": taus}
    given |= {"matrices": count, "m": m, "n": columns.shape[-2], "reflections": taus.shape[-1]}
    given |= {"first": first, "last": last, "columns": out.shape[-2], "wide": wide}
    given |= {"start_rows": 0 if begin is None else begin.shape[-1]}
    given |= {"start_columns": 0 if begin is None else begin.shape[-2]}
    for name in ("out", "begin"):
        steps = _flat(given[name]).stride()
        given |= {f"matrix_{name}": steps[0], f"column_{name}": steps[1], f"row_{name}": steps[2]}
    how = {"BACKWARD": backward, "SIGNED": signed, **block}
    launch(reflect_kernel, grid_of(count * wide), given, how, _warps(block))


def _flat(a: torch.Tensor) -> torch.Tensor:
    """(…, c, m) as (count, c, m), in the same memory."""
    return a.view(count_of(a), *a.shape[-2:])


def _qr(
    A: torch.Tensor,  # noqa: N803 (torch's names)
    mode: str = "reduced",
    *,
    Q: torch.Tensor,  # noqa: N803
    R: torch.Tensor,  # noqa: N803
) -> tuple[torch.Tensor, torch.Tensor]:
    require_matrices(A)
    (m, n), batch = A.shape[-2:], A.shape[:-2]
    if mode not in ("reduced", "complete", "r"):
        raise OnHost("a mode that is refused")
    rows = m if mode == "complete" else min(m, n)
    columns = as_columns(A)
    taus = factor_(columns)
    upper = put(R, columns.mT[..., :rows, :].triu())
    if mode == "r":
        return put_numbers(Q, Q.new_empty(0)), upper
    q = reflect(columns, taus, columns_for(Q, (*batch, m, rows), A))
    return put(Q, q.mT), upper


def _geqrf(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    require_matrices(self)
    columns = as_columns(self)
    taus = factor_(columns)
    return columns.mT, taus


def _geqrf_out(self: torch.Tensor, *, a: torch.Tensor, tau: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    factors, taus = _geqrf(self)
    return put(a, factors), put_numbers(tau, taus)


def _checked(self: torch.Tensor, tau: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    """Contiguous taus of reflections (…, m, k)."""
    require_matrices(self, *others)
    m, n = self.shape[-2:]
    same = tau.dtype == self.dtype and tau.device == self.device and tau.shape[:-1] == self.shape[:-2]
    if not same or tau.dim() + 1 != self.dim() or tau.shape[-1] > n or n > m:
        raise OnHost("a call that is refused")
    return tau.contiguous()


def _householder_product(
    input: torch.Tensor,  # noqa: A002
    tau: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    taus = _checked(input, tau)
    if out is None:
        out = input.new_empty((*input.shape[:-2], input.shape[-1], input.shape[-2])).mT
    return put(out, reflect(as_columns(input), taus, columns_for(out, input.shape, input)).mT)


def _ormqr(
    self: torch.Tensor,
    input2: torch.Tensor,
    input3: torch.Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    require_matrices(self, input3)
    k = input2.shape[-1] if input2.dim() else 0
    m, n = self.shape[-2:]
    if k != min(m, n) or m != input3.shape[-2 if left else -1] or self.shape[:-2] != input3.shape[:-2]:
        raise OnHost("a call that is refused")
    reflections = self[..., :k]  # further columns are not read
    taus = _checked(reflections, input2, input3)
    if out is None:
        out = input3.new_empty((*input3.shape[:-2], input3.shape[-1], input3.shape[-2])).mT
    result = columns_for(out, input3.shape, input3)
    # From the right, the transposed product from the left: C Q = (Qᵀ Cᵀ)ᵀ.
    begin, into = (as_columns(input3), result) if left else (input3.contiguous(), result.mT)
    reflect(as_columns(reflections), taus, into, begin, backward=transpose != left)
    return put(out, result.mT)


TABLE: dict[str, Callable[..., Any]] = {
    "linalg_qr.out": _qr,
    "geqrf": _geqrf,
    "geqrf.a": _geqrf_out,
    "linalg_householder_product linalg_householder_product.out": _householder_product,
    "ormqr ormqr.out": _ormqr,
}
