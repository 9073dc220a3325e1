"""Subgroups side by side where reductions go up and down: nothing is exchanged between them, and nobody waits.

Upstream lays the subgroups of a tile along its rows as far as these reach, for accesses that lie together. A sum of
each row then goes through shared memory, behind barriers. Where a driver makes coroutines for these (drivers.py), and
there are rows for all subgroups, each gets its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..ttgir.encoding_changes import ALONG, Chosen, meant, mixes
from ..ttgir.encodings import BlockedEncoding, Encoding
from ..ttgir.ir import Module, Operation
from ..ttgir.operations import OPERATIONS, Layouts
from ..ttgir.types import TensorType

#: Operations whose encodings follow from each other otherwise than by slices.
BOUND = frozenset(name for name, row in OPERATIONS.items() if row.layouts is not Layouts.SLICES)


def encodings_along_rows(module: Module) -> Callable[[Encoding], Encoding] | None:
    """What each encoding of ``module`` becomes; None where all stay."""
    chosen = _choose(list(module.walk()))
    return partial(meant, chosen) if chosen else None


def _choose(operations: list[Operation]) -> Chosen:
    """Encodings → those in their place: where all that goes along a dimension goes along the same one, and all of its
    tiles have rows enough."""
    wanted: dict[BlockedEncoding, set[Encoding | None]] = {}
    for operation in operations:
        type_ = operation.operands[0].type if operation.name in ALONG else None
        if isinstance(type_, TensorType) and isinstance(encoding := type_.encoding, BlockedEncoding):
            wanted.setdefault(encoding, set()).add(_moved(encoding, type_.shape, operation.attributes["axis"]))
    chosen: Chosen = {
        encoding: found
        for encoding, (found, *others) in ((one, tuple(several)) for one, several in wanted.items())
        if not others and found is not None and found != encoding
    }
    return {} if any(mixes(operation, chosen) for operation in operations) else chosen


def _moved(encoding: BlockedEncoding, shape: tuple[int, ...], axis: int) -> Encoding | None:
    """``encoding`` with one subgroup along ``axis``; None where a tensor of ``shape`` is too small."""
    warps = list(encoding.warps_per_cta)
    left, warps[axis] = warps[axis], 1
    for dim in encoding.order:
        tile = encoding.size_per_thread[dim] * encoding.threads_per_warp[dim]
        while dim != axis and left > 1 and tile * warps[dim] * 2 <= shape[dim]:
            left, warps[dim] = left // 2, warps[dim] * 2
    return None if left > 1 else replace(encoding, warps_per_cta=tuple(warps))
