"""Which register of an operand each register of a result is, where elements only get other coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .distributed import LANE, REGISTER, WARP
from .gf2 import span_values
from .linear import LinearLayout, flatten

#: For each dimension of an operand the one of the result that has its coordinate; None if it is 0 everywhere.
Dimensions = tuple[int | None, ...]


def broadcast(source: Sequence[int]) -> Dimensions:
    """The dimensions of an operand of this shape that is broadcast."""
    return tuple(None if extent == 1 else dim for dim, extent in enumerate(source))


def expanded(rank: int, axis: int) -> Dimensions:
    """The dimensions of an operand of this rank, whose result has one more at ``axis``."""
    return tuple(dim if dim < axis else dim + 1 for dim in range(rank))


def transposed(order: Sequence[int]) -> Dimensions:
    """The dimensions of an operand that is transposed: dimension ``i`` of the result is its ``order[i]``."""
    return tuple(order.index(dim) for dim in range(len(order)))


@lru_cache(maxsize=1024)
def renamed_registers(source: LinearLayout, target: LinearLayout, dimensions: Dimensions) -> tuple[int, ...]:
    """For each register of ``target`` one of ``source`` that holds the same element, in every lane and warp.

    Raises KeyError with an element's row-major index in ``source`` where no register holds it, or other lanes or warps
    do than hold it in ``target``."""

    def origins(name: str) -> list[int]:
        return [
            flatten([0 if dim is None else basis[dim] for dim in dimensions], source.shape)
            for basis in target.bases[name]
        ]

    for name in (LANE, WARP):
        for origin, held in zip(origins(name), source.inputs[name], strict=True):
            if origin != held:
                raise KeyError(origin)
    registers: dict[int, int] = {}
    for register, place in enumerate(source.images(REGISTER)):
        registers.setdefault(place, register)
    return tuple(span_values([registers[origin] for origin in origins(REGISTER)]))
