"""torch's reductions: sums, products, extremes, truth, moments and norms, as reducing.py's reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .dtypes import OnHost, computed_in
from .pointwise import check_output, of_type
from .reducing import ALL, ANY, MAX, MIN, PROD, SUM, Fold, reduce
from .splitting import parts
from .strided_shapes import resized

_Dims = Sequence[int] | int | None
_NOT_ZERO, _SELF = "(self != 0).to(blank.dtype)", frozenset(("self",))
#: Where the first of the elements is that are equal to ``top``, or NaN, as ``top`` is if one is.
_PLACE = "tl.where((self == top) | (self != self), column.to(blank.dtype) + blank, start_acc)"


def dims_of(dim: _Dims, count: int) -> tuple[int, ...]:
    """The dimensions that a reduction's ``dim`` names, of a tensor of ``count`` dimensions. Raises OnHost for
    one that is out of range, or named twice."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(count))
    named, count = [dim] if isinstance(dim, int) else dim, max(count, 1)
    dims = tuple(d % count for d in named)
    if len(set(dims)) < len(dims) or any(not -count <= d < count for d in named):
        raise OnHost("dimensions that are refused")
    return dims


def _shape(shape: torch.Size, dims: tuple[int, ...], keepdim: bool) -> torch.Size:
    if keepdim:
        return torch.Size(1 if d in dims else size for d, size in enumerate(shape))
    return torch.Size(size for d, size in enumerate(shape) if d not in dims)


def _plain(tensor: torch.Tensor) -> None:
    if tensor.dtype.is_complex:
        raise OnHost("complex numbers")


def _summed(dtype: torch.dtype | None, source: torch.dtype) -> torch.dtype:
    return dtype or (source if source.is_floating_point else torch.int64)


def into(
    out: torch.Tensor, source: torch.Tensor, text: str, fold: Fold, dims: tuple[int, ...], keepdim: bool, **how: Any
) -> torch.Tensor:
    """reduce() of the one operand ``self`` into ``out``, which takes the result's shape."""
    _plain(source)
    resized(out, _shape(source.shape, dims, keepdim))
    numbers = how.pop("numbers", {})
    reduce(text, fold, {"self": source, **numbers}, dims, dtype=out.dtype, keepdim=keepdim, out=out, **how)
    return out


def _by_parts(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A reduction that is that of real and imaginary parts."""

    def run(self: torch.Tensor, dim: _Dims, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor) -> Any:
        if not self.is_complex():
            return function(self, dim, keepdim, dtype=dtype, out=out)
        if out.dtype != self.dtype or self.dtype == torch.complex32:
            raise OnHost("an output of another type, or halves")
        resized(out, _shape(self.shape, dims_of(dim, self.dim()), keepdim))
        for part, result in zip(parts(self.resolve_conj().resolve_neg()), parts(out), strict=True):
            function(part, dim, keepdim, out=result)
        return out

    return run


def _sum(self: torch.Tensor, dim: _Dims, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor) -> Any:
    dims = dims_of(dim, self.dim())
    if out.dtype == torch.bool:
        return into(out, self, _NOT_ZERO, ANY, dims, keepdim, as_stored=_SELF)
    return into(out, self, "self", SUM, dims, keepdim, compute=computed_in(out.dtype))


def _nansum(
    self: torch.Tensor, dim: _Dims = None, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor
) -> Any:
    text = (
        "tl.where(self != self, self * 0, self)"
        if not self.dtype.is_floating_point
        else "tl.where(self != self, 0.0, self)"
    )
    return into(out, self, text, SUM, dims_of(dim, self.dim()), keepdim, compute=computed_in(out.dtype))


def _mean(self: torch.Tensor, dim: _Dims, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor) -> Any:
    dims = dims_of(dim, self.dim())
    count = math.prod(self.shape[d] for d in dims) if self.dim() else 1
    if not (out.dtype.is_floating_point and (dtype or self.dtype).is_floating_point):
        raise OnHost("a mean of integers")
    finish = "acc / count" if count else "acc / 0.0"
    return into(out, self, "self", SUM, dims, keepdim, finish=finish)


def _complex_product(self: torch.Tensor, dim: int) -> torch.Tensor:
    """Without the dimension: products of halves, as often as there is more than one number."""
    count = self.shape[dim]
    if count < 2:
        return self.select(dim, 0).clone() if count else self.sum(dim) + 1
    while count > 1:
        half = count // 2
        pairs = self.narrow(dim, 0, half) * self.narrow(dim, half, half)
        self = torch.cat((pairs, self.narrow(dim, count - 1, 1)), dim) if count % 2 else pairs
        count = self.shape[dim]
    return self.select(dim, 0)


def _prod_dim(self: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor) -> Any:
    if out.is_complex():
        if not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
            raise OnHost("a dimension that is refused")
        line = (self if self.dim() else self.view(1)).to(out.dtype)
        found = _complex_product(line, dim)
        found = found.unsqueeze(dim) if keepdim and self.dim() else found
        return resized(out, found.shape).copy_(found)
    dims = dims_of(dim, self.dim())
    if out.dtype == torch.bool:
        return into(out, self, _NOT_ZERO, ALL, dims, keepdim, as_stored=_SELF)
    return into(out, self, "self", PROD, dims, keepdim, compute=computed_in(out.dtype))


def _prod(self: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    if (dtype or self.dtype).is_complex:
        return _complex_product(self.reshape(-1).to(dtype or self.dtype), 0)
    _plain(self)
    kind = _summed(dtype, self.dtype)
    if kind == torch.bool:
        return reduce(_NOT_ZERO, ALL, {"self": self}, dims_of(None, self.dim()), dtype=kind, as_stored=_SELF)
    return reduce("self", PROD, {"self": self}, dims_of(None, self.dim()), dtype=kind)


def _extreme(fold: Fold) -> Callable[..., Any]:
    def amax(self: torch.Tensor, dim: _Dims = (), keepdim: bool = False, *, out: torch.Tensor) -> torch.Tensor:
        dims = dims_of(dim, self.dim())
        _not_empty(self, dims)
        _of(out, self)
        return into(out, self, "self", fold, dims, keepdim)

    return amax


def _of(out: torch.Tensor, source: torch.Tensor) -> None:
    if out.dtype != source.dtype:
        raise OnHost(f"an output of {out.dtype}, not {source.dtype}")


def _not_empty(tensor: torch.Tensor, dims: tuple[int, ...]) -> None:
    """Lets the CPU say that there is no extreme of no elements."""
    if tensor.dim() and math.prod(tensor.shape[d] for d in dims) == 0:
        raise OnHost("a reduction of nothing")


def _extreme_of_all(fold: Fold) -> Callable[..., Any]:
    def extreme(self: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
        _plain(self)
        dims = dims_of(None, self.dim())
        _not_empty(self, dims)
        if out is None:
            return reduce("self", fold, {"self": self}, dims, dtype=self.dtype)
        _of(out, self)
        return into(out, self, "self", fold, dims, False)

    return extreme


def place_of(self: torch.Tensor, top: torch.Tensor, dim: int, out: torch.Tensor, keepdim: bool) -> torch.Tensor:
    """In ``out``, int64: where along ``dim`` the extreme ``top``, which has the dimension with size 1, is first."""
    compute = torch.int32 if self.shape[dim] < 2**31 else torch.int64
    how: Any = {"keepdim": keepdim, "out": out, "as_stored": frozenset(("self", "top"))}
    return reduce(_PLACE, MIN, {"self": self, "top": top}, (dim,), dtype=torch.int64, compute=compute, **how)


def _place(fold: Fold) -> Callable[..., Any]:
    def argmax(self: torch.Tensor, dim: int | None = None, keepdim: bool = False, *, out: torch.Tensor) -> torch.Tensor:
        _plain(self)
        if self.dtype == torch.bool:
            raise OnHost("a place among conditions")
        shape = _shape(self.shape, dims_of(dim, self.dim()), keepdim)
        flat = self if dim is not None and self.dim() else self.reshape(-1)
        at = dims_of(dim, flat.dim())
        _not_empty(flat, at)
        of_type(out, torch.int64, shape)
        top = reduce("self", fold, {"self": flat}, at, dtype=self.dtype, keepdim=True)
        place_of(flat, top, at[0], out if flat is self else out.view(()), keepdim and flat is self)
        return out

    return argmax


def _extreme_and_place(fold: Fold) -> Callable[..., Any]:
    def max_(
        self: torch.Tensor, dim: int, keepdim: bool = False, *, max: Any = None, max_values: Any = None, **named: Any
    ) -> Any:
        values, places = (max, max_values) if max is not None else (named["min"], named["min_indices"])
        _plain(self)
        shape = _shape(self.shape, dims_of(dim, self.dim()), keepdim)
        of_type(values, self.dtype, shape)
        of_type(places, torch.int64, shape)
        if not self.dim():
            return values.copy_(self), places.zero_()
        (at,) = dims_of(dim, self.dim())
        _not_empty(self, (at,))
        top = reduce("self", fold, {"self": self}, (at,), dtype=self.dtype, keepdim=True)
        place_of(self, top, at, places, keepdim)
        values.copy_(top if keepdim else top.squeeze(at))
        return values, places

    return max_


def _extremes(
    self: torch.Tensor, *, dim: int | None = None, keepdim: bool = False, min: torch.Tensor, max: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    dims = dims_of(dim, self.dim())
    _not_empty(self, dims)
    for out in (min, max):
        _of(out, self)
    return into(min, self, "self", MIN, dims, keepdim), into(max, self, "self", MAX, dims, keepdim)


def _truth(fold: Fold) -> Callable[..., Any]:
    def any_(self: torch.Tensor, dim: _Dims = None, keepdim: bool = False, *, out: torch.Tensor) -> torch.Tensor:
        self = self != 0 if self.is_complex() else self
        dims = dims_of(dim, self.dim())
        of_type(out, torch.uint8 if out.dtype == torch.uint8 else torch.bool, _shape(self.shape, dims, keepdim))
        how: Any = {"keepdim": keepdim, "out": out, "as_stored": _SELF}
        reduce(_NOT_ZERO, fold, {"self": self}, dims, dtype=out.dtype, compute=torch.int8, **how)
        return out

    return any_


def _moments(
    self: torch.Tensor, dim: _Dims, correction: Any, keepdim: bool, root: bool, want_mean: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(variance or its root, mean)."""
    if self.is_complex():
        return _complex_moments(self, dim, correction, keepdim, root)
    if not self.dtype.is_floating_point:
        raise OnHost("a variance of numbers that are not floats")
    dims = dims_of(dim, self.dim())
    count = math.prod(self.shape[d] for d in dims) if self.dim() else 1
    free = max(0.0, count - float(1 if correction is None else correction))
    if not count or not free:
        raise OnHost("a variance without degrees of freedom")
    compute = computed_in(self.dtype)
    mean = reduce("self", SUM, {"self": self}, dims, dtype=compute, keepdim=True, finish="acc / count")
    result = reduce(
        "(self - mean) * (self - mean)",
        SUM,
        {"self": self, "mean": mean, "free": free},
        dims,
        dtype=self.dtype,
        keepdim=keepdim,
        finish="libdevice.sqrt(acc / free)" if root else "acc / free",
    )
    if not want_mean:
        return result, mean
    mean = mean.to(self.dtype)
    return result, mean if keepdim else mean.view(result.shape)


def _complex_moments(
    self: torch.Tensor, dim: _Dims, correction: Any, keepdim: bool, root: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The variances of both parts together are that of the numbers."""
    found = [_moments(part, dim, correction, keepdim, False, want_mean=True) for part in parts(self)]
    variance = found[0][0] + found[1][0]
    return variance.sqrt() if root else variance, torch.complex(found[0][1], found[1][1])


def _variance(root: bool) -> Callable[..., Any]:
    def var(self: torch.Tensor, dim: _Dims = None, *, correction: Any = None, keepdim: bool = False) -> torch.Tensor:
        return _moments(self, dim, correction, keepdim, root)[0]

    return var


def _variance_out(root: bool) -> Callable[..., Any]:
    def var(
        self: torch.Tensor, dim: _Dims = None, *, correction: Any = None, keepdim: bool = False, out: torch.Tensor
    ) -> torch.Tensor:
        result = _moments(self, dim, correction, keepdim, root)[0]
        check_output(out, result.dtype, result.shape)
        return out.copy_(result)

    return var


def _variance_and_mean(root: bool) -> Callable[..., Any]:
    def var_mean(self: torch.Tensor, dim: _Dims = None, *, correction: Any = None, keepdim: bool = False) -> Any:
        return _moments(self, dim, correction, keepdim, root, want_mean=True)

    return var_mean


#: Order → (expression, fold, expression of the result).
_NORMS: dict[float, tuple[str, Fold, str]] = {
    0.0: (_NOT_ZERO, SUM, "acc"),
    1.0: ("tl.abs(self)", SUM, "acc"),
    2.0: ("self * self", SUM, "libdevice.sqrt(acc)"),
    math.inf: ("tl.abs(self)", MAX, "acc"),
    -math.inf: ("tl.abs(self)", MIN, "acc"),
}


def _vector_norm(
    self: torch.Tensor, ord: Any = 2, dim: _Dims = None, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor
) -> torch.Tensor:
    dims = dims_of(dim, self.dim())
    if math.isinf(float(ord)):
        _not_empty(self, dims)
    self = self.abs() if self.is_complex() and dtype is None else self
    if dtype not in (None, self.dtype) or out.dtype != self.dtype or not out.dtype.is_floating_point:
        raise OnHost("a norm in another type")
    power = "libdevice.pow(tl.abs(self), ord)", SUM, "libdevice.pow(acc, 1 / ord)"
    text, fold, finish = _NORMS.get(float(ord), power)
    numbers = {} if float(ord) in _NORMS else {"ord": float(ord)}
    return into(out, self, text, fold, dims, keepdim, finish=finish, numbers=numbers)


def _norm_out(self: torch.Tensor, p: Any, dim: _Dims, keepdim: bool = False, *, out: torch.Tensor) -> torch.Tensor:
    return _vector_norm(self, 2 if p is None else p, dim, keepdim, out=out)


def _count_nonzero(self: torch.Tensor, dim: _Dims) -> torch.Tensor:
    self = self != 0 if self.is_complex() else self
    return reduce(_NOT_ZERO, SUM, {"self": self}, dims_of(dim, self.dim()), dtype=torch.int64, as_stored=_SELF)


TABLE: dict[str, Callable[..., Any]] = {
    "sum.IntList_out": _by_parts(_sum),
    "nansum": lambda self, dim=None, keepdim=False, *, dtype=None: _nansum(
        self, dim, keepdim, out=_empty(self, dim, keepdim, _summed(dtype, self.dtype))
    ),
    "nansum.out": _nansum,
    "mean.out": _by_parts(_mean),
    "prod": _prod,
    "prod.int_out": _prod_dim,
    "amax.out": _extreme(MAX),
    "amin.out": _extreme(MIN),
    "max": _extreme_of_all(MAX),
    "min": _extreme_of_all(MIN),
    "max.unary_out": _extreme_of_all(MAX),
    "min.unary_out": _extreme_of_all(MIN),
    "argmax.out": _place(MAX),
    "argmin.out": _place(MIN),
    "max.dim_max": _extreme_and_place(MAX),
    "min.dim_min": _extreme_and_place(MIN),
    "aminmax.out": _extremes,
    "any.out any.dims_out any.all_out": _truth(ANY),
    "all.out all.dims_out all.all_out": _truth(ALL),
    "count_nonzero.dim_IntList": _count_nonzero,
    "var.correction": _variance(False),
    "std.correction": _variance(True),
    "var.correction_out": _variance_out(False),
    "std.correction_out": _variance_out(True),
    "var_mean.correction": _variance_and_mean(False),
    "std_mean.correction": _variance_and_mean(True),
    "linalg_vector_norm.out": _vector_norm,
    "norm.out": _norm_out,
}


def _empty(self: torch.Tensor, dim: _Dims, keepdim: bool, dtype: torch.dtype) -> torch.Tensor:
    return self.new_empty(_shape(self.shape, dims_of(dim, self.dim()), keepdim), dtype=dtype)
