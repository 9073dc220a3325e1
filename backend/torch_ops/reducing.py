"""One generator for reductions: an expression of each element (as elementwise.py's), combined over some dimensions, and
an expression of what that gives.

Elements that are kept are the rows of a program's tile and reduced ones its columns, whichever lie closer in memory. A
reduction of few rows is done in two kernels, so that it is spread over the device: partial results, and theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .elementwise import _NARROW, Number, converted, number_type
from .launching import TypedKernel, grid_of
from .shapes import Dims, collapsed, expanded, extent, overlaps_itself, power_of_two
from .source import kernel_of
from .types import IN_SOURCE, NAMES, OnHost, computed_in, require

#: Elements of a program's tile, and at most so many along the reduced dimensions.
TILE, LONGEST = 1024, 512
#: A reduction of fewer rows than this, of more than so many elements each, is split.
_FEW_ROWS, _LONG = 32, 8192
#: Parts of a split reduction.
_PARTS = 32
_PLANS = 8192


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
class _Plan:
    kernel: TypedKernel
    grid: tuple[int, int, int]
    sizes: tuple[int, ...]
    partial: tuple[int, int] | None


_plans: dict[Any, _Plan | None] = {}


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
    tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in operands.items() if not isinstance(value, torch.Tensor)}
    first = next(iter(tensors.values()))
    shape = first.shape if len(tensors) == 1 else torch.broadcast_shapes(*(t.shape for t in tensors.values()))
    dims = tuple(sorted({d % len(shape) for d in dims})) if shape else ()
    compute = computed_in(dtype) if compute is None else compute
    if "count" in finish:
        numbers["count"] = float(math.prod(shape[d] for d in dims))
    kept = [1 if d in dims else size for d, size in enumerate(shape)]
    result = torch.empty(kept, dtype=dtype, device=first.device) if out is None else _with(out, dims, kept)
    _run((text, fold, finish, as_stored), tensors, numbers, shape, dims, result, compute)
    if out is not None:
        return out
    return result if keepdim or not dims else result.view([size for d, size in enumerate(shape) if d not in dims])


def _with(out: torch.Tensor, dims: tuple[int, ...], kept: list[int]) -> torch.Tensor:
    """A view of ``out`` that has the reduced dimensions, too."""
    if out.dim() != len(kept):
        for d in dims:
            out = out.unsqueeze(d)
    return out


def _run(
    what: _What,
    tensors: dict[str, torch.Tensor],
    numbers: dict[str, Number],
    shape: torch.Size,
    dims: tuple[int, ...],
    result: torch.Tensor,
    compute: torch.dtype,
) -> None:
    key = (
        (what, dims, compute, result.dtype, result.shape, result.stride(), result.device),
        *((name, tensor.dtype, tensor.shape, tensor.stride()) for name, tensor in tensors.items()),
        *numbers,
    )
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plan(what, tensors, numbers, shape, dims, result, compute)
        if len(_plans) >= _PLANS:
            _plans.clear()
        _plans[key] = plan
    if plan is None:
        return
    device = result.device.index or 0
    if plan.partial is None:
        plan.kernel.launch(device, plan.grid, [result, *tensors.values(), *numbers.values(), *plan.sizes])
        return
    partial = torch.empty(plan.partial, dtype=compute, device=result.device)
    plan.kernel.launch(device, plan.grid, [partial, *tensors.values(), *numbers.values(), *plan.sizes])
    rest = partial.view(*result.shape, plan.partial[1])
    _run(
        ("x", *what[1:3], frozenset()),
        {"x": rest},
        numbers,
        rest.shape,
        (rest.dim() - 1,),
        result.unsqueeze(-1),
        compute,
    )


def _plan(
    what: _What,
    tensors: dict[str, torch.Tensor],
    numbers: dict[str, Number],
    shape: torch.Size,
    dims: tuple[int, ...],
    result: torch.Tensor,
    compute: torch.dtype,
) -> _Plan | None:
    device = result.device
    for tensor in (result, *tensors.values()):
        require(tensor.dtype, device.index or 0)
        if tensor.device != device or tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():
            raise OnHost("a tensor of another device, or whose values are not those in memory")
    require(compute, device.index or 0)
    if overlaps_itself(result):
        raise OnHost("an output with elements that share memory")
    if result.numel() == 0:
        return None
    steps = [expanded(tensor.shape, tensor.stride(), shape) for tensor in tensors.values()]
    inside = [d for d in range(len(shape)) if d in dims]
    outside = [d for d in range(len(shape)) if d not in dims]
    reduced, reduced_steps = collapsed([shape[d] for d in inside], [tuple(s[d] for d in inside) for s in steps])
    kept, kept_steps = collapsed(
        [shape[d] for d in outside], [tuple(s[d] for d in outside) for s in (result.stride(), *steps)]
    )
    rows, columns = math.prod(kept), math.prod(shape[d] for d in inside)
    # What lies next to one another in memory is read together.
    across = bool(kept) and any(step[-1] == 1 for step in kept_steps[1:])
    wide = max(rows, columns, rows * columns, *(extent(shape, step) for step in steps)) > _NARROW
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
        kept_steps[0] = _contiguous(kept, parts)
        parts = -(-columns // share)
        kept_steps[0] = _contiguous(kept, parts)
    layout = _Layout(kept, kept_steps, reduced, reduced_steps, (tile_rows, tile_columns), parts, wide)
    source, ints = _text(what, tensors, numbers, compute, result.dtype, layout)
    ints |= {"n_rows": rows, "n_columns": columns, "share": share}
    types = {"to_out_p": "*" + NAMES[compute if parts > 1 else result.dtype]}
    types |= {f"{name}_p": "*" + NAMES[tensor.dtype] for name, tensor in tensors.items()}
    types |= {name: number_type(compute) for name in numbers} | dict.fromkeys(ints, "i64" if wide else "i32")
    kernel = TypedKernel(kernel_of("reduction", source), types, {})
    grid = grid_of(-(-rows // tile_rows) * parts)
    return _Plan(kernel, grid, tuple(ints.values()), (rows, parts) if parts > 1 else None)


def _contiguous(sizes: Dims, last: int) -> Dims:
    """Strides of a contiguous tensor of these sizes whose elements are ``last`` apart."""
    strides = [last]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if sizes else ()


@dataclass(frozen=True, slots=True)
class _Layout:
    """Dimensions that are kept and reduced, with the strides in each of the output (kept ones) and the operands."""

    kept: Dims
    kept_steps: list[Dims]
    reduced: Dims
    reduced_steps: list[Dims]
    tile: tuple[int, int]
    parts: int
    wide: bool


def _text(
    what: _What,
    tensors: dict[str, torch.Tensor],
    numbers: dict[str, Number],
    compute: torch.dtype,
    dtype: torch.dtype,
    layout: _Layout,
) -> tuple[str, dict[str, int]]:
    text, fold, finish, as_stored = what
    rows, columns = layout.tile
    computing = IN_SOURCE[NAMES[compute]]
    ints: dict[str, int] = dict.fromkeys(("n_rows", "n_columns", "share"), 0)
    ints |= {f"kept{d}": size for d, size in enumerate(layout.kept[1:], 1)}
    ints |= {f"reduced{d}": size for d, size in enumerate(layout.reduced[1:], 1)}
    index = "tl.int64" if layout.wide else "tl.int32"
    lines = [
        f"program = tl.program_id(1).to({index}) * tl.num_programs(0) + tl.program_id(0)",
        f"part = program % {layout.parts}",
        f"row = program // {layout.parts} * {rows} + tl.arange(0, {rows})[:, None]",
        "in_rows = row < n_rows",
        *(f"{name} = {name}.to({computing})" for name in numbers),
        f"acc = tl.zeros(({rows}, {columns}), {computing})",
        f"start = acc * 0 + {fold.start}",
        "acc = start",
        *split("i", "row", "kept", layout.kept),
    ]
    out = place("to_out_p", "i", "out", layout.kept_steps[0], ints)
    bases = [
        place(f"{name}_p", "i", name, step, ints) for name, step in zip(tensors, layout.kept_steps[1:], strict=True)
    ]
    lines += [f"{name}_rows = {base}" for name, base in zip(tensors, bases, strict=True)]
    body = [
        f"column = first + tl.arange(0, {columns})[None, :]",
        "in_columns = column < n_columns",
        "mask = in_rows & in_columns",
        *split("j", "column", "reduced", layout.reduced),
    ]
    for (name, tensor), kept, reduced in zip(tensors.items(), layout.kept_steps[1:], layout.reduced_steps, strict=True):
        address = place(f"{name}_rows", "j", f"{name}_r", reduced, ints)
        masks = [mask for mask, steps in (("in_rows", kept), ("in_columns", reduced)) if any(steps)]
        mask = ", mask=" + ("mask" if len(masks) == 2 else masks[0]) if masks else ""
        cast = "" if name in as_stored or tensor.dtype == compute else f".to({computing})"
        body.append(f"{name} = tl.load({address}{mask}){cast}")
    body += [f"x = {text}", "x = tl.where(mask, x, start)", f"acc = ({fold.step}).to({computing})"]
    lines += [
        f"for first in range(part * share, min(part * share + share, n_columns), {columns}):",
        *("    " + line for line in body),
        f"acc = ({fold.across.replace('axis', '1')}).to({computing})[:, None]",
    ]
    if layout.parts == 1:
        lines.append(f"acc = {finish}")
    value = converted("acc", compute, compute if layout.parts > 1 else dtype)
    extra = " + part" if layout.parts > 1 else ""
    lines.append(f"tl.store({out} + row * 0{extra}, {value}, mask=in_rows)")
    arguments = ["to_out_p", *(f"{name}_p" for name in tensors), *numbers, *ints]
    return f"def reduction({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in lines), ints


def split(index: str, flat: str, size: str, sizes: Dims) -> list[str]:
    """Lines that give the index of each dimension from the number of an element."""
    lines = [f"{index}_rest = {flat}"]
    for d in range(len(sizes) - 1, 0, -1):
        lines += [f"{index}{d} = {index}_rest % {size}{d}", f"{index}_rest = {index}_rest // {size}{d}"]
    return [*lines, f"{index}0 = {index}_rest"]


def place(pointer: str, index: str, name: str, steps: Dims, ints: dict[str, int]) -> str:
    """The text of an address: the pointer, and each index times its stride, which is added to ``ints``."""
    terms = [pointer]
    for d, stride in enumerate(steps):
        if stride == 1 and d == len(steps) - 1:
            terms.append(f"{index}{d}")
        elif stride:
            ints[f"{name}_{d}"] = stride
            terms.append(f"{index}{d} * {name}_{d}")
    return " + ".join(terms)
