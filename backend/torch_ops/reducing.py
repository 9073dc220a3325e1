"""One generator for reductions: an expression of each element (as elementwise.py's), combined over some dimensions, and
an expression of what that gives.

Elements that are kept are the rows of a program's tile and reduced ones its columns, whichever lie closer in memory. A
reduction of few rows is done in two kernels, so that it is spread over the device: partial results, and theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from .addressing import Addresses, Operands, PlannedLaunch, Plans, Walk, conversion
from .launching import grid_of
from .shapes import Dims, collapsed, expanded, power_of_two
from .types import IN_SOURCE, NAMES, computed_in, converted

#: Elements of a program's tile, and at most so many along the reduced dimensions.
TILE, LONGEST = 1024, 512
#: A reduction of fewer rows than this, of more than so many elements each, is split.
_FEW_ROWS, _LONG = 32, 8192
#: Parts of a split reduction.
_PARTS = 32


@dataclass(frozen=True, slots=True)
class Fold:
    """How elements are combined. ``start``: what changes nothing; ``step``: the text of combining the accumulator
    ``acc`` with ``x``; ``across``: that of combining a tile along its axis ``axis``."""

    start: str
    step: str
    across: str


SUM = Fold("0", "acc + x", "tl.sum(acc, axis)")
PROD = Fold("1", "acc * x", "tl.reduce(acc, axis, fn.times)")
MAX = Fold("fn.lowest(acc)", "fn.maximum(acc, x)", "tl.reduce(acc, axis, fn.maximum)")
MIN = Fold("fn.highest(acc)", "fn.minimum(acc, x)", "tl.reduce(acc, axis, fn.minimum)")
ANY = Fold("0", "acc | x", "tl.reduce(acc, axis, fn.either)")
ALL = Fold("1", "acc & x", "tl.reduce(acc, axis, fn.both)")


#: (expression of an element, how they are combined, expression of the result, operands that are not converted).
_What = tuple[str, Fold, str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Reduction:
    """``partial``: the shape of partial results that the plan gives, if it does."""

    plan: PlannedLaunch
    partial: tuple[int, int] | None


_plans: Plans[_Reduction | None] = Plans()


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
    dimension is reduced, and ``start``, what changes nothing. ``finish``: an expression of the result ``acc``, the
    numbers among the operands, and the ``count`` of elements that were combined. ``compute``: the type of both, dtype's
    own if None. ``out``: a tensor of the result's shape to write instead of a new one. ``as_stored``: operands that are
    not converted to the type that is computed in. Raises OnHost where the device cannot.
    """
    given = Operands.of({}, operands)
    first = next(iter(given.tensors.values()))
    shape = (
        first.shape if len(given.tensors) == 1 else torch.broadcast_shapes(*(t.shape for t in given.tensors.values()))
    )
    dims = tuple(sorted({d % len(shape) for d in dims})) if shape else ()
    compute = computed_in(dtype) if compute is None else compute
    if "count" in finish:
        given.numbers["count"] = float(math.prod(shape[d] for d in dims))
    kept = [1 if d in dims else size for d, size in enumerate(shape)]
    result = torch.empty(kept, dtype=dtype, device=first.device) if out is None else _with(out, dims, kept)
    given.outputs["out"] = result
    _run((text, fold, finish, as_stored), given, shape, dims, compute)
    if out is not None:
        return out
    return result if keepdim or not dims else result.view([size for d, size in enumerate(shape) if d not in dims])


def _with(out: torch.Tensor, dims: tuple[int, ...], kept: list[int]) -> torch.Tensor:
    """A view of ``out`` that has the reduced dimensions, too."""
    if out.dim() != len(kept):
        for d in dims:
            out = out.unsqueeze(d)
    return out


def _run(what: _What, operands: Operands, shape: torch.Size, dims: tuple[int, ...], compute: torch.dtype) -> None:
    key = what, dims, compute, operands.key()
    found = _plans.get(key, lambda: _reduction(what, operands, shape, dims, compute))
    if found is None:
        return
    if found.partial is None:
        found.plan.launch(operands)
        return
    result = operands.outputs["out"]
    partial = torch.empty(found.partial, dtype=compute, device=result.device)
    found.plan.launch(replace(operands, outputs={"out": partial}))
    rest = partial.view(*result.shape, found.partial[1])
    last = Operands({"out": result.unsqueeze(-1)}, {"x": rest}, operands.numbers, {})
    _run(("x", *what[1:3], frozenset()), last, rest.shape, (rest.dim() - 1,), compute)


def _reduction(
    what: _What, operands: Operands, shape: torch.Size, dims: tuple[int, ...], compute: torch.dtype
) -> _Reduction | None:
    operands.check(compute)
    result = operands.outputs["out"]
    if result.numel() == 0:
        return None
    steps = [expanded(tensor.shape, tensor.stride(), shape) for tensor in operands.tensors.values()]
    inside = [d for d in range(len(shape)) if d in dims]
    outside = [d for d in range(len(shape)) if d not in dims]
    reduced, reduced_steps = collapsed([shape[d] for d in inside], [tuple(s[d] for d in inside) for s in steps])
    kept, kept_steps = collapsed(
        [shape[d] for d in outside], [tuple(s[d] for d in outside) for s in (result.stride(), *steps)]
    )
    rows, columns = math.prod(kept), math.prod(reduced)
    # What lies next to one another in memory is read together.
    across = bool(kept) and any(step[-1] == 1 for step in kept_steps[1:])
    if across:
        tile_rows = min(power_of_two(rows), 128)
        tile_columns = min(power_of_two(max(columns, 1)), TILE // tile_rows)
    else:
        tile_columns = min(power_of_two(max(columns, 1)), LONGEST)
        tile_rows = min(power_of_two(rows), max(1, TILE // tile_columns))
    parts = 1
    if rows <= _FEW_ROWS * tile_rows and columns > _LONG:
        parts = min(_PARTS, -(-columns // (4 * tile_columns)))
    share = -(-columns // (parts * tile_columns)) * tile_columns
    if parts > 1:
        parts = -(-columns // share)
        kept_steps[0] = _contiguous(kept, parts)
        operands = replace(operands, outputs={"out": torch.empty(0, dtype=compute, device="meta")})
    walks = (
        Walk("row", "i", "in_rows", kept, kept_steps),
        Walk("column", "j", "in_columns", reduced, [(0,) * len(reduced), *reduced_steps]),
    )
    addresses = Addresses(operands.pointers, walks, {"n_rows": rows, "n_columns": columns, "share": share})
    lines = _lines(what, operands, compute, addresses, walks, (tile_rows, tile_columns), parts)
    kernel = addresses.kernel("reduction", lines, operands, compute)
    plan = PlannedLaunch(kernel, grid_of(-(-rows // tile_rows) * parts), tuple(addresses.integers.values()))
    return _Reduction(plan, (rows, parts) if parts > 1 else None)


def _contiguous(sizes: Dims, last: int) -> Dims:
    """Strides of a contiguous tensor of these sizes whose elements are ``last`` apart."""
    strides = [last]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if sizes else ()


def _lines(
    what: _What,
    operands: Operands,
    compute: torch.dtype,
    addresses: Addresses,
    walks: tuple[Walk, Walk],
    tile: tuple[int, int],
    parts: int,
) -> list[str]:
    """The kernel's, whose integer arguments are added to the addresses'."""
    text, fold, finish, as_stored = what
    (rows, columns), (kept, reduced) = tile, walks
    computing = IN_SOURCE[NAMES[compute]]
    lines = [
        addresses.program,
        f"part = program % {parts}",
        f"row = program // {parts} * {rows} + tl.arange(0, {rows})[:, None]",
        "in_rows = row < n_rows",
        *(f"{name} = {name}.to({computing})" for name in operands.numbers),
        f"acc = tl.zeros(({rows}, {columns}), {computing})",
        f"start = acc * 0 + {fold.start}",
        "acc = start",
        *kept.indices(),
        *(f"{name}_rows = {addresses.place(name, [kept])}" for name in operands.tensors),
    ]
    body = [
        f"column = first + tl.arange(0, {columns})[None, :]",
        "in_columns = column < n_columns",
        "mask = in_rows & in_columns",
        *reduced.indices(),
    ]
    for name, tensor in operands.tensors.items():
        place, cast = addresses.place(name, [reduced], f"{name}_rows"), conversion(tensor, compute)
        body.append(f"{name} = {addresses.load(name, place, '' if name in as_stored else cast)}")
    body += [f"x = {text}", "x = tl.where(mask, x, start)", f"acc = ({fold.step}).to({computing})"]
    lines += [
        f"for first in range(part * share, min(part * share + share, n_columns), {columns}):",
        *("    " + line for line in body),
        f"acc = ({fold.across.replace('axis', '1')}).to({computing})[:, None]",
    ]
    if parts == 1:
        lines.append(f"acc = {finish}")
    value = converted("acc", compute, operands.outputs["out"].dtype)
    place = addresses.place("to_out") + " + row * 0" + (" + part" if parts > 1 else "")
    return [*lines, f"tl.store({place}, {value}, mask=in_rows)"]
