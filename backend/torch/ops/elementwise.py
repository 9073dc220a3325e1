"""One generator for everything that is computed element by element: a kernel's text from an expression.

A kernel is made for the element types, the number of dimensions that are left once those are joined that can be walked
as one, and which strides are 0, and 1 in the last of them; sizes and strides are its arguments. Elements are walked in
tiles: rows of the last dimension, and the dimensions before it counted as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ..device.tensor_memory import tensor_forms
from .addressing import NARROW, PLANS, Addresses, Operands, PlannedLaunch, Walk, conversion
from .device_facts import DeviceFacts, kind_of
from .dtypes import IN_SOURCE, NAMES, converted
from .kept import Kept
from .launching import OperationKernel, grid_of
from .strided_shapes import Dims, broadcast, overlap, power_of_two, same_view

#: Elements of a program's tile.
TILE = 1024
#: The same of tensors that are walked as one dimension, if a GPU then has so many programs for each compute unit. Of
#: 2^27 elements on an H100, against TILE: copies 2,929 GB/s instead of 2,672, to bfloat16 2,959 (2,606), silu of
#: bfloat16 2,361 (2,174), gelu 2,061 (1,663). With tiles of 512 and 2,048 the first two are within 1% of TILE's, and
#: the others slower.
FULL_TILE, FULL_PROGRAMS = 4096, 8
#: Kernels of tensors that are walked as one dimension.
_kernels: Kept[OperationKernel] = Kept(PLANS)
#: Columns of a tile whose operands lie in memory in different orders, and at least so many elements along either.
SIDE = 32


@dataclass(frozen=True, slots=True)
class Body:
    """What is computed for each element. ``text``: lines that assign the outputs' names, in terms of the operands'
    names, ``tl``, ``libdevice`` and ``fn`` (functions.py), ``mask`` of the existing elements, and ``zero``, a tile of
    zeros. ``as_stored``: operands that are not converted to the type that is computed in. ``places``: operands
    that are not read: the text gets their elements' addresses. ``numbered``: operands that are not read: the text gets
    how many elements of memory each is from the first (numbers_along()). ``tile``: elements of a program, of which a
    long text has fewer, as it is compiled for each element that an invocation has."""

    text: str
    as_stored: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    tile: int = TILE

    @staticmethod
    def of(expression: str, *as_stored: str, tile: int = TILE) -> Body:
        """The body of one output, ``out``."""
        return Body(f"out = {expression}", frozenset(as_stored), tile=tile)


def numbers_along(dim: int, like: torch.Tensor) -> torch.Tensor:
    """An operand of Body.numbered that numbers the dimension ``dim`` of an output, which has elements."""
    dim %= like.dim()
    one = tuple(size if d == dim else 1 for d, size in enumerate(like.shape))
    return like.as_strided(one, (1,) * like.dim())


def run(
    body: Body,
    outputs: dict[str, torch.Tensor],
    operands: Mapping[str, Any],
    compute: torch.dtype,
    counts: dict[str, int] | None = None,
) -> None:
    """Compute ``body`` for each element of the ``outputs``, which are of one shape, and to which the ``operands`` are
    broadcast; without outputs, of the shape that the operands have together. ``compute``: the type that operands are
    converted to. ``counts``: integers of 64 bits that the text names. If an operand shares memory with an output
    and is not the same view of it, it is copied first.

    Raises OnHost if the device cannot, before anything is written.
    """
    given = Operands.of(outputs, operands, counts)
    for output in outputs.values():
        for name, tensor in given.tensors.items():
            unread = name in body.places or name in body.numbered
            if tensor is not output and not unread and overlap(tensor, output) and not same_view(tensor, output):
                given.tensors[name] = tensor.clone()
    plan = _plan(body, given, compute)
    if plan is not None:
        plan.launch(given, body.places)


def _plan(body: Body, operands: Operands, compute: torch.dtype) -> PlannedLaunch | None:
    """None if there are no elements. Where all tensors have one shape and no gaps, what depends on the shape alone is
    counted here: planning takes several times as long."""
    count = next(iter(operands.outputs.values() or operands.tensors.values())).numel()
    if count < 2 or operands.counts or not tensor_forms().are_alike(operands.outputs, operands.tensors):
        return _planned(body, operands, compute)
    device = operands.index
    tile = _columns(body.tile, count, kind_of(device))
    what = body, compute, operands.form(), device, tile, count % 16 == 0, count > NARROW
    kernel = _kernels.get(what, lambda: _kernel_of(_planned(body, operands, compute)))
    return PlannedLaunch(kernel, grid_of(-(-count // tile)), (1, count))


def _kernel_of(plan: PlannedLaunch | None) -> OperationKernel:
    assert plan is not None
    return plan.kernel


def _planned(body: Body, operands: Operands, compute: torch.dtype) -> PlannedLaunch | None:
    operands.check(compute)
    outputs = operands.outputs
    shape = next(iter(outputs.values())).shape if outputs else broadcast(*(t.shape for t in operands.tensors.values()))
    if math.prod(shape) == 0:
        return None
    ((sizes, steps),) = tensor_forms().walks(operands.outputs, operands.tensors, shape, (tuple(range(len(shape))),))
    sizes, steps, tile = _tiled(body.tile, sizes, steps, kind_of(operands.index))
    inner, outer = (sizes[-1], math.prod(sizes[:-1])) if sizes else (1, 1)
    if len(sizes) > 1:
        walks = [Walk("row", "i", "in_rows", sizes[:-1], [step[:-1] for step in steps])]
        walks.append(Walk("j0", "j", "in_columns", sizes[-1:], [step[-1:] for step in steps]))
    else:
        walks = [Walk("i0", "i", "mask", sizes, steps)]
    addresses = Addresses(operands.pointers, walks, {"n_out": outer, "n_in": inner})
    form = body, len(walks), len(walks[0].sizes), tile
    programs = -(-outer // tile[0]) * -(-inner // tile[1])
    lines = partial(_lines, body, operands, compute, addresses, walks, tile)
    return addresses.plan("elementwise", form, lines, operands, compute, programs, "n_in")


def _tiled(
    elements: int, sizes: Dims, steps: list[Dims], kind: DeviceFacts
) -> tuple[Dims, list[Dims], tuple[int, int]]:
    """The dimensions, the strides in them, and rows and columns of a tile of so many elements, or of more. Where
    an operand jumps through its memory along the last dimension and steps through it along another, that other one
    comes before the last, and tiles have so many columns that all operands are read and written in whole lines.

    No kernel is compiled for the size of a tensor of fewer elements than a tile's, and for one of more none but for
    the power of two that its last dimension fits in."""
    if not sizes:
        return sizes, steps, (1, 1)
    inner = sizes[-1]
    if len(sizes) == 1:
        return sizes, steps, (1, _columns(elements, inner, kind))
    columns = min(elements, SIDE if math.prod(sizes) <= elements else power_of_two(inner))
    turned = _turned(sizes, steps)
    if turned is not None:
        order = [*(d for d in range(len(sizes) - 1) if d != turned), turned, len(sizes) - 1]
        sizes, columns = tuple(sizes[d] for d in order), SIDE
        steps = [tuple(step[d] for d in order) for step in steps]
    return sizes, steps, (elements // columns, columns)


def _columns(elements: int, count: int, kind: DeviceFacts) -> int:
    """Elements of a tile of tensors that are walked as one dimension of ``count`` elements."""
    is_full = not kind.cpu and elements == TILE and count >= FULL_TILE * FULL_PROGRAMS * kind.units
    return FULL_TILE if is_full else elements


def _turned(sizes: Dims, steps: list[Dims]) -> int | None:
    """The dimension that an operand steps through, if it jumps through the last one."""
    for step in steps[1:]:
        for d in range(len(sizes) - 1):
            if step[d] == 1 and step[-1] > 1 and min(sizes[d], sizes[-1]) >= SIDE:
                return d
    return None


def _lines(
    body: Body, operands: Operands, compute: torch.dtype, addresses: Addresses, walks: list[Walk], tile: tuple[int, int]
) -> list[str]:
    """The kernel's."""
    rows, columns = tile
    lines = [addresses.program]
    if len(walks) > 1:
        lines += [
            f"across = tl.cdiv(n_in, {columns})",
            f"row = program // across * {rows} + tl.arange(0, {rows})[:, None]",
            f"j0 = program % across * {columns} + tl.arange(0, {columns})[None, :]",
            "in_rows, in_columns = row < n_out, j0 < n_in",
            "mask = in_rows & in_columns",
            "zero = row * 0 + j0 * 0",
            *walks[0].indices(),
        ]
    else:
        lines += [f"i0 = program * {columns} + tl.arange(0, {columns})", "mask = i0 < n_in", "zero = i0 * 0"]
    for name, tensor in operands.tensors.items():
        place = addresses.place(name, start="zero" if name in body.numbered else None)
        if name not in body.places and name not in body.numbered:
            place = addresses.load(name, place, "" if name in body.as_stored else conversion(tensor, compute))
        lines.append(f"{name} = {place}")
    lines += [f"{name} = {name}.to({IN_SOURCE[NAMES[compute]]})" for name in operands.numbers]
    lines += body.text.splitlines()
    for name, tensor in operands.outputs.items():
        value = converted(name, compute, tensor.dtype)
        lines.append(f"tl.store({addresses.place(f'to_{name}')} + zero, {value}, mask=mask)")
    return lines
