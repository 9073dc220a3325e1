"""One generator for what needs several reductions of the same elements: softmax, layer norm and their like, of rows
that fit a program's tile. All that is reduced together is a row of the tile, so that each operation is one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .elementwise import converted, number_type
from .launching import TypedKernel, grid_of
from .reducing import place, split
from .shapes import Dims, collapsed, expanded, extent, overlaps_itself, power_of_two, share_memory
from .source import kernel_of
from .types import IN_SOURCE, NAMES, OnHost, require

#: Elements of a program's tile, and of the longest row.
_TILE, LONGEST = 1024, 4096
_PLANS = 8192


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """A kernel with its grid and integers."""

    kernel: TypedKernel
    grid: tuple[int, int, int]
    sizes: tuple[int, ...]


_plans: dict[Any, RowsPlan] = {}


def fits(shape: torch.Size, dims: tuple[int, ...]) -> bool:
    """Whether rows of all elements along ``dims`` of a tensor of this shape are short enough, and there are some."""
    return 0 < math.prod(shape) < 2**31 - 2**17 and math.prod(shape[d] for d in dims) <= LONGEST


def run(
    text: str,
    outputs: dict[str, torch.Tensor],
    operands: Mapping[str, Any],
    dims: tuple[int, ...],
    compute: torch.dtype,
) -> None:
    """Run ``text``, which assigns the names of the outputs in terms of those of the operands (elementwise.Body), of
    ``mask`` and of ``count``, the elements of a row; fn.row_sum and fn.row_greatest reduce rows. The first output has
    the shape that all are broadcast to. An output whose sizes along ``dims`` are 1 has an element a row. Raises OnHost
    where the device cannot; fits() has to be true."""
    tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in operands.items() if not isinstance(value, torch.Tensor)}
    everything = (*outputs.values(), *tensors.values())
    shape = everything[0].shape
    dims = tuple(sorted({d % len(shape) for d in dims}))
    numbers["count"] = float(math.prod(shape[d] for d in dims))
    for name, tensor in tensors.items():
        if any(share_memory(tensor, output) for output in outputs.values()):
            tensors[name] = tensor.clone()
    key = (
        (text, dims, compute, everything[0].device, len(outputs)),
        *((n, t.dtype, t.shape, t.stride()) for n, t in (*outputs.items(), *tensors.items())),
        *numbers,
    )
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _PLANS:
            _plans.clear()
        plan = _plans[key] = _plan(text, outputs, tensors, numbers, shape, dims, compute)
    arguments = [*outputs.values(), *tensors.values(), *numbers.values(), *plan.sizes]
    plan.kernel.launch(everything[0].device.index or 0, plan.grid, arguments)


def _plan(
    text: str,
    outputs: dict[str, torch.Tensor],
    tensors: dict[str, torch.Tensor],
    numbers: dict[str, Any],
    shape: torch.Size,
    dims: tuple[int, ...],
    compute: torch.dtype,
) -> RowsPlan:
    everything = (*outputs.values(), *tensors.values())
    device = everything[0].device
    require(compute, device.index or 0)
    for tensor in everything:
        require(tensor.dtype, device.index or 0)
        if tensor.device != device or tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():
            raise OnHost("a tensor of another device, or whose values are not those in memory")
    if any(overlaps_itself(output) for output in outputs.values()):
        raise OnHost("an output with elements that share memory")
    steps = [expanded(tensor.shape, tensor.stride(), shape) for tensor in everything]
    if max(extent(shape, step) for step in steps) >= 2**31 - 2**17:
        raise OnHost("that much memory")
    inside, outside = dims, [d for d in range(len(shape)) if d not in dims]
    reduced, reduced_steps = collapsed([shape[d] for d in inside], [tuple(s[d] for d in inside) for s in steps])
    kept, kept_steps = collapsed([shape[d] for d in outside], [tuple(s[d] for d in outside) for s in steps])
    rows = math.prod(kept)
    columns = power_of_two(math.prod(reduced))
    tile = min(power_of_two(rows), max(1, _TILE // columns)), columns
    source, ints = _text(text, outputs, tensors, numbers, compute, (kept, kept_steps, reduced, reduced_steps), tile)
    types = {f"{name}_p": "*" + NAMES[tensor.dtype] for name, tensor in (*_marked(outputs), *tensors.items())}
    types |= {name: number_type(compute) for name in numbers} | dict.fromkeys(ints, "i32")
    kernel = TypedKernel(kernel_of("rows", source), types, {})
    return RowsPlan(kernel, grid_of(-(-rows // tile[0])), tuple(ints.values()))


def _marked(outputs: dict[str, torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    return [(f"to_{name}", tensor) for name, tensor in outputs.items()]


def _text(
    text: str,
    outputs: dict[str, torch.Tensor],
    tensors: dict[str, torch.Tensor],
    numbers: dict[str, Any],
    compute: torch.dtype,
    layout: tuple[Dims, list[Dims], Dims, list[Dims]],
    tile: tuple[int, int],
) -> tuple[str, dict[str, int]]:
    kept, kept_steps, reduced, reduced_steps = layout
    computing = IN_SOURCE[NAMES[compute]]
    ints: dict[str, int] = {"n_rows": math.prod(kept), "n_columns": math.prod(reduced)}
    ints |= {f"kept{d}": size for d, size in enumerate(kept[1:], 1)}
    ints |= {f"reduced{d}": size for d, size in enumerate(reduced[1:], 1)}
    lines = [
        "program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)",
        f"row = program * {tile[0]} + tl.arange(0, {tile[0]})[:, None]",
        f"column = tl.arange(0, {tile[1]})[None, :]",
        "in_rows, in_columns = row < n_rows, column < n_columns",
        "mask = in_rows & in_columns",
        *(f"{name} = {name}.to({computing})" for name in numbers),
        *split("i", "row", "kept", kept),
        *split("j", "column", "reduced", reduced),
    ]
    names = [*(name for name, _ in _marked(outputs)), *tensors]
    addresses, masks = [], []
    for name, along, across in zip(names, kept_steps, reduced_steps, strict=True):
        addresses.append(place(place(f"{name}_p", "i", name, along, ints), "j", f"{name}_r", across, ints))
        used = [mask for mask, steps in (("in_rows", along), ("in_columns", across)) if any(steps)]
        masks.append("mask" if len(used) == 2 else used[0] if used else "")
    count = len(outputs)
    for (name, tensor), address, mask in zip(tensors.items(), addresses[count:], masks[count:], strict=True):
        cast = "" if tensor.dtype == compute else f".to({computing})"
        lines.append(f"{name} = tl.load({address}{f', mask={mask}' if mask else ''}){cast}")
    lines += text.splitlines()
    whole = math.prod((*kept, *reduced))
    for (name, tensor), address in zip(outputs.items(), addresses, strict=False):
        of_rows = tensor.numel() < whole
        offset, mask = ("row * 0", "in_rows") if of_rows else ("row * 0 + column * 0", "mask")
        value = converted(name, compute, tensor.dtype)
        lines.append(f"tl.store({address} + {offset}, {value}, mask={mask})")
    arguments = [f"{name}_p" for name in names] + [*numbers, *ints]
    return f"def rows({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in lines), ints
