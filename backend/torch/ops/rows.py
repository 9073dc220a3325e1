"""One generator for operations that need several reductions of the same elements: softmax, layer norm and their like,
of rows that fit a program's tile. All that is reduced together is a row of the tile, so that each operation is one
kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from ..device.tensor_memory import tensor_forms
from .addressing import NARROW, PLANS, Addresses, Operands, PlannedLaunch, Walk, conversion
from .device_facts import kind_of
from .dtypes import IN_SOURCE, NAMES, converted
from .kept import Kept
from .launching import grid_of
from .strided_shapes import overlap, power_of_two, same_view

#: Elements of a program's tile, of a CPU and of a GPU, and of the longest row. An H100 has softmax of 2^27 numbers of
#: bfloat16 in rows of 512 and 1,024 at 2,583 and 2,598 GB/s so, and at 1,981 and 2,113 with a CPU's tiles.
_TILE, _GPU_TILE, LONGEST = 1024, 4096, 4096
#: Plans that differ in the numbers of rows and columns alone.
_plans: Kept[PlannedLaunch] = Kept(PLANS)


def fits(shape: torch.Size, dims: tuple[int, ...]) -> bool:
    """Whether rows of all elements along ``dims`` of a tensor of this shape are short enough, and there are some."""
    return 0 < math.prod(shape) < NARROW and math.prod([shape[d] for d in dims]) <= LONGEST


def run(
    text: str,
    outputs: dict[str, torch.Tensor],
    operands: Mapping[str, Any],
    dims: tuple[int, ...],
    compute: torch.dtype,
    counts: dict[str, int] | None = None,
) -> None:
    """Run ``text``, which assigns the names of the outputs in terms of the operands' names (elementwise.Body), of
    ``mask`` and of ``count``, the elements of a row; fn.row_sum and fn.row_greatest reduce rows. The first output has
    the shape that all are broadcast to. An output whose sizes along ``dims`` are 1 has an element a row.
    ``row`` and ``column`` number the rows and their elements where the tensors are contiguous. ``counts``: integers of
    64 bits that the text names. Raises OnHost
    where the device cannot; fits() has to be true."""
    given = Operands.of(outputs, operands, counts)
    shape = next(iter(outputs.values())).shape
    dims = tuple(sorted({d % len(shape) for d in dims}))
    given.numbers["count"] = float(math.prod([shape[d] for d in dims]))
    for name, tensor in given.tensors.items():
        if any([overlap(tensor, output) and not same_view(tensor, output) for output in outputs.values()]):
            given.tensors[name] = tensor.clone()
    _plan(text, given, shape, dims, compute).launch(given)


def _plan(
    text: str, operands: Operands, shape: torch.Size, dims: tuple[int, ...], compute: torch.dtype
) -> PlannedLaunch:
    """Where rows and their elements each take one step through all tensors, a plan's integers are the number of rows
    and, of elements and of strides, that of columns: those of an earlier plan are changed here, as planning takes
    several times as long."""
    columns = math.prod([shape[d] for d in dims])
    rows = math.prod(shape) // columns
    parts = tensor_forms().roles(operands.outputs, operands.tensors, shape, len(shape) - len(dims))
    if parts is None or rows == 1 or columns == 1 or dims[0] != len(shape) - len(dims):
        return _planned(text, operands, shape, dims, compute)
    device = operands.index
    tile = _tile(columns, device)
    what = text, compute, operands.form(), parts, columns % 16 == 0, tile, device, rows * columns > NARROW
    plan = _plans.get(what, lambda: _planned(text, operands, shape, dims, compute))
    return PlannedLaunch(plan.kernel, grid_of(-(-rows // tile[0])), (rows, *[columns] * (len(plan.integers) - 1)))


def _tile(columns: int, device: int) -> tuple[int, int]:
    """Rows and columns of a program's tile. Few rows have the tile of many, so that there is one kernel for each width:
    softmax of 1×16 takes 2.8 µs on a CPU so, and 2.3 with a tile of its own."""
    elements, columns = _TILE if kind_of(device).cpu else _GPU_TILE, power_of_two(columns)
    return max(1, elements // columns), columns


def _planned(
    text: str, operands: Operands, shape: torch.Size, dims: tuple[int, ...], compute: torch.dtype
) -> PlannedLaunch:
    operands.check(compute)
    outside = [d for d in range(len(shape)) if d not in dims]
    kept, reduced = tensor_forms().walks(operands.outputs, operands.tensors, shape, (outside, dims))
    walks = Walk("row", "i", "in_rows", *kept), Walk("column", "j", "in_columns", *reduced)
    rows, columns = walks[0].count, walks[1].count
    tile = _tile(columns, operands.index)
    addresses = Addresses(operands.pointers, walks, {"n_rows": rows, "n_columns": columns})
    of_rows = frozenset(name for name, tensor in operands.outputs.items() if tensor.numel() < math.prod(shape))
    form = text, len(kept[0]), len(reduced[0]), tile, of_rows
    lines = partial(_lines, text, operands, compute, addresses, walks, tile, of_rows)
    return addresses.plan("rows", form, lines, operands, compute, -(-rows // tile[0]), "n_columns")


def _lines(
    text: str,
    operands: Operands,
    compute: torch.dtype,
    addresses: Addresses,
    walks: tuple[Walk, Walk],
    tile: tuple[int, int],
    of_rows: frozenset[str],
) -> list[str]:
    """The kernel's. ``of_rows``: outputs that have an element a row."""
    lines = [
        addresses.program,
        f"row = program * {tile[0]} + tl.arange(0, {tile[0]})[:, None]",
        f"column = tl.arange(0, {tile[1]})[None, :]",
        "in_rows, in_columns = row < n_rows, column < n_columns",
        "mask = in_rows & in_columns",
        *(f"{name} = {name}.to({IN_SOURCE[NAMES[compute]]})" for name in operands.numbers),
        *walks[0].indices(),
        *walks[1].indices(),
    ]
    for name, tensor in operands.tensors.items():
        lines.append(f"{name} = {addresses.load(name, addresses.place(name), conversion(tensor, compute))}")
    lines += text.splitlines()
    for name, tensor in operands.outputs.items():
        offset, mask = ("row * 0", "in_rows") if name in of_rows else ("row * 0 + column * 0", "mask")
        value = converted(name, compute, tensor.dtype)
        lines.append(f"tl.store({addresses.place(f'to_{name}')} + {offset}, {value}, mask={mask})")
    return lines
