"""What the user promises about a value: the attributes ``tt.contiguity``, ``tt.divisibility`` and ``tt.constancy`` of
the operation that gives it, with a number for each dimension of its type. A rewrite that gives a copy of the operation
another shape, or another order of dimensions, passes the attributes through ``turned`` or ``of_strip``.

A promise belongs to one value: on an operation with several results nothing says which one is meant, so it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...ttgir.ir import DenseAttr, Operation
from ...ttgir.types import TensorType
from .info import AxisInfo, power_of_two_divisor, shape_of, step_of

_HINTS = {"tt.contiguity": "contiguity", "tt.divisibility": "divisibility", "tt.constancy": "constancy"}


def with_hints(info: AxisInfo, attributes: dict[str, Any]) -> AxisInfo:
    """``info`` of the only value that ``attributes`` belong to, with what the user promised in them. What was known
    already is kept where it says more."""
    for attribute, field in _HINTS.items():
        hint = attributes.get(attribute)
        numbers = () if hint is None else _numbers(hint, info.rank)
        known: tuple[int, ...] = getattr(info, field)
        if len(numbers) == len(known):
            best = tuple(
                max(old, power_of_two_divisor(int(number))) for old, number in zip(known, numbers, strict=True)
            )
            info = AxisInfo(
                **{name: best if name == field else getattr(info, name) for name in _HINTS.values()},
                constant=info.constant,
            )
    return info


def turned(attributes: dict[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The attributes of a copy whose dimension i is dimension ``order[i]`` of the value that ``attributes`` tell of."""
    return _changed(attributes, len(order), lambda name, numbers: [numbers[dim] for dim in order])


def of_strip(attributes: dict[str, Any], strip: TensorType, dim: int) -> dict[str, Any]:
    """The attributes of a copy that computes a part of the type ``strip``, which begins at a multiple of its extent
    along ``dim``, of the value that ``attributes`` tell of. A run that is longer than the part begins before it, so
    that no more than the part's own place divides its first element."""
    extent = strip.shape[dim]
    most = {"tt.divisibility": extent * step_of(strip)}

    def shortened(name: str, numbers: Sequence[int]) -> Sequence[int]:
        least = min(power_of_two_divisor(int(numbers[dim])), most.get(name, extent))
        return [least if axis == dim else number for axis, number in enumerate(numbers)]

    return _changed(attributes, strip.rank, shortened)


def hint_faults(operation: Operation) -> Iterator[str]:
    """Hints of an operation that do not have one number for each dimension of its result."""
    if len(operation.results) != 1:
        return
    rank = len(shape_of(operation.result.type))
    for name in _HINTS:
        hint = operation.attribute(name)
        if hint is not None and len(_numbers(hint, rank)) != rank:
            yield f"the hint '{name}' has not one number for each of {rank} dimensions"


def _numbers(hint: Any, rank: int) -> tuple[Any, ...]:
    """The numbers of a hint about a value of ``rank`` dimensions, in the order of its dimensions."""
    if isinstance(hint, DenseAttr):
        extent = shape_of(hint.type)[0]
        return hint.values * extent if hint.splat else hint.values
    return hint if isinstance(hint, tuple) else (hint,)


def _changed(
    attributes: dict[str, Any], rank: int, change: Callable[[str, Sequence[int]], Sequence[int]]
) -> dict[str, Any]:
    made = dict(attributes)
    for name in _HINTS:
        hint = attributes.get(name)
        numbers = () if hint is None else _numbers(hint, rank)
        if len(numbers) != rank:
            made.pop(name, None)
        elif isinstance(hint, DenseAttr):
            made[name] = replace(hint, values=tuple(change(name, numbers)), splat=False)
        else:
            made[name] = change(name, numbers)[0] if rank == 1 else tuple(change(name, numbers))
    return made
