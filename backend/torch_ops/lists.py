"""One kernel for lists of tensors: what is computed of each place of the lists, such as a step of all parameters.

Addresses are in a table in device memory, which is kept: parameters and what belongs to them stay where they are. So is
which elements a program computes. All tensors of a place have the same elements in the same order of memory, but for
those of one element where others have more, which are read for all.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .addressing import NARROW, Number
from .elementwise import TILE, Body
from .launching import TypedKernel, grid_of
from .shapes import is_dense
from .source import kernel_of
from .types import IN_SOURCE, NAMES, OnHost, converted, number_type, require

List = Sequence[torch.Tensor]
_PLANS = 512  # kept at most


@dataclass(frozen=True, slots=True)
class _Role:
    """A list of tensors in a kernel. ``one``: each has one element, which is read for all of its place."""

    name: str
    dtype: torch.dtype
    one: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """``table``: int64, how many elements each place has, then the addresses of each list; ``programs``: int32, for
    each of ``count`` programs its place in the lists and which of that place's tiles it computes."""

    kernel: TypedKernel
    table: torch.Tensor
    programs: torch.Tensor
    count: int


_kernels: dict[Any, TypedKernel] = {}
_plans: dict[Any, _Plan] = {}


def run(
    body: Body,
    outputs: Mapping[str, List],
    operands: Mapping[str, List],
    numbers: Mapping[str, Number | Sequence[Number]],
    compute: torch.dtype,
) -> None:
    """Compute ``body`` of each place of the lists. ``numbers``: of all places, or a sequence with one of each. Raises
    OnHost where the device cannot, before anything is written."""
    lists = (*outputs.values(), *operands.values())
    if not lists[0]:
        return
    device = lists[0][0].device
    each = {name: value for name, value in numbers.items() if isinstance(value, (list, tuple))}
    plain = {name: value for name, value in numbers.items() if name not in each}
    names = (*outputs, *operands, *plain, *each)
    what = body, compute, len(outputs), names, len(each), device, tuple(map(len, lists))
    key = what, *((t.data_ptr(), t.dtype, t.shape, t.stride(), t.is_neg()) for tensors in lists for t in tensors)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _PLANS:
            _plans.clear()
        plan = _plans[key] = _plan(body, outputs, operands, (tuple(plain), tuple(each)), compute)
    if not plan.count:
        return
    arguments: list[Any] = [plan.table, plan.programs, len(lists[0]), plan.count, *plain.values()]
    arguments += [torch.tensor(list(value), dtype=compute).to(device) for value in each.values()]
    plan.kernel.launch(device.index or 0, grid_of(plan.count), arguments)


def _plan(
    body: Body,
    outputs: Mapping[str, List],
    operands: Mapping[str, List],
    numbers: tuple[tuple[str, ...], tuple[str, ...]],
    compute: torch.dtype,
) -> _Plan:
    lists = (*outputs.values(), *operands.values())
    first, device = lists[0], lists[0][0].device
    require(compute, device.index or 0)
    roles = tuple(_role(name, ts, first) for name, ts in zip((*outputs, *operands), lists, strict=True))
    _check_memory(list(outputs.values()), list(operands.values()))
    sizes = [tensor.numel() for tensor in first]
    addresses = [tensor.data_ptr() for tensors in lists for tensor in tensors]
    aligned, wide = not any(address & 15 for address in addresses), max(sizes) > NARROW
    key = body, roles, len(outputs), numbers, compute, aligned, wide
    if key not in _kernels:
        _kernels[key] = _kernel(body, roles, len(outputs), numbers, compute, (aligned, wide))
    programs = [(place, tile) for place, size in enumerate(sizes) for tile in range(-(-size // TILE))]
    return _Plan(
        _kernels[key],
        torch.tensor([*sizes, *addresses], dtype=torch.int64).to(device),
        torch.tensor(programs or [(0, 0)], dtype=torch.int32).to(device),
        len(programs),
    )


def _role(name: str, tensors: List, first: List) -> _Role:
    dtype, device = tensors[0].dtype, first[0].device
    require(dtype, device.index or 0)
    if dtype == torch.bool or len(tensors) != len(first):
        raise OnHost(f"lists of {dtype}, or of several lengths")
    one = all(tensor.numel() == 1 for tensor in tensors)
    for tensor, like in zip(tensors, first, strict=True):
        same = tensor.shape == like.shape and tensor.stride() == like.stride() and is_dense(tensor)
        if tensor.dtype != dtype or tensor.device != device or not (same or one) or tensor.is_neg():
            raise OnHost("tensors of several types, devices or orders of memory")
    return _Role(name, dtype, one)


def _check_memory(outputs: list[List], operands: list[List]) -> None:
    """Raises OnHost where an output shares memory with another, or with what is read but for the same tensor at the
    same place."""
    written = sorted((*_span(tensor), place) for tensors in outputs for place, tensor in enumerate(tensors))
    written = [span for span in written if span[0] < span[1]]
    if any(one[1] > other[0] for one, other in zip(written, written[1:], strict=False)):
        raise OnHost("outputs that share memory")
    for tensors in operands:
        for place, tensor in enumerate(tensors):
            begin, end = _span(tensor)
            at = max(bisect.bisect_right(written, (begin, end, len(tensors))) - 1, 0)
            for start, stop, owner in written[at : at + 2]:
                if start < end and begin < stop and (start, stop, owner) != (begin, end, place):
                    raise OnHost("outputs that share memory with what is read")


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()


def _kernel(
    body: Body,
    roles: tuple[_Role, ...],
    outputs: int,
    numbers: tuple[tuple[str, ...], tuple[str, ...]],
    compute: torch.dtype,
    memory: tuple[bool, bool],
) -> TypedKernel:
    """``roles``: so many outputs, then operands; ``memory``: whether all addresses are multiples of 16, and whether
    elements are counted in 64 bits."""
    computing, (plain, each), (aligned, wide) = IN_SOURCE[NAMES[compute]], numbers, memory
    lines = [
        "program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)",
        "there = program < n_programs",
        "where = tl.load(programs + program * 2, mask=there, other=0)",
        "tile = tl.load(programs + program * 2 + 1, mask=there, other=0)",
        f"first = tile.to({'tl.int64' if wide else 'tl.int32'}) * {TILE}",
        f"i0 = tl.arange(0, {TILE})",
        "mask = (first + i0 < tl.load(table + where)) & there",
        "zero = i0 * 0",
    ]
    for row, role in enumerate(roles):
        pointer, output = f"{'to_' if row < outputs else ''}{role.name}_p", row < outputs
        address = f"tl.load(table + {row + 1} * places + where).to(tl.pointer_type({IN_SOURCE[NAMES[role.dtype]]}))"
        address = f"tl.multiple_of({address}, 16)" if aligned else address
        lines.append(f"{pointer} = {address}" + ("" if role.one else " + first"))
        if not output:
            cast = "" if role.name in body.as_stored or role.dtype == compute else f".to({computing})"
            load = f"tl.load({pointer})" if role.one else f"tl.load({pointer} + i0, mask=mask)"
            lines.append(f"{role.name} = {pointer if role.name in body.places else load + cast}")
    lines += [f"{name} = {name}.to({computing})" for name in plain]
    lines += [f"{name} = tl.load({name}_p + where)" for name in each]
    lines += body.text.splitlines()
    for role in roles[:outputs]:
        lines.append(f"tl.store(to_{role.name}_p + i0, {converted(role.name, compute, role.dtype)}, mask=mask)")
    types = {"table": "*i64", "programs": "*i32", "places": "i32", "n_programs": "i32"}
    types |= dict.fromkeys(plain, number_type(compute)) | dict.fromkeys((f"{n}_p" for n in each), "*" + NAMES[compute])
    text = f"def lists({', '.join(types)}):\n" + "".join(f"    {line}\n" for line in lines)
    return TypedKernel(kernel_of("lists", text), types, {})
