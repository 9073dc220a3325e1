"""Matrix products: mm, bmm, addmm, baddbmm and what torch makes of them, by one kernel of tiles with any strides."""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from ..device.tensor_memory import empty, tensor_forms
from .device_facts import DeviceFacts, kind_of, share_out
from .dtypes import OnHost, known
from .launching import form_of, launch
from .library import enter_by_name
from .pointwise import number
from .reducing import SUM, reduce
from .splitting import parts
from .strided_shapes import overlap, power_of_two, resized, same_view
from .tiles import SHORTEST, Tile, fastest, shared, tiles_for

#: In which type products are summed; integers of fewer bits than 64, which wrap, in 32.
_SUMS = {torch.float16: tl.float32, torch.bfloat16: tl.float32, torch.float32: tl.float32}
_SUMS |= {torch.float64: tl.float64, torch.int64: tl.int64}


#: Of sums that are not float32's, a column times a row after the other.
_BY_COLUMNS = Tile(32, 32, 32)
#: Columns and step of a row's product on a CPU where the matrix is contiguous along K, and where it is not. 1×1024 by
#: 1024×2752 takes 504 µs in fp32 and 326 in bf16 on a Sapphire Rapids; by tiles of 16×64×32 it took 799 and 1,259.
_ALONG_K, _ACROSS_K = (8, 32), (64, 1)
#: In so many parts K is divided at most where there is one tile to choose (devices.share_out).
_MOST_PARTS = 32
#: Arguments of _row() whose multiples of 16 make wider accesses.
_DIVISIBLE = frozenset("NK")


def enter_matmul(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


@triton.jit
def matmul_kernel(
    out,
    a,
    b,
    c,
    M,
    N,
    K,
    H,
    share,
    stride_ab,
    stride_ah,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bh,
    stride_bk,
    stride_bn,
    stride_cb,
    stride_ch,
    stride_cm,
    stride_cn,
    stride_op,
    stride_ob,
    stride_oh,
    stride_om,
    stride_on,
    alpha,
    beta,
    ADD: tl.constexpr,
    KIND: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """out = alpha a b, + beta c. ``ADD`` says what c is: "matrix", or "row" if all of its rows are the same; "" adds
    nothing. Matrices are in batches, each of H. The third axis of the grid are parts of K, of ``share`` products (a
    multiple of BLOCK_K), which write sums of their own, ``stride_op`` apart. ``KIND``: the type of sums; float32 by
    products of tiles, others, which have none, a column times a row after the other. ``GROUP``: as Tile's. ``WHOLE``:
    all tiles and steps are whole."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    first = program // (GROUP * tiles_n) * GROUP
    group = min(tl.cdiv(M, BLOCK_M) - first, GROUP)
    tile_m = first + program % (GROUP * tiles_n) % group
    tile_n = program % (GROUP * tiles_n) // group
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    part = tl.program_id(2)
    end = min(part * share + share, K)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    a += batch * stride_ab + head * stride_ah
    b += batch * stride_bb + head * stride_bh
    total = tl.zeros((BLOCK_M, BLOCK_N), KIND)
    if KIND == tl.float32:
        for start in range(part * share, end, BLOCK_K):
            left_k = start + tl.arange(0, BLOCK_K)[None, :]
            right_k = start + tl.arange(0, BLOCK_K)[:, None]
            left, right = a + row * stride_am + left_k * stride_ak, b + right_k * stride_bk + column * stride_bn
            if WHOLE:
                left, right = tl.load(left), tl.load(right)
            else:
                left = tl.load(left, mask=(row < M) & (left_k < K), other=0.0)
                right = tl.load(right, mask=(right_k < K) & (column < N), other=0.0)
            total = tl.dot(left, right, total, input_precision="ieee")
    else:
        for k in range(part * share, end):
            left = tl.load(a + row * stride_am + k * stride_ak, mask=row < M, other=0).to(KIND)
            total += left * tl.load(b + k * stride_bk + column * stride_bn, mask=column < N, other=0).to(KIND)
    total *= alpha
    mask = (row < M) & (column < N)
    c += batch * stride_cb + head * stride_ch
    if ADD == "row":
        total += beta * tl.load(c + column * stride_cn, mask=(column < N) & (part == 0), other=0).to(KIND)
    elif ADD == "matrix":
        place = c + row * stride_cm + column * stride_cn
        total += beta * tl.load(place, mask=mask & (part == 0), other=0).to(KIND)
    place = out + part * stride_op + batch * stride_ob + head * stride_oh + row * stride_om + column * stride_on
    if WHOLE:
        tl.store(place, total.to(out.dtype.element_ty))
    else:
        tl.store(place, total.to(out.dtype.element_ty), mask=mask)


@triton.jit
def row_kernel(
    out,
    a,
    b,
    c,
    N,
    K,
    H,
    stride_vb,
    stride_vh,
    stride_vk,
    stride_mb,
    stride_mh,
    stride_mk,
    stride_mn,
    stride_cb,
    stride_ch,
    stride_cn,
    stride_ob,
    stride_oh,
    stride_on,
    alpha,
    beta,
    ADD: tl.constexpr,
    KIND: tl.constexpr,
    TURNED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out = alpha v m, + beta c where ``ADD``, of a row v (K) and a matrix m (K, N), in batches, each of H. They are a
    and b; ``TURNED``: b and a, whose product is the transposed one. ``KIND``: the type of sums. ``BLOCK_K``: with 1 a
    row of the matrix is added after the other, else elements that are so far apart in K are added first."""
    vector, matrix = (b, a) if TURNED else (a, b)
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    vector += batch * stride_vb + head * stride_vh
    matrix += batch * stride_mb + head * stride_mh
    inside = column < N
    if BLOCK_K == 1:
        total = tl.zeros((BLOCK_N,), KIND)
        for k in range(K):
            row = tl.load(matrix + k * stride_mk + column * stride_mn, mask=inside, other=0).to(KIND)
            total += row * tl.load(vector + k * stride_vk).to(KIND)
    else:
        totals = tl.zeros((BLOCK_N, BLOCK_K), KIND)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            place = matrix + k[None, :] * stride_mk + column[:, None] * stride_mn
            tile = tl.load(place, mask=(k[None, :] < K) & inside[:, None], other=0).to(KIND)
            totals += tile * tl.load(vector + k * stride_vk, mask=k < K, other=0).to(KIND)[None, :]
        total = tl.sum(totals, 1)
    total *= alpha
    if ADD:
        c += batch * stride_cb + head * stride_ch
        total += beta * tl.load(c + column * stride_cn, mask=inside, other=0).to(KIND)
    place = out + batch * stride_ob + head * stride_oh + column * stride_on
    tl.store(place, total.to(out.dtype.element_ty), mask=inside)


def product(
    out: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> torch.Tensor:
    """out (B, M, N) = alpha a (B, M, K) b (B, K, N) + beta c (B, M, N), or (B, H, …) all. Raises OnHost."""
    if out.is_complex() and out.numel() and a.shape[-1]:
        return _complex_product(out, a, b, c if beta else None, alpha, beta)
    used = c is not None and beta != 0
    if a.shape[-1] == 0 and out.numel():
        return _of_nothing(out, c if used else None, beta)
    for operand in (a, b, c):
        if operand is not None and overlap(operand, out) and not (operand is c and same_view(c, out)):
            return out.copy_(product(torch.empty_like(out), a, b, c, alpha, beta))
    added = c if used and c is not None else out
    floating = out.dtype.is_floating_point
    factors = [float(x) if floating else int(number(x, out.dtype)) for x in (alpha, beta)]
    return _run(out, a, b, added, used, factors)


def _complex_product(
    out: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: Any, beta: Any
) -> torch.Tensor:
    """product() of complex numbers, by four of their parts. What is pending of a and b is a sign."""
    if isinstance(alpha, complex) or isinstance(beta, complex):
        raise OnHost("complex factors")
    if not out.dtype == a.dtype == b.dtype == (out if c is None else c).dtype or out.dtype == torch.complex32:
        raise OnHost("numbers of several types, or halves")
    conjugated = [-1.0 if operand.is_conj() else 1.0 for operand in (a, b)]
    left, right = (parts((t.conj() if t.is_conj() else t).resolve_neg()) for t in (a, b))
    re, im = parts(out)
    added = (None, None) if c is None else parts(c.resolve_conj().resolve_neg())
    product(re, left[0], right[0], added[0], alpha, beta)
    product(re, left[1], right[1], re, -alpha * conjugated[0] * conjugated[1], 1.0)
    product(im, left[0], right[1], added[1], alpha * conjugated[1], beta)
    product(im, left[1], right[0], im, alpha * conjugated[0], 1.0)
    return out


def _run(
    out: torch.Tensor, a: torch.Tensor, b: torch.Tensor, added: torch.Tensor, used: bool, factors: list[Any]
) -> torch.Tensor:
    if out.dtype == torch.bool:
        raise OnHost("a product of bool")
    where = out.device
    index = where.index or 0
    if fault := tensor_forms().fault((out,), (a, b, added), known(torch.float64, index)):
        raise OnHost(fault)
    if a.dtype != b.dtype or added.dtype != out.dtype or not _may_give(a.dtype, out.dtype):
        raise OnHost("tensors of several types")
    if out.numel() == 0:
        return out
    heads = out.shape[1] if out.dim() > 3 else 1
    batches, m, n = out.shape[0] * heads, *out.shape[-2:]
    k = a.shape[-1]
    kind = _SUMS.get(out.dtype, tl.int32)
    on = kind_of(index)
    if on.cpu and 1 in (m, n) and -(-max(m, n) // _ACROSS_K[0]) * batches >= on.units:
        return _row(out, a, b, added, used, factors, kind)
    tile, parts = _division(on, a.dtype, kind is tl.float32, (m, n, k, batches))
    tile_m, tile_n = (16 if size <= 16 else most for size, most in ((m, tile.rows), (n, tile.columns)))
    step = min(tile.step, max(16, power_of_two(k)))
    tiles = -(-m // tile_m) * -(-n // tile_n)
    parts, share = shared(k, parts, step)
    whole = not (on.cpu or m % tile_m or n % tile_n or k % step)
    result, of_parts = out, (0, *_steps(out, 4))
    if parts > 1:
        compute = torch.float64 if kind is tl.float64 else torch.float32
        result = torch.empty((parts, *out.shape), dtype=compute, device=out.device)
        of_parts = _steps(result, 5)
    strides = *_steps(a, 4), *_steps(b, 4), *_steps(added, 4), *of_parts
    arguments = [result, a, b, added, m, n, k, heads, share, *strides, *factors]
    # A tile of c takes registers: addmm of 8192×1024 by 1024×4096 in fp32 takes 2.23 ms with one on an H100, and 1.67
    # with a row.
    added_as = "" if not used else "matrix" if added.stride(-2) and m > 1 else "row"
    constants = {"ADD": added_as, "KIND": kind, "BLOCK_M": tile_m, "BLOCK_N": tile_n, "BLOCK_K": step}
    constants |= {"GROUP": tile.group, "WHOLE": whole}
    # A size decides how wide accesses are where a mask of it lies along elements that are next to one another.
    along: dict[str, tuple[int, tuple[int, ...]]] = {
        "M": (m, (a.stride(-2), of_parts[-2])),
        "N": (n, (b.stride(-1), added.stride(-1), of_parts[-1])),
        "K": (k, (a.stride(-1), b.stride(-2))),
    }
    heeded = {name: size for name, (size, found) in along.items() if 1 in found and not whole} | {"share": share}
    form = form_of(strides, [*heeded.values()], (m, n, k, heads, share, *factors), (a.dtype, result.dtype, added.dtype))
    grid = tiles, batches, parts
    launch(matmul_kernel, grid, arguments, constants, tile.warps, True, frozenset(heeded), form)
    if parts == 1:
        return out
    return reduce("x", SUM, {"x": result}, (0,), dtype=out.dtype, compute=result.dtype, out=out)


def _row(
    out: torch.Tensor, a: torch.Tensor, b: torch.Tensor, added: torch.Tensor, used: bool, factors: list[Any], kind: Any
) -> torch.Tensor:
    """A product that is a row, or a column: the transposed product then."""
    turned = out.shape[-2] != 1
    vector, matrix, result, c = (b.mT, a.mT, out.mT, added.mT) if turned else (a, b, out, added)
    heads = out.shape[1] if out.dim() > 3 else 1
    batches, n, k = out.shape[0] * heads, result.shape[-1], vector.shape[-1]
    block_n, block_k = _ALONG_K if matrix.stride(-2) < matrix.stride(-1) else _ACROSS_K
    constants = {"ADD": used, "KIND": kind, "TURNED": turned, "BLOCK_N": block_n, "BLOCK_K": block_k}
    (vb, vh, _, vk), (cb, ch, _, cn), (ob, oh, _, on) = (_steps(one, 4) for one in (vector, c, result))
    strides = vb, vh, vk, *_steps(matrix, 4), cb, ch, cn, ob, oh, on
    arguments = [out, a, b, added, n, k, heads, *strides, *factors]
    grid = (-(-n // block_n), batches, 1)
    launch(row_kernel, grid, arguments, constants, 4, fusion=True, divisible=_DIVISIBLE)
    return out


def _division(
    on: DeviceFacts, dtype: torch.dtype, by_tiles: bool, sizes: tuple[int, int, int, int]
) -> tuple[Tile, int]:
    """A product's tile, and in how many parts K is divided. ``sizes``: rows, columns, K and the number of products."""
    if by_tiles and not on.cpu:
        found = fastest(tiles_for(on, dtype), on, dtype, sizes)
        return found.tile, found.parts
    tile = tiles_for(on, dtype)[0] if by_tiles else _BY_COLUMNS
    if not dtype.is_floating_point:
        return tile, 1
    m, n, k, batches = sizes
    return tile, min(share_out(tile.programs(m, n) * batches, on.units, k, SHORTEST), _MOST_PARTS)


def _steps(tensor: torch.Tensor, count: int) -> tuple[int, ...]:
    """``count`` strides, the third from the end that of the heads, of which there is one where there is no such
    dimension."""
    steps = tensor.stride()
    return steps if len(steps) == count else (*steps[:-2], 0, *steps[-2:])


def _of_nothing(out: torch.Tensor, c: torch.Tensor | None, beta: float) -> torch.Tensor:
    """A product of matrices without columns and rows that are summed."""
    return out.zero_() if c is None else torch.mul(c, beta, out=out)


def _result(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None, dims: int = 2, added: torch.Tensor | None = None
) -> torch.Tensor:
    """``out``, or a new tensor, with the shape of the product of tensors of so many dimensions, to which ``added`` is
    broadcast."""
    if not a.dim() == b.dim() == dims or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise OnHost("shapes that are refused")
    if a.dtype != b.dtype or (out is not None and not _may_give(a.dtype, out.dtype)):
        raise OnHost("tensors of several types")
    shape = *a.shape[:-1], b.shape[-1]
    if added is not None:
        added.expand(shape)
    return empty(shape, dtype=a.dtype, device=a.device) if out is None else resized(out, shape)


def _mm(self: torch.Tensor, mat2: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    out = _result(self, mat2, out)
    product(out[None], self[None], mat2[None])
    return out


def _bmm(self: torch.Tensor, mat2: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    return product(_result(self, mat2, out, 3), self, mat2)


def _addmm(
    self: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    out = _result(mat1, mat2, out, added=self)
    product(out[None], mat1[None], mat2[None], self.expand(out.shape)[None], alpha, beta)
    return out


def _baddbmm(
    self: torch.Tensor, batch1: torch.Tensor, batch2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1, out: torch.Tensor
) -> torch.Tensor:
    out = _result(batch1, batch2, out, 3, self)
    return product(out, batch1, batch2, self.expand(out.shape), alpha, beta)


def _addmv(
    self: torch.Tensor, mat: torch.Tensor, vec: torch.Tensor, *, beta: Any = 1, alpha: Any = 1, out: torch.Tensor
) -> torch.Tensor:
    if mat.dtype != vec.dtype or not _may_give(mat.dtype, out.dtype):
        raise OnHost("tensors of several types")
    if self.dim() > 1 or mat.dim() != 2 or mat.shape[1:] != vec.shape or self.numel() not in (1, mat.shape[0]):
        raise OnHost("shapes that are refused")
    added = self.expand(mat.shape[:1])[None, :, None]
    resized(out, mat.shape[:1])
    product(out[None, :, None], mat[None], vec[None, :, None], added, alpha, beta)
    return out


def _dot(self: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    if self.dim() != 1 or self.shape != tensor.shape or self.dtype != tensor.dtype:
        raise OnHost("a dot product that is refused")
    if self.is_complex():
        return (self * tensor).sum()
    return reduce("self * other", SUM, {"self": self, "other": tensor}, (0,), dtype=self.dtype)


def _may_give(operands: torch.dtype, result: torch.dtype) -> bool:
    """Whether a product has results of that type: its operands', or float32 of float16 and bfloat16, as on CUDA."""
    return result == operands or (result == torch.float32 and _SUMS.get(operands) == tl.float32)


def _of_type(compute: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``compute`` with the type of its results as its last argument."""

    def run(*given: Any, out: torch.Tensor | None = None, **factors: Any) -> torch.Tensor:
        *operands, dtype = given
        own = operands[-1].dtype
        if not _may_give(own, dtype):
            raise RuntimeError(f"out_dtype of a product of {own} is {own}, or float32 of float16 and bfloat16: {dtype}")
        if out is not None and out.dtype != dtype:
            raise RuntimeError(f"out_dtype is {dtype}, and out is of {out.dtype}")
        return compute(*operands, out=operands[-1].new_empty(0, dtype=dtype) if out is None else out, **factors)

    return run


_TABLE: dict[str, Callable[..., Any]] = {
    "mm.dtype mm.dtype_out": _of_type(_mm),
    "bmm.dtype bmm.dtype_out": _of_type(_bmm),
    "addmm.dtype addmm.dtype_out": _of_type(_addmm),
    "baddbmm.dtype baddbmm.dtype_out": _of_type(_baddbmm),
    "mm mm.out": _mm,
    "bmm bmm.out": _bmm,
    "addmm addmm.out": _addmm,
    "baddbmm.out": _baddbmm,
    "addmv.out": _addmv,
    "dot": _dot,
    "vdot": lambda self, other: _dot(self.conj(), other),
}
