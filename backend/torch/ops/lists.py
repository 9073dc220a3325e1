"""One kernel for lists of tensors: what is computed of each place of the lists, such as a step of all parameters.

Addresses are in a table in device memory, which is kept: parameters and what belongs to them stay where they are. So is
which elements a program computes, for all lists of the same forms. All tensors of a place have the same elements in the
same order of memory. Only a tensor of one element, which is read for all, may differ.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ... import runtime
from ..device.native_module import torch_native
from ..device.tensor_memory import context_of, copy_from, is_dense, staying_bytes
from .addressing import NARROW, PLANS, Number
from .dtypes import IN_SOURCE, NAMES, OnHost, converted, number_type, require
from .elementwise import TILE, Body
from .kept import Kept
from .launching import OperationKernel, grid_of, kernel_for
from .prepared import lists_key, note_staying
from .source import kernel_of

List = Sequence[torch.Tensor]
_TABLES = 256  # kept at most


@dataclass(frozen=True, slots=True)
class _Role:
    """A list of tensors in a kernel. ``one``: each has one element, which is read for all of its place."""

    name: str
    dtype: torch.dtype
    one: bool


@dataclass(slots=True, eq=False)
class _Form:
    """What follows from all but addresses. ``kernel``: makes that for addresses that are multiples of 16, or not.
    ``sizes``: elements of each place; ``extents``: int64, bytes of each tensor of each list, the ``outputs`` first;
    ``programs``: int32, for each of ``count`` programs its place in the lists and which of that place's tiles it
    computes."""

    kernel: Callable[[bool], OperationKernel]
    sizes: array[int]
    extents: bytes
    outputs: int
    programs: torch.Tensor
    count: int

    def table(self, addresses: bytes) -> _Table:
        """The table of the lists' addresses. Raises OnHost if memory is shared that must not be."""
        if torch_native().outputs_overlap(addresses, self.extents, len(self.sizes), self.outputs):
            raise OnHost("outputs that share memory with another list")
        host = torch.frombuffer(bytearray(self.sizes.tobytes() + addresses), dtype=torch.int64)
        # Apart from tensors that come and go: between them it would move those of the next step.
        entries = staying_bytes(host.nbytes, self.programs.device).view(torch.int64)
        copy_from(host, entries)
        return _Table(self.kernel(torch_native().are_aligned(addresses, 16)), entries)


@dataclass(frozen=True, slots=True)
class _Table:
    """``entries``: int64, how many elements each place has, then the addresses of each list."""

    kernel: OperationKernel
    entries: torch.Tensor


_kernels: Kept[OperationKernel] = Kept(PLANS)
_forms: Kept[_Form] = Kept(PLANS)
_tables: Kept[_Table] = Kept(_TABLES)


def run(
    body: Body,
    outputs: Mapping[str, List],
    operands: Mapping[str, List],
    numbers: Mapping[str, Number | Sequence[Number]],
    compute: torch.dtype,
    alike: tuple[str, ...] = (),
) -> None:
    """Compute ``body`` of each place of the lists. ``numbers``: of all places, or a sequence with one of each.
    ``alike``: the operands that must have the type of the first output and its shapes. Raises OnHost if the device
    cannot, before anything is written."""
    lists = (*outputs.values(), *operands.values())
    if not lists[0]:
        return
    device = lists[0][0].device
    each = {name: value for name, value in numbers.items() if isinstance(value, (list, tuple))}
    plain = {name: value for name, value in numbers.items() if name not in each}
    names = (*outputs, *operands, *plain, *each)
    key = lists_key(lists)
    if key is None:
        raise OnHost("tensors of several devices, or not of real numbers")
    what = body, compute, len(outputs), names, len(each), alike, key[0]
    form = _forms.get(what, lambda: _form(body, outputs, operands, (tuple(plain), tuple(each)), compute, alike))
    if not form.count:
        return
    table = _tables.get((form, key[1]), lambda: form.table(key[1]))
    for stays in (table.entries, form.programs):
        note_staying(stays)
    if (graph := runtime.capturing(context_of(table.entries))) is not None:
        graph.keep(lists)
    arguments: list[Any] = [table.entries, form.programs, len(lists[0]), form.count, *plain.values()]
    arguments += [torch.tensor(list(value), dtype=compute).to(device) for value in each.values()]
    table.kernel.launch(device.index or 0, grid_of(form.count), arguments)


def _form(
    body: Body,
    outputs: Mapping[str, List],
    operands: Mapping[str, List],
    numbers: tuple[tuple[str, ...], tuple[str, ...]],
    compute: torch.dtype,
    alike: tuple[str, ...],
) -> _Form:
    lists = (*outputs.values(), *operands.values())
    first, device = lists[0], lists[0][0].device
    require(compute, device.index or 0)
    for name in alike:
        if any(t.dtype != s.dtype or t.shape != s.shape for t, s in zip(operands[name], first, strict=False)):
            raise OnHost("lists of several types or shapes")
    roles = tuple(_role(name, ts, first) for name, ts in zip((*outputs, *operands), lists, strict=True))
    sizes = [tensor.numel() for tensor in first]
    wide = max(sizes) > NARROW

    def kernel(aligned: bool) -> OperationKernel:
        key = body, roles, len(outputs), numbers, compute, aligned, wide
        return _kernels.get(key, lambda: _kernel(body, roles, len(outputs), numbers, compute, (aligned, wide)))

    programs = [(place, tile) for place, size in enumerate(sizes) for tile in range(-(-size // TILE))]
    return _Form(
        kernel,
        array("q", sizes),
        array("q", [tensor.numel() * tensor.element_size() for tensors in lists for tensor in tensors]).tobytes(),
        len(outputs),
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


def _kernel(
    body: Body,
    roles: tuple[_Role, ...],
    outputs: int,
    numbers: tuple[tuple[str, ...], tuple[str, ...]],
    compute: torch.dtype,
    memory: tuple[bool, bool],
) -> OperationKernel:
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
    return kernel_for(kernel_of("lists", text), types, {})
