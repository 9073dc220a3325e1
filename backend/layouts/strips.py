"""Strips of a tensor: what is left of its layout when the highest bits of a dimension, all registers, are taken away.

Each invocation's array holds a tensor so that any strip of it is contiguous: the strip's registers are the highest bits
of the place in the array, and the other registers, in order, the lowest.
"""

from __future__ import annotations

from functools import lru_cache

from ..ttgir.types import TensorType
from .distributed import INPUTS, REGISTER, LayoutError, layout_of
from .linear import flatten, same_copies, unflatten


def strip_type(type_: TensorType, dim: int, strips: int) -> TensorType:
    """The type of one of ``strips`` equal parts along ``dim``."""
    shape = tuple(extent // strips if axis == dim else extent for axis, extent in enumerate(type_.shape))
    return TensorType(shape, type_.element, type_.encoding)


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
    number of strips that the tensor can be cut in."""
    assert type_.encoding is not None
    bases = list(layout_of(type_).inputs[REGISTER])
    strips = 1
    while type_.shape[dim] % (2 * strips) == 0 and all(bit in bases for bit in _highest(type_, dim, 2 * strips)):
        strips *= 2
    highest = [bases.index(basis) for basis in _highest(type_, dim, strips)]
    order = [bit for bit in range(len(bases)) if bit not in highest] + highest
    places = [0]
    for bit in range(len(bases)):
        places += [place + (1 << order.index(bit)) for place in places]
    return tuple(places)
