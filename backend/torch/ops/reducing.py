"""One generator for reductions: expressions of each element (as elementwise.py's), combined over some dimensions, and
expressions of what that gives. Several results of the same elements are one kernel.

Elements that are kept are the rows of a program's tile and reduced ones its columns, whichever lie closer in memory. A
reduction of few rows is done in two kernels, so that it is spread over the device: partial results, and theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from ...runtime import NAME
from ..device.native_module import torch_native
from ..device.tensor_memory import empty, tensor_forms
from .addressing import Addresses, Operands, PlannedLaunch, Walk, conversion
from .device_facts import DeviceFacts, kind_of, share_out
from .dtypes import IN_SOURCE, NAMES, computed_in, converted
from .strided_shapes import Dims, broadcast, power_of_two

#: Elements of a program's tile, how many of them are along the reduced dimensions at most, and the elements of a tile
#: whose rows lie next to one another in memory: of a CPU, and of a GPU. A CPU has accumulators of the first in
#: registers: sums of 512 rows of 512 take a Zen 5 11.5 µs, 15 to 17 with (512, 64 or 128), and 33 with (1024, 512). An
#: H100 adds up 2^27 numbers so, all, and those of the first and of the last of two dimensions, at 2,969, 2,858 and
#: 3,001 GB/s; at 2,113, 2,749 and 2,328 with tiles of (1024, 512, 1024) and four programs for each compute unit.
_TILE, _GPU_TILE = (256, 64, 1024), (4096, 1024, 2048)
#: A tensor of so few elements that any tile will do, and the rows and columns of that.
_SMALL, _SMALL_TILE = 1024, (32, 32)
#: On a CPU, a reduction of fewer rows than this, of more than so many elements each, is split, in so many parts.
_FEW_ROWS, _LONG, _PARTS = 32, 8192, 32
#: On a GPU, one of fewer programs than compute units, so that there are so many for each, and each part is as many
#: tiles at least.
_PROGRAMS, _TILES = 16, 4


@dataclass(frozen=True, slots=True)
class Fold:
    """How elements are combined in an accumulator, in texts for its name ``{a}`` and for ``{x}``, the element.

    ``start``: what changes nothing, by the parts of an accumulator, which are called by its name and theirs; ``step``:
    the line that adds an element; ``merge``: that which adds another accumulator, whose parts are called ``{x}`` and
    theirs, if it is not the same; ``across``: that which combines a tile along its axis 1."""

    start: tuple[tuple[str, str], ...]
    step: str
    across: str
    merge: str | None = None


def _plain(start: str, step: str, across: str) -> Fold:
    return Fold((("", start),), "{a} = " + step, "{a} = " + across)


SUM = _plain("0", "{a} + {x}", "tl.sum({a}, 1)")
PROD = _plain("1", "{a} * {x}", "tl.reduce({a}, 1, fn.times)")
MAX = _plain("fn.lowest(blank)", "fn.maximum({a}, {x})", "tl.reduce({a}, 1, fn.maximum)")
MIN = _plain("fn.highest(blank)", "fn.minimum({a}, {x})", "tl.reduce({a}, 1, fn.minimum)")
ANY = _plain("0", "{a} | {x}", "tl.reduce({a}, 1, fn.either)")
ALL = _plain("1", "{a} & {x}", "tl.reduce({a}, 1, fn.both)")
#: Mean, sum of squares of the distances from it, and count: Welford's update, and Chan's of two.
_MOMENTS = "{a}_mean, {a}_squares, {a}_count"
MOMENTS = Fold(
    (("_mean", "0"), ("_squares", "0"), ("_count", "0")),
    f"{_MOMENTS} = fn.with_one_more({_MOMENTS}, {{x}}, mask)",
    f"{_MOMENTS} = tl.reduce(({_MOMENTS}), 1, fn.moments_of_both)",
    f"{_MOMENTS} = fn.moments_of_both({_MOMENTS}, {_MOMENTS.replace('{a}', '{x}')})",
)


@dataclass(frozen=True, slots=True)
class What:
    """What a reduction computes. ``text``: lines that assign ``x_NAME``, an element, for each accumulator NAME of
    ``folds``; ``finish``: lines that assign the names of the outputs. ``as_stored`` and ``places``: as
    elementwise.Body's."""

    text: str
    folds: tuple[tuple[str, Fold], ...]
    finish: str
    as_stored: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Accumulators and their parts: (name, the text of what changes nothing)."""
        return [(name + part, start) for name, fold in self.folds for part, start in fold.start]


@dataclass(slots=True)
class _Reduction:
    """``partial``: (accumulators' parts, rows, parts of a row) of partial results that the plan gives, if it does."""

    plan: PlannedLaunch
    partial: tuple[int, int, int] | None


def reduce(
    text: str,
    fold: Fold,
    operands: Mapping[str, Any],
    dims: tuple[int, ...],
    *,
    finish: str = "acc",
    dtype: torch.dtype,
    keepdim: bool = False,
    compute: torch.dtype | None = None,
    out: torch.Tensor | None = None,
    as_stored: frozenset[str] = frozenset(),
) -> torch.Tensor:
    """The expression ``text`` of ``operands``, broadcast together, combined over ``dims``, as ``dtype``.

    The expression may name ``column``, the place of an element among those that it is combined with, where one
    dimension is reduced, and ``blank``, a tile of zeros of the type that is computed in. ``finish``: an expression of
    the result ``acc``, the operands that are the same for all that is combined, and the ``count`` of elements that were
    combined. ``compute``: the type of both, dtype's own if None. ``out``: a tensor of the result's shape to write
    instead of a new one. ``as_stored``: operands that are not converted to the type that is computed in. Raises OnHost
    where the device cannot.
    """
    shape = _shape(operands)
    dims = tuple(sorted({d % len(shape) for d in dims})) if shape else ()
    what = What(f"x_acc = {text}", (("acc", fold),), f"out = {finish}", as_stored)
    kept = _kept(shape, dims)
    if out is None:
        device = next(value.device for value in operands.values() if isinstance(value, torch.Tensor))
        result = empty(kept, dtype=dtype, device=device)
    else:
        result = _with(out, dims, kept)
    _run(what, {"out": result}, operands, shape, dims, computed_in(dtype) if compute is None else compute)
    if out is not None:
        return out
    return result if keepdim or not dims else result.view([size for d, size in enumerate(shape) if d not in dims])


def reduce_together(
    what: What,
    outputs: Mapping[str, torch.dtype | torch.Tensor],
    operands: Mapping[str, Any],
    dims: tuple[int, ...],
    compute: torch.dtype,
    counts: dict[str, int] | None = None,
) -> list[torch.Tensor]:
    """Several results of the same elements by one kernel, which keep the dimensions that are reduced, with size 1.
    ``outputs``: types of new tensors, or tensors, by the names that ``finish`` assigns. An output may be the same view
    as an operand that is the same for all that is combined. ``counts``: integers of 64 bits that the text names. The
    rest is reduce()'s."""
    shape = _shape(operands)
    dims = tuple(sorted({d % len(shape) for d in dims})) if shape else ()
    device = next(value.device for value in operands.values() if isinstance(value, torch.Tensor))
    kept = _kept(shape, dims)
    results = {
        name: kind if isinstance(kind, torch.Tensor) else empty(kept, dtype=kind, device=device)
        for name, kind in outputs.items()
    }
    _run(what, results, operands, shape, dims, compute, counts)
    return list(results.values())


def _shape(operands: Mapping[str, Any]) -> torch.Size:
    return broadcast(*[value.shape for value in operands.values() if isinstance(value, torch.Tensor)])


def _kept(shape: torch.Size, dims: tuple[int, ...]) -> Dims:
    return tuple([1 if d in dims else size for d, size in enumerate(shape)])


def _with(out: torch.Tensor, dims: tuple[int, ...], kept: Dims) -> torch.Tensor:
    """A view of ``out`` that has the reduced dimensions, too."""
    if out.dim() != len(kept):
        for d in dims:
            out = out.unsqueeze(d)
    return out


def _run(
    what: What,
    outputs: dict[str, torch.Tensor],
    operands: Mapping[str, Any],
    shape: torch.Size,
    dims: tuple[int, ...],
    compute: torch.dtype,
    counts: dict[str, int] | None = None,
) -> None:
    given = Operands.of(outputs, operands, counts)
    if "count" in what.finish:
        given.numbers["count"] = float(math.prod(shape[d] for d in dims))
    found = _reduction(what, given, shape, dims, compute)
    if found is None:
        return
    if found.partial is None:
        found.plan.launch(given, what.places)
        return
    partial = empty(found.partial, dtype=compute, device=torch.device(NAME, given.index))
    names = [name for name, _ in what.parts]
    found.plan.launch(replace(given, outputs=dict(zip(names, partial.unbind(0), strict=True))), what.places)
    # What is left is a reduction of the parts, in which the accumulators' parts are the elements.
    kept = tuple(next(iter(outputs.values())).shape)
    rest = {f"x_{name}": one.view(*kept, -1) for name, one in zip(names, partial.unbind(0), strict=True)}
    rest |= {name: _of_rows(given.tensors[name], kept, dims) for name in _finishing(what, given.tensors)}
    merging = tuple((name, replace(fold, step=fold.merge or fold.step)) for name, fold in what.folds)
    last = Operands({name: out.unsqueeze(-1) for name, out in outputs.items()}, rest, given.numbers, given.counts)
    end, at = torch.Size((*kept, found.partial[2])), (len(kept),)
    merge = replace(what, text="", folds=merging, as_stored=frozenset(), places=frozenset())
    plan = _reduction(merge, last, end, at, compute, False)
    if plan is not None:
        plan.plan.launch(last)


def _finishing(what: What, tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """Names of the operands that are in ``finish``."""
    words = set(re.findall(r"\w+", what.finish))
    return [name for name in tensors if name in words]


def _of_rows(tensor: torch.Tensor, kept: tuple[int, ...], dims: tuple[int, ...]) -> torch.Tensor:
    """An operand that is the same for all that is combined, of shape (*kept, 1)."""
    strides = torch_native().expanded(tensor.shape, tensor.stride(), kept)
    return tensor.as_strided((*kept, 1), (*strides, 0))


def _reduction(
    what: What, operands: Operands, shape: torch.Size, dims: tuple[int, ...], compute: torch.dtype, split: bool = True
) -> _Reduction | None:
    operands.check(compute)
    outputs = list(operands.outputs.values())
    if outputs[0].numel() == 0:
        return None
    count = len(outputs)
    outside = [d for d in range(len(shape)) if d not in dims]
    (kept, kept_steps), (reduced, reduced_steps) = tensor_forms().walks(
        operands.outputs, operands.tensors, shape, (outside, dims)
    )
    sizes, reach = [shape[d] for d in outside], math.prod([shape[d] for d in dims])
    # What lies next to one another in memory is read together.
    across = bool(kept) and any([step[-1] == 1 for step in kept_steps[count:]])
    on = kind_of(operands.index)
    tile = _tile(math.prod(sizes), reach, across, on)
    parts, share = _split(math.prod(sizes), reach, tile, on) if split else (1, -(-reach // 16) * 16)
    if parts > 1:
        names = [name for name, _ in what.parts]
        operands = replace(operands, outputs=dict.fromkeys(names, torch.empty(0, dtype=compute, device="meta")))
        steps = [torch_native().expanded(t.shape, t.stride(), shape) for t in operands.tensors.values()]
        own = [_contiguous(sizes, parts)] * len(names)
        kept, kept_steps = torch_native().collapsed(sizes, [*own, *([s[d] for d in outside] for s in steps)])
        reduced_steps = [*[(0,) * len(reduced)] * len(names), *reduced_steps[count:]]
        count = len(names)
    walks = (Walk("row", "i", "in_rows", kept, kept_steps), Walk("column", "j", "in_columns", reduced, reduced_steps))
    rows = walks[0].count
    addresses = Addresses(operands.pointers, walks, {"n_rows": rows, "n_columns": reach, "share": share})
    form, programs = (what, len(kept), len(reduced), reach == 0, tile, parts), -(-rows // tile[0]) * parts
    lines, along = (
        partial(_lines, what, operands, compute, addresses, walks, tile, parts),
        "n_rows" if across else "n_columns",
    )
    plan = addresses.plan("reduction", form, lines, operands, compute, programs, along, "share")
    return _Reduction(plan, (count, rows, parts) if parts > 1 else None)


def _tile(rows: int, columns: int, across: bool, on: DeviceFacts) -> tuple[int, int]:
    """Rows and columns of a program's tile. ``across``: whether rows lie next to one another in memory. No kernel is
    compiled for the size of a tensor that has fewer elements than a tile."""
    elements, longest, elements_across = _TILE if on.cpu else _GPU_TILE
    if rows * columns <= _SMALL:
        return (1, longest) if rows == 1 else _SMALL_TILE
    if across:
        tile_rows = min(power_of_two(rows), 128)
        return tile_rows, min(power_of_two(max(columns, 1)), elements_across // tile_rows)
    tile_columns = min(power_of_two(max(columns, 1)), longest)
    return min(power_of_two(rows), max(1, elements // tile_columns)), tile_columns


def _split(rows: int, columns: int, tile: tuple[int, int], on: DeviceFacts) -> tuple[int, int]:
    """(parts that a row is reduced in, columns of each: a multiple of 16, so that kernels are not compiled for both).
    What one program can reduce is worth no second launch."""
    parts = 1
    if not on.cpu and rows * columns > _SMALL:
        parts = share_out(-(-rows // tile[0]), on.units, columns, _TILES * tile[1], _PROGRAMS)
    elif on.cpu and rows <= _FEW_ROWS * tile[0] and columns > _LONG:
        parts = min(_PARTS, -(-columns // (4 * tile[1])))
    step = max(tile[1], 16)
    share = -(-columns // (parts * step)) * step
    return (-(-columns // share) if parts > 1 else 1), share


def _contiguous(sizes: Sequence[int], last: int) -> Dims:
    """Strides of a contiguous tensor of these sizes whose elements are ``last`` apart."""
    strides = [last]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if sizes else ()


def _lines(
    what: What,
    operands: Operands,
    compute: torch.dtype,
    addresses: Addresses,
    walks: tuple[Walk, Walk],
    tile: tuple[int, int],
    parts: int,
) -> list[str]:
    """The kernel's."""
    (rows, columns), (kept, reduced) = tile, walks
    computing = IN_SOURCE[NAMES[compute]]
    by_name = dict(what.folds)
    # Operands that are the same for all that is combined are read once, and not at all where nothing is combined and
    # they may have no elements.
    once = operands.tensors if reduced.count else _finishing(what, operands.tensors)
    of_rows = [name for name in once if not (name in what.places or addresses.moves(name, reduced))]

    def load(name: str, walks: Sequence[Walk], start: str | None = None) -> str:
        place = addresses.place(name, walks, start)
        cast = "" if name in what.as_stored else conversion(operands.tensors[name], compute)
        return f"{name} = {place if name in what.places else addresses.load(name, place, cast)}"

    lines = [
        addresses.program,
        f"part = program % {parts}",
        f"row = program // {parts} * {rows} + tl.arange(0, {rows})[:, None]",
        "in_rows = row < n_rows",
        *(f"{name} = {name}.to({computing})" for name in operands.numbers),
        f"blank = tl.zeros(({rows}, {columns}), {computing})",
    ]
    for name, start in what.parts:
        lines += [f"start_{name} = blank + {start}", f"{name} = start_{name}"]
    lines += kept.indices()
    lines += [load(name, [kept]) for name in of_rows]
    moving = [name for name in operands.tensors if name not in of_rows]
    lines += [f"{name}_rows = {addresses.place(name, [kept])}" for name in moving]
    body = [
        f"column = tile + tl.arange(0, {columns})[None, :]",
        "in_columns = column < n_columns",
        "mask = in_rows & in_columns",
        "zero = row * 0 + column * 0",
        *reduced.indices(),
        *(load(name, [reduced], f"{name}_rows") for name in moving),
        *what.text.splitlines(),
    ]
    for name, fold in by_name.items():
        # A step of several parts heeds the mask itself; other accumulators' parts are elements like any.
        whole = [name] if len(fold.start) == 1 else []
        for x in whole if what.text else [name + part for part, _ in fold.start]:
            body.append(f"x_{x} = tl.where(mask, x_{x}, start_{x})")
        body.append(fold.step.format(a=name, x=f"x_{name}"))
        body += [f"{name}{part} = {name}{part}.to({computing})" for part, _ in fold.start]
    if parts > 1:
        lines.append("tl.assume(share >= 0)  # so that quotients of columns are those of vectors")
    lines.append(f"for tile in range(part * share, min(part * share + share, n_columns), {columns}):")
    lines += ["    " + line for line in body]
    for name, fold in by_name.items():
        lines.append(fold.across.format(a=name))
        lines += [f"{name}{part} = ({name}{part}).to({computing})[:, None]" for part, _ in fold.start]
    if parts == 1:
        lines += what.finish.splitlines()
    for name, output in operands.outputs.items():
        place = addresses.place(f"to_{name}") + " + row * 0" + (" + part" if parts > 1 else "")
        lines.append(f"tl.store({place}, {converted(name, compute, output.dtype)}, mask=in_rows)")
    return lines
