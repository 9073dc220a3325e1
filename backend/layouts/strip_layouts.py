"""Strips of a tensor: what is left of its layout when the highest bits of a dimension, all registers, are taken away.

Each invocation's array holds a tensor so that any strip of it is contiguous: the strip's registers are the highest bits
of the place in the array, and the other registers, in order, the lowest. Or its order is one for strips along every
dimension (ROWS): registers lie along the dimension first along which lanes do, then along the next. Where the lanes of
a subgroup are elements of vectors, memory then holds the tensor row by row, or column by column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ..ttgir.types import TensorType, strip_type
from .distributed import INPUTS, LANE, REGISTER, LayoutError, layout_of
from .linear import flatten, same_copies, unflatten

#: In place of the dimension that an array's strips are along: all of them.
ROWS: Final = -1


def register_count(type_: TensorType) -> int:
    """Registers of a tensor in one invocation. Raises LayoutError."""
    return 1 << len(layout_of(type_).bases[REGISTER])


def same_registers(one: TensorType, other: TensorType) -> bool:
    """Whether tensors of the two types hold the same elements, in another order (linear.same_copies)."""
    try:
        layouts = [layout_of(type_) for type_ in (one, other)]
    except LayoutError:
        return False
    return same_copies(*layouts)


@lru_cache(maxsize=4096)
def cut_fits(type_: TensorType, dim: int, strips: int) -> bool:
    """Whether a strip is what the tensor's layout has without the registers of the highest bits of ``dim``."""
    if type_.shape[dim] % strips:
        return False
    part = strip_type(type_, dim, strips)
    try:
        whole, strip = (layout_of(one) for one in (type_, part))
    except LayoutError:
        return False
    beyond = _highest(type_, dim, strips)
    bases = {
        name: [flatten(unflatten(basis, part.shape), type_.shape) for basis in strip.inputs[name]] for name in INPUTS
    }
    registers = [basis for basis in whole.inputs[REGISTER] if basis not in beyond]
    return (
        len(registers) + len(beyond) == len(whole.inputs[REGISTER])
        and registers == bases[REGISTER]
        and all(bases[name] == list(whole.inputs[name]) for name in INPUTS if name != REGISTER)
    )


def _highest(type_: TensorType, dim: int, strips: int) -> list[int]:
    """The flat places of the first element of strips 1, 2, 4, … of ``strips``."""
    first = type_.shape[dim] // strips
    return [
        flatten([first << bit if axis == dim else 0 for axis in range(type_.rank)], type_.shape)
        for bit in range(strips.bit_length() - 1)
    ]


@lru_cache(maxsize=4096)
def array_places(type_: TensorType, dim: int) -> tuple[int, ...]:
    """For each register its place in an array of the tensor that is read in strips along ``dim``: the same for any
    number of strips that the tensor can be cut in. ``dim`` may be ROWS."""
    assert type_.encoding is not None
    bases = list(layout_of(type_).inputs[REGISTER])
    if dim == ROWS:
        return _places([bases.index(basis) for basis in sorted(bases, key=_by_rows(type_))])
    strips = 1
    while type_.shape[dim] % (2 * strips) == 0 and all(bit in bases for bit in _highest(type_, dim, 2 * strips)):
        strips *= 2
    highest = [bases.index(basis) for basis in _highest(type_, dim, strips)]
    order = [bit for bit in range(len(bases)) if bit not in highest] + highest
    return _places(order)


def _places(order: list[int]) -> tuple[int, ...]:
    """The place of each register. ``order``: the bits of its number from the lowest bit of its place on."""
    places = [0]
    for bit in range(len(order)):
        places += [place + (1 << order.index(bit)) for place in places]
    return tuple(places)


def _by_rows(type_: TensorType) -> Callable[[int], tuple[int, int]]:
    """What bases are sorted by: how soon lanes or registers lie along the same dimension, then how far it leads."""
    layout = layout_of(type_)
    along: dict[int, int] = {}
    for point in (*layout.bases[LANE], *layout.bases[REGISTER]):
        found = [dim for dim, coordinate in enumerate(point) if coordinate]
        if len(found) == 1:
            along.setdefault(found[0], len(along))

    def key(basis: int) -> tuple[int, int]:
        found = [dim for dim, coordinate in enumerate(unflatten(basis, type_.shape)) if coordinate]
        return along[found[0]] if len(found) == 1 else len(along), basis

    return key


@lru_cache(maxsize=4096)
def strip_bits(type_: TensorType, dim: int, strips: int, array_dim: int) -> tuple[int, ...]:
    """The bits of a place in an array (``array_places`` for ``array_dim``) that are those of a strip's number."""
    bases = list(layout_of(type_).inputs[REGISTER])
    places = array_places(type_, array_dim)
    return tuple(places[1 << bases.index(basis)].bit_length() - 1 for basis in _highest(type_, dim, strips))


@lru_cache(maxsize=4096)
def line_starts(type_: TensorType, dim: int) -> tuple[tuple[int, ...], int] | None:
    """The registers of a tensor of two dimensions that hold the first elements of the lines along ``dim``, in the
    order of the lines, and how far neighbouring lines are from each other where element r of lane l is at r · W + l: 1
    where each lane has another line, W where lane 0 has the first element of each. None for any other layout."""
    layout, other = layout_of(type_), 1 - dim
    lanes = layout.bases[LANE]

    def line(bit: int) -> tuple[int, ...]:
        return tuple(1 << bit if axis == other else 0 for axis in range(2))

    if [*lanes] == [line(bit) for bit in range(len(lanes))]:
        first, step = len(lanes), 1
    elif not any(point[other] for point in lanes):
        first, step = 0, 1 << len(lanes)
    else:
        return None
    bases = {point: 1 << bit for bit, point in enumerate(layout.bases[REGISTER])}
    bits = [bases.get(line(bit)) for bit in range(first, _log2(type_.shape[other]))]
    if None in bits:
        return None
    registers = [0]
    for bit in bits:
        assert bit is not None
        registers += [register | bit for register in registers]
    return tuple(registers), step


@lru_cache(maxsize=4096)
def memory_strides(type_: TensorType) -> tuple[int, ...] | None:
    """How far neighbours along each dimension are from each other, in elements, where an array for ROWS is memory in
    which element r of lane l is element r · W + l. None where that is not the same distance everywhere. An element may
    be there several times; these are the distances among the first of them."""
    try:
        layout = layout_of(type_)
    except LayoutError:
        return None
    places, lanes = array_places(type_, ROWS), len(layout.inputs[LANE])
    at = {point: 1 << bit for bit, point in reversed([*enumerate(layout.bases[LANE])]) if any(point)}
    at |= {point: places[1 << bit] << lanes for bit, point in enumerate(layout.bases[REGISTER])}
    strides = []
    for dim, extent in enumerate(type_.shape):
        bits = [tuple(1 << bit if axis == dim else 0 for axis in range(type_.rank)) for bit in range(_log2(extent))]
        first = at.get(bits[0]) if bits else 0
        if first is None or any(at.get(point) != first << bit for bit, point in enumerate(bits)):
            return None
        strides.append(first)
    return tuple(strides)


@lru_cache(maxsize=4096)
def in_memory(type_: TensorType) -> tuple[int, ...] | None:
    """The place in a tensor, counted row by row, of each lane's bits and then of each bit of the place in an array for
    ROWS: tensors of any shapes for which it is the same have arrays that hold the same. None without a layout."""
    try:
        layout = layout_of(type_)
    except LayoutError:
        return None
    places, registers = array_places(type_, ROWS), layout.inputs[REGISTER]
    ordered = sorted(range(len(registers)), key=lambda bit: places[1 << bit])
    return (*layout.inputs[LANE], *(registers[bit] for bit in ordered))


def _log2(extent: int) -> int:
    return extent.bit_length() - 1


def has_copies(type_: TensorType) -> bool:
    """Whether several lanes of a subgroup hold the same element of a tensor."""
    return 0 in layout_of(type_).inputs[LANE]
