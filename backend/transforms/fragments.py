"""Gives tensors of matrix fragments the layout that the device has for them.

Upstream's passes choose NVIDIA's fragments, of warps of 32 lanes (``#ttg.nvidia_mma``). Here the encoding is a name for
which tensors are fragments, and gets the meaning of the device's largest matrices. Where that cannot be, what upstream
means by it is right on devices that hold matrices so. Subgroups of fewer lanes hold all else in more registers
(``FoldedEncoding``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.matrix_dots import choose, is_matrix_dot, suitable
from ..analysis.split_products import PRECISION
from ..matrices import MatrixConfiguration
from ..ttgir.encodings import (
    DotOperandEncoding,
    Encoding,
    FoldedEncoding,
    FragmentEncoding,
    NvidiaMmaEncoding,
    SliceEncoding,
    TransposedEncoding,
    unsliced,
)
from ..ttgir.ir import Module, Operation, Value
from ..ttgir.types import TensorType
from .rewriting import encode_again

#: Operations that rename registers, by an encoding that upstream works out from what another one means.
_BY_MEANING = frozenset({"tt.join", "tt.split", "tt.cat", "ttg.fp4_to_fp"})

Meanings = dict[Encoding, Encoding]


def arrange_fragments(source: Module, lanes: int, configurations: Sequence[MatrixConfiguration]) -> bool:
    """Rewrites the encodings of ``source`` for subgroups of ``lanes``, at most as many as its warps have.

    Returns False, with nothing changed, where there are no dots of fragments, or one cannot be done by any of
    ``configurations``."""
    operations = list(source.walk())
    dots = [operation for operation in operations if is_matrix_dot(operation)]
    if not dots:
        return False
    precision = source.attributes.get(PRECISION)
    for dot in dots:
        if precision is not None and dot.attributes["inputPrecision"] != "ieee":
            dot.attributes["inputPrecision"] = str(precision)
    fold = lanes < int(source.attributes["ttg.threads-per-warp"])

    def can_be(meanings: Meanings) -> bool:
        return all(
            choose(dot, configurations, [_meant(_encoding(value), lanes, fold, meanings) for value in dot.operands])
            for dot in dots
        )

    meanings: Meanings = {}
    found = _own_meanings(dots, configurations)
    if found is not None and _transpose_meanings(operations, found) and not _depends_on_meaning(operations, found):
        meanings = found
    if not (meanings and can_be(meanings)):
        meanings = {}
        if not can_be(meanings):
            return False
    if fold or meanings:
        encode_again(source, lambda encoding: _meant(encoding, lanes, fold, meanings))
    source.attributes["ttg.threads-per-warp"] = lanes
    return True


def _encoding(value: Value) -> Encoding | None:
    return value.type.encoding if isinstance(value.type, TensorType) else None


def _own_meanings(dots: Sequence[Operation], configurations: Sequence[MatrixConfiguration]) -> Meanings | None:
    """What each encoding of the dots' operands and results is to mean; None where two dots disagree."""
    meanings: Meanings = {}
    for dot in dots:
        fitting = suitable(dot, configurations)
        encoding = _encoding(dot.result)
        if not fitting or not isinstance(encoding, NvidiaMmaEncoding):
            return None
        configuration = fitting[0]
        for value, map_, (rows, columns), private in zip(
            dot.operands, configuration.maps, configuration.extents, (1, 0, None), strict=True
        ):
            name = _encoding(value)
            own = FragmentEncoding(rows, columns, map_.registers, map_.lanes, encoding.warps_per_cta, private)
            if name is None or meanings.setdefault(name, own) != own:
                return None
    return meanings


def _transpose_meanings(operations: Sequence[Operation], meanings: Meanings) -> bool:
    """Adds the meanings of encodings of transposed fragments. False where they would mean two things."""
    waiting = [operation for operation in operations if operation.name == "tt.trans"]
    while True:
        later = []
        for operation in waiting:
            order = tuple(operation.attributes["order"])
            back = tuple(order.index(dim) for dim in range(len(order)))
            source, target = _encoding(operation.operands[0]), _encoding(operation.result)
            assert source is not None and target is not None
            if source in meanings:
                if meanings.setdefault(target, _transposed(meanings[source], order)) != _transposed(
                    meanings[source], order
                ):
                    return False
            elif target in meanings:
                meanings[source] = _transposed(meanings[target], back)
            else:
                later.append(operation)
        if len(later) == len(waiting):
            return True
        waiting = later


def _transposed(encoding: Encoding, order: tuple[int, ...]) -> Encoding:
    if isinstance(encoding, TransposedEncoding):
        order = tuple(encoding.order[dim] for dim in order)
        encoding = encoding.inner
    return encoding if order == tuple(range(len(order))) else TransposedEncoding(encoding, order)


def _depends_on_meaning(operations: Sequence[Operation], meanings: Meanings) -> bool:
    encodings = (
        _encoding(value)
        for operation in operations
        if operation.name in _BY_MEANING
        for value in (*operation.operands, *operation.results)
    )
    return any(encoding in meanings or _of_fragments(encoding) for encoding in encodings)


def _of_fragments(encoding: Encoding | None) -> bool:
    while isinstance(encoding, SliceEncoding | DotOperandEncoding):
        encoding = encoding.parent
    return isinstance(encoding, NvidiaMmaEncoding)


def _meant(encoding: Encoding | None, lanes: int, fold: bool, meanings: Meanings) -> Encoding | None:
    """The encoding instead of ``encoding``; None where it has none."""
    if encoding is None:
        return None
    own = meanings.get(encoding)
    if own is not None:
        return own
    if isinstance(encoding, SliceEncoding) and (unsliced(encoding) in meanings or _of_fragments(encoding)):
        parent = _meant(encoding.parent, lanes, fold, meanings)
        assert parent is not None
        return replace(encoding, parent=parent)
    return FoldedEncoding(encoding, lanes) if fold else encoding
