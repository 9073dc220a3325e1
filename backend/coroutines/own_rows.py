"""Subgroups side by side where reductions go up and down: nothing is exchanged between them, and nobody waits.

Upstream lays the subgroups of a tile along its rows as far as these reach, for accesses that lie together. A sum of
each row then goes through shared memory, behind barriers. Where a driver makes coroutines for these (drivers.py), and
there are rows for all subgroups, each gets its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..ttgir.encodings import BlockedEncoding, Encoding, SliceEncoding, unsliced
from ..ttgir.ir import Module, Operation
from ..ttgir.traits import TRAITS, End, Layouts, traits
from ..ttgir.types import TensorType

#: Operations that combine elements along their dimension ``axis``.
ALONG = frozenset({"tt.reduce", "tt.scan"})

#: Operations whose encodings follow from each other otherwise than by slices.
BOUND = frozenset(name for name, row in TRAITS.items() if row.layouts is not Layouts.SLICES)

_Chosen = dict[Encoding, Encoding]


def encodings_along_rows(module: Module) -> Callable[[Encoding], Encoding] | None:
    """What each encoding of ``module`` becomes; None where all stay."""
    chosen = _choose(list(module.walk()))
    return partial(_meant, chosen) if chosen else None


def _choose(operations: list[Operation]) -> _Chosen:
    """Encodings → those in their place: where all that goes along a dimension goes along the same one, and all of its
    tiles have rows enough."""
    wanted: dict[BlockedEncoding, set[Encoding | None]] = {}
    for operation in operations:
        type_ = operation.operands[0].type if operation.name in ALONG else None
        if isinstance(type_, TensorType) and isinstance(encoding := type_.encoding, BlockedEncoding):
            wanted.setdefault(encoding, set()).add(_moved(encoding, type_.shape, operation.attributes["axis"]))
    chosen: _Chosen = {
        encoding: found
        for encoding, (found, *others) in ((one, tuple(several)) for one, several in wanted.items())
        if not others and found is not None and found != encoding
    }
    return {} if any(_mixes(operation, chosen) for operation in operations) else chosen


def _mixes(operation: Operation, chosen: _Chosen) -> bool:
    """Whether an operation has tensors of a chosen encoding and of another one, which mean the same before the
    rewrite."""
    if operation.name == "ttg.convert_layout" or traits(operation).end is not End.NOT:
        return False
    if operation.regions and operation.name not in ALONG:
        return False  # it passes each value on as it is
    types = [value.type for value in (*operation.operands, *operation.results)]
    found = {unsliced(type_.encoding) for type_ in types if isinstance(type_, TensorType)}
    return len(found) > 1 and not found.isdisjoint(chosen)


def _moved(encoding: BlockedEncoding, shape: tuple[int, ...], axis: int) -> Encoding | None:
    """``encoding`` with one subgroup along ``axis``; None where a tensor of ``shape`` is too small."""
    warps = list(encoding.warps_per_cta)
    left, warps[axis] = warps[axis], 1
    for dim in encoding.order:
        tile = encoding.size_per_thread[dim] * encoding.threads_per_warp[dim]
        while dim != axis and left > 1 and tile * warps[dim] * 2 <= shape[dim]:
            left, warps[dim] = left // 2, warps[dim] * 2
    return None if left > 1 else replace(encoding, warps_per_cta=tuple(warps))


def _meant(chosen: _Chosen, encoding: Encoding) -> Encoding:
    if isinstance(encoding, SliceEncoding):
        return replace(encoding, parent=_meant(chosen, encoding.parent))
    return chosen.get(encoding, encoding)
