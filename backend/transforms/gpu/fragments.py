"""Gives tensors of matrix fragments the layout that the device has for them.

Upstream's passes choose NVIDIA's fragments, of warps of 32 lanes (``#ttg.nvidia_mma``). Here the encoding is a name for
which tensors are fragments, and gets the meaning of the device's largest matrices. Where that cannot be, what upstream
means by it is right on devices that hold matrices so. Subgroups of fewer lanes hold all else in more registers
(``FoldedEncoding``).

Upstream relates some encodings by what they mean: a column may have the encoding that it was loaded in, and its tile
that of a transposed fragment, where both are one layout of the column. With other fragments they are two, and the
column is converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...analysis.matrix_dots import choose, is_matrix_dot, suitable
from ...analysis.split_products import PRECISION
from ...matrices import MatrixConfiguration
from ...ttgir.encodings import (
    DotOperandEncoding,
    Encoding,
    FoldedEncoding,
    FragmentEncoding,
    LinearEncoding,
    NvidiaMmaEncoding,
    SliceEncoding,
    transposed,
    transposed_back,
)
from ...ttgir.ir import Module, Operation, Value
from ...ttgir.types import TensorType, encoding_of
from ..rewriting import Rewriter, encode_again
from ..type_rules import apart

#: Operations that rename registers, by an encoding that upstream works out from what another one means.
_BY_MEANING = frozenset({"tt.join", "tt.split", "tt.cat", "ttg.fp4_to_fp"})

#: Operations whose operand upstream leaves in another encoding than follows from the result's, if both mean the same.
_UP_TO_MEANING = frozenset({"tt.broadcast", "tt.trans"})

Meanings = dict[Encoding, Encoding]


def arrange_fragments(source: Module, lanes: int, configurations: Sequence[MatrixConfiguration]) -> bool:
    """Rewrites the encodings of ``source`` for subgroups of ``lanes``, at most as many as its warps have.

    Returns False, with nothing changed, where there are no dots of fragments, or one cannot be done by any of
    ``configurations``."""
    operations = list(source.walk())
    dots = [operation for operation in operations if is_matrix_dot(operation)]
    if not dots:
        return False
    precision = source.attribute(PRECISION)
    for dot in dots:
        if precision is not None and dot.attribute("inputPrecision") != "ieee":
            dot.set_attribute("inputPrecision", str(precision))
    fold = lanes < source.lanes

    def can_be(meanings: Meanings) -> bool:
        return all(
            choose(
                dot, configurations, [_meant(encoding_of(value.type), lanes, fold, meanings) for value in dot.operands]
            )
            for dot in dots
        )

    meanings: Meanings = {}
    found = _own_meanings(dots, configurations)
    if found is not None:
        _transpose_meanings(operations, found)
        if not _depends_on_meaning(operations, found):
            meanings = found
    if not (meanings and can_be(meanings)):
        meanings = {}
        if not can_be(meanings):
            return False
    if fold or meanings:
        encode_again(source, lambda encoding: _meant(encoding, lanes, fold, meanings))
    if meanings:
        _convert_apart(operations)
    source.set_attribute("ttg.threads-per-warp", lanes)
    return True


def _own_meanings(dots: Sequence[Operation], configurations: Sequence[MatrixConfiguration]) -> Meanings | None:
    """What each encoding of the dots' operands and results is to mean; None where two dots disagree."""
    meanings: Meanings = {}
    for dot in dots:
        fitting = suitable(dot, configurations)
        encoding = encoding_of(dot.result.type)
        if not fitting or not isinstance(encoding, NvidiaMmaEncoding):
            return None
        configuration = fitting[0]
        for value, map_, (rows, columns), private in zip(
            dot.operands, configuration.maps, configuration.extents, (1, 0, None), strict=True
        ):
            name = encoding_of(value.type)
            own = FragmentEncoding(rows, columns, map_.registers, map_.lanes, encoding.warps_per_cta, private)
            if name is None or meanings.setdefault(name, own) != own:
                return None
    return meanings


def _transpose_meanings(operations: Sequence[Operation], meanings: Meanings) -> None:
    """Adds the meanings of encodings of transposed fragments, which upstream writes out as ``#ttg.linear``: the first
    that is found for each."""
    waiting = [operation for operation in operations if operation.name == "tt.trans"]
    while True:
        later = []
        for operation in waiting:
            order = tuple(operation.attribute("order"))
            source, target = encoding_of(operation["src"].type), encoding_of(operation.result.type)
            known, wanted = _own(source, meanings), _own(target, meanings)
            if known is not None and isinstance(target, LinearEncoding):
                meanings.setdefault(target, transposed(known, order))
            elif wanted is not None and isinstance(source, LinearEncoding):
                meanings.setdefault(source, transposed_back(wanted, order))
            elif known is None and wanted is None:
                later.append(operation)
        if len(later) == len(waiting):
            return
        waiting = later


def _depends_on_meaning(operations: Sequence[Operation], meanings: Meanings) -> bool:
    encodings = (
        encoding_of(value.type)
        for operation in operations
        if operation.name in _BY_MEANING
        for value in (*operation.operands, *operation.results)
    )
    return any(_own(encoding, meanings) is not None or _of_fragments(encoding) for encoding in encodings)


def _of_fragments(encoding: Encoding | None) -> bool:
    while isinstance(encoding, SliceEncoding | DotOperandEncoding):
        encoding = encoding.parent
    return isinstance(encoding, NvidiaMmaEncoding)


def _own(encoding: Encoding | None, meanings: Meanings) -> Encoding | None:
    """The meaning of an encoding, or of a slice of one; None where it has none."""
    if not isinstance(encoding, SliceEncoding):
        return None if encoding is None else meanings.get(encoding)
    parent = _own(encoding.parent, meanings)
    return None if parent is None else replace(encoding, parent=parent)


def _meant(encoding: Encoding | None, lanes: int, fold: bool, meanings: Meanings) -> Encoding | None:
    """The encoding instead of ``encoding``; None where it has none."""
    if encoding is None:
        return None
    own = _own(encoding, meanings)
    if own is not None:
        return own
    if isinstance(encoding, SliceEncoding) and _of_fragments(encoding):
        parent = _meant(encoding.parent, lanes, fold, meanings)
        assert parent is not None
        return replace(encoding, parent=parent)
    return FoldedEncoding(encoding, lanes) if fold else encoding


def _convert_apart(operations: Sequence[Operation]) -> None:
    """Converts the operands of _UP_TO_MEANING whose layout is no longer the one that follows from the result's."""
    converted: dict[tuple[Value, Encoding], Value] = {}
    for operation in operations:
        if operation.name not in _UP_TO_MEANING:
            continue
        for value, encoding in list(apart(operation)):
            if (value, encoding) not in converted:
                converted[value, encoding] = _converted(value, encoding)
            operation.replace_operand(value, converted[value, encoding])


def _converted(value: Value, encoding: Encoding) -> Value:
    """``value`` in another encoding, right behind its definition: a loop that uses it need not convert it again."""
    owner, type_ = value.owner, value.type
    assert isinstance(type_, TensorType)
    place = Rewriter.after(owner) if isinstance(owner, Operation) else Rewriter(owner, owner.operations[0])
    return place.make("ttg.convert_layout", [value], [replace(type_, encoding=encoding)]).result
