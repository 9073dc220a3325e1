"""One generator for everything that is computed element by element: a kernel's text from an expression.

A kernel is made for the element types, the number of dimensions that are left once those are joined that can be walked
as one, and which strides are 0, and 1 in the last of them; sizes and strides are its arguments. Elements are walked in
tiles: rows of the last dimension, and the dimensions before it counted as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .launching import TypedKernel, grid_of
from .shapes import collapsed, expanded, extent, overlaps_itself, power_of_two, share_memory
from .source import kernel_of
from .types import IN_SOURCE, NAMES, OnHost, require

Number = bool | int | float
#: Elements of a program's tile.
TILE = 1024
_NARROW = 2**31 - 2**17  # elements that are counted in 32 bits, with room for a tile past the end
_PLANS = 8192  # kept at most


@dataclass(frozen=True, slots=True)
class Body:
    """What is computed of an element. ``text``: lines that assign the names of the outputs, in terms of those of the
    operands, ``tl``, ``libdevice`` and ``fn`` (functions.py), ``mask`` of the elements that there are, and ``zero``, a
    tile of zeros. ``as_stored``: operands that are not converted to the type that is computed in. ``places``: operands
    that are not read: the text gets their elements' addresses."""

    text: str
    as_stored: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()

    @staticmethod
    def of(expression: str, *as_stored: str) -> Body:
        """That of the one output ``out``."""
        return Body(f"out = {expression}", frozenset(as_stored))


@dataclass(frozen=True, slots=True)
class _Plan:
    kernel: TypedKernel
    grid: tuple[int, int, int]
    sizes: tuple[int, ...]
    multiple: bool


_plans: dict[Any, _Plan | None] = {}


def run(
    body: Body,
    outputs: dict[str, torch.Tensor],
    operands: Mapping[str, Any],
    compute: torch.dtype,
    counts: dict[str, int] | None = None,
) -> None:
    """Compute ``body`` for each element of the ``outputs``, which are of one shape, and to which the ``operands`` are
    broadcast; without outputs, of the shape that the operands have together. ``compute``: the type that operands are
    converted to. ``counts``: integers of 64 bits that the text names. Where an operand shares memory with an output
    and is not the same view of it, it is copied first.

    Raises OnHost where the device cannot, before anything is written.
    """
    tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in operands.items() if not isinstance(value, torch.Tensor)}
    counts = counts or {}
    for output in outputs.values():
        for name, tensor in tensors.items():
            if tensor is not output and share_memory(tensor, output) and name not in body.places:
                tensors[name] = _apart(tensor, output)
    key = (
        body,
        compute,
        *counts,
        *((name, tensor.dtype, tensor.shape, tensor.stride(), tensor.device) for name, tensor in outputs.items()),
        *((name, tensor.dtype, tensor.shape, tensor.stride()) for name, tensor in tensors.items()),
        *numbers,
    )
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plan(body, outputs, tensors, numbers, compute, tuple(counts))
        if len(_plans) >= _PLANS:
            _plans.clear()
        _plans[key] = plan
    if plan is None:
        return
    device = next(iter((*outputs.values(), *tensors.values()))).device.index or 0
    arguments = [*outputs.values(), *tensors.values(), *numbers.values(), *counts.values(), *plan.sizes]
    plan.kernel.launch(device, plan.grid, arguments, plan.multiple)


def _apart(tensor: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    same = (
        tensor.data_ptr() == output.data_ptr()
        and tensor.stride() == output.stride()
        and tensor.shape == output.shape
        and tensor.dtype == output.dtype
    )
    return tensor.clone() if not same and _touch(tensor, output) else tensor


def _touch(one: torch.Tensor, other: torch.Tensor) -> bool:
    ends = [
        (tensor.data_ptr(), tensor.data_ptr() + extent(tensor.shape, tensor.stride()) * tensor.element_size())
        for tensor in (one, other)
    ]
    return ends[0][0] < ends[1][1] and ends[1][0] < ends[0][1]


def _plan(
    body: Body,
    outputs: dict[str, torch.Tensor],
    tensors: dict[str, torch.Tensor],
    numbers: dict[str, Number],
    compute: torch.dtype,
    counts: tuple[str, ...],
) -> _Plan | None:
    """None where there are no elements."""
    first = next(iter((*outputs.values(), *tensors.values())))
    device = first.device
    shape = first.shape if outputs else torch.broadcast_shapes(*(tensor.shape for tensor in tensors.values()))
    for tensor in (*outputs.values(), *tensors.values()):
        require(tensor.dtype, device.index or 0)
        if tensor.device != device:
            raise OnHost("tensors of several devices")
        if tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():
            raise OnHost("a tensor whose values are not those in memory")
    require(compute, device.index or 0)
    if any(overlaps_itself(output) for output in outputs.values()):
        raise OnHost("an output with elements that share memory")
    if math.prod(shape) == 0:
        return None
    steps = [expanded(tensor.shape, tensor.stride(), shape) for tensor in (*outputs.values(), *tensors.values())]
    sizes, steps = collapsed(shape, steps)
    wide = max(math.prod(sizes), *(extent(sizes, step) for step in steps)) > _NARROW
    inner, outer = (sizes[-1], math.prod(sizes[:-1])) if sizes else (1, 1)
    columns = min(TILE, power_of_two(inner))
    rows = TILE // columns if outer > 1 else 1
    text, ints = _text(body, outputs, tensors, (numbers, counts), compute, sizes, steps, (rows, columns), wide)
    integer = "i64" if wide else "i32"
    types = {f"{name}_p": "*" + NAMES[tensor.dtype] for name, tensor in (*_marked(outputs), *tensors.items())}
    types |= {name: number_type(compute) for name in numbers} | dict.fromkeys(counts, "i64")
    types |= dict.fromkeys(ints, integer)
    kernel = TypedKernel(kernel_of("elementwise", text), types, {}, divisible=frozenset(("n_in",)))
    programs = -(-outer // rows) * -(-inner // columns)
    return _Plan(kernel, grid_of(programs), tuple(ints.values()), inner % 16 == 0)


def _marked(outputs: dict[str, torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    """Outputs by the names of their pointers: an operand may have the same name."""
    return [(f"to_{name}", tensor) for name, tensor in outputs.items()]


def number_type(compute: torch.dtype) -> str:
    """In which type a number is passed to a kernel that computes in ``compute``."""
    return NAMES[compute] if compute.is_floating_point else "i64"


def _text(
    body: Body,
    outputs: dict[str, torch.Tensor],
    tensors: dict[str, torch.Tensor],
    scalars: tuple[dict[str, Number], tuple[str, ...]],
    compute: torch.dtype,
    sizes: tuple[int, ...],
    steps: list[tuple[int, ...]],
    tile: tuple[int, int],
    wide: bool,
) -> tuple[str, dict[str, int]]:
    """The kernel, and its integer arguments with their values in this plan."""
    (numbers, counts), (rows, columns) = scalars, tile
    ints: dict[str, int] = {"n_out": math.prod(sizes[:-1]), "n_in": sizes[-1] if sizes else 1}
    ints |= {f"size{d}": size for d, size in enumerate(sizes[1:-1], 1)}
    index = "tl.int64" if wide else "tl.int32"
    lines = [f"program = tl.program_id(1).to({index}) * tl.num_programs(0) + tl.program_id(0)"]
    if len(sizes) > 1:
        lines += [
            f"across = tl.cdiv(n_in, {columns})",
            f"row = program // across * {rows} + tl.arange(0, {rows})[:, None]",
            f"i{len(sizes) - 1} = program % across * {columns} + tl.arange(0, {columns})[None, :]",
            f"in_rows, in_columns = row < n_out, i{len(sizes) - 1} < n_in",
            "mask = in_rows & in_columns",
        ]
        for d in range(len(sizes) - 2, 0, -1):
            lines += [f"i{d} = row % size{d}", f"row = row // size{d}"]
        lines.append("i0 = row")
    else:
        lines += [f"i0 = program * {columns} + tl.arange(0, {columns})", "mask = i0 < n_in"]
    lines.append("zero = " + " + ".join(f"i{d} * 0" for d in {0, max(0, len(sizes) - 1)}))
    places, masks = [], []
    pointers = [(name, True) for name in outputs] + [(name, False) for name in tensors]
    for (name, is_output), step in zip(pointers, steps, strict=True):
        name = f"to_{name}" if is_output else name
        terms = []
        for d, stride in enumerate(step):
            if stride == 1 and d == len(step) - 1:
                terms.append(f"i{d}")
            elif stride:
                ints[f"{name}_{d}"] = stride
                terms.append(f"i{d} * {name}_{d}")
        masks.append(_mask(step))
        if is_output and not terms:
            terms.append("i0")
        places.append(f"{name}_p" + "".join(f" + {term}" for term in terms))
    computing = IN_SOURCE[NAMES[compute]]
    for (name, tensor), place, mask in zip(tensors.items(), places[len(outputs) :], masks[len(outputs) :], strict=True):
        cast = "" if name in body.as_stored or tensor.dtype == compute else f".to({computing})"
        lines.append(f"{name} = {place}" if name in body.places else f"{name} = tl.load({place}{mask}){cast}")
    lines += [f"{name} = {name}.to({computing})" for name in numbers]
    lines += body.text.splitlines()
    for (name, tensor), place in zip(outputs.items(), places, strict=False):
        lines.append(f"tl.store({place}, {converted(name, compute, tensor.dtype)}, mask=mask)")
    arguments = [f"to_{name}_p" for name in outputs] + [f"{name}_p" for name in tensors] + [*numbers, *counts, *ints]
    return f"def elementwise({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in lines), ints


def _mask(step: tuple[int, ...]) -> str:
    """The mask with which a tensor of these strides is read."""
    if not any(step):
        return ""
    if len(step) == 1 or (step[-1] and any(step[:-1])):
        return ", mask=mask"
    return ", mask=in_columns" if step[-1] else ", mask=in_rows"


def converted(name: str, source: torch.dtype, target: torch.dtype) -> str:
    """The text of ``name``, computed in ``source`` or a bool, as ``target``. Floats become narrow integers by way of
    int64, as on the CPU: the low bits of the number without its fraction."""
    if target == torch.bool:
        return f"fn.truth({name})"
    to = IN_SOURCE[NAMES[target]]
    if target.is_floating_point or target in (torch.int64, torch.uint64) or not source.is_floating_point:
        return f"({name}).to({to})"
    return f"fn.whole({name}).to({to})"
