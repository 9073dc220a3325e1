"""Fourier transforms of any size, along one dimension after the other: what torch.fft, stft and istft are made of.

A size whose prime factors are small takes a kernel for each of its radices (butterflies.py): one up to 16, two up to
256, five for 2^20. Any other size n is a convolution with a chirp (L. Bluestein, 1970), by two transforms of a size of
at least 2 n - 1. Roots of unity are tables that the host computes in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from ..device.native_module import torch_native
from ..device.tensor_memory import extent
from .addressing import NARROW, PLANS
from .butterflies import FourierPass, Source, radices
from .dtypes import OnHost, require
from .kept import Kept
from .launching import grid_of, launch
from .splitting import parts
from .strided_shapes import power_of_two

_Steps = tuple[int, ...]
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_COMPLEX = {real: number for number, real in _REAL.items()}
#: How results are scaled, by torch's number of a normalization: by n^-exponent.
_EXPONENTS = (0.0, 0.5, 1.0)
#: Numbers of a program's lanes, each of which has a butterfly's.
_NUMBERS, _FEWEST_LANES = 1024, 128
#: Bytes of tables that are kept.
_TABLE_BYTES = 1 << 26


# ---- Tables ------------------------------------------------------------------------------------------------------


def _unity(order: int, power: torch.Tensor) -> torch.Tensor:
    """exp(-2 pi i power / order) in complex128, of integers below ``order``, from the nearest quarter of a turn."""
    quarters = (4 * power + order // 2) // order
    angle = (4 * power - quarters * order).double() * (math.pi / 2 / order)
    turned = torch.tensor([1, -1j, -1, 1j], dtype=torch.complex128)[quarters % 4]
    return turned * torch.complex(angle.cos(), -angle.sin())


def _roots(n: int) -> torch.Tensor:
    return _unity(n, torch.arange(n))


def _chirp(n: int) -> torch.Tensor:
    """exp(-pi i j² / n)."""
    j = torch.arange(n)
    return _unity(2 * n, j * j % (2 * n))


def _conjugate_chirp(n: int) -> torch.Tensor:
    return _chirp(n).conj().resolve_conj()


def _filter(n: int, size: int) -> torch.Tensor:
    """What numbers that are multiplied by the chirp are convolved with, transformed, over ``size``."""
    inverse = _chirp(n).conj()
    padded = torch.zeros(size, dtype=torch.complex128)
    padded[:n] = inverse
    padded[size - n + 1 :] = inverse[1:].flip(0)
    return torch.fft.fft(padded) / size


_tables: Kept[torch.Tensor] = Kept(_TABLE_BYTES, lambda table: table.nbytes)


def _table(make: Callable[..., torch.Tensor], sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
    """The real and imaginary parts of a table's numbers in turn."""
    key = make, sizes, dtype, device
    return _tables.get(key, lambda: torch.view_as_real(make(*sizes)).to(dtype).reshape(-1).to(device))


# ---- One dimension -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A transform of ``n`` numbers along a dimension. ``source``: what is read; ``kept``: how many results are written;
    ``factor`` of all results, and whether they are ``conjugated``; ``real``, ``symmetric``: as FourierPass's."""

    n: int
    kept: int
    source: Source = Source.COMPLEX
    factor: float = 1.0
    conjugated: bool = False
    real: bool = False
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class _Parts:
    """Real and imaginary parts (None is 0), with the shape and strides that the numbers have."""

    re: torch.Tensor
    im: torch.Tensor | None
    shape: tuple[int, ...]
    strides: _Steps

    @staticmethod
    def of(tensor: torch.Tensor) -> _Parts:
        """The parts of a tensor."""
        if not tensor.is_complex():
            return _Parts(tensor, None, tuple(tensor.shape), tensor.stride())
        re, im = parts(tensor)
        return _Parts(re, im, tuple(tensor.shape), re.stride())

    @staticmethod
    def new(shape: Sequence[int], strides: _Steps, like: torch.Tensor) -> _Parts:
        """New complex numbers of a dense shape."""
        both = torch.empty((2, math.prod(shape)), dtype=like.dtype, device=like.device)
        return _Parts(both[0], both[1], tuple(shape), strides)

    def swapped(self) -> _Parts:
        """i times the conjugates: a transform between these is that with conjugate roots."""
        return self if self.im is None else replace(self, re=self.im, im=self.re)


_Made = tuple[Callable[..., torch.Tensor], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A pass. ``arguments``: of its launch; ``names``: of the tensors among them; ``tables``: those that it reads, by
    argument; ``memory``: how many numbers it writes to memory of its own; None if it writes the results."""

    launch: Callable[..., None]
    arguments: dict[str, Any]
    names: tuple[str, ...]
    tables: dict[str, _Made]
    memory: int | None


_plans: Kept[list[_Step]] = Kept(PLANS)


def _transform(x: _Parts, out: _Parts, dim: int, line: _Line) -> None:
    """Transform the dimension ``dim``. The tensors share no memory; their strides are such that _batch() gives one."""
    key = x.re.dtype, x.re.device, x.shape, x.strides, out.shape, out.strides, dim, line
    at = x
    for step in _plans.get(key, lambda: _plan(x, out, dim, line)):
        to = out if step.memory is None else _Parts.new((step.memory,), (1,), x.re)
        tensors = {"x_re": at.re, "x_im": at.im, "out_re": to.re, "out_im": to.im}
        tensors |= {name: _table(*table, x.re.dtype, x.re.device) for name, table in step.tables.items()}
        step.launch(arguments={**step.arguments, **{name: tensors[name] for name in step.names}})
        at = to


def _batch(shape: Sequence[int], dim: int, x: _Steps, out: _Steps) -> list[tuple[int, int, int]] | None:
    """(size, stride of x, of out) of the dimensions that lie outside of ``dim`` in x's memory, as one, and of those
    inside; None if they are not one."""
    others = [d for d in range(len(shape)) if d != dim]
    both = [[strides[d] for d in others] for strides in (x, out)]
    sizes, steps = torch_native().collapsed([shape[d] for d in others], both)
    batches = list(zip(sizes, *steps, strict=True))
    outside = [batch for batch in batches if batch[1] >= x[dim]]
    inside = [batch for batch in batches if batch[1] < x[dim]]
    if max(len(outside), len(inside)) > 1:
        return None
    return [*(outside or [(1, 0, 0)]), *(inside or [(1, 0, 0)])]


def _plan(x: _Parts, out: _Parts, dim: int, line: _Line) -> list[_Step]:
    """Raises OnHost if memory is larger than kernels count in."""
    batch = _batch(x.shape, dim, x.strides, out.strides)
    if batch is None:
        raise OnHost("dimensions that are not walked as three")
    (outer, outer_x, outer_out), (inner, inner_x, inner_out) = batch
    size = line.n if radices(line.n) is not None else _padded(2 * line.n - 1)
    if max(*(extent(t.shape, t.strides) for t in (x, out)), 2 * outer * size * inner) > NARROW:
        raise OnHost("that many numbers")
    passes = _Passes(x.re, line.n, size, outer, inner)
    from_, to = (outer_x, x.strides[dim], inner_x), (outer_out, out.strides[dim], inner_out)
    if size == line.n:
        return passes.steps(line, from_, to)
    chirp, filtered, back = (_chirp, (line.n,)), (_filter, (line.n, size)), (_conjugate_chirp, (line.n,))
    there = _Line(size, size, line.source, conjugated=True)
    convolved = replace(line, n=size, source=Source.COMPLEX, conjugated=not line.conjugated)
    return [
        *passes.steps(there, from_, None, {"before": chirp, "after": filtered}),
        *passes.steps(convolved, None, to, {"after": back}),
    ]


@dataclass(frozen=True, slots=True)
class _Passes:
    """Makes the passes of transforms of ``size``, ``outer`` times ``inner``, of a line of ``whole`` numbers. What is
    between passes has parts of these dimensions, contiguous. ``like``: a tensor of the parts' type."""

    like: torch.Tensor
    whole: int
    size: int
    outer: int
    inner: int

    def steps(
        self, line: _Line, x: _Steps | None, out: _Steps | None, tables: dict[str, _Made] | None = None
    ) -> list[_Step]:
        """Strides of the outer, the transformed and the inner dimension; None: as between passes."""
        between, tables = (self.size * self.inner, self.inner, 1), tables or {}
        factors = radices(self.size) or (1,)
        steps, p = [], 1
        for place, radix in enumerate(factors):
            first, last = place == 0, place == len(factors) - 1
            step = FourierPass(
                radix,
                first,
                line.source if first else Source.COMPLEX,
                weighted=first and "before" in tables,
                last=last,
                finished=last and "after" in tables,
                real=last and line.real,
                symmetric=last and line.symmetric,
                inner=self.inner > 1,
            )
            from_ = x if first and x else between
            to = out if last and out else between
            memory = None if last and out else self.outer * self.size * self.inner
            made = {name: table for name, table in tables.items() if name in step.arguments}
            if not first:
                made["roots"] = _roots, (self.size,)
            steps.append(self._step(step, line, p, from_, to, memory, made))
            p *= radix
        return steps

    def _step(
        self,
        step: FourierPass,
        line: _Line,
        p: int,
        x: _Steps,
        out: _Steps,
        memory: int | None,
        tables: dict[str, _Made],
    ) -> _Step:
        m = self.size // step.radix
        lanes = self.outer * m * self.inner
        floats = {"scale_re": line.factor, "scale_im": -line.factor if line.conjugated else line.factor}
        values: dict[str, Any] = {**floats, "p": p, "apart": m // p, "whole": self.whole, "kept": line.kept, "m": m}
        values |= {"lanes": lanes, "inner": self.inner}
        for name, strides in (("x", x), ("o", out)):
            values |= {f"stride_{name}{axis}": stride for axis, stride in zip("oni", strides, strict=True)}
        arguments = {name: values.get(name) for name in step.arguments}
        names = tuple(name for name, value in arguments.items() if value is None)
        block = max(_FEWEST_LANES, _NUMBERS // power_of_two(step.radix))
        how: dict[str, Any] = {"constants": {"BLOCK": block}, "fusion": True, "divisible": frozenset()}
        return _Step(
            partial(launch, step.kernel(), grid_of(-(-lanes // block)), **how), arguments, names, tables, memory
        )


def _padded(least: int) -> int:
    """A size that is not less, of few passes."""
    sizes = (odd << max(0, (-(-least // odd) - 1).bit_length()) for odd in (1, 3, 5, 7, 9, 15))
    return min(sizes, key=lambda size: (len(radices(size) or ()) * size, size))


# ---- Several dimensions ------------------------------------------------------------------------------------------


def _strides(shape: Sequence[int], order: Sequence[int]) -> _Steps:
    """The strides of dense memory whose dimensions lie in ``order``, the last innermost."""
    strides, step = [1] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _outermost_first(dims: Sequence[int], strides: _Steps) -> list[int]:
    return sorted(dims, key=lambda d: -strides[d])


def _order(strides: _Steps, dims: Sequence[int]) -> list[int]:
    """The order of a result's dimensions in memory, as torch's transforms by MKL have them: those that are transformed
    are innermost."""
    return [*_outermost_first([d for d in range(len(strides)) if d not in dims], strides), *dims]


def _along(x: torch.Tensor, lines: Sequence[tuple[int, _Line, list[int]]], inverse: bool) -> torch.Tensor:
    """The transforms of ``lines``, each of a dimension, whose results' dimensions lie in an order in memory.
    ``inverse``: with conjugate roots."""
    x = x.resolve_conj().resolve_neg()
    if x.dtype not in (*_REAL, *_COMPLEX):
        raise OnHost(f"a transform of {x.dtype}")
    require(_REAL.get(x.dtype, x.dtype), x.device.index or 0)
    shape = list(x.shape)
    dim, line, order = lines[0]
    shape[dim] = line.kept
    if _batch(x.shape, dim, x.stride(), _strides(shape, order)) is None:
        x = torch.empty_strided(x.shape, _strides(x.shape, order), dtype=x.dtype, device=x.device).copy_(x)
    at, last = _Parts.of(x), lines[-1][1]
    for dim, line, order in lines:
        shape[dim] = line.kept
        strides = _strides(shape, order)
        if line is not last:
            to = _Parts.new(shape, strides, at.re)
        else:
            dtype = at.re.dtype if line.real else _COMPLEX[at.re.dtype]
            out = torch.empty_strided(shape, strides, dtype=dtype, device=x.device)
            to = _Parts.of(out)
        if math.prod(shape):
            pair = (at.swapped(), to.swapped()) if inverse and line.source is Source.COMPLEX else (at, to)
            _transform(*pair, dim, line)
        at = to
    return out


def _factor(sizes: Sequence[int], normalization: int) -> float:
    return float(math.prod(sizes) ** -_EXPONENTS[normalization])


def _c2c(self: torch.Tensor, dim: Sequence[int], normalization: int, forward: bool) -> torch.Tensor:
    if not dim:
        return self.clone()
    dims = _outermost_first([d % self.dim() for d in dim], self.stride())
    order, sizes = _order(self.stride(), dims), [self.shape[d] for d in dims]
    lines = [(d, _Line(self.shape[d], self.shape[d]), order) for d in dims[:0:-1]]
    lines.append((dims[0], _Line(sizes[0], sizes[0], factor=_factor(sizes, normalization)), order))
    return _along(self, lines, not forward)


def _r2c(self: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> torch.Tensor:
    if self.is_complex():
        raise OnHost("a real transform of complex numbers")
    *others, real = (d % self.dim() for d in dim)
    others = _outermost_first(others, self.stride())
    order, n = _order(self.stride(), [*others, real]), self.shape[real]
    factor = _factor([self.shape[d] for d in (*others, real)], normalization)
    line = _Line(n, n // 2 + 1 if onesided else n, Source.REAL, factor, symmetric=True)
    return _along(
        self, [(real, line, order), *((d, _Line(self.shape[d], self.shape[d]), order) for d in others[::-1])], False
    )


def _c2r(self: torch.Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> torch.Tensor:
    *others, real = (d % self.dim() for d in dim)
    if self.shape[real] < last_dim_size // 2 + 1:
        raise OnHost("a size that is refused")
    others = _outermost_first(others, self.stride())
    order = _order(self.stride(), others)
    lines = [(d, _Line(self.shape[d], self.shape[d]), order) for d in others[::-1]]
    strides = _strides(self.shape, order) if others else self.stride()
    factor = _factor([*(self.shape[d] for d in others), last_dim_size], normalization)
    line = _Line(last_dim_size, last_dim_size, Source.HALF, factor, real=True)
    return _along(self, [*lines, (real, line, _order(strides, [real]))], True)


TABLE: dict[str, Callable[..., Any]] = {
    "_fft_c2c _fft_c2c.out": _c2c,
    "_fft_r2c _fft_r2c.out": _r2c,
    "_fft_c2r _fft_c2r.out": _c2r,
}
