"""Rotations that make matrices diagonal (Jacobi): eigenvalues of symmetric matrices, and singular values.

A sweep rotates each pair of indices once. Its rounds are a tournament's, in each of which every index is in one
pair, so that the rotations of a round do not meet. Symmetric matrices are rotated from both sides (Golub and Van Loan,
Matrix Computations, section 8.5), until what is off the diagonal is rounding; of others the columns are rotated, until
they are orthogonal (one-sided, the same, section 8.6.3), after they were made triangular by reflections.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from .device_facts import kind_of
from .dtypes import OnHost
from .householder import quotient, root, scales
from .launching import grid_of, launch
from .matrix_batches import count_of
from .strided_shapes import power_of_two

#: Indices of a matrix, which a program has: past these, sweeps have too many rounds for one launch.
LARGEST = 128
#: Sweeps of a launch, and launches before a matrix is given up. 6 to 10 sweeps are usual.
_SWEEPS, _LAUNCHES = 12, 4
#: Elements of the rows that a program rotates at a time: on a CPU, whose compiler takes long with more, and on others.
_TILE, _TILE_OF_GPUS = 512, 2048
#: Rows at least.
_ROWS = 4


@triton.jit
def _pairs(i, step, n):
    """The indices p < q of pair i in a round. q is n where n is odd and p has no partner."""
    last = n - 1 + n % 2
    one = (step + i) % last
    other = tl.where(i == 0, last, (step + last - i) % last)
    return tl.minimum(one, other), tl.maximum(one, other)


@triton.jit
def _rotation(pp, qq, pq, turns):
    """(sine, tangent, tangent of half the angle) of the rotations that make 0 of pq, the product of two columns whose
    own are pp and qq, where ``turns``; the angle is at most 45 degrees."""
    ratio = (qq - pp) / (2 * tl.where(turns, pq, 1.0))
    tangent = tl.where(ratio < 0, -1.0, 1.0) / (tl.abs(ratio) + tl.sqrt(1 + ratio * ratio))
    tangent = tl.where(turns, tangent, 0.0)
    cosine = quotient(tl.full(tangent.shape, 1.0, tangent.dtype), root(1 + tangent * tangent))
    sine = cosine * tangent
    return sine, tangent, sine / (1 + cosine)


@triton.jit
def _angles(a, p, q, here, n, tolerance):
    """The rotations of a symmetric matrix's pairs, whether they turn, and the diagonal elements that they make."""
    pp = tl.load(a + p * (n + 1), mask=here, other=0.0)
    qq = tl.load(a + q * (n + 1), mask=here, other=0.0)
    pq = tl.load(a + p * n + q, mask=here, other=0.0)
    turns = tl.abs(pq) > tolerance
    sine, tangent, half = _rotation(pp, qq, pq, turns)
    return sine, half, turns, pp - tangent * pq, qq + tangent * pq


@triton.jit
def _turned(p, q, sine, half):
    """Two rows after their rotation. With the tangent of half the angle instead of a cosine that is rounded to 1, small
    angles do not lengthen the rows."""
    return p - sine * (q + half * p), q + sine * (p - half * q)


@triton.jit
def eigh_kernel(
    values, vectors, a, w_, v_, info, matrices, n, matrix_step, row_step, column_step, sweeps, tolerance, fresh,
    VECTORS: tl.constexpr, HALF: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """values (matrices, n) ascending and vectors (matrices, n, n), a row each, of symmetric matrices a, of which the
    lower triangles are read; info: 1 where ``sweeps`` were not enough. NaN where an element is not finite. w_ and v_
    (matrices, n, n) are written: the rotated matrix and the rotations, with which another launch goes on if not
    ``fresh`` and a is w_. Elements are 0 if they are ``tolerance`` times the largest of the matrix."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    n = tl.where(program < matrices, n, 0)  # programs past the last do nothing
    matrix = program.to(tl.int64)
    a += matrix * matrix_step
    w_ += matrix * n * n
    v_ += matrix * n * n
    vectors += matrix * n * n
    values += matrix * n
    r = tl.arange(0, N)
    row = r[None, :]
    j = tl.arange(0, HALF)
    half, rounds = (n + 1) // 2, n - 1 + n % 2
    largest = tl.full((), 0.0, a.dtype.element_ty)
    wrong = program * 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)[:, None]
        here = (i < n) & (row < n)
        x = tl.load(a + tl.maximum(i, row) * row_step + tl.minimum(i, row) * column_step, mask=here, other=0.0)
        tl.store(w_ + i * n + row, x, mask=here)
        if VECTORS:
            tl.store(v_ + i * n + row, tl.where(i == row, 1.0, tl.zeros_like(x)), mask=here & (fresh != 0))
        wrong = tl.maximum(wrong, tl.max((x - x != 0).to(tl.int32)))
        largest = tl.maximum(largest, tl.max(tl.abs(x)))
    wrong = tl.where(n == 1, 0, wrong)  # one element is its own value
    smallest = largest * tolerance
    moving = tl.where((n > 1) & (wrong == 0), 1, 0)
    sweep = 0
    while (moving != 0) & (sweep < sweeps):
        turned = tl.zeros((BLOCK,), tl.int32)
        for step in range(rounds):
            tl.debug_barrier()
            pj, qj = _pairs(j, step, n)
            in_row = (j < half) & (qj < n)
            # All columns are rotated. The same rotations were applied to the rows before.
            sine, halved, _, _, _ = _angles(w_, pj, qj, in_row, n, smallest)
            sine, halved, pj, qj = sine[None, :], halved[None, :], pj[None, :], qj[None, :]
            odd = (j[None, :] < half) & (pj < n)
            for start in range(0, half, BLOCK):
                i = start + tl.arange(0, BLOCK)
                p, q = _pairs(i, step, n)
                whole = (i < half) & (q < n)
                s, h, turns, first, second = _angles(w_, p, q, whole, n, smallest)
                turned |= turns.to(tl.int32)
                s, h, p, q = s[:, None], h[:, None], p[:, None], q[:, None]
                alone, whole = (i < half)[:, None], whole[:, None]
                up, down = w_ + p * n, w_ + q * n
                left, right = alone & odd, alone & in_row[None, :]
                below, beyond = whole & odd, whole & in_row[None, :]
                pp = tl.load(up + pj, mask=left, other=0.0)
                pq = tl.load(up + qj, mask=right, other=0.0)
                qp = tl.load(down + pj, mask=below, other=0.0)
                qq = tl.load(down + qj, mask=beyond, other=0.0)
                pp, qp = _turned(pp, qp, s, h)
                pq, qq = _turned(pq, qq, s, h)
                pp, pq = _turned(pp, pq, sine, halved)
                qp, qq = _turned(qp, qq, sine, halved)
                own = (i[:, None] == j[None, :]) & whole
                zero = own & turns[:, None]
                tl.store(up + pj, tl.where(own, first[:, None], pp), mask=left)
                tl.store(up + qj, tl.where(zero, 0.0, pq), mask=right)
                tl.store(down + pj, tl.where(zero, 0.0, qp), mask=below)
                tl.store(down + qj, tl.where(own, second[:, None], qq), mask=beyond)
                if VECTORS:
                    one, other = v_ + p * n + row, v_ + q * n + row
                    both = whole & (row < n)
                    x, y = _turned(tl.load(one, mask=both, other=0.0), tl.load(other, mask=both, other=0.0), s, h)
                    tl.store(one, x, mask=both)
                    tl.store(other, y, mask=both)
        moving = tl.max(turned)
        sweep += 1
    tl.debug_barrier()
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        found = tl.load(w_ + i * (n + 1), mask=i < n, other=0.0)
        others = tl.load(w_ + r * (n + 1), mask=r < n, other=0.0)[None, :]
        place = _place(others < found[:, None], others == found[:, None], i, row, n, wrong)
        tl.store(values + place, tl.where(wrong != 0, float("nan"), found), mask=i < n)
        if VECTORS:
            here = (i < n)[:, None] & (row < n)
            x = tl.load(v_ + i[:, None] * n + row, mask=here, other=0.0)
            tl.store(vectors + place[:, None] * n + row, tl.where(wrong != 0, float("nan"), x), mask=here)
    tl.store(info + matrix, tl.where(moving != 0, 1, 0), mask=program < matrices)


@triton.jit
def _place(before, same, i, row, n, wrong):
    """Where elements i go in order, given which others (row) come before them, and which are equal; where they are if
    ``wrong``."""
    before = (row < n) & (before | (same & (row < i[:, None])))
    return tl.where(wrong != 0, i, tl.sum(before.to(tl.int32), 1))


@triton.jit
def svd_kernel(
    values, right, left, a, w_, lengths_, info, matrices, n, m, width, sweeps, tolerance, least, fresh,
    VECTORS: tl.constexpr, N: tl.constexpr, M: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """R = Jᵀ Σ X of the upper triangles of a (matrices, n, m), a column a row: values (matrices, n), Σ's diagonal,
    descending; left, J (matrices, n, n); right (matrices, n, n), X's rows, each of its own length, and 0 for a value of
    0; info: 1 where ``sweeps`` were not enough, -4 where an element is not finite, and what is found is NaN. lengths_
    (matrices, n) is written, and w_ (matrices, n, width), the rotated R and the rotations, with which another launch
    goes on if not ``fresh``. Rows are orthogonal if their product is ``tolerance`` times that of their lengths, or
    ``least`` times the square of the largest element, which changes no singular value by more than the root of that.
    M: elements of w_'s row."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    n = tl.where(program < matrices, n, 0)  # programs past the last do nothing
    matrix = program.to(tl.int64)
    a += matrix * n * m
    w_ += matrix * n * width
    values += matrix * n
    lengths_ += matrix * n
    right += matrix * n * n
    left += matrix * n * n
    r = tl.arange(0, N)
    row = tl.arange(0, M)[None, :]
    half, rounds = (n + 1) // 2, n - 1 + n % 2
    largest = tl.full((), 0.0, a.dtype.element_ty)
    wrong = program * 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)[:, None]
        x = tl.load(a + row * m + i, mask=(row < n) & (i <= row), other=0.0)
        wrong = tl.maximum(wrong, tl.max((x - x != 0).to(tl.int32)))
        largest = tl.maximum(largest, tl.max(tl.abs(x)))
    scale, inverse = scales(largest)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)[:, None]
        x = tl.load(a + row * m + i, mask=(row < n) & (i <= row), other=0.0) * inverse
        here = (i < n) & (row < width) & (fresh != 0)
        tl.store(w_ + i * width + row, tl.where(row - n == i, 1.0, x), mask=here)
    moving = tl.where((n > 1) & (wrong == 0), 1, 0)
    sweep = 0
    while (moving != 0) & (sweep < sweeps):
        turned = tl.zeros((BLOCK,), tl.int32)
        for step in range(rounds):
            tl.debug_barrier()
            for start in range(0, half, BLOCK):
                i = start + tl.arange(0, BLOCK)
                p, q = _pairs(i, step, n)
                here = ((i < half) & (q < n))[:, None] & (row < width)
                one, other = w_ + p[:, None] * width + row, w_ + q[:, None] * width + row
                x, y = tl.load(one, mask=here, other=0.0), tl.load(other, mask=here, other=0.0)
                xr, yr = tl.where(row < n, x, 0.0), tl.where(row < n, y, 0.0)
                pp, qq, pq = tl.sum(xr * xr, 1), tl.sum(yr * yr, 1), tl.sum(xr * yr, 1)
                turns = tl.abs(pq) > tl.maximum(tolerance * (tl.sqrt(pp) * tl.sqrt(qq)), least)
                turned |= turns.to(tl.int32)
                sine, _, halved = _rotation(pp, qq, pq, turns)
                x, y = _turned(x, y, sine[:, None], halved[:, None])
                tl.store(one, x, mask=here)
                tl.store(other, y, mask=here)
        moving = tl.max(turned)
        sweep += 1
    tl.debug_barrier()
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        here = (i < n)[:, None] & (row < n)
        x = tl.load(w_ + i[:, None] * width + row, mask=here, other=0.0)
        size, small = scales(tl.max(tl.abs(x), 1))
        length = root(tl.sum(x * small[:, None] * (x * small[:, None]), 1)) * size * scale
        tl.store(lengths_ + i, tl.where(wrong != 0, float("nan"), length), mask=i < n)
    tl.debug_barrier()
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        found = tl.load(lengths_ + i, mask=i < n, other=0.0)
        others = tl.load(lengths_ + r, mask=r < n, other=0.0)[None, :]
        place = _place(others > found[:, None], others == found[:, None], i, r[None, :], n, wrong)
        tl.store(values + place, found, mask=i < n)
        if VECTORS:
            here = (i < n)[:, None] & (row < width)
            x = tl.load(w_ + i[:, None] * width + row, mask=here, other=0.0)
            x = tl.where(wrong != 0, float("nan"), x)
            _, small = scales(tl.max(tl.where(row < n, tl.abs(x), 0.0), 1))
            tl.store(right + place[:, None] * n + row, x * small[:, None], mask=here & (row < n))
            tl.store(left + place[:, None] * n + row - n, x, mask=here & (row >= n))
    tl.store(info + matrix, tl.where(wrong != 0, -4, tl.where(moving != 0, 1, 0)), mask=program < matrices)


def _rows(a: torch.Tensor, elements: int) -> int:
    """How many rows of so many elements a program rotates at a time."""
    tile = _TILE if kind_of(a.device.index or 0).cpu else _TILE_OF_GPUS
    return max(tile // elements, _ROWS)


def _until_done(
    kernel: Any, count: int, given: dict[str, Any], again: dict[str, Any], how: dict[str, Any], warps: int
) -> torch.Tensor | None:
    """Launch it, and again with other arguments while sweeps are not enough. The info that it gives, if not 0 of all
    matrices; the host reads it."""
    info = given["info"]
    for fresh in (True, *[False] * (_LAUNCHES - 1)):
        launch(kernel, grid_of(count), given if fresh else given | again | {"fresh": 0}, how, warps)
        if not info.any():
            return None
        if not (info > 0).any():
            break
    return info


def eigen(a: torch.Tensor, vectors: bool, upper: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """(values, vectors, info) of symmetric matrices (count, n, n), of which one triangle is read: as eigh_kernel() has
    them, and no info where it is 0 of all. Without ``vectors``, these are empty. Raises OnHost for large matrices."""
    count, n = a.shape[:2]
    if n > LARGEST:
        raise OnHost(f"matrices of {n} rows")
    found = a.new_empty((count, n, n) if vectors else (0,))
    values, info = a.new_empty((count, n)), torch.empty(count, dtype=torch.int32, device=a.device)
    if not a.numel():
        return values, found, None
    w = a.new_empty((count, n, n))
    row, column = a.stride()[1:]
    given: dict[str, Any] = {
        "values": values,
        "vectors": found,
        "a": a,
        "w_": w,
        "v_": torch.empty_like(found),
        "info": info,
    }
    given |= {"matrices": count, "n": n, "matrix_step": a.stride(0)}
    given |= {"row_step": column if upper else row, "column_step": row if upper else column}
    given |= {"sweeps": _SWEEPS, "tolerance": torch.finfo(a.dtype).eps / 8, "fresh": 1}
    size, half = power_of_two(n), power_of_two((n + 1) // 2)
    how = {"VECTORS": vectors, "HALF": half, "N": size, "BLOCK": min(half, _rows(a, size))}
    steps = dict(zip(("matrix_step", "row_step", "column_step"), w.stride(), strict=True))
    failed = _until_done(eigh_kernel, count, given, {"a": w, **steps}, how, 1 if size <= 16 else 4)
    return values, found, failed


def singular(
    columns: torch.Tensor, vectors: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """(values, right, left, info) of the upper triangles of contiguous (…, n, m), a matrix's columns, n ≤ m: as
    svd_kernel() has them, in batches of the same shape, and no info where it is 0 of all. Without ``vectors``, these
    are empty. Raises OnHost for large matrices."""
    (n, m), batch, count = columns.shape[-2:], columns.shape[:-2], count_of(columns)
    if n > LARGEST:
        raise OnHost(f"matrices of {n} columns and rows")
    values, info = columns.new_empty((*batch, n)), torch.empty(batch, dtype=torch.int32, device=columns.device)
    right, left = (columns.new_empty((*batch, n, n) if vectors else (0,)) for _ in range(2))
    if not columns.numel():
        return values, right, left, None
    width = 2 * n if vectors else n
    given: dict[str, Any] = {"values": values, "right": right, "left": left, "a": columns}
    given |= {"w_": columns.new_empty((count, n, width))}
    given |= {"lengths_": torch.empty_like(values), "info": info, "matrices": count, "n": n, "m": m, "width": width}
    eps = torch.finfo(columns.dtype).eps
    given |= {"sweeps": _SWEEPS, "tolerance": eps * n**0.5, "least": (eps / 8) ** 2, "fresh": 1}
    size, long = power_of_two(n), power_of_two(width)
    how = {
        "VECTORS": vectors,
        "N": size,
        "M": long,
        "BLOCK": min(power_of_two((n + 1) // 2), max(_TILE // long, _ROWS)),
    }
    failed = _until_done(svd_kernel, count, given, {}, how, 1 if long <= 16 else 4)
    return values, right, left, failed
